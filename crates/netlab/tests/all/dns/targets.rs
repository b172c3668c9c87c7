//! What must be true of whatever a name server sends, or who pretends to be one, and of what people write down for
//! one: also run by `fuzz/`.

use std::net::SocketAddr;
use std::time::Duration;

use ascertain_netlab::dns::{Change, Key, Mix, Name, Plan, Probing, Question, RecordType, Simulation, To, update};

/// A message is an answer or strange, and says the same when it comes again; updates believe none that is not signed,
/// and servers take anything.
pub fn answers(bytes: &[u8]) {
    let server: SocketAddr = ([192, 0, 2, 53], 53).into();
    let name = |text: &str| Name::from_ascii(text).expect("a name");
    let question = Question::new(name("new.example."), RecordType::TXT).expect("a question");
    let mut probing =
        Probing::new(vec![server], 1, question, |answer| !answer.values.is_empty(), Duration::from_secs(1), 1);
    for _ in 0..2 {
        let number = probing.ask(0, 0, 0).1[..2].to_vec();
        let message = [&number, bytes.get(2..).unwrap_or_default()].concat();
        probing.arrived(1, 0, server, &message);
    }
    let [first, second] = probing.asked() else { panic!("two were asked") };
    assert_eq!(first.answer, second.answer);
    assert_eq!(probing.strange(), if first.answer.is_some() { 0 } else { 2 });

    let change = Change::Remove { name: name("new.example.") };
    let key = Key::parse("mine:c2VjcmV0").expect("a key");
    let mut request = update(&name("example."), &change, Some(&key), 7, 1_800_000_000).expect("an update");
    assert!(request.accept(bytes).is_err(), "nobody here knows the key");

    let mut zone = Simulation::new(Plan { key: Some(key), ..Plan::new(vec![vec![Duration::ZERO]]) }, 0);
    for to in [To::Primary, To::Server(0)] {
        if let Some(answer) = zone.request(0, to, server, bytes) {
            assert!(answer.len() >= 12 && answer[2] & 0x80 > 0, "an answer is one");
        }
    }
}

/// A key, and a file of questions: two such files are one if both are.
pub fn texts(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = Key::parse(text);
    assert_eq!(Mix::parse(text).is_ok(), Mix::parse(&format!("{text}\n{text}")).is_ok());
}
