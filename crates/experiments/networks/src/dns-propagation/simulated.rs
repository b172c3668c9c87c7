//! Tests that compare the computed times with the true times of simulated zones, on a virtual clock.

use std::time::Duration;

use ascertain_netlab::dns::{
    Balance, Change, Name, ProbeAnswer, Prober, Question, RData, Recipient, RecordType, ReplicaUpdate, Rhythm,
    Simulation, SimulationSpec, update,
};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::remarks::MUCH_MISSED;
use super::super::{OTHERS_PORTS, SIMULATED_PORTS};
use super::*;

const MS: u64 = 1_000_000;
const RTT_NS: u64 = 10 * MS;
const CALL_NS: u64 = 1_000 * MS;
const END_NS: u64 = 4_000 * MS;
const SEEDS: u64 = 24;

fn rhythm(servers: usize) -> Rhythm {
    Rhythm { servers, flows: 64, interval: Duration::from_millis(100) }
}

fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

/// Simulates a zone, and queries it from before a change until long after the change. Returns the queries with their
/// answers, and the true times of the change. A share of the answers, `loss`, is lost. The choice of lost answers
/// depends only on the seed.
fn observe(plan: SimulationSpec, seed: u64, loss: f64) -> (Vec<Probe>, Vec<ReplicaUpdate>) {
    observe_from(64, plan, seed, loss)
}

fn observe_from(flows: usize, plan: SimulationSpec, seed: u64, loss: f64) -> (Vec<Probe>, Vec<ReplicaUpdate>) {
    let rhythm = Rhythm { flows, ..rhythm(plan.servers.len()) };
    let address = |server: usize| ([192, 0, 2, server as u8 + 1], 53).into();
    let question = Question::new(name("new.example."), RecordType::A).unwrap();
    let servers = (0..rhythm.servers).map(address).collect();
    let is_new = |answer: &ascertain_netlab::dns::Answer| !answer.values.is_empty();
    let mut prober = Prober::new(servers, rhythm.flows, question, is_new, Duration::from_secs(1), seed);
    let value: RData = RData::A(std::net::Ipv4Addr::new(192, 0, 2, 9).into());
    let change = Change::Add { name: name("new.example."), ttl_s: 1, value };
    let mut call = Some(update(&name("example."), &change, None, 1, 0).unwrap());
    let mut zone = Simulation::new(plan, 0);
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let port = chance.random_range(20_000..60_000);
    let numbers = (0..).take_while(|number| rhythm.due_ns(*number) < END_NS);
    for number in numbers {
        let sent_ns = rhythm.due_ns(number);
        if sent_ns >= CALL_NS
            && let Some(mut call) = call.take()
        {
            let answer = zone.request(CALL_NS + RTT_NS / 2, Recipient::Primary, address(99), &call.bytes).unwrap();
            call.accept(&answer).unwrap();
        }
        let (server, flow) = rhythm.server_and_flow(number);
        let question = prober.query(sent_ns, server, flow).1.to_vec();
        let is_lost = chance.random_bool(loss);
        let from = ([198, 51, 100, 1], port + flow as u16).into();
        // The zone and the prober use the same clock, so queries are answered in the order in which they were sent.
        let answer = zone.request(sent_ns + RTT_NS / 2, Recipient::Server(server), from, &question).unwrap();
        if !is_lost {
            prober.arrived(sent_ns + RTT_NS, flow, address(server), &answer);
        }
    }
    (prober.log.probes, zone.truth().to_vec())
}

/// Returns the true times at which a server's replicas received the change, in nanoseconds since the call, in
/// ascending order.
fn truth_of(truth: &[ReplicaUpdate], server: usize) -> Vec<u64> {
    let mut moments: Vec<u64> =
        truth.iter().filter(|had| had.server == server).map(|had| had.at_ns - CALL_NS).collect();
    moments.sort_unstable();
    moments
}

/// Returns the delays of eight replicas. The difference between two successive delays is random, from `least_gap_ms` to
/// `least_gap_ms` + 80 ms.
fn delays(chance: &mut Xoshiro256PlusPlus, least_gap_ms: u64) -> Vec<Duration> {
    let mut at_ms = chance.random_range(0..100);
    let of_replica = |_| {
        at_ms += chance.random_range(least_gap_ms..=least_gap_ms + 80);
        Duration::from_millis(at_ms)
    };
    (0..8).map(of_replica).collect::<Vec<_>>()
}

fn plan(seed: u64, least_gap_ms: u64) -> SimulationSpec {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let of_server = |_| {
        let count = chance.random_range(1..=8);
        delays(&mut chance, least_gap_ms)[..count].to_vec()
    };
    let servers = (0..3).map(of_server).collect();
    SimulationSpec { has_nsid: seed.is_multiple_of(2), seed, ..SimulationSpec::new(servers) }
}

