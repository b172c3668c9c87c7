//! Tests of the simulated zone.

use std::time::Duration;

use ascertain_netlab::dns::{
    Answer, Balance, Change, Question, Recipient, RecordType, ReplicaUpdate, ResponseCode, Simulation, SimulationSpec,
    Zone,
};
use hickory_proto::op::Message;
use proptest::prelude::*;

use super::{add, from, name, request, text};

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn change(zone: &mut Simulation, now_ns: u64, change: &Change) {
    let mut request = request("example.", change, None, 0);
    let answer = zone.request(now_ns, Recipient::Primary, from(1), &request.bytes).unwrap();
    request.accept(&answer).unwrap();
}

fn asked(zone: &mut Simulation, now_ns: u64, to: Recipient, port: u16, of: &str) -> Answer {
    let mut question = Question::new(name(of), RecordType::TXT).unwrap();
    let bytes = zone.request(now_ns, to, from(port), question.numbered(7)).unwrap();
    let (number, answer) = question.answer(&bytes).unwrap();
    assert_eq!(number, 7);
    answer
}

#[test]
fn a_replica_has_what_is_new_after_its_delay_and_not_before() {
    let servers = vec![vec![ms(5)], vec![ms(3), ms(9)]];
    let mut zone = Simulation::new(
        SimulationSpec { notify_after: ms(2), has_nsid: true, ..SimulationSpec::new(servers) },
        1_000_000,
    );
    change(&mut zone, 2_000_000, &add("new.example.", "here"));
    // The primary has the change immediately. Its servers have it 2 ms plus their own delays later, to the nanosecond.
    assert_eq!(asked(&mut zone, 2_000_000, Recipient::Primary, 1, "new.example.").values, [text("here")]);
    let before = asked(&mut zone, 8_999_999, Recipient::Server(0), 1, "new.example.");
    assert_eq!((before.code, before.serial, before.values.len()), (ResponseCode::NXDomain, Some(1), 0));
    let after = asked(&mut zone, 9_000_000, Recipient::Server(0), 1, "new.example.");
    assert_eq!(
        (after.code, after.values, after.nsid),
        (ResponseCode::NoError, vec![text("here")], Some(b"s0r0".into()))
    );
    zone.advance(1_000_000_000);
    let had = |server, replica, at_ns| ReplicaUpdate { server, replica, serial: 2, at_ns };
    assert_eq!(zone.truth(), [had(1, 0, 7_000_000), had(0, 0, 9_000_000), had(1, 1, 13_000_000)]);
    change(&mut zone, 1_000_000_000, &Change::Remove { name: name("new.example.") });
    let gone = asked(&mut zone, 2_000_000_000, Recipient::Server(1), 1, "new.example.");
    assert_eq!((gone.code, gone.serial), (ResponseCode::NXDomain, Some(3)));
}

#[test]
fn a_notify_that_is_lost_is_sent_again() {
    let plan =
        SimulationSpec { notify_loss: 0.5, notify_again: ms(100), ..SimulationSpec::new(vec![vec![ms(1)]; 200]) };
    let mut zone = Simulation::new(plan, 0);
    change(&mut zone, 0, &add("new.example.", "here"));
    zone.advance(u64::MAX);
    assert_eq!(zone.truth().len(), 200, "each replica must get the change");
    let attempts: Vec<u64> = zone.truth().iter().map(|had| (had.at_ns - 1_000_000) / 100_000_000).collect();
    assert!(zone.truth().iter().all(|had| had.at_ns % 100_000_000 == 1_000_000));
    let first = attempts.iter().filter(|attempt| **attempt == 0).count();
    assert!((70..130).contains(&first) && attempts.iter().any(|attempt| *attempt > 1), "{attempts:?}");
}

#[test]
fn delays_differ_by_their_jitter_and_no_more() {
    let mut zone = Simulation::new(SimulationSpec { jitter: 0.1, ..SimulationSpec::new(vec![vec![ms(100)]; 200]) }, 0);
    change(&mut zone, 0, &add("new.example.", "here"));
    zone.advance(u64::MAX);
    let moments = || zone.truth().iter().map(|had| had.at_ns);
    assert!(moments().all(|at_ns| (90_000_000..=110_000_000).contains(&at_ns)));
    assert!(moments().max().unwrap() - moments().min().unwrap() > 15_000_000);
}

