#![no_main]

#[path = "../../crates/sync/tests/all/common/fake_daemon.rs"]
mod fake_daemon;
#[path = "../../crates/sync/tests/all/barrierd/file/target.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::barrierd_file(bytes));
