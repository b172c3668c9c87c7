//! What is made of the answers against the truth of simulated zones, on a virtual clock.

use std::time::Duration;

use ascertain_netlab::dns::{
    Answered, Balance, Change, Had, Name, Plan, Probing, Question, RData, RecordType, Rhythm, Simulation, To, update,
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

/// What a zone is asked from before a change until long after it, through a network with that loss, and the truth. What
/// is lost depends on nothing else.
fn seen(plan: Plan, seed: u64, loss: f64) -> (Vec<Asked>, Vec<Had>) {
    seen_from(64, plan, seed, loss)
}

fn seen_from(flows: usize, plan: Plan, seed: u64, loss: f64) -> (Vec<Asked>, Vec<Had>) {
    let rhythm = Rhythm { flows, ..rhythm(plan.servers.len()) };
    let address = |server: usize| ([192, 0, 2, server as u8 + 1], 53).into();
    let question = Question::new(name("new.example."), RecordType::A).unwrap();
    let servers = (0..rhythm.servers).map(address).collect();
    let is_new = |answer: &ascertain_netlab::dns::Answer| !answer.values.is_empty();
    let mut probing = Probing::new(servers, rhythm.flows, question, is_new, Duration::from_secs(1), seed);
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
            let answer = zone.request(CALL_NS + RTT_NS / 2, To::Primary, address(99), &call.bytes).unwrap();
            call.accept(&answer).unwrap();
        }
        let (server, flow) = rhythm.of(number);
        let question = probing.ask(sent_ns, server, flow).1.to_vec();
        let is_lost = chance.random_bool(loss);
        let from = ([198, 51, 100, 1], port + flow as u16).into();
        // Both go by one clock: what is asked is answered in its order.
        let answer = zone.request(sent_ns + RTT_NS / 2, To::Server(server), from, &question).unwrap();
        if !is_lost {
            probing.arrived(sent_ns + RTT_NS, flow, address(server), &answer);
        }
    }
    (probing.asked().to_vec(), zone.truth().to_vec())
}

/// Moments since the call, of one server, in their order.
fn truth_of(truth: &[Had], server: usize) -> Vec<u64> {
    let mut moments: Vec<u64> =
        truth.iter().filter(|had| had.server == server).map(|had| had.at_ns - CALL_NS).collect();
    moments.sort_unstable();
    moments
}

/// Up to eight replicas with delays that are further apart than two polling intervals and round trips, or nearer.
fn delays(chance: &mut Xoshiro256PlusPlus, least_gap_ms: u64) -> Vec<Duration> {
    let mut at_ms = chance.random_range(0..100);
    let of_replica = |_| {
        at_ms += chance.random_range(least_gap_ms..=least_gap_ms + 80);
        Duration::from_millis(at_ms)
    };
    (0..8).map(of_replica).collect::<Vec<_>>()
}

fn plan(seed: u64, least_gap_ms: u64) -> Plan {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let of_server = |_| {
        let count = chance.random_range(1..=8);
        delays(&mut chance, least_gap_ms)[..count].to_vec()
    };
    let servers = (0..3).map(of_server).collect();
    Plan { has_nsid: seed.is_multiple_of(2), seed, ..Plan::new(servers) }
}

/// How far estimates may be off.
fn tolerance_ns() -> u64 {
    rhythm(1).interval.as_nanos() as u64 + RTT_NS
}

fn estimate_ns(moment: Moment) -> u64 {
    moment.estimate_ns().unwrap_or_else(|| panic!("{moment:?} has come"))
}

/// Whether the true moment lies in what is known of it, or no further from it than estimates may be off.
fn is_near(moment: Moment, true_ns: u64) -> bool {
    let Moment { low_ns, high_ns } = moment;
    (low_ns.saturating_sub(tolerance_ns())..=high_ns.unwrap() + tolerance_ns()).contains(&true_ns)
}

