//! Daemons' memory that a fuzzer starts from, or has found.
#![cfg(target_os = "linux")]

#[path = "../common/fake_daemon.rs"]
mod fake_daemon;
mod target;

use ascertain_sys::testing;

#[test]
fn corpus_of_barrierd_files() {
    testing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/barrierd_file/corpus"), target::barrierd_file);
}
