#![no_main]

#[path = "../../crates/netlab/tests/all/messages/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::messages(bytes));