#[test]
fn each_replica_is_found_at_its_moment() {
    for seed in 0..SEEDS {
        // Two intervals and round trips.
        let (asked, truth) = seen(plan(seed, 220), seed, 0.0);
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

/// Replicas that have it at nearly the same moment may be taken for one, never one for two; names tell them apart.
#[test]
fn there_are_never_more_replicas_than_there_are() {
    for seed in 0..SEEDS {
        let (asked, truth) = seen(plan(seed, 0), seed, 0.2);
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
        let [(whole, _), (lossy, truth)] = [0.0, 0.3].map(|loss| seen(plan(seed, 220), seed, loss));
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

/// Without names, and where each packet goes its own way, two are as many as can be told.
#[test]
fn answers_that_go_back_and_forth_are_of_two_at_least() {
    for seed in 0..SEEDS {
        let plan = Plan {
            balance: Balance::ByPacket,
            seed,
            ..Plan::new(vec![delays(&mut Xoshiro256PlusPlus::seed_from_u64(seed), 150)])
        };
        let (asked, truth) = seen(plan.clone(), seed, 0.0);
        let found = servers(&asked, 1, CALL_NS);
        assert!(!found[0].mixed.is_empty() && (2..=8).contains(&found[0].replicas.len()), "seed {seed}: {found:?}");
        // With names all are told apart.
        let (asked, _) = seen(Plan { has_nsid: true, ..plan }, seed, 0.0);
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
    let (asked, _) = seen(Plan::new(vec![vec![Duration::from_secs(100)]]), 1, 0.0);
    let [server] = &servers(&asked, 1, CALL_NS)[..] else { panic!() };
    let [replica] = &server.replicas[..] else { panic!("{server:?}") };
    assert!(replica.had.high_ns.is_none() && replica.had.low_ns > END_NS - CALL_NS - tolerance_ns());
    assert_eq!(times([server]).unwrap().all.high_ns, None);
    let (asked, _) = seen(plan(1, 220), 1, 1.0);
    let silent = servers(&asked, 3, CALL_NS);
    assert!(silent.iter().all(|server| server.replicas.is_empty() && server.lost == server.asked));
    assert_eq!(times(&silent), None);
}

/// Two machines with one name, sixteen ports, and each port's router always leads to the same one.
#[test]
fn replicas_with_one_name_are_counted_by_their_moments_and_not_by_ports() {
    let of_flow = |flow: usize| {
        (0..20).map(move |round| {
            let sent_ns = CALL_NS + (100 * round + 6 * flow as u64) * MS;
            let had_ns = CALL_NS + if flow.is_multiple_of(2) { 400 } else { 1_200 } * MS;
            let says = if sent_ns + RTT_NS / 2 < had_ns { Says::Old } else { Says::New };
            let answer = Some(Answered { received_ns: sent_ns + RTT_NS, says, serial: None, nsid: Some(0) });
            Asked { server: 0, flow, sent_ns, is_by_tcp: false, answer }
        })
    };
    let asked: Vec<Asked> = (0..16).flat_map(of_flow).collect();
    let [server] = &servers(&asked, 1, CALL_NS)[..] else { panic!("one") };
    let [first, last] = &server.replicas[..] else { panic!("{server:?}") };
    let moments = [first, last].map(|replica| (estimate_ns(replica.had) / MS, replica.share, replica.nsid));
    assert!((395..=405).contains(&moments[0].0) && (1_195..=1_205).contains(&moments[1].0), "{moments:?}");
    assert!(moments.iter().all(|(_, share, nsid)| (share - 0.5).abs() < 1e-9 && *nsid == Some(0)), "{moments:?}");
}

/// A port that was asked only before the call, and one that was first asked after it, may have asked the same replica.
#[test]
fn a_replica_that_had_it_before_the_call_is_one() {
    let of_flow = |(flow, sent_ns): (usize, u64)| {
        let answer = Some(Answered { received_ns: sent_ns + MS, says: Says::New, serial: None, nsid: None });
        Asked { server: 0, flow, sent_ns, is_by_tcp: false, answer }
    };
    let asked = [(0, CALL_NS - 10 * MS), (1, CALL_NS + 10 * MS)].map(of_flow);
    let [server] = &servers(&asked, 1, CALL_NS)[..] else { panic!("one") };
    let [replica] = &server.replicas[..] else { panic!("{server:?}") };
    assert_eq!(replica.had, Moment { low_ns: 0, high_ns: Some(0) });
    assert!((replica.share - 1.0).abs() < 1e-9, "{replica:?}");
}

/// The curve is the share of replicas that have it, by flow, and as fine as the server is asked.
#[test]
fn the_curve_goes_up_by_steps() {
    let (asked, truth) = seen(Plan::new(vec![vec![Duration::from_millis(400), Duration::from_millis(1_200)]]), 1, 0.0);
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
    // Of 64 ports about half come to each replica: a tenth of an interval is much for any of these, and a round trip.
    let unsure_ns = interval_ns / 10 + RTT_NS;
    assert!(at(0, truth[0] - unsure_ns).iter().all(|share| *share == 0.0));
    assert!(at(truth[1] + unsure_ns, u64::MAX).iter().all(|share| (share - 1.0).abs() < 1e-9));
    let between = at(truth[0] + unsure_ns, truth[1] - unsure_ns);
    assert!(between.iter().all(|share| *share == between[0] && (0.3..0.7).contains(share)), "{between:?}");
    assert!(between.len() > 100 && curve.len() as u64 <= MOST_STEPS + 1 && curve[0].0 <= interval_ns / 16);
}

/// The median over changes is taken at times that the longer ones share with the shorter ones.
#[test]
fn longer_changes_are_looked_at_when_shorter_ones_are() {
    let times = |end_ns| steps(10, end_ns).collect::<Vec<_>>();
    let (short, long) = (times(5_000), times(9_000));
    assert_eq!((short.len(), short[0], long.len(), long[0]), (500, 10, 450, 20));
    assert!(long.iter().take_while(|at_ns| **at_ns <= 5_000).all(|at_ns| short.contains(at_ns)));
}

/// Where each packet goes its own way, too.
#[test]
fn the_curve_of_what_goes_back_and_forth_goes_up() {
    let delays = (1..=8).map(|number| Duration::from_millis(200 * number)).collect();
    let (asked, _) = seen(Plan { balance: Balance::ByPacket, ..Plan::new(vec![delays]) }, 1, 0.0);
    let [server] = &servers(&asked, 1, CALL_NS)[..] else { panic!("one") };
    let at = |time_ms: u64| share_at(server, time_ms * MS, CALL_NS, 100 * MS).unwrap();
    assert!(!server.mixed.is_empty());
    assert!(at(50) == 0.0 && at(2_000) == 1.0);
    assert!((0.2..0.4).contains(&at(500)) && (0.65..0.85).contains(&at(1_300)), "{} {}", at(500), at(1_300));
}

/// As many ports as are asked from unless somebody says something else find eight replicas that share a server's
/// questions evenly in all but one of hundreds of cases; so few as are asked from of servers that are others' do not,
/// and say so.
#[test]
fn eight_replicas_are_counted_by_the_usual_number_of_ports() {
    let plan = |seed| Plan {
        seed,
        ..Plan::new((0..3).map(|_| (1..=8).map(|number| Duration::from_millis(250 * number)).collect()).collect())
    };
    let counted = |ports: usize| {
        let of_seed = |seed| servers(&seen_from(ports, plan(seed), seed, 0.0).0, 3, CALL_NS);
        let found: Vec<Server> = (0..16).flat_map(of_seed).collect();
        let count = |is_so: fn(&Server) -> bool| found.iter().filter(|server| is_so(server)).count();
        (count(|server| server.replicas.len() == 8), count(|server| server.misses() > MUCH_MISSED))
    };
    let (found, may_be_more) = counted(SIMULATED_PORTS as usize);
    assert!(found >= 47 && may_be_more == 0, "{found} of 48, {may_be_more}");
    let (found, may_be_more) = counted(OTHERS_PORTS as usize);
    assert!(found < 30 && may_be_more == 48, "{found} of 48, {may_be_more}");
}
