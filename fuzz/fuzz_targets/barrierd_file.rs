#![no_main]

#[path = "../../crates/sync/tests/common/fake_daemon.rs"]
mod fake_daemon;
#[path = "../../crates/sync/tests/barrierd_file/target.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::barrierd_file(bytes));
