//! The protocols of `ascertain-sync` under model checkers, Miri and ThreadSanitizer.

use anyhow::Error;

use crate::test::{LeftOut, Part};
use crate::tools::{self, Need};

pub const PARTS: &[Part] = &[
    ("synchronisation under loom", &[], || model("loom", &["--test", "loom"])),
    ("synchronisation under every order of x86-TSO", &[], || model("tso", &["--lib"])),
    ("synchronisation under Miri", &[Need::Nightly("miri"), Need::Nightly("rust-src")], miri),
    ("synchronisation under ThreadSanitizer", &[Need::Nightly("rust-src")], thread_sanitizer),
];

/// The options of `cargo test` for the tests that need no model, and run anywhere.
pub fn tests() -> Vec<&'static str> {
    const TESTS: [&str; 9] = [
        "event_count",
        "ring",
        "hazard",
        "epoch",
        "epoch_default",
        "reclamation",
        "panics",
        "per_cpu",
        "per_cpu_pinned",
    ];
    TESTS.into_iter().flat_map(|test| ["--test", test]).collect()
}

fn model(name: &str, targets: &[&str]) -> anyhow::Result<()> {
    let flags = format!("RUSTFLAGS=--cfg model=\"{name}\"");
    let command = [&["test", "--release", "--package", "ascertain-sync"], targets, &["--", "--quiet"]].concat();
    tools::cargo_in(&format!("xtask-{name}"), &[&flags], &command)
}

/// By both models of what a borrow allows, stacked borrows and tree borrows.
fn miri() -> anyhow::Result<()> {
    ["", "-Zmiri-tree-borrows"].into_iter().try_for_each(miri_by)
}

fn miri_by(model: &str) -> anyhow::Result<()> {
    // The clock is the machine's, for deadlines. rustix wakes by a call whose pointer to a time may be a number, of
    // which Miri would warn.
    let flags = format!("MIRIFLAGS=-Zmiri-disable-isolation -Zmiri-permissive-provenance {model}");
    let test = |package, options: &[&str]| {
        let command = [&["+nightly", "miri", "test", "--package", package], options].concat();
        tools::cargo_in("xtask-miri", &[&flags], &command)
    };
    test("ascertain-sync", &[&*tests(), &["--", "--quiet"]].concat())?;
    // Of what no model runs: there a relaxed load may find what was before.
    for (package, tests) in
        [("ascertain-sync", "barrier"), ("ascertain-sync", "epoch::local"), ("ascertain-sys", "rseq")]
    {
        test(package, &["--lib", "--", "--quiet", tests])?;
    }
    Ok(())
}

/// With the portable form of what is written in assembly, into which the sanitizer can't see.
fn thread_sanitizer() -> anyhow::Result<()> {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let words = |options: &[&str]| {
        let variables = ["RUSTFLAGS=--cfg model=\"portable\" -Zsanitizer=thread", "TSAN_OPTIONS=halt_on_error=1"];
        let command = ["+nightly", "test", "-Zbuild-std", "--target", &triple, "--package", "ascertain-sync"];
        let tests = [&*tests(), &["--test", "reclamation_stress", "--", "--quiet"]].concat();
        tools::with_cargo_in("xtask-sanitizer", &variables, &[&command[..], &tests, options].concat())
    };
    // Its memory has fixed places. Where those are taken it starts anew with others, which some containers forbid.
    let listed = String::from_utf8_lossy(&tools::capture("env", &words(&["--list"]))?.stderr).into_owned();
    if let Some(fatal) = listed.lines().find(|line| line.contains("FATAL: ThreadSanitizer")) {
        return Err(Error::msg(LeftOut(fatal.into())));
    }
    // A child made by fork has no sanitizer of its own.
    tools::run("env", &words(&["--skip", "child"]))
}
