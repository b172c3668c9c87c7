//! What is asked, and what is made of the answers.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use ascertain_netlab::dns::{
    Answer, Asked, Change, Had, Plan, Probing, Question, RecordType, Rhythm, Says, Served, Standing, exchange, probe,
    update,
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

fn probing() -> Probing {
    let question = Question::new(name("new.example."), RecordType::TXT).unwrap();
    Probing::new(vec![server()], 1, question, |answer| answer.values.contains(&text("here")), LIMIT, 1)
}

/// An answer to a question, which has the name, at its best.
fn answer(question: &[u8]) -> Message {
    let mut answer = Message::from_vec(question).unwrap();
    answer.metadata.message_type = MessageType::Response;
    answer.metadata.authoritative = true;
    answer.add_answer(Record::from_rdata(name("NEW.example."), 1, text("here")));
    answer
}

fn says(change: impl FnOnce(&mut Message)) -> Option<Says> {
    let mut probing = probing();
    let mut answer = answer(probing.ask(0, 0, 0).1);
    change(&mut answer);
    probing.arrived(1, 0, server(), &answer.to_vec().unwrap());
    assert_eq!(probing.strange(), u64::from(probing.asked()[0].answer.is_none()));
    probing.asked()[0].answer.map(|answer| answer.says)
}

#[test]
fn answers_are_understood() {
    assert_eq!(says(|_| ()), Some(Says::New));
    assert_eq!(says(|answer| answer.answers.clear()), Some(Says::Old));
    assert_eq!(says(|answer| answer.answers[0].data = text("there")), Some(Says::Old));
    assert_eq!(says(|answer| answer.answers[0].name = name("other.example.")), Some(Says::Old));
    assert_eq!(says(|answer| answer.metadata.truncation = true), Some(Says::Truncated));
    assert_eq!(says(|answer| answer.metadata.authoritative = false), Some(Says::NotItsZone));
    let resolver = |answer: &mut Message| {
        answer.metadata.authoritative = false;
        answer.metadata.recursion_available = true;
    };
    assert_eq!(says(resolver), Some(Says::Remembers));
    let failed = |answer: &mut Message| answer.metadata.response_code = ResponseCode::ServFail;
    assert_eq!(says(failed), Some(Says::Failed(ResponseCode::ServFail)));
    // Another question, or none.
    assert_eq!(says(|answer| _ = answer.queries[0].set_query_type(RecordType::A)), None);
    assert_eq!(says(|answer| answer.queries.clear()), None);
    assert_eq!(says(|answer| answer.metadata.message_type = MessageType::Query), None);
    assert_eq!(says(|answer| answer.metadata.id ^= 1), None);
}

/// By the flow that it came by, and of whom who asked, once.
#[test]
fn what_is_not_whole_is_asked_for_by_a_connection() {
    let mut probing = probing();
    let mut truncated = answer(probing.ask(0, 0, 0).1);
    truncated.metadata.truncation = true;
    assert_eq!(probing.ask_by_tcp(1), None);
    probing.arrived(2, 0, server(), &truncated.to_vec().unwrap());
    for (sent_ns, is_whole) in [(3, false), (5, true)] {
        let (flow, to, question) = probing.ask_by_tcp(sent_ns).unwrap();
        assert_eq!((flow, to, probing.ask_by_tcp(sent_ns)), (0, server(), None));
        let mut answer = answer(&question);
        answer.metadata.truncation = !is_whole;
        probing.arrived(sent_ns + 1, 0, server(), &answer.to_vec().unwrap());
        assert_eq!(probing.is_new_since_ns().is_some(), is_whole);
        // Neither is asked for again.
        assert_eq!(probing.ask_by_tcp(10), None);
        let by_datagram = answer_of(&mut probing, 4, |answer| answer.metadata.truncation = true);
        assert_eq!(by_datagram, Some(Says::Truncated));
    }
    let by_tcp: Vec<bool> = probing.asked().iter().map(|asked| asked.is_by_tcp).collect();
    assert_eq!(by_tcp, [false, true, false, true, false]);
    // What is asked for still says nothing of the answer.
    assert_eq!(probing.is_new_since_ns(), Some(3));
}