#[test]
fn replicas_share_questions_by_flow_or_by_chance() {
    let who = |balance, port: fn(u16) -> u16| {
        let plan = SimulationSpec { balance, has_nsid: true, ..SimulationSpec::new(vec![vec![ms(1); 8]]) };
        let mut zone = Simulation::new(plan, 0);
        let mut seen: Vec<_> =
            (0..400).map(|n| asked(&mut zone, 0, Recipient::Server(0), port(n), "example.").nsid.unwrap()).collect();
        seen.sort();
        seen.dedup();
        seen.len()
    };
    assert_eq!(who(Balance::ByFlow, |_| 4000), 1);
    assert_eq!(who(Balance::ByFlow, |n| 4000 + n % 64), 8);
    assert_eq!(who(Balance::ByPacket, |_| 4000), 8);
}

#[test]
fn who_has_no_business_here_is_told_so() {
    let mut zone = Simulation::new(SimulationSpec::new(vec![vec![ms(1)]]), 0);
    assert_eq!(asked(&mut zone, 0, Recipient::Server(0), 1, "new.other.").code, ResponseCode::Refused);
    let update = request("example.", &add("new.example.", "here"), None, 0);
    let answer = zone.request(0, Recipient::Server(0), from(1), &update.bytes).unwrap();
    assert_eq!(Message::from_vec(&answer).unwrap().response_code, ResponseCode::NotImp);
    assert_eq!(zone.request(0, Recipient::Server(0), from(1), &answer), None, "an answer must not be answered");
    assert_eq!(zone.request(0, Recipient::Server(9), from(1), b""), None);
}

proptest! {
    /// A transfer brings a server with any earlier version to the primary's version.
    #[test]
    fn who_asks_for_the_zone_has_it(
        changes in prop::collection::vec((0_u8..6, 0_u8..3), 1..30),
        versions in prop::collection::vec(0_usize..30, 1..6),
    ) {
        let mut primary = Zone::new(name("example."), &[name("ns.example.")]);
        let mut others = vec![primary.clone()];
        for (which, what) in changes {
            let at = format!("n{which}.example.");
            let change = if what == 0 { Change::Remove { name: name(&at) } } else { add(&at, &what.to_string()) };
            let request = request("example.", &change, None, 0);
            primary.update(&Message::from_vec(&request.bytes).unwrap());
            others.push(primary.clone());
        }
        for version in versions {
            let mut other = others[version % others.len()].clone();
            let sent = |message: Message| Message::from_vec(&message.to_vec().unwrap()).unwrap();
            let transfer = sent(primary.transfer(&sent(other.transfer_request(1))));
            other.take(&transfer).unwrap();
            prop_assert_eq!(format!("{other:?}"), format!("{primary:?}"));
            // An incomplete transfer changes nothing.
            let mut cut = transfer.clone();
            cut.answers.pop();
            prop_assert!(other.take(&cut).is_err());
            prop_assert_eq!(format!("{other:?}"), format!("{primary:?}"));
        }
    }

    #[test]
    fn anything_may_arrive(bytes in prop::collection::vec(any::<u8>(), 0..80), at in 0_usize..60, byte in any::<u8>()) {
        let mut zone = Simulation::new(SimulationSpec { key: Some(super::key(super::SECRET)), ..SimulationSpec::new(vec![vec![ms(1)]]) }, 0);
        let mut mangled = request("example.", &add("a.example.", "b"), Some(&super::key(super::SECRET)), 0).bytes;
        mangled[at] = byte;
        let question = Question::new(name("new.example."), RecordType::TXT).unwrap();
        for bytes in [bytes, mangled] {
            zone.request(0, Recipient::Primary, from(1), &bytes);
            zone.request(0, Recipient::Server(0), from(1), &bytes);
            let _ = question.answer(&bytes);
        }
    }
}
