//! Checks exported files with the tools in which users open them, and the manual pages with mandoc.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, ensure};

use crate::part::{Input, Part};
use crate::tools::{self, Need};

const BINARY: &[Input] = &[Input::Package("ascertain-cli"), Input::Path("xtask/src/exports.rs")];
const BINARY_AND_SCRIPTS: &[Input] = &[
    Input::Package("ascertain-cli"),
    Input::Path("crates/engine/tests/evidence_duckdb.py"),
    Input::Path("crates/report/examples/plots_json.rs"),
    Input::Path("crates/report/tests/plotted.py"),
    Input::Path("xtask/src/exports.rs"),
];

/// The parts of the tests that read our exports with other tools. Bencher has no part, because only its server reads
/// the files; unit tests check them against the published schema.
pub const PARTS: &[Part] = &[
    Part::slow("evidence read by DuckDB", &[Need::Python("duckdb")], BINARY_AND_SCRIPTS, duckdb),
    Part::slow(
        "plotted numbers recomputed from the Parquet files",
        &[Need::Python("duckdb")],
        BINARY_AND_SCRIPTS,
        plotted,
    ),
    Part::slow(
        "derived series recomputed by DuckDB",
        &[Need::Python("duckdb")],
        &[
            Input::Package("ascertain-cli"),
            Input::Path("crates/ascertain/examples/simulated_run.rs"),
            Input::Path("crates/ascertain/tests/simulated"),
            Input::Path("crates/ascertain/tests/series_duckdb.py"),
            Input::Path("xtask/src/exports.rs"),
        ],
        derived,
    ),
    Part::slow("JUnit XML read by junitparser", &[Need::Python("junitparser")], BINARY, junit),
    Part::slow("GitHub's job summary drawn by GitHub's cmark", &[Need::Python("cmarkgfm")], BINARY, github),
    Part::slow("Go benchmarks read by benchstat", &[BENCHSTAT], BINARY, benchstat),
    Part::slow(
        "Google Benchmark's compare.py",
        &[Need::Debian(COMPARE, "libbenchmark-tools"), Need::Python("scipy")],
        BINARY,
        google_benchmark,
    ),
    Part::slow("manual pages read by mandoc", &[Need::Debian("mandoc", "mandoc")], BINARY, man),
];

/// Records several runs for the checks. One run has a sweep. In another run, some arms are in two lanes (groups of arms
/// that are measured in the same trials). Returns the folder with the runs.
fn runs() -> anyhow::Result<String> {
    const RUNS: [&str; 4] = [
        "compare|-r|10|true|sleep 0.001",
        "run|fill-rate|--trials|20|--max-time|60s",
        "run|sum|--variants|naive,kahan|--at|elements=1Ki,64Ki|--at|type=f32,f64|--trials|15|--max-time|60s",
        "check|--only|polynomial|--max-time|10s",
    ];
    static FOLDER: OnceLock<String> = OnceLock::new();
    if FOLDER.get().is_none() {
        let folder = tools::new_folder("xtask-runs")?;
        for words in RUNS {
            let arguments: Vec<_> = words.split('|').chain(["--evidence", &folder]).collect();
            tools::output_of(tools::test_binary()?, &arguments)?;
        }
        let _ = FOLDER.set(folder);
    }
    FOLDER.get().cloned().context("there are no runs")
}

fn duckdb() -> anyhow::Result<()> {
    let script = tools::in_root("crates/engine/tests/evidence_duckdb.py");
    tools::run(&tools::python().to_string_lossy(), &[script, runs()?])
}

/// Checks that the numbers that the report plots equal the numbers that are computed again from the Parquet files.
fn plotted() -> anyhow::Result<()> {
    let (program, script) = (tools::example("plots_json")?, tools::in_root("crates/report/tests/plotted.py"));
    let plots = tools::in_target("xtask-plots.json");
    for run in fs::read_dir(runs()?)? {
        let run = run?.path().to_string_lossy().into_owned();
        fs::write(&plots, tools::output_of(&program, &[&run])?)?;
        tools::run(&tools::python().to_string_lossy(), &[&script, &run, &plots])?;
    }
    Ok(())
}

/// Compares `ascertain series` with DuckDB, on a run of two commands and on simulated runs with nulls, infinities and
/// values that were cut off.
fn derived() -> anyhow::Result<()> {
    let (program, folder) = (tools::test_binary()?, tools::new_folder("xtask-derived")?);
    let simulate = tools::example("simulated_run")?;
    let mut runs = Vec::new();
    for kind in ["nulls", "censored"] {
        runs.push(tools::output_of(&simulate, &[&folder, "2000", kind])?.trim().to_owned());
    }
    let measured = format!("{folder}/measured");
    let compare = ["compare", "-q", "-r", "150", "--evidence", &measured, "true", "sleep 0.0001"];
    tools::output_of(&program, &compare)?;
    let run = fs::read_dir(&measured)?.next().context("no run was recorded")??.path();
    runs.push(run.to_string_lossy().into_owned());
    let script = tools::in_root("crates/ascertain/tests/series_duckdb.py");
    let arguments = [script, program.to_string_lossy().into_owned()];
    tools::run(&tools::python().to_string_lossy(), &[&arguments[..], &runs].concat())?;
    Ok(fs::remove_dir_all(&folder)?)
}

/// A command's name with characters that every export must escape.
const AWKWARD: &str = "<script>\"|`&`";

