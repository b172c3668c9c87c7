//! Replays the command lines that a fuzzer starts from or has found.

mod target;

use ascertain_sys::testing;

#[test]
fn corpus_of_command_lines() {
    testing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command_lines/corpus"), target::command_lines);
}
