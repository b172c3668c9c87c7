//! Tests of DNS: signed messages, the simulated zone, and the prober.

mod load;
mod probes;
mod targets;
mod zones;

use std::net::SocketAddr;
use std::time::Duration;

use ascertain_netlab::dns::{Change, Key, Name, RData, Recipient, Simulation, SimulationSpec, UpdateRequest, update};
use ascertain_netlab::{Error, dns};
use hickory_proto::rr::rdata::TXT;

#[test]
fn corpus_of_answers() {
    ascertain_sys::testing::replay(&format!("{}/tests/dns/corpus", env!("CARGO_MANIFEST_DIR")), targets::answers);
}

#[test]
fn corpus_of_keys_and_questions() {
    ascertain_sys::testing::replay(&format!("{}/tests/dns/texts", env!("CARGO_MANIFEST_DIR")), targets::texts);
}

const SECRET: &str = "hmac-sha256:mine:c2VjcmV0";
const UNIX_S: u64 = 1_800_000_000;

fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

fn text(value: &str) -> RData {
    RData::TXT(TXT::new(vec![value.into()]))
}

fn add(at: &str, value: &str) -> Change {
    Change::Add { name: name(at), ttl_s: 1, value: text(value) }
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn from(port: u16) -> SocketAddr {
    ([192, 0, 2, 1], port).into()
}

fn request(zone: &str, change: &Change, key: Option<&Key>, unix_s: u64) -> UpdateRequest {
    update(&name(zone), change, key, 0x1234, unix_s).unwrap()
}

/// Sends an update to a simulated zone whose key is [`SECRET`], and returns the result. The update is signed with the
/// key `with` (or not signed, if `with` is `None`) at the time `unix_s`.
fn updated(zone: &str, change: &Change, with: Option<&str>, unix_s: u64) -> Result<(), Error> {
    let plan =
        SimulationSpec { key: Some(key(SECRET)), unix_s: UNIX_S, ..SimulationSpec::new(vec![vec![Duration::ZERO]]) };
    let mut zone_there = Simulation::new(plan, 0);
    let mut request = request(zone, change, with.map(key).as_ref(), unix_s);
    let answer = zone_there.request(0, Recipient::Primary, from(1), &request.bytes).unwrap();
    zone_there.advance(1);
    let accepted = request.accept(&answer);
    assert_eq!(
        zone_there.truth().len(),
        usize::from(accepted.is_ok()),
        "the zone must change if and only if the update is accepted"
    );
    accepted
}

#[test]
fn an_update_is_taken_with_the_right_key_at_the_right_time() {
    let change = add("new.example.", "here");
    assert!(updated("example.", &change, Some(SECRET), UNIX_S).is_ok());
    assert!(updated("example.", &change, Some(SECRET), UNIX_S + 299).is_ok());
    for (zone, change, with, unix_s, says) in [
        ("example.", &change, None, UNIX_S, "REFUSED"),
        ("example.", &change, Some("mine:c2VjcmV1"), UNIX_S, "another secret (BADSIG)"),
        ("example.", &change, Some("other:c2VjcmV0"), UNIX_S, "no key with this name"),
        ("example.", &change, Some("hmac-sha512:mine:c2VjcmV0"), UNIX_S, "no key with this name"),
        ("example.", &change, Some(SECRET), UNIX_S - 400, "differ by 400 s"),
        ("other.", &change, Some(SECRET), UNIX_S, "not the zone's primary"),
        ("example.", &add("new.other.", "here"), Some(SECRET), UNIX_S, "not in this zone"),
        ("example.", &add("example.", "here"), Some(SECRET), UNIX_S, "already has records"),
    ] {
        let error = updated(zone, change, with, unix_s).unwrap_err().to_string().to_lowercase();
        assert!(error.contains(&says.to_lowercase()), "{error}");
    }
}

#[test]
fn whose_answer_is_not_signed_is_not_believed() {
    let change = add("new.example.", "here");
    let answer = |plan: SimulationSpec, bytes: &[u8]| {
        Simulation::new(plan, 0).request(0, Recipient::Primary, from(1), bytes).unwrap()
    };
    let open = SimulationSpec::new(vec![]);
    let request = || request("example.", &change, Some(&key(SECRET)), UNIX_S);
    // The answer of a server that has no keys is not signed.
    let unsigned = answer(open, &request().bytes);
    assert!(matches!(request().accept(&unsigned), Err(Error::Unsigned)));
    // An answer that was changed in transit. Each changed bit of its header and its query is noticed, except for a
    // reserved bit that hickory ignores.
    let honest = answer(
        SimulationSpec { key: Some(key(SECRET)), unix_s: UNIX_S, ..SimulationSpec::new(vec![]) },
        &request().bytes,
    );
    assert!(request().accept(&honest).is_ok());
    let signed_bytes = 12 + b"\x07example\0\0\x06\0\x01".len();
    for bit in (0..signed_bytes * 8).filter(|bit| *bit != 30) {
        let mut forged = honest.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        assert!(request().accept(&forged).is_err(), "bit {bit}");
    }
}

#[test]
fn keys_are_read_or_said_to_be_none_without_their_secret() {
    assert_eq!(format!("{:?}", key("hmac-sha512:a.key:c2VjcmV0")), "Key(a.key.)");
    let printed = key("key \"a.key\" {\n\talgorithm hmac-sha384;\n\tsecret \"c2VjcmV0\";\n};\n");
    assert_eq!(printed.name(), &name("a.key."));
    for (text, says) in [
        ("", "expected ALGORITHM:NAME:SECRET"),
        ("c2VjcmV0", "expected ALGORITHM:NAME:SECRET"),
        ("a:b:c:c2VjcmV0", "expected ALGORITHM:NAME:SECRET"),
        ("hmac-md5:mine:c2VjcmV0", "must be hmac-sha256"),
        ("mine:c2VjcmV", "Base64"),
        ("a..b:c2VjcmV0", "name"),
        ("key mine { secret c2VjcmV0; };", "no `algorithm`"),
    ] {
        let error = Key::parse(text).unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains("c2V"), "{text}: {error}");
    }
}

#[test]
fn a_connection_that_ends_is_no_answer() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    drop(listener.accept().unwrap());
    assert!(matches!(dns::exchange(&mut stream, b"question"), Err(Error::Broken { .. })));
}
