//! Checks the protocols of `ascertain-sync` with two model checkers, Miri and ThreadSanitizer.

use anyhow::Error;

use crate::part::{Input, Part, Skipped};
use crate::tools::{self, Need};

const SYNC: &[Input] = &[Input::Package("ascertain-sync"), Input::Path("xtask/src/checkers.rs")];
const MODELS: &[Input] =
    &[Input::Package("ascertain-sync"), Input::Package("ascertain-tso"), Input::Path("xtask/src/checkers.rs")];

pub const PARTS: &[Part] = &[
    Part::slow("synchronisation under x86-TSO, at full depth", &[], MODELS, || tso(&["ASCERTAIN_MODEL_DEPTH=full"])),
    Part::slow("synchronisation under Miri", &[Need::Nightly("miri"), Need::Nightly("rust-src")], SYNC, miri),
    Part::slow("synchronisation under ThreadSanitizer", &[Need::Nightly("rust-src")], SYNC, thread_sanitizer),
];

/// Filters for the tests of `ascertain-sync` that need no model checker and run on any machine.
pub const TESTS: &[&str] = &[
    "epoch::",
    "epoch_default::",
    "event_count::",
    "hazard::",
    "panics::",
    "per_cpu::",
    "per_cpu_pinned::",
    "reclamation::",
    "ring::",
];

/// Runs the models of the synchronisation code under loom, which tries every execution that Rust's memory model allows.
pub fn loom() -> anyhow::Result<()> {
    model("loom", &[], &["--test", "loom"])
}

/// Runs the models of the synchronisation code with every order of loads and stores that x86-64 allows (total store
/// order).
pub fn tso(variables: &[&str]) -> anyhow::Result<()> {
    model("tso", variables, &["--lib"])
}

fn model(name: &str, variables: &[&str], programs: &[&str]) -> anyhow::Result<()> {
    let flags = format!("RUSTFLAGS=--cfg model=\"{name}\"");
    let options = [&["test", "--release", "--package", "ascertain-sync"], programs].concat();
    tools::cargo_test(&[&[&*flags], variables].concat(), &options, &[])
}

/// Runs the tests under Miri with both of its aliasing models: stacked borrows and tree borrows.
fn miri() -> anyhow::Result<()> {
    ["", "-Zmiri-tree-borrows"].into_iter().try_for_each(miri_with)
}

fn miri_with(model: &str) -> anyhow::Result<()> {
    // Deadlines need the machine's clock. rustix may pass a number as a pointer when it wakes a futex; Miri would warn
    // about that.
    let flags = format!("MIRIFLAGS=-Zmiri-disable-isolation -Zmiri-permissive-provenance {model}");
    let test = |package, programs: &[&str], harness: &[&str]| {
        let options = [&["+nightly", "miri", "test", "--package", package], programs].concat();
        tools::cargo_test_without_runner(&[&flags], &options, harness)
    };
    test("ascertain-sync", &["--test", "all"], TESTS)?;
    // These tests do not run in a model checker, because a relaxed load may return an older value there.
    test("ascertain-sync", &["--lib"], &["barrier", "epoch::local"])?;
    test("ascertain-sys", &["--lib"], &["rseq"])
}

/// Runs the tests under ThreadSanitizer with portable code instead of assembly, which the sanitizer cannot check.
fn thread_sanitizer() -> anyhow::Result<()> {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let variables = ["RUSTFLAGS=--cfg model=\"portable\" -Zsanitizer=thread", "TSAN_OPTIONS=halt_on_error=1"];
    let options = ["+nightly", "test", "-Zbuild-std", "--target", &triple, "--package", "ascertain-sync"];
    let options = [&options[..], &["--test", "all"]].concat();
    tools::build("env", &[&variables[..], &["cargo"], &options, &["--quiet", "--no-run"]].concat())?;
    // The sanitizer needs memory at fixed addresses. If the addresses are taken, the program restarts itself with
    // another address layout; some containers forbid that.
    let list = [&variables[..], &["cargo"], &options, &["--", "--list"]].concat();
    let listed = String::from_utf8_lossy(&tools::capture("env", &list)?.stderr).into_owned();
    if let Some(fatal) = listed.lines().find(|line| line.contains("FATAL: ThreadSanitizer")) {
        return Err(Error::new(Skipped(fatal.into())));
    }
    // The sanitizer does not work in a child process made by fork, so tests with such children are skipped.
    tools::cargo_test(&variables, &options, &[TESTS, &["reclamation_stress::", "--skip", "child"]].concat())
}