/// Returns the largest accepted error of an estimate in ns: the interval between two queries, plus a round-trip time.
fn tolerance_ns() -> u64 {
    rhythm(1).interval.as_nanos() as u64 + RTT_NS
}

fn estimate_ns(moment: Moment) -> u64 {
    moment.estimate_ns().unwrap_or_else(|| panic!("the change has not arrived: {moment:?}"))
}

/// Returns whether the true time lies within the bounds, or outside of them by at most the tolerance.
fn is_near(moment: Moment, true_ns: u64) -> bool {
    let Moment { low_ns, high_ns } = moment;
    (low_ns.saturating_sub(tolerance_ns())..=high_ns.unwrap() + tolerance_ns()).contains(&true_ns)
}

#[test]
fn each_replica_is_found_at_its_moment() {
    for seed in 0..SEEDS {
        // A gap of 220 ms is as long as two intervals and two round trips.
        let (asked, truth) = observe(plan(seed, 220), seed, 0.0);
        for (number, server) in servers(&asked, 3, CALL_NS).iter().enumerate() {
            let truth = truth_of(&truth, number);
            assert_eq!(server.replicas.len(), truth.len(), "seed {seed}: {server:?} {truth:?}");
            assert!(server.mixed.is_empty() && server.lost == 0 && server.failed == 0);
            for (replica, true_ns) in server.replicas.iter().zip(truth) {
                let Moment { low_ns, high_ns } = replica.had;
                assert!(low_ns < true_ns && high_ns.unwrap() >= true_ns, "seed {seed}: {replica:?} {true_ns}");
                assert!(high_ns.unwrap() - low_ns <= tolerance_ns(), "seed {seed}: {replica:?}");
            }
        }
    }
}

/// Two replicas that receive the change at nearly the same time may count as one, but a single replica never counts as
/// two. Replicas that report different identities never count as one.
#[test]
fn there_are_never_more_replicas_than_there_are() {
    for seed in 0..SEEDS {
        let (asked, truth) = observe(plan(seed, 0), seed, 0.2);
        let servers = servers(&asked, 3, CALL_NS);
        for (number, server) in servers.iter().enumerate() {
            let truth = truth_of(&truth, number);
            let has_names = seed.is_multiple_of(2);
            assert!(server.replicas.len() <= truth.len() && server.mixed.is_empty(), "seed {seed}: {server:?}");
            assert!(!has_names || server.replicas.len() == truth.len(), "seed {seed}: {server:?}");
            let Times { first, all, .. } = times([server]).unwrap();
            assert!(is_near(first, truth[0]), "seed {seed}: {first:?} {truth:?}");
            assert!(is_near(all, truth[truth.len() - 1]), "seed {seed}: {all:?} {truth:?}");
        }
        let Times { first, half, all } = times(&servers).unwrap();
        let mut moments: Vec<u64> = truth.iter().map(|had| had.at_ns - CALL_NS).collect();
        moments.sort_unstable();
        assert!(is_near(first, moments[0]) && is_near(all, *moments.last().unwrap()), "seed {seed}");
        assert!(first.low_ns <= half.low_ns && half.low_ns <= all.low_ns && half.high_ns <= all.high_ns);
    }
}

#[test]
fn loss_moves_nothing_by_more_than_an_interval_and_makes_it_less_sure() {
    let (mut widths, mut lossy_widths) = (0, 0);
    for seed in 0..SEEDS {
        let [(whole, _), (lossy, truth)] = [0.0, 0.3].map(|loss| observe(plan(seed, 220), seed, loss));
        let [whole, lossy] = [whole, lossy].map(|asked| servers(&asked, 3, CALL_NS));
        for (number, (whole, lossy)) in whole.iter().zip(&lossy).enumerate() {
            let share = lossy.lost as f64 / lossy.asked as f64;
            assert!((0.2..0.35).contains(&share), "seed {seed}: {share}");
            assert_eq!(lossy.replicas.len(), whole.replicas.len(), "seed {seed}: {lossy:?}");
            for ((whole, lossy), true_ns) in whole.replicas.iter().zip(&lossy.replicas).zip(truth_of(&truth, number)) {
                let moved_ns = estimate_ns(whole.had).abs_diff(estimate_ns(lossy.had));
                assert!(moved_ns <= rhythm(1).interval.as_nanos() as u64, "seed {seed}: {whole:?} {lossy:?}");
                let is_within = lossy.had.low_ns < true_ns && lossy.had.high_ns.unwrap() >= true_ns;
                assert!(is_within, "seed {seed}: {lossy:?} {true_ns}");
                widths += whole.had.high_ns.unwrap() - whole.had.low_ns;
                lossy_widths += lossy.had.high_ns.unwrap() - lossy.had.low_ns;
            }
        }
    }
    assert!(lossy_widths > widths, "{lossy_widths} {widths}");
}

