//! Every test, and a list of what was left out.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::{OnceLock, mpsc};
use std::time::Instant;
use std::{fmt, fs, thread};

use anyhow::{Context, Error, ensure};

use crate::tools::{self, Need};
use crate::{checkers, elsewhere, exports, fuzz, guest, hyperfine, packages};

pub const USAGE: &str = "\
cargo xtask test [--no-install] [--lean] [WORD …]

Every test, or the parts with a word in their names. What a part needs and this machine lacks is named, and then
installed where that may be; parts that can't be had are left out, each with its reason, and so is each test that
can't run here. Parts that build for themselves run beside the others, niced; what they say comes when one of the
others has ended. The first part that fails ends it.

--no-install   install nothing: leaves out the parts that lack something
--lean         remove what was built for a part alone as soon as it has passed: less than 6 GB instead of 9; and fuzz
               for half a minute each instead of a minute";

/// A part of the tests: its name, what it needs, and what it does.
pub type Part = (&'static str, &'static [Need], fn() -> anyhow::Result<()>);

/// The error of a part that can't run here: why.
#[derive(Debug)]
pub struct LeftOut(pub String);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12";

/// The tests of the workspace make use of those that are there.
const SERVERS: &[Need] = &[
    Need::Debian("nginx", "nginx"),
    Need::Debian("caddy", "caddy"),
    Need::Debian("iperf3", "iperf3"),
    Need::Debian("knotd", "knot"),
    Need::Debian("named", "bind9"),
    Need::Debian("nsd", "nsd"),
];

/// Stores, and clients of others, that netlab's are held against.
pub const STORES: &[Need] = &[
    Need::Go("github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c"),
    Need::NpmProgram("azurite-blob", "azurite@3.37.0"),
    Need::Debian("rclone", "rclone"),
    Need::Python("awscli"),
    Need::Python("awscrt"),
];

const PARTS: &[Part] = &[
    ("formatting", &[], || tools::run("cargo", &["fmt", "--all", "--check"])),
    ("lints", &[], || {
        tools::run("cargo", &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
    }),
    ("documentation", &[], || {
        tools::run("env", &["RUSTDOCFLAGS=-D warnings", "cargo", "doc", "--quiet", "--workspace", "--no-deps"])
    }),
    ("workflows and action.yml, by actionlint", &[Need::Go(ACTIONLINT)], actionlint),
    ("dependencies, by cargo-deny", &[Need::Crate("cargo-deny", "0.20.2")], deny),
    ("servers, installed for the tests", SERVERS, || Ok(())),
    ("stores, providers of zones, and their clients that are installed", STORES, || {
        // With the features of the workspace, so that what they need is not compiled for them alone.
        let test = ["cargo", "test", "--workspace", "--test", "store", "--test", "provider", "--test", "minio_azurite"];
        tools::run("env", &[&[&*tools::path()], &test[..]].concat())
    }),
    // Cargo names each file of tests as it runs.
    ("unit, property, calibration and end-to-end tests", &[], || {
        tools::run("cargo", &["test", "--workspace", "--", "--quiet"])
    }),
    ("release binary below 21 MB", &[], size),
    ("a shell script that counts for itself", &[], until_decided),
    ("evidence read by DuckDB", &[Need::Python("duckdb")], duckdb),
    ("plotted numbers recomputed from the Parquet files", &[Need::Python("duckdb")], plotted),
    ("reports in a browser", &[Need::Debian("chromium", "chromium"), Need::Npm], browser),
    ("barrierd on this kernel", &[], barrierd),
    // libFuzzer is written in C++.
    ("parsers, fuzzed for a minute each, and with --lean for half of one", &[Need::Debian("c++", "g++")], fuzz::all),
];

/// So many parts are named for how long they took.
const LISTED: usize = 8;

/// Runs all parts, or those whose names have one of the words in them; the first that fails ends it.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (options, words): (Vec<&str>, Vec<&str>) = arguments.iter().map(|a| &**a).partition(|a| a.starts_with('-'));
    let unknown = options.iter().find(|option| !["--no-install", "--lean", "--help", "-h"].contains(option));
    if let Some(option) = unknown {
        anyhow::bail!("unknown option {option}\n{USAGE}");
    }
    let has = |option| options.contains(&option);
    if has("--help") || has("-h") {
        println!("{USAGE}");
        return Ok(());
    }
    let wanted = |lists: &[&'static [Part]]| -> Vec<&'static Part> {
        let is_wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word));
        lists.iter().copied().flatten().filter(|(name, ..)| is_wanted(name)).collect()
    };
    let parts = wanted(&[PARTS, exports::PARTS, hyperfine::PARTS, guest::PARTS, elsewhere::PARTS, packages::PARTS]);
    let beside = wanted(&[checkers::PARTS, elsewhere::BESIDE]);
    anyhow::ensure!(parts.len() + beside.len() > 0, "no part of the tests has `{}` in its name", words.join("` or `"));
    let (is_installing, is_lean) = (!has("--no-install"), has("--lean"));
    if is_installing {
        announce(&[&parts[..], &beside].concat());
    }
    // With nobody to run beside, they take the others' place.
    let (parts, beside) = if parts.is_empty() { (beside, parts) } else { (parts, beside) };
    let mut all = carry_out(parts, beside, |part| Ran::of(part, is_installing, is_lean))?;
    println!();
    all.sort_by_key(|ran| std::cmp::Reverse(ran.seconds));
    let longest = all.iter().take(LISTED).map(|ran| format!("{} {} s", ran.name, ran.seconds));
    println!("longest: {}", longest.collect::<Vec<_>>().join("; "));
    for line in all.iter().flat_map(|ran| &ran.left_out) {
        println!("left out: {line}");
    }
    for line in ignored(&tools::root().join("crates"))? {
        println!("ignored: {line}");
    }
    let skipped: usize = all.iter().map(|ran| ran.left_out.len()).sum();
    println!("{} passed, 0 failed, {skipped} skipped", all.iter().filter(|ran| ran.is_run).count());
    Ok(())
}

