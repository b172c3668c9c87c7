//! Command lines that a fuzzer starts from, or has found.

#[path = "../corpus/mod.rs"]
mod corpus;
mod target;

#[test]
fn corpus_of_command_lines() {
    corpus::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command_lines/corpus"), target::command_lines);
}
