//! Parses the corpus of `fuzz/`: journals, answers of stores, and addresses.

pub mod targets;

fn corpus(name: &str, target: impl Fn(&[u8])) {
    let folder = format!("{}/tests/parsers/{name}", env!("CARGO_MANIFEST_DIR"));
    ascertain_sys::testing::replay(&folder, target);
}

#[test]
fn corpus_of_journals() {
    corpus("journals", targets::journals);
}

#[test]
fn corpus_of_addresses() {
    corpus("addresses", targets::addresses);
}

#[test]
fn corpus_of_answers() {
    corpus("answers", targets::answers);
}
