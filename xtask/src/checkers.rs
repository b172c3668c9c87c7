//! The protocols of `ascertain-sync` under model checkers, Miri and ThreadSanitizer.

use std::thread;

use crate::test::{Done, Part};
use crate::tools::{self, Need};

pub const PARTS: &[Part] = &[
    ("synchronisation under loom", &[], || model("loom", &["--test", "loom"])),
    ("synchronisation under every order of x86-TSO", &[], || model("tso", &["--lib"])),
    ("synchronisation under Miri", &[Need::Nightly("miri"), Need::Nightly("rust-src")], miri),
    ("synchronisation under ThreadSanitizer", &[Need::Nightly("rust-src")], thread_sanitizer),
];

/// The tests that need no model, and run anywhere.
pub const TESTS: &[&str] =
    &["event_count", "ring", "hazard", "epoch", "epoch_default", "reclamation", "panics", "per_cpu", "per_cpu_pinned"];

fn model(name: &str, targets: &[&str]) -> anyhow::Result<Done> {
    let flags = format!("RUSTFLAGS=--cfg model=\"{name}\"");
    cargo(name, &[&flags], &["test", "--release"], targets, &[])
}

/// By both rules for what a pointer may be used for that Rust may come to have: stacked borrows and tree borrows.
/// By both models of what a borrow allows, side by side: Miri runs on one thread.
fn miri() -> anyhow::Result<Done> {
    thread::scope(|scope| {
        let trees = scope.spawn(|| miri_by("-Zmiri-tree-borrows"));
        let stacks = miri_by("");
        let trees = trees.join().map_err(|_| anyhow::anyhow!("Miri by trees of borrows: panicked"))?;
        stacks.and(trees)
    })
}

fn miri_by(model: &str) -> anyhow::Result<Done> {
    // The clock is the machine's, for deadlines. rustix wakes by a call whose pointer to a time may be a number, of which
    // Miri would warn.
    let flags = format!("MIRIFLAGS=-Zmiri-disable-isolation -Zmiri-permissive-provenance {model}");
    let command = ["+nightly", "miri", "test"];
    cargo("miri", &[&flags], &command, &named(TESTS), &[])?;
    // Of what no model runs: there a relaxed load may find what was before.
    for (package, tests) in
        [("ascertain-sync", "barrier"), ("ascertain-sync", "epoch::local"), ("ascertain-sys", "rseq")]
    {
        let target = target_of("miri");
        let variables = [&flags, &*target, "cargo"];
        tools::run(
            "env",
            &[&variables[..], &command, &["--package", package, "--lib", "--", "--quiet", tests]].concat(),
        )?;
    }
    Ok(Done::Passed)
}

/// With the portable form of what is written in assembly, into which the sanitizer can't see.
fn thread_sanitizer() -> anyhow::Result<Done> {
    let variables = ["RUSTFLAGS=--cfg model=\"portable\" -Zsanitizer=thread", "TSAN_OPTIONS=halt_on_error=1"];
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let command = ["+nightly", "test", "-Zbuild-std", "--target", &triple];
    let tests = named(&[TESTS, &["reclamation_stress"]].concat());
    // Its memory has fixed places. Where those are taken it starts anew with others, which some containers forbid.
    let listed = arguments("sanitizer", &variables, &command, &tests, &["--list"]);
    let listed = String::from_utf8_lossy(&tools::capture("env", &listed)?.stderr).into_owned();
    if let Some(fatal) = listed.lines().find(|line| line.contains("FATAL: ThreadSanitizer")) {
        return Ok(Done::LeftOut(fatal.into()));
    }
    // A child made by fork has no sanitizer of its own.
    cargo("sanitizer", &variables, &command, &tests, &["--skip", "child"])
}

/// The test binaries of these names, for Cargo.
fn named<'a>(tests: &[&'a str]) -> Vec<&'a str> {
    tests.iter().flat_map(|test| ["--test", test]).collect()
}

fn cargo(name: &str, variables: &[&str], command: &[&str], targets: &[&str], options: &[&str]) -> anyhow::Result<Done> {
    tools::run("env", &arguments(name, variables, command, targets, options))?;
    Ok(Done::Passed)
}

/// Each compiles the crate in its own way, and so in its own folder.
fn target_of(name: &str) -> String {
    format!("CARGO_TARGET_DIR={}", tools::target().join(format!("xtask-{name}")).display())
}

/// Of `env`.
fn arguments(name: &str, variables: &[&str], command: &[&str], targets: &[&str], options: &[&str]) -> Vec<String> {
    let target = target_of(name);
    let package = ["--package", "ascertain-sync"];
    let all = [&[&*target], variables, &["cargo"], command, &package, targets, &["--", "--quiet"], options].concat();
    all.into_iter().map(str::to_owned).collect()
}
