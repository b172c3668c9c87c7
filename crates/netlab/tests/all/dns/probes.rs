//! Tests of the prober's queries, and of its interpretation of answers.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use ascertain_netlab::dns::{
    Answer, AnswerState, Change, Probe, Prober, Question, RecordType, ReplicaUpdate, Rhythm, ServerState,
    SimulationSpec, ZoneServer, exchange, probe, update,
};
use hickory_proto::op::{Edns, Message, MessageType, ResponseCode};
use hickory_proto::rr::rdata::CNAME;
use hickory_proto::rr::rdata::opt::{EdnsOption, NSIDPayload};
use hickory_proto::rr::{RData, Record};

use super::{add, name, text};

const LIMIT: Duration = Duration::from_millis(500);

fn server() -> SocketAddr {
    ([192, 0, 2, 53], 53).into()
}

fn prober() -> Prober {
    let question = Question::new(name("new.example."), RecordType::TXT).unwrap();
    Prober::new(vec![server()], 1, question, |answer| answer.values.contains(&text("here")), LIMIT, 1)
}

/// Returns a valid answer. The name of its record differs from the queried name only in upper and lower case.
fn answer(question: &[u8]) -> Message {
    let mut answer = Message::from_vec(question).unwrap();
    answer.metadata.message_type = MessageType::Response;
    answer.metadata.authoritative = true;
    answer.add_answer(Record::from_rdata(name("NEW.example."), 1, text("here")));
    answer
}

fn says(change: impl FnOnce(&mut Message)) -> Option<AnswerState> {
    let mut prober = prober();
    let mut answer = answer(prober.query(0, 0, 0).1);
    change(&mut answer);
    prober.arrived(1, 0, server(), &answer.to_vec().unwrap());
    assert_eq!(prober.log.strange, u64::from(prober.log.probes[0].answer.is_none()));
    prober.log.probes[0].answer.map(|answer| answer.state)
}

#[test]
fn answers_are_understood() {
    assert_eq!(says(|_| ()), Some(AnswerState::New));
    assert_eq!(says(|answer| answer.answers.clear()), Some(AnswerState::Old));
    assert_eq!(says(|answer| answer.answers[0].data = text("there")), Some(AnswerState::Old));
    assert_eq!(says(|answer| answer.answers[0].name = name("other.example.")), Some(AnswerState::Old));
    assert_eq!(says(|answer| answer.metadata.truncation = true), Some(AnswerState::Truncated));
    assert_eq!(says(|answer| answer.metadata.authoritative = false), Some(AnswerState::NotItsZone));
    let resolver = |answer: &mut Message| {
        answer.metadata.authoritative = false;
        answer.metadata.recursion_available = true;
    };
    assert_eq!(says(resolver), Some(AnswerState::Remembers));
    let failed = |answer: &mut Message| answer.metadata.response_code = ResponseCode::ServFail;
    assert_eq!(says(failed), Some(AnswerState::Failed(ResponseCode::ServFail)));
    // An answer to another query, or without a query.
    assert_eq!(says(|answer| _ = answer.queries[0].set_query_type(RecordType::A)), None);
    assert_eq!(says(|answer| answer.queries.clear()), None);
    assert_eq!(says(|answer| answer.metadata.message_type = MessageType::Query), None);
    assert_eq!(says(|answer| answer.metadata.id ^= 1), None);
}

/// If an answer is truncated, the same flow queries the same server again over TCP, once.
#[test]
fn what_is_not_whole_is_asked_for_by_a_connection() {
    let mut prober = prober();
    let mut truncated = answer(prober.query(0, 0, 0).1);
    truncated.metadata.truncation = true;
    assert_eq!(prober.query_by_tcp(1), None);
    prober.arrived(2, 0, server(), &truncated.to_vec().unwrap());
    for (sent_ns, is_whole) in [(3, false), (5, true)] {
        let (flow, to, question) = prober.query_by_tcp(sent_ns).unwrap();
        assert_eq!((flow, to, prober.query_by_tcp(sent_ns)), (0, server(), None));
        let mut answer = answer(&question);
        answer.metadata.truncation = !is_whole;
        prober.arrived(sent_ns + 1, 0, server(), &answer.to_vec().unwrap());
        assert_eq!(prober.is_new_since_ns().is_some(), is_whole);
        // A query over TCP is not sent again, even if its answer is truncated, too.
        assert_eq!(prober.query_by_tcp(10), None);
        let by_datagram = answer_of(&mut prober, 4, |answer| answer.metadata.truncation = true);
        assert_eq!(by_datagram, Some(AnswerState::Truncated));
    }
    let by_tcp: Vec<bool> = prober.log.probes.iter().map(|asked| asked.is_by_tcp).collect();
    assert_eq!(by_tcp, [false, true, false, true, false]);
    // A truncated answer does not show whether the change is there.
    assert_eq!(prober.is_new_since_ns(), Some(3));
}

