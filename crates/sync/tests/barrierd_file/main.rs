//! Daemons' memory that a fuzzer starts from, or has found.
#![cfg(target_os = "linux")]

#[path = "../../../sys/tests/corpus/mod.rs"]
mod corpus;
#[path = "../common/fake_daemon.rs"]
mod fake_daemon;
mod target;

#[test]
fn corpus_of_barrierd_files() {
    corpus::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/barrierd_file/corpus"), target::barrierd_file);
}
