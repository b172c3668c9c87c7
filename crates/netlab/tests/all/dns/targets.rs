//! Properties that hold for any DNS message, genuine or forged, and for any text of a key or a query file. The fuzz
//! targets in `fuzz/` test the same properties.

use std::net::SocketAddr;
use std::time::Duration;

use ascertain_netlab::dns::{
    Change, Key, Name, Prober, QueryMix, Question, Recipient, RecordType, Simulation, SimulationSpec, update,
};

/// Passes a message to three receivers. A prober must count it as an answer or as an unexpected message, and must count
/// a second copy in the same way. An update must refuse the message as an answer, because it lacks a valid signature. A
/// server must answer the message or ignore it.
pub fn answers(bytes: &[u8]) {
    let server: SocketAddr = ([192, 0, 2, 53], 53).into();
    let name = |text: &str| Name::from_ascii(text).expect("a name");
    let question = Question::new(name("new.example."), RecordType::TXT).expect("a question");
    let mut prober =
        Prober::new(vec![server], 1, question, |answer| !answer.values.is_empty(), Duration::from_secs(1), 1);
    for _ in 0..2 {
        let number = prober.query(0, 0, 0).1[..2].to_vec();
        let message = [&number, bytes.get(2..).unwrap_or_default()].concat();
        prober.arrived(1, 0, server, &message);
    }
    let [first, second] = &prober.log.probes[..] else { panic!("there must be two queries") };
    assert_eq!(first.answer, second.answer);
    assert_eq!(prober.log.strange, if first.answer.is_some() { 0 } else { 2 });

    let change = Change::Remove { name: name("new.example.") };
    let key = Key::parse("mine:c2VjcmV0").expect("a key");
    let mut request = update(&name("example."), &change, Some(&key), 7, 1_800_000_000).expect("an update");
    assert!(request.accept(bytes).is_err(), "the key is unknown, so no answer can be valid");

    let mut zone =
        Simulation::new(SimulationSpec { key: Some(key), ..SimulationSpec::new(vec![vec![Duration::ZERO]]) }, 0);
    for to in [Recipient::Primary, Recipient::Server(0)] {
        if let Some(answer) = zone.request(0, to, server, bytes) {
            assert!(answer.len() >= 12 && answer[2] & 0x80 > 0, "a reply must be an answer");
        }
    }
}

/// Parses a text as a key and as a file of queries. A file that consists of the text twice must be valid if and only if
/// the text is a valid file.
pub fn texts(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = Key::parse(text);
    assert_eq!(QueryMix::parse(text).is_ok(), QueryMix::parse(&format!("{text}\n{text}")).is_ok());
}