/// In the prober's state of a server, `is_new` must be `true` if the latest answer shows the change. The field `other`
/// must have the text of the latest answer without the change, and the time at which the server began to give this
/// answer.
#[test]
fn what_a_server_says_instead_is_known() {
    let mut prober = prober();
    let standing = |prober: &Prober| {
        let [ServerState { is_new, other }] = &prober.standing()[..] else { panic!("one") };
        (*is_new, other.as_ref().map(|(words, since_ns)| (words.to_string(), *since_ns)))
    };
    assert_eq!(standing(&prober), (false, None));
    type Change = fn(&mut Message);
    let old: Change = |answer| answer.answers[0].data = text("old");
    let not_there: Change = |answer| {
        answer.answers.clear();
        answer.metadata.response_code = ResponseCode::NXDomain;
    };
    for (at_ns, change, is_new, says) in [
        (10, old, false, ("\"old\"", 10)),
        (20, old, false, ("\"old\"", 10)),
        (30, |answer| answer.answers.clear(), false, ("no such record", 30)),
        (40, not_there, false, ("NXDOMAIN", 40)),
        (50, |_| (), true, ("NXDOMAIN", 40)),
        (60, old, false, ("\"old\"", 60)),
    ] as [(u64, Change, bool, (&str, u64)); 6]
    {
        answer_of(&mut prober, at_ns, change);
        assert_eq!(standing(&prober), (is_new, Some((says.0.to_string(), says.1))));
    }
}

/// Returns the state that the prober derives from the next answer.
fn answer_of(prober: &mut Prober, now_ns: u64, change: impl FnOnce(&mut Message)) -> Option<AnswerState> {
    let mut answer = answer(prober.query(now_ns, 0, 0).1);
    change(&mut answer);
    prober.arrived(now_ns + 1, 0, server(), &answer.to_vec().unwrap());
    prober.log.probes.last()?.answer.map(|answer| answer.state)
}

#[test]
fn who_has_ever_new_names_does_not_fill_the_memory() {
    let mut prober = prober();
    for number in 0..2_000 {
        let mut answer = answer(prober.query(0, 0, 0).1);
        let mut edns = Edns::new();
        edns.options_mut().insert(EdnsOption::NSID(NSIDPayload::new(format!("s{number}")).unwrap()));
        answer.edns = Some(edns);
        prober.arrived(1, 0, server(), &answer.to_vec().unwrap());
    }
    let nsids: Vec<_> = prober.log.probes.iter().map(|asked| asked.answer.unwrap().nsid).collect();
    let known = prober.log.nsids.len();
    assert!((1..2_000).contains(&known), "{known}");
    assert_eq!(nsids[..known], (0..known).map(Some).collect::<Vec<_>>());
    assert!(nsids[known..].iter().all(Option::is_none));
}

#[test]
fn other_names_are_remembered() {
    let mut prober = prober();
    let mut answer = answer(prober.query(0, 0, 0).1);
    answer.answers[0].data = RData::CNAME(CNAME(name("elsewhere.")));
    prober.arrived(1, 0, server(), &answer.to_vec().unwrap());
    assert_eq!(prober.log.alias, Some(name("elsewhere.")));
}

#[test]
fn what_nobody_asked_for_is_counted_and_not_believed() {
    let mut prober = prober();
    let asked = prober.query(0, 0, 0).1.to_vec();
    let honest = answer(&asked).to_vec().unwrap();
    for from in [([192, 0, 2, 54], 53).into(), ([192, 0, 2, 53], 54).into()] {
        prober.arrived(1, 0, from, &honest);
    }
    prober.arrived(1, 1, server(), &honest);
    prober.arrived(1, 0, server(), b"nonsense");
    assert_eq!((prober.log.strange, &prober.log.probes[0].answer), (4, &None));
    prober.arrived(2, 0, server(), &honest);
    assert!(prober.log.probes[0].answer.is_some());
    // The same answer a second time.
    prober.arrived(3, 0, server(), &honest);
    assert_eq!(prober.log.strange, 5);
    // An answer after its time limit counts as lost.
    let asked = prober.query(10, 0, 0).1.to_vec();
    prober.arrived(11 + LIMIT.as_nanos() as u64, 0, server(), &answer(&asked).to_vec().unwrap());
    assert_eq!((prober.log.late, prober.log.strange, &prober.log.probes[1].answer), (1, 5, &None));
}

