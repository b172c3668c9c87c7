#![no_main]

#[path = "../../crates/streams/tests/all/parser/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::expressions(bytes));