/// How a server stands goes by its latest answers, and what it says by the latest that was not new.
#[test]
fn what_a_server_says_instead_is_known() {
    let mut probing = probing();
    let standing = |probing: &Probing| {
        let [Standing { is_new, other }] = &probing.standing()[..] else { panic!("one") };
        (*is_new, other.as_ref().map(|(words, since_ns)| (words.to_string(), *since_ns)))
    };
    assert_eq!(standing(&probing), (false, None));
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
        answer_of(&mut probing, at_ns, change);
        assert_eq!(standing(&probing), (is_new, Some((says.0.to_string(), says.1))));
    }
}

/// What the next answer says.
fn answer_of(probing: &mut Probing, now_ns: u64, change: impl FnOnce(&mut Message)) -> Option<Says> {
    let mut answer = answer(probing.ask(now_ns, 0, 0).1);
    change(&mut answer);
    probing.arrived(now_ns + 1, 0, server(), &answer.to_vec().unwrap());
    probing.asked().last()?.answer.map(|answer| answer.says)
}

#[test]
fn who_has_ever_new_names_does_not_fill_the_memory() {
    let mut probing = probing();
    for number in 0..2_000 {
        let mut answer = answer(probing.ask(0, 0, 0).1);
        let mut edns = Edns::new();
        edns.options_mut().insert(EdnsOption::NSID(NSIDPayload::new(format!("s{number}")).unwrap()));
        answer.edns = Some(edns);
        probing.arrived(1, 0, server(), &answer.to_vec().unwrap());
    }
    let nsids: Vec<_> = probing.asked().iter().map(|asked| asked.answer.unwrap().nsid).collect();
    let known = probing.nsids().len();
    assert!((1..2_000).contains(&known), "{known}");
    assert_eq!(nsids[..known], (0..known).map(Some).collect::<Vec<_>>());
    assert!(nsids[known..].iter().all(Option::is_none));
}

#[test]
fn other_names_are_remembered() {
    let mut probing = probing();
    let mut answer = answer(probing.ask(0, 0, 0).1);
    answer.answers[0].data = RData::CNAME(CNAME(name("elsewhere.")));
    probing.arrived(1, 0, server(), &answer.to_vec().unwrap());
    assert_eq!(probing.alias(), Some(&name("elsewhere.")));
}

#[test]
fn what_nobody_asked_for_is_counted_and_not_believed() {
    let mut probing = probing();
    let asked = probing.ask(0, 0, 0).1.to_vec();
    let honest = answer(&asked).to_vec().unwrap();
    for from in [([192, 0, 2, 54], 53).into(), ([192, 0, 2, 53], 54).into()] {
        probing.arrived(1, 0, from, &honest);
    }
    probing.arrived(1, 1, server(), &honest);
    probing.arrived(1, 0, server(), b"nonsense");
    assert_eq!((probing.strange(), &probing.asked()[0].answer), (4, &None));
    probing.arrived(2, 0, server(), &honest);
    assert!(probing.asked()[0].answer.is_some());
    // Twice.
    probing.arrived(3, 0, server(), &honest);
    assert_eq!(probing.strange(), 5);
    // Too late, which is lost.
    let asked = probing.ask(10, 0, 0).1.to_vec();
    probing.arrived(11 + LIMIT.as_nanos() as u64, 0, server(), &answer(&asked).to_vec().unwrap());
    assert_eq!((probing.late(), probing.strange(), &probing.asked()[1].answer), (1, 5, &None));
}

#[test]
fn each_flow_asks_each_server_once_an_interval() {
    let rhythm = Rhythm { servers: 3, flows: 5, interval: Duration::from_millis(30) };
    for number in 0..100 {
        assert_eq!(rhythm.of(number), rhythm.of(number + 15));
        assert_eq!(rhythm.due_ns(number), number * 2_000_000);
    }
    let mut of_interval: Vec<_> = (0..15).map(|number| rhythm.of(number)).collect();
    of_interval.sort_unstable();
    of_interval.dedup();
    assert_eq!(of_interval.len(), 15);
}