#[test]
fn each_flow_asks_each_server_once_an_interval() {
    let rhythm = Rhythm { servers: 3, flows: 5, interval: Duration::from_millis(30) };
    for number in 0..100 {
        assert_eq!(rhythm.server_and_flow(number), rhythm.server_and_flow(number + 15));
        assert_eq!(rhythm.due_ns(number), number * 2_000_000);
    }
    let mut of_interval: Vec<_> = (0..15).map(|number| rhythm.server_and_flow(number)).collect();
    of_interval.sort_unstable();
    of_interval.dedup();
    assert_eq!(of_interval.len(), 15);
}

/// Returns whether an answer is possible if the replicas received the change at the times in `truth`.
fn is_true(asked: &Probe, truth: &[ReplicaUpdate]) -> bool {
    let of_server = || truth.iter().filter(|had| had.server == asked.server);
    match &asked.answer {
        None => true,
        Some(answer) if answer.state == AnswerState::New => of_server().any(|had| had.at_ns <= answer.received_ns),
        Some(answer) => answer.state == AnswerState::Old && of_server().any(|had| had.at_ns > asked.sent_ns),
    }
}

/// Queries a zone over sockets until all of its servers have the change. This must work even on a slow machine.
#[test]
fn a_zone_is_asked_until_all_of_it_is_new() {
    let ms = Duration::from_millis;
    let servers = vec![vec![ms(20)], vec![ms(10), ms(60)]];
    let udp = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let primary = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let served = ZoneServer::start(SimulationSpec::new(servers), primary, vec![udp(), udp()]).unwrap();
    let rhythm = Rhythm { servers: 2, flows: 16, interval: ms(20) };
    let question = Question::new(name("new.example."), RecordType::TXT).unwrap();
    let is_new = |answer: &Answer| answer.values == [text("here")];
    let mut prober = Prober::new(served.servers().to_vec(), rhythm.flows, question, is_new, ms(60_000), 1);
    let sockets: Vec<UdpSocket> = (0..rhythm.flows).map(|_| udp()).collect();
    let mut called = false;
    probe(&mut prober, rhythm, &sockets, |prober, _| {
        if !called && prober.log.probes.iter().any(|asked| asked.answer.is_some()) {
            called = true;
            let mut change = update(&name("example."), &add("new.example.", "here"), None, 1, 0).unwrap();
            let mut stream = TcpStream::connect(served.primary()).unwrap();
            let answer = exchange(&mut stream, &change.bytes).unwrap();
            change.accept(&answer).unwrap();
        }
        prober.is_new_since_ns().is_some()
    })
    .unwrap();
    let truth = served.truth();
    assert_eq!(truth.len(), 3);
    assert!(prober.log.probes.iter().all(|asked| is_true(asked, &truth)));
    assert_eq!(prober.log.strange, 0);
    // The record can be removed again.
    let mut change = update(&name("example."), &Change::Remove { name: name("new.example.") }, None, 2, 0).unwrap();
    let mut stream = TcpStream::connect(served.primary()).unwrap();
    change.accept(&exchange(&mut stream, &change.bytes).unwrap()).unwrap();
}

/// With a factor of 4, each flow queries the slowed server only in one of four rounds, and the flows take turns. Other
/// servers are queried as before.
#[test]
fn only_the_server_with_a_limit_is_asked_less_often() {
    let rhythm = Rhythm { servers: 2, flows: 8, interval: Duration::from_millis(30) };
    let question = Question::new(name("new.example."), RecordType::TXT).unwrap();
    let mut prober = Prober::new(vec![server(); 2], 8, question, |_| false, LIMIT, 1);
    prober.slow(1, 4);
    let mut asked = [[0; 8]; 2];
    for number in 0..16 * 12 {
        let (server, flow) = rhythm.server_and_flow(number);
        asked[server][flow] += u64::from(prober.is_due(server, flow, rhythm.round(number)));
    }
    assert_eq!(asked, [[12; 8], [3; 8]]);
    // Two of the eight flows query the slowed server in each round.
    let of_round = |round| (0..8).filter(|flow| prober.is_due(1, *flow, round)).count();
    assert!((0..8).all(|round| of_round(round) == 2));
}

/// The state of a server without authority does not depend on the content of its answer.
#[test]
fn who_does_not_have_the_zone_is_told_by_that() {
    let mut prober = prober();
    let mut answer = answer(prober.query(0, 0, 0).1);
    answer.metadata.authoritative = false;
    prober.arrived(1, 0, server(), &answer.to_vec().unwrap());
    let words = prober.standing()[0].other.clone().unwrap().0;
    assert_eq!(&*words, "not authoritative for the zone");
}