/// Carries out the parts, and beside them the others, one after the other each.
fn carry_out(
    parts: Vec<&'static Part>,
    beside: Vec<&'static Part>,
    one: impl Fn(&'static Part) -> anyhow::Result<Ran> + Copy + Send,
) -> anyhow::Result<Vec<Ran>> {
    let mut all = Vec::new();
    let _ = tools::said_beside();
    thread::scope(|scope| {
        let (sender, ended) = mpsc::channel();
        scope.spawn(move || {
            tools::IS_BESIDE.set(true);
            for part in beside {
                let ran = one(part);
                let has_failed = ran.is_err();
                // Nobody listens any more once another part has failed.
                if sender.send((ran, tools::said_beside())).is_err() || has_failed {
                    break;
                }
            }
        });
        let mut keep = |(ran, said)| {
            print!("{said}");
            all.push(ran?);
            anyhow::Ok(())
        };
        for part in parts {
            let ran = one(part);
            if let Err(error) = &ran {
                println!("{error:#}\n(what runs beside it is waited for)");
            }
            keep((ran, String::new()))?;
            ended.try_iter().try_for_each(&mut keep)?;
        }
        ended.into_iter().try_for_each(keep)
    })?;
    Ok(all)
}

/// What came of a part that did not fail.
struct Ran {
    name: &'static str,
    seconds: u64,
    is_run: bool,
    /// The part, or the tests of it, with the reasons.
    left_out: Vec<String>,
}

impl Ran {
    fn of(&(name, needs, part): &Part, is_installing: bool, is_lean: bool) -> anyhow::Result<Ran> {
        tools::say(&format!("\n== {name}"))?;
        let start = Instant::now();
        // All of them, also behind one that can't be had: tests make use of each.
        let lacking = needs.iter().filter_map(|need| match is_installing {
            true => need.meet().err(),
            false => (!need.is_met()).then(|| format!("not installed: {need}")),
        });
        let lacking = lacking.collect::<Vec<_>>().join("; ");
        let _ = fs::remove_file(tools::left_out_list());
        let result = if lacking.is_empty() { part() } else { Err(Error::msg(LeftOut(lacking))) };
        let result = result.map_err(Error::downcast);
        let is_run = result.is_ok();
        let mut left_out = BTreeSet::new();
        match result {
            Ok(()) => (),
            Err(Ok(LeftOut(reason))) => left_out.extend([reason]),
            Err(Err(error)) => return Err(error.context(format!("{name}: failed"))),
        }
        if is_lean {
            remove_built()?;
        }
        let tests = fs::read_to_string(tools::left_out_list()).unwrap_or_default();
        left_out.extend(tests.lines().map(str::to_owned));
        let left_out = left_out.iter().map(|test| format!("{name}: {test}")).collect();
        Ok(Ran { name, seconds: start.elapsed().as_secs(), is_run, left_out })
    }
}

/// The tests that are ignored unless somebody asks for them, each with its file and reason.
fn ignored(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for path in entries.iter().map(fs::DirEntry::path) {
        if path.is_dir() {
            found.extend(ignored(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let code = fs::read_to_string(&path)?;
            let of_file = code.split("#[ignore").skip(1).filter_map(|rest| {
                let (reason, rest) = rest.strip_prefix(" = \"")?.split_once("\"]")?;
                let name = rest.split_once("fn ")?.1.split(['(', '<']).next()?;
                Some(format!("{name}, of {}: {reason}", path.strip_prefix(tools::root()).unwrap_or(&path).display()))
            });
            found.extend(of_file);
        }
    }
    Ok(found)
}

/// Removes what the part before built apart, and the programs of tests and examples, which no later part runs.
fn remove_built() -> anyhow::Result<()> {
    for folder in tools::BUILT_APART.take() {
        let _ = fs::remove_dir_all(folder);
    }
    if tools::IS_BESIDE.get() {
        return Ok(());
    }
    let is_program = |path: &Path| path.is_file() && path.extension().is_none();
    let deps = tools::target().join("debug/deps");
    for entry in fs::read_dir(deps).into_iter().flatten() {
        let path = entry?.path();
        if is_program(&path) {
            fs::remove_file(path)?;
        }
    }
    let _ = fs::remove_dir_all(tools::target().join("debug/examples"));
    Ok(())
}

/// Says what is about to be installed, and for which parts.
fn announce(parts: &[&Part]) {
    let mut missing: Vec<Need> = Vec::new();
    for need in parts.iter().flat_map(|(_, needs, _)| *needs) {
        if !missing.contains(need) && !need.is_met() {
            missing.push(*need);
        }
    }
    for need in missing {
        let whose = parts.iter().filter(|(_, needs, _)| needs.contains(&need)).map(|(name, ..)| *name);
        println!("to be installed: {need}\n    for: {}", whose.collect::<Vec<_>>().join("; "));
    }
}

/// The workflows, and action.yml through one that uses it, in a folder that looks like a repository.
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
    let status = Command::new(tools::program("actionlint")).current_dir(folder).status()?;
    ensure!(status.success(), "actionlint found something");
    Ok(())
}

fn deny() -> anyhow::Result<()> {
    let check = ["--log-level", "error", "check", "licenses", "bans", "sources"];
    tools::run(&tools::program("cargo-deny").to_string_lossy(), &check)
}

pub fn size() -> anyhow::Result<()> {
    let bytes = fs::metadata(tools::release_binary()?)?.len();
    println!("{:.2} MB", bytes as f64 / 1e6);
    // The goal is 20 MB, which it misses by a little: this keeps it from growing on.
    ensure!(bytes < 21_000_000, "the release binary has {bytes} bytes, which are to stay below 21 MB");
    Ok(())
}

fn until_decided() -> anyhow::Result<()> {
    let assignment = format!("ASCERTAIN={}", tools::release_binary()?.display());
    let script = tools::in_root("examples/until-decided.sh");
    for (command, expected) in [("true", 0), ("false", 1)] {
        let output = tools::capture("env", &[&assignment, &script, command])?;
        print!("{}", String::from_utf8_lossy(&output.stdout));
        ensure!(output.status.code() == Some(expected), "{command}: exit code {:?}", output.status.code());
    }
    Ok(())
}

/// Some runs, one with a sweep, one with arms that two lanes share, made for the first who asks.
fn runs() -> anyhow::Result<String> {
    const RUNS: [&str; 4] = [
        "compare|-r|10|true|sleep 0.001",
        "run|fill-rate|--trials|20|--max-time|5s",
        "run|sum|--variants|naive,kahan|--at|elements=1Ki,64Ki|--at|type=f32,f64|--trials|15|--max-time|8s",
        "check|--only|polynomial|--max-time|10s",
    ];
    static FOLDER: OnceLock<String> = OnceLock::new();
    if FOLDER.get().is_none() {
        let folder = tools::new_folder("xtask-runs")?;
        for words in RUNS {
            tools::ascertain(&words.split('|').chain(["--evidence", &folder]).collect::<Vec<_>>())?;
        }
        let _ = FOLDER.set(folder);
    }
    FOLDER.get().cloned().context("there are no runs")
}

fn duckdb() -> anyhow::Result<()> {
    let script = tools::in_root("crates/engine/tests/evidence_duckdb.py");
    tools::run(&tools::python().to_string_lossy(), &[script, runs()?])
}

/// What the report plots is computed again by another route.
fn plotted() -> anyhow::Result<()> {
    let (program, script) = (tools::example("plots_json")?, tools::in_root("crates/report/tests/plotted.py"));
    let plots = tools::in_target("xtask-plots.json");
    for run in fs::read_dir(runs()?)? {
        let run = run?.path().to_string_lossy().into_owned();
        fs::write(&plots, tools::said(&program, &[&run])?)?;
        tools::run(&tools::python().to_string_lossy(), &[&script, &run, &plots])?;
    }
    Ok(())
}

/// Reports of runs of every kind, opened in Debian's Chromium: `web/test/report.mjs` says what it looks for.
fn browser() -> anyhow::Result<()> {
    let folder = tools::new_folder("xtask-shapes")?;
    tools::run(&tools::example("shapes")?, &[&folder])?;
    tools::node("web/test/report.mjs", &folder)
}

/// Needs root, and a kernel that loads its programs.
fn barrierd() -> anyhow::Result<()> {
    let output = tools::capture(tools::release_binary()?, &["barrierd", "--once"])?;
    match output.status.code() {
        Some(0) => Ok(()),
        Some(4) => Err(Error::msg(LeftOut(String::from_utf8_lossy(&output.stderr).trim().into()))),
        code => anyhow::bail!("barrierd --once: exit code {code:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ignored_test_is_named_with_its_reason() {
        let listed = ignored(&tools::root().join("crates")).unwrap();
        let cube_roots = "takes ten seconds in a release build";
        assert!(
            listed.iter().any(|line| line.contains("crates/numeric/tests/all/cbrt.rs: ") && line.ends_with(cube_roots))
        );
        let attributes = fs::read_to_string(tools::in_root("crates/numeric/tests/all/exact.rs")).unwrap();
        let of_exact = listed.iter().filter(|line| line.contains("numeric/tests/all/exact.rs"));
        assert_eq!(of_exact.count(), attributes.matches("#[ignore").count());
    }
}