/// Whether the answers are such as somebody may get while replicas have it from these moments on.
fn is_true(asked: &Asked, truth: &[Had]) -> bool {
    let of_server = || truth.iter().filter(|had| had.server == asked.server);
    match &asked.answer {
        None => true,
        Some(answer) if answer.says == Says::New => of_server().any(|had| had.at_ns <= answer.received_ns),
        Some(answer) => answer.says == Says::Old && of_server().any(|had| had.at_ns > asked.sent_ns),
    }
}

/// By sockets, however slow the machine is.
#[test]
fn a_zone_is_asked_until_all_of_it_is_new() {
    let ms = Duration::from_millis;
    let servers = vec![vec![ms(20)], vec![ms(10), ms(60)]];
    let udp = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let primary = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let served = Served::start(Plan::new(servers), primary, vec![udp(), udp()]).unwrap();
    let rhythm = Rhythm { servers: 2, flows: 16, interval: ms(20) };
    let question = Question::new(name("new.example."), RecordType::TXT).unwrap();
    let is_new = |answer: &Answer| answer.values == [text("here")];
    let mut probing = Probing::new(served.servers().to_vec(), rhythm.flows, question, is_new, ms(60_000), 1);
    let sockets: Vec<UdpSocket> = (0..rhythm.flows).map(|_| udp()).collect();
    let mut called = false;
    probe(&mut probing, rhythm, &sockets, |probing, _| {
        if !called && probing.asked().iter().any(|asked| asked.answer.is_some()) {
            called = true;
            let mut change = update(&name("example."), &add("new.example.", "here"), None, 1, 0).unwrap();
            let mut stream = TcpStream::connect(served.primary()).unwrap();
            let answer = exchange(&mut stream, &change.bytes).unwrap();
            change.accept(&answer).unwrap();
        }
        probing.is_new_since_ns().is_some()
    })
    .unwrap();
    let truth = served.truth();
    assert_eq!(truth.len(), 3);
    assert!(probing.asked().iter().all(|asked| is_true(asked, &truth)));
    assert_eq!(probing.strange(), 0);
    // It can be taken out again.
    let mut change = update(&name("example."), &Change::Remove { name: name("new.example.") }, None, 2, 0).unwrap();
    let mut stream = TcpStream::connect(served.primary()).unwrap();
    change.accept(&exchange(&mut stream, &change.bytes).unwrap()).unwrap();
}

/// A server that is asked less often has all of its ports' turns, spread over as many rounds; others are asked as
/// before.
#[test]
fn only_the_server_with_a_limit_is_asked_less_often() {
    let rhythm = Rhythm { servers: 2, flows: 8, interval: Duration::from_millis(30) };
    let question = Question::new(name("new.example."), RecordType::TXT).unwrap();
    let mut probing = Probing::new(vec![server(); 2], 8, question, |_| false, LIMIT, 1);
    probing.slow(1, 4);
    let mut asked = [[0; 8]; 2];
    for number in 0..16 * 12 {
        let (server, flow) = rhythm.of(number);
        asked[server][flow] += u64::from(probing.asks(server, flow, rhythm.round(number)));
    }
    assert_eq!(asked, [[12; 8], [3; 8]]);
    // Each round asks it by two of its ports.
    let of_round = |round| (0..8).filter(|flow| probing.asks(1, *flow, round)).count();
    assert!((0..8).all(|round| of_round(round) == 2));
}

/// How a lame server stands is not what it happens to have in its answer.
#[test]
fn who_does_not_have_the_zone_is_told_by_that() {
    let mut probing = probing();
    let mut answer = answer(probing.ask(0, 0, 0).1);
    answer.metadata.authoritative = false;
    probing.arrived(1, 0, server(), &answer.to_vec().unwrap());
    let words = probing.standing()[0].other.clone().unwrap().0;
    assert_eq!(&*words, "without authority for the zone");
}
