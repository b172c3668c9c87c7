//! Replays the inputs of a fuzz test, which are contents of a daemon's memory: the initial inputs of the fuzzer, and
//! the inputs that it has found.

mod target;

use ascertain_sys::testing;

use crate::common::fake_daemon;

#[test]
fn corpus_of_barrierd_files() {
    testing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/barrierd_file/corpus"), target::barrierd_file);
}
