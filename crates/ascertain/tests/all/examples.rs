//! Runs the examples and checks their output.

use std::process::Command;

use crate::common;

/// Returns the output of an example.
fn printed(example: &str) -> String {
    let output = Command::new(common::example(example)).output().unwrap();
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn two_closures_are_compared() {
    let said = printed("closures");
    assert!(said.contains("`chunks`") && said.contains("`loop`"), "{said}");
}

#[cfg(feature = "claims")]
#[test]
fn a_claims_file_is_judged() {
    let said = printed("claims");
    assert!(said.starts_with("true.succeeds: Holds"), "{said}");
}

#[cfg(feature = "commands")]
#[test]
fn a_run_is_followed_live() {
    let said = printed("live");
    assert!(said.contains(" s: sleep 0.03: "), "{said}");
    let verdict = said.lines().last().unwrap();
    assert!(verdict.contains("`sleep 0.03`") && verdict.contains("`sleep 0.01`"), "{said}");
}

#[cfg(feature = "commands")]
#[test]
fn a_url_is_asked() {
    if Command::new("curl").arg("--version").output().is_err() {
        return ascertain_sys::testing::left_out("there is no curl");
    }
    let said = printed("url");
    // A busy machine may need more time for a verdict than the example has.
    assert!(["Holds: ", "Undecided: "].iter().any(|verdict| said.starts_with(verdict)), "{said}");
    assert!(said.contains("file:///dev/null"), "{said}");
}
