#![no_main]

#[path = "../../crates/netlab/tests/messages/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::messages(bytes));