const BENCHSTAT: Need = Need::Go("golang.org/x/perf/cmd/benchstat@latest");

/// Path of Google Benchmark's script that compares results.
const COMPARE: &str = "/usr/share/benchmark/compare.py";

/// Compares two commands in twelve trials for each of `names`. Exports each result to a file with that name in a new
/// folder, and returns the paths.
fn compare<const N: usize>(option: &str, names: [&str; N]) -> anyhow::Result<[String; N]> {
    let folder = tools::new_folder(&format!("xtask-exports/{option}"))?;
    let files = names.map(|name| format!("{folder}/{name}"));
    for file in &files {
        let commands = ["-n", "sleep", "-n", AWKWARD, "sleep 0.001", "sleep 0.002"];
        tools::compare(tools::test_binary()?, &[&["-q", "-r", "12", option, file], &commands])?;
    }
    Ok(files)
}

/// Runs a Python program without Python's own warnings, and returns its output.
fn python_output(arguments: &[&str]) -> anyhow::Result<String> {
    output_if_stderr_is_empty(&tools::python(), &[&["-W", "ignore"], arguments].concat())
}

/// Runs a program and returns its output. Fails if the program fails or writes to standard error.
fn output_if_stderr_is_empty(program: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = tools::capture(program, arguments)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && errors.is_empty(), "{}: {errors}", program.display());
    Ok(String::from_utf8(output.stdout)?)
}

const CLAIMS: &str = "
claim = [
    { id = 'holds', command = 'true', predicate = 'exit == 0', rate = 0.6 },
    { id = 'refuted', command = 'false', predicate = 'exit == 0', rate = 0.6 },
    { id = 'undecided', says = '<b>]]>', command = 'true', predicate = 'exit == 0', rate = 0.99, max_trials = 3 },
]
";

const JUNIT: &str = "
import sys
from junitparser import Failure, JUnitXml, Skipped
suites = JUnitXml.fromfile(sys.argv[1])
cases = {case.name: case for suite in suites for case in suite}
assert (suites.tests, suites.failures, suites.errors) == (3, 1, 0) and sum(suite.skipped for suite in suites) == 1
assert suites.time > 0 and all(case.time > 0 for case in cases.values())
assert cases['holds'].is_passed and cases['undecided'].is_skipped
assert isinstance(cases['refuted'].result[0], Failure) and cases['refuted'].result[0].message.startswith('Refuted: ')
assert '<b>]]>' in cases['undecided'].system_out
print(len(cases), 'test cases')
";

fn junit() -> anyhow::Result<()> {
    let folder = tools::new_folder("xtask-exports/junit")?;
    let (claims, xml) = (format!("{folder}/claims.toml"), format!("{folder}/junit.xml"));
    fs::write(&claims, CLAIMS)?;
    let check = ["check", &claims, "-q", "--no-evidence", "--max-time", "10min", "--export-junit", &xml];
    tools::output_of(tools::test_binary()?, &[&check[..], &["--fail-on", "nothing"]].concat())?;
    print!("{}", python_output(&["-c", JUNIT, &xml])?);
    Ok(())
}

const GITHUB: &str = "
import sys
from cmarkgfm import github_flavored_markdown_to_html
html = github_flavored_markdown_to_html(open(sys.argv[1]).read())
assert html.startswith('<h2>Ascertain') and html.count('<table>') == 1
assert '<script' not in html and html.count('&lt;script&gt;') >= 2, html
print(html.count('<tr>'), 'rows')
";

fn github() -> anyhow::Result<()> {
    let [summary] = compare("--export-github", ["summary.md"])?;
    print!("{}", python_output(&["-c", GITHUB, &summary])?);
    Ok(())
}

fn benchstat() -> anyhow::Result<()> {
    let [old, new] = compare("--export-go", ["old.txt", "new.txt"])?;
    let text = output_if_stderr_is_empty(&BENCHSTAT.program(), &[&old, &new])?;
    println!("{text}");
    let row = text.lines().find(|line| line.starts_with("Compare/sleep-")).context("a row for `sleep`")?;
    ensure!(row.contains("n=12") && text.matches("sec/op").count() >= 2, "{row}");
    Ok(())
}

fn google_benchmark() -> anyhow::Result<()> {
    let [old, new] = compare("--export-google-benchmark", ["old.json", "new.json"])?;
    let text = python_output(&[COMPARE, "--no-color", "-a", "benchmarks", &old, &new])?;
    println!("{text}");
    ensure!(text.contains("compare/sleep_pvalue") && text.contains("Repetitions: 12 vs 12"), "{text}");
    ensure!(text.contains(AWKWARD) && text.contains("OVERALL_GEOMEAN"), "{text}");
    Ok(())
}

fn man() -> anyhow::Result<()> {
    let folder = tools::new_folder("xtask-exports/man")?;
    tools::output_of(tools::test_binary()?, &["man", "--dir", &folder])?;
    let pages = fs::read_dir(&folder)?.map(|entry| Ok(entry?.path().to_string_lossy().into_owned()));
    let pages = pages.collect::<anyhow::Result<Vec<String>>>()?;
    ensure!(pages.len() > 5, "{pages:?}");
    let options = ["-T", "lint", "-W", "error"].into_iter();
    tools::output_of("mandoc", &options.chain(pages.iter().map(String::as_str)).collect::<Vec<_>>())?;
    println!("{} pages", pages.len());
    Ok(())
}
