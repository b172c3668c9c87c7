#![no_main]

#[path = "../../crates/sys/tests/all/command_lines/target.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::command_lines(bytes));