/// If each packet takes its own path and replicas report no identities, the analysis must find at least two replicas,
/// but not more than exist.
#[test]
fn answers_that_go_back_and_forth_are_of_two_at_least() {
    for seed in 0..SEEDS {
        let plan = SimulationSpec {
            balance: Balance::ByPacket,
            seed,
            ..SimulationSpec::new(vec![delays(&mut Xoshiro256PlusPlus::seed_from_u64(seed), 150)])
        };
        let (asked, truth) = observe(plan.clone(), seed, 0.0);
        let found = servers(&asked, 1, CALL_NS);
        assert!(!found[0].mixed.is_empty() && (2..=8).contains(&found[0].replicas.len()), "seed {seed}: {found:?}");
        // With identities, all replicas are distinguished.
        let (asked, _) = observe(SimulationSpec { has_nsid: true, ..plan }, seed, 0.0);
        let named = servers(&asked, 1, CALL_NS);
        assert!(named[0].mixed.is_empty(), "seed {seed}");
        for (replica, true_ns) in named[0].replicas.iter().zip(truth_of(&truth, 0)) {
            assert!(replica.had.low_ns < true_ns && replica.had.high_ns.unwrap() >= true_ns);
        }
        assert_eq!(named[0].replicas.len(), 8, "seed {seed}");
    }
}

#[test]
fn who_does_not_answer_has_no_moment_and_who_never_has_it_no_end() {
    let (asked, _) = observe(SimulationSpec::new(vec![vec![Duration::from_secs(100)]]), 1, 0.0);
    let [server] = &servers(&asked, 1, CALL_NS)[..] else { panic!() };
    let [replica] = &server.replicas[..] else { panic!("{server:?}") };
    assert!(replica.had.high_ns.is_none() && replica.had.low_ns > END_NS - CALL_NS - tolerance_ns());
    assert_eq!(times([server]).unwrap().all.high_ns, None);
    let (asked, _) = observe(plan(1, 220), 1, 1.0);
    let silent = servers(&asked, 3, CALL_NS);
    assert!(silent.iter().all(|server| server.replicas.is_empty() && server.lost == server.asked));
    assert_eq!(times(&silent), None);
}

/// Two machines that report the same identity must be counted as two. Each of the sixteen ports always reaches the same
/// machine.
#[test]
fn replicas_with_one_name_are_counted_by_their_moments_and_not_by_ports() {
    let of_flow = |flow: usize| {
        (0..20).map(move |round| {
            let sent_ns = CALL_NS + (100 * round + 6 * flow as u64) * MS;
            let had_ns = CALL_NS + if flow.is_multiple_of(2) { 400 } else { 1_200 } * MS;
            let state = if sent_ns + RTT_NS / 2 < had_ns { AnswerState::Old } else { AnswerState::New };
            let answer = Some(ProbeAnswer { received_ns: sent_ns + RTT_NS, state, serial: None, nsid: Some(0) });
            Probe { server: 0, flow, sent_ns, is_by_tcp: false, answer }
        })
    };
    let asked: Vec<Probe> = (0..16).flat_map(of_flow).collect();
    let [server] = &servers(&asked, 1, CALL_NS)[..] else { panic!("one") };
    let [first, last] = &server.replicas[..] else { panic!("{server:?}") };
    let moments = [first, last].map(|replica| (estimate_ns(replica.had) / MS, replica.share, replica.nsid));
    assert!((395..=405).contains(&moments[0].0) && (1_195..=1_205).contains(&moments[1].0), "{moments:?}");
    assert!(moments.iter().all(|(_, share, nsid)| (share - 0.5).abs() < 1e-9 && *nsid == Some(0)), "{moments:?}");
}

/// One port was used only before the call, and the other port only after it. Both may have reached the same replica, so
/// only one replica must be counted.
#[test]
fn a_replica_that_had_it_before_the_call_is_one() {
    let of_flow = |(flow, sent_ns): (usize, u64)| {
        let answer = Some(ProbeAnswer { received_ns: sent_ns + MS, state: AnswerState::New, serial: None, nsid: None });
        Probe { server: 0, flow, sent_ns, is_by_tcp: false, answer }
    };
    let asked = [(0, CALL_NS - 10 * MS), (1, CALL_NS + 10 * MS)].map(of_flow);
    let [server] = &servers(&asked, 1, CALL_NS)[..] else { panic!("one") };
    let [replica] = &server.replicas[..] else { panic!("{server:?}") };
    assert_eq!(replica.had, Moment { low_ns: 0, high_ns: Some(0) });
    assert!((replica.share - 1.0).abs() < 1e-9, "{replica:?}");
}

