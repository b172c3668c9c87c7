//! What must be true of everything that the parser is given: also run by `fuzz/`.

use ascertain_netlab::throughput::{Message, Plan};

/// A message is said as it was read, and what it begins with is no message yet; no plan is carried out that was not
/// checked, and checking one never fails otherwise.
pub fn messages(bytes: &[u8]) {
    let Ok(Some((message, length))) = Message::parse(bytes) else { return };
    assert_eq!(message.bytes(), bytes[..length]);
    assert_eq!(Message::parse(&bytes[..length - 1]), Ok(None));
    if let Message::Ask(plan) = message
        && plan.check(std::time::Duration::from_secs(3600)).is_ok()
    {
        assert_eq!(plan.flows().len() % plan.streams as usize, 0);
        assert_ne!(plan, Plan { streams: 0, ..plan.clone() });
    }
}
