//! Files for other tools, read by these tools; and the manual pages, by mandoc.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::test::{Done, Part};
use crate::tools::{self, Need};

/// The tests. Bencher reads its files on its server only: the unit tests hold them to the published schema.
pub const PARTS: &[Part] = &[
    ("JUnit XML read by junitparser", &[Need::Python("junitparser")], junit),
    ("GitHub's job summary drawn by GitHub's cmark", &[Need::Python("cmarkgfm")], github),
    ("Go benchmarks read by benchstat", &[Need::Go("golang.org/x/perf/cmd/benchstat@latest")], go),
    (
        "Google Benchmark's compare.py",
        &[Need::Debian(COMPARE, "libbenchmark-tools"), Need::Python("scipy")],
        google_benchmark,
    ),
    ("manual pages read by mandoc", &[Need::Debian("mandoc", "mandoc")], man),
];

/// A command whose name trips over what does not escape.
const AWKWARD: &str = "<script>\"|`&`";

/// Of Google Benchmark.
const COMPARE: &str = "/usr/share/benchmark/compare.py";

/// A new folder for a part's files.
fn folder(name: &str) -> anyhow::Result<PathBuf> {
    let folder = tools::target().join("xtask-exports").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Runs the release binary, which keeps no evidence and may find what it likes.
fn ascertain(arguments: &[&str]) -> anyhow::Result<()> {
    let output = tools::capture(tools::target().join("release/ascertain"), arguments)?;
    ensure!(matches!(output.status.code(), Some(0 | 1 | 3)), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Compares two commands twelve times.
fn compare(option: &str, path: &Path) -> anyhow::Result<()> {
    let path = path.to_string_lossy();
    let commands = ["-n", "sleep", "-n", AWKWARD, "sleep 0.001", "sleep 0.002"];
    let options = ["compare", "-q", "--no-evidence", "-r", "12", option, &path];
    ascertain(&[&options[..], &commands].concat())
}

/// What a program in Python must say, whatever a newer Python warns of.
fn said_by_python(arguments: &[&str]) -> anyhow::Result<String> {
    said(&tools::python(), &[&["-W", "ignore"], arguments].concat())
}

/// What a program that must succeed says.
fn said(program: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = tools::capture(program, arguments)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && errors.is_empty(), "{}: {errors}", program.display());
    Ok(String::from_utf8(output.stdout)?)
}

const CLAIMS: &str = "\
[[claim]]\nid = \"holds\"\ncommand = \"true\"\npredicate = \"exit == 0\"\nrate = 0.6\n
[[claim]]\nid = \"refuted\"\ncommand = \"false\"\npredicate = \"exit == 0\"\nrate = 0.6\n
[[claim]]\nid = \"undecided\"\nsays = \"<b>]]>\"\ncommand = \"true\"\npredicate = \"exit == 0\"\nrate = 0.99\nmax_trials = 3\n";

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

fn junit() -> anyhow::Result<Done> {
    let folder = folder("junit")?;
    let (claims, xml) = (folder.join("claims.toml"), folder.join("junit.xml"));
    std::fs::write(&claims, CLAIMS)?;
    let (claims, xml) = (claims.to_string_lossy(), xml.to_string_lossy());
    ascertain(&["check", &claims, "-q", "--no-evidence", "--max-time", "10min", "--export-junit", &xml])?;
    print!("{}", said_by_python(&["-c", JUNIT, &xml])?);
    Ok(Done::Passed)
}

const GITHUB: &str = "
import sys
from cmarkgfm import github_flavored_markdown_to_html
html = github_flavored_markdown_to_html(open(sys.argv[1]).read())
assert html.startswith('<h2>Ascertain') and html.count('<table>') == 1
assert '<script' not in html and html.count('&lt;script&gt;') >= 2, html
print(html.count('<tr>'), 'rows')
";

fn github() -> anyhow::Result<Done> {
    let summary = folder("github")?.join("summary.md");
    compare("--export-github", &summary)?;
    print!("{}", said_by_python(&["-c", GITHUB, &summary.to_string_lossy()])?);
    Ok(Done::Passed)
}

fn go() -> anyhow::Result<Done> {
    let folder = folder("go")?;
    let files = ["old.txt", "new.txt"].map(|name| folder.join(name));
    for file in &files {
        compare("--export-go", file)?;
    }
    let [old, new] = files.each_ref().map(|file| file.to_string_lossy());
    let text = said(&tools::program("benchstat"), &[&old, &new])?;
    println!("{text}");
    let row = text.lines().find(|line| line.starts_with("Compare/sleep-")).context("a row for `sleep`")?;
    ensure!(row.contains("n=12") && text.matches("sec/op").count() >= 2, "{row}");
    Ok(Done::Passed)
}

fn google_benchmark() -> anyhow::Result<Done> {
    let folder = folder("google-benchmark")?;
    let files = ["old.json", "new.json"].map(|name| folder.join(name));
    for file in &files {
        compare("--export-google-benchmark", file)?;
    }
    let [old, new] = files.each_ref().map(|file| file.to_string_lossy());
    let text = said_by_python(&[COMPARE, "--no-color", "-a", "benchmarks", &old, &new])?;
    println!("{text}");
    ensure!(text.contains("compare/sleep_pvalue") && text.contains("Repetitions: 12 vs 12"), "{text}");
    ensure!(text.contains(AWKWARD) && text.contains("OVERALL_GEOMEAN"), "{text}");
    Ok(Done::Passed)
}

fn man() -> anyhow::Result<Done> {
    let folder = folder("man")?;
    ascertain(&["man", "--dir", &folder.to_string_lossy()])?;
    let pages = std::fs::read_dir(&folder)?.map(|entry| Ok(entry?.path().to_string_lossy().into_owned()));
    let pages = pages.collect::<anyhow::Result<Vec<String>>>()?;
    ensure!(pages.len() > 5, "{pages:?}");
    let arguments: Vec<&str> =
        ["-T", "lint", "-W", "error"].into_iter().chain(pages.iter().map(String::as_str)).collect();
    let output = tools::capture("mandoc", &arguments)?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    println!("{} pages", pages.len());
    Ok(Done::Passed)
}