/// The curve is the share of ports whose replica has the change, with a step for each query.
#[test]
fn the_curve_goes_up_by_steps() {
    let (asked, truth) =
        observe(SimulationSpec::new(vec![vec![Duration::from_millis(400), Duration::from_millis(1_200)]]), 1, 0.0);
    let [server] = &servers(&asked, 1, CALL_NS)[..] else { panic!("one") };
    let interval_ns = 100 * MS;
    let curve: Vec<(u64, f64)> = steps(interval_ns / 64, END_NS - CALL_NS)
        .map(|time_ns| (time_ns, share_at(server, time_ns, CALL_NS, interval_ns).unwrap()))
        .collect();
    let truth = truth_of(&truth, 0);
    let at = |from_ns: u64, until_ns: u64| {
        curve
            .iter()
            .filter(|(at_ns, _)| (from_ns..until_ns).contains(at_ns))
            .map(|(_, share)| *share)
            .collect::<Vec<_>>()
    };
    // About half of the 64 ports reach each replica. The tolerance in time is a tenth of an interval plus a round trip.
    let unsure_ns = interval_ns / 10 + RTT_NS;
    assert!(at(0, truth[0] - unsure_ns).iter().all(|share| *share == 0.0));
    assert!(at(truth[1] + unsure_ns, u64::MAX).iter().all(|share| (share - 1.0).abs() < 1e-9));
    let between = at(truth[0] + unsure_ns, truth[1] - unsure_ns);
    assert!(between.iter().all(|share| *share == between[0] && (0.3..0.7).contains(share)), "{between:?}");
    assert!(between.len() > 100 && curve.len() as u64 <= MOST_STEPS + 1 && curve[0].0 <= interval_ns / 16);
}

/// Each step of a long observation must end at a time at which a step of a shorter observation ends too. A median over
/// several changes needs such common times.
#[test]
fn longer_changes_are_looked_at_when_shorter_ones_are() {
    let times = |end_ns| steps(10, end_ns).collect::<Vec<_>>();
    let (short, long) = (times(5_000), times(9_000));
    assert_eq!((short.len(), short[0], long.len(), long[0]), (500, 10, 450, 20));
    assert!(long.iter().take_while(|at_ns| **at_ns <= 5_000).all(|at_ns| short.contains(at_ns)));
}

/// The curve also rises if each packet takes its own path.
#[test]
fn the_curve_of_what_goes_back_and_forth_goes_up() {
    let delays = (1..=8).map(|number| Duration::from_millis(200 * number)).collect();
    let (asked, _) =
        observe(SimulationSpec { balance: Balance::ByPacket, ..SimulationSpec::new(vec![delays]) }, 1, 0.0);
    let [server] = &servers(&asked, 1, CALL_NS)[..] else { panic!("one") };
    let at = |time_ms: u64| share_at(server, time_ms * MS, CALL_NS, 100 * MS).unwrap();
    assert!(!server.mixed.is_empty());
    assert!(at(50) == 0.0 && at(2_000) == 1.0);
    assert!((0.2..0.4).contains(&at(500)) && (0.65..0.85).contains(&at(1_300)), "{} {}", at(500), at(1_300));
}

/// Eight replicas share the queries of a server evenly. The default number of ports for simulated servers almost always
/// finds all eight. The default number for other servers is too small, and a remark must report that replicas may have
/// been missed.
#[test]
fn eight_replicas_are_counted_by_the_usual_number_of_ports() {
    let plan = |seed| SimulationSpec {
        seed,
        ..SimulationSpec::new(
            (0..3).map(|_| (1..=8).map(|number| Duration::from_millis(250 * number)).collect()).collect(),
        )
    };
    let counted = |ports: usize| {
        let of_seed = |seed| servers(&observe_from(ports, plan(seed), seed, 0.0).0, 3, CALL_NS);
        let found: Vec<Server> = (0..16).flat_map(of_seed).collect();
        let count = |is_so: fn(&Server) -> bool| found.iter().filter(|server| is_so(server)).count();
        (count(|server| server.replicas.len() == 8), count(|server| server.misses() > MUCH_MISSED))
    };
    let (found, may_be_more) = counted(SIMULATED_PORTS as usize);
    assert!(found >= 47 && may_be_more == 0, "{found} of 48, {may_be_more}");
    let (found, may_be_more) = counted(OTHERS_PORTS as usize);
    assert!(found < 30 && may_be_more == 48, "{found} of 48, {may_be_more}");
}
