#![no_main]
#![allow(dead_code)] // each target uses only one of the functions

#[path = "../../crates/engine/tests/all/parsers/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::pyperf(bytes));
