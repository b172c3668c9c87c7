//! Properties of the parser of messages, for any input. The fuzz targets in `fuzz/` test the same properties.

use ascertain_netlab::throughput::{Message, TrafficSpec};

/// Encoding a parsed message and parsing it again gives the same message. A line without its end is not a message yet.
/// Checking a spec never panics.
pub fn messages(bytes: &[u8]) {
    let Ok(Some((message, length))) = Message::parse(bytes) else { return };
    assert_eq!(bytes[length - 1], b'\n');
    assert_eq!(Message::parse(&bytes[..length - 1]), Ok(None));
    let line = message.to_line();
    assert_eq!(Message::parse(&line), Ok(Some((message.clone(), line.len()))));
    if let Message::Measure(spec) = message
        && spec.check(std::time::Duration::from_secs(3600)).is_ok()
    {
        assert_eq!(spec.flows().len() % spec.streams as usize, 0);
        assert_ne!(spec, TrafficSpec { streams: 0, ..spec.clone() });
    }
}
