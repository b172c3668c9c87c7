//! Replays recorded inputs of the parsers: the initial inputs of each parser's fuzzer, and the inputs that the fuzzer
//! has found.

mod targets;

use ascertain_sys::testing;

fn replay(parser: &str, target: impl Fn(&[u8])) {
    testing::replay(&format!("{}/tests/parsers/{parser}", env!("CARGO_MANIFEST_DIR")), target);
}

#[test]
fn corpus_of_claims_files() {
    replay("claims", targets::claims);
}

#[test]
fn corpus_of_predicates() {
    replay("predicates", targets::predicates);
}

#[test]
fn corpus_of_columns() {
    replay("columns", targets::columns);
}

#[test]
fn corpus_of_evidence_rows() {
    replay("rows", targets::rows);
}

#[test]
fn corpus_of_run_json() {
    replay("headers", targets::headers);
}

#[test]
fn corpus_of_files_of_pyperf() {
    replay("pyperf", targets::pyperf);
}
