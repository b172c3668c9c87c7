//! Tests of a bench (`examples/bench.rs`), started as cargo, test runners and users start it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::example;

/// The output and the exit code of a run of the bench.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Returns the JSON objects that the bench printed.
    pub fn json(&self) -> Vec<Value> {
        let objects = serde_json::Deserializer::from_str(&self.stdout).into_iter();
        objects.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }
}

/// Runs the bench with these arguments, and with its evidence below `state`.
pub fn bench(state: &Path, arguments: &[&str]) -> Ran {
    example_bench("bench", state, arguments)
}

fn example_bench(name: &str, state: &Path, arguments: &[&str]) -> Ran {
    let output = Command::new(example(name)).args(arguments).env("XDG_STATE_HOME", state).output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    Ran { code: output.status.code(), stdout, stderr }
}

/// Measures the functions that match the filters, in three trials.
pub fn measured(state: &Path, arguments: &[&str]) -> Ran {
    let ran = bench(state, &[&["--bench", "--max-trials", "3", "--max-time", "5min"], arguments].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    ran
}

const ALL: [&str; 8] = [
    "last/maximum (numbers=10)",
    "last/sorted (numbers=10)",
    "last/consumed (numbers=10)",
    "last/maximum (numbers=1000)",
    "last/sorted (numbers=1000)",
    "last/consumed (numbers=1000)",
    "calls/direct",
    "calls/awaited",
];

#[test]
fn a_test_runner_lists_and_calls_each_by_its_name() {
    let state = tempfile::tempdir().unwrap();
    let listed = bench(state.path(), &["--list", "--format", "terse"]);
    let names: Vec<&str> = listed.stdout.lines().map(|line| line.strip_suffix(": benchmark").unwrap()).collect();
    assert_eq!(names, ALL);
    let ignored = bench(state.path(), &["--list", "--format", "terse", "--ignored"]);
    assert_eq!((ignored.code, &*ignored.stdout), (Some(0), ""), "nothing is ignored");
    for name in ALL {
        let called = bench(state.path(), &["--exact", name, "--nocapture"]);
        assert_eq!((called.code, called.stdout), (Some(0), format!("{name}: ok\n")));
    }
    assert!(!state.path().join("ascertain").exists(), "nothing was measured");
}

#[test]
fn filters_are_parts_of_what_is_listed() {
    let state = tempfile::tempdir().unwrap();
    let listed = |arguments: &[&str]| {
        let ran = bench(state.path(), &[&["--list"], arguments].concat());
        ran.stdout.lines().map(|line| line.strip_suffix(": benchmark").unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&["=10)"]), ALL[..3]);
    assert_eq!(listed(&["awaited", "direct"]), ALL[6..]);
    assert_eq!(listed(&["maximum", "--skip", "1000"]), ALL[..1]);
    assert_eq!(listed(&["--exact", "calls"]), [""; 0]);
    let nothing = bench(state.path(), &["--bench", "no such function"]);
    assert_eq!(nothing.code, Some(4), "{}", nothing.stderr);
    assert_eq!(bench(state.path(), &["--bench", "--ignored"]).code, Some(0));
}

#[test]
fn a_filter_that_leaves_out_the_reference_is_an_error() {
    let state = tempfile::tempdir().unwrap();
    for filters in [&["last/sorted"][..], &["last/sorted", "consumed"], &["last", "--skip", "maximum"]] {
        let ran = bench(state.path(), &[&["--bench"], filters].concat());
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{filters:?}: {}", ran.stderr);
        let error = "error: the filters leave out `last/maximum (numbers=10)`, the reference of its group; add it to the filters, \
                     or choose another with --reference NAME\n";
        assert_eq!(ran.stderr, error, "{filters:?}");
    }
    assert_eq!(bench(state.path(), &["--list", "last/sorted"]).code, Some(0), "nothing is compared");
    for filters in
        [&["last/maximum"][..], &["maximum", "sorted"], &["last/sorted", "consumed", "--reference", "sorted"]]
    {
        measured(state.path(), &[&["--no-evidence"], filters].concat());
    }
    // A single function can be measured alone, for example with a profiler.
    let alone = ["--no-evidence", "--format", "json", "--exact", "last/sorted (numbers=10)", "--reference", "sorted"];
    let [outcome] = &measured(state.path(), &alone).json()[..] else { panic!("one group") };
    assert!(outcome["claims"].as_array().unwrap().is_empty());
}

#[test]
fn a_function_that_is_alone_at_its_input_is_measured_too() {
    let state = tempfile::tempdir().unwrap();
    let both = ["last/maximum (numbers=10)", "last/sorted (numbers=10)", "last/maximum (numbers=1000)"];
    let arguments = ["--no-evidence", "--quick", "--format", "json", "--exact"];
    let [outcome] = &measured(state.path(), &[&arguments[..], &both].concat()).json()[..] else { panic!("one group") };
    let times = outcome["points"].as_array().unwrap().iter().filter(|point| point["metric"] == "time");
    assert_eq!(times.map(|point| point["n"].as_u64().unwrap()).collect::<Vec<_>>(), [3, 3, 3]);
}

/// Returns the sentences of the claims.
fn says(outcome: &Value) -> Vec<&str> {
    outcome["claims"].as_array().unwrap().iter().map(|claim| claim["says"].as_str().unwrap()).collect()
}

#[test]
fn the_reference_can_be_chosen() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["--no-evidence", "--format", "json", "--reference", "sorted", "numbers=10)", "calls"];
    let [last, calls] = &measured(state.path(), &arguments).json()[..] else { panic!("two groups") };
    let than_sorted = |name| format!("{name} (numbers=10) is faster than sorted (numbers=10)");
    assert_eq!(says(last), ["maximum", "consumed"].map(than_sorted));
    assert_eq!(says(calls), ["awaited is faster than direct"], "a group without it keeps its own");
    let listed = bench(state.path(), &["--list", "--reference", "sorted", "last"]).stdout;
    let names: Vec<&str> = listed.lines().map(|line| line.split([' ', '/']).nth(1).unwrap()).collect();
    assert_eq!(names, ["sorted", "maximum", "consumed", "sorted", "maximum", "consumed"], "input by input");
    let unknown = bench(state.path(), &["--bench", "--reference", "sort"]);
    let error = "error: --reference: there is no function `sort`; did you mean `sorted`?\n";
    assert_eq!((unknown.code, &*unknown.stderr), (Some(2), error));
}

#[test]
fn all_pairs_share_the_error() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["--no-evidence", "--all-pairs", "numbers=10)"];
    let [outcome] = &measured(state.path(), &[&["--format", "json"], &arguments[..]].concat()).json()[..] else {
        panic!("one group")
    };
    let than = |[one, other]: [&str; 2]| format!("{one} (numbers=10) is faster than {other} (numbers=10)");
    let pairs = [["sorted", "maximum"], ["consumed", "maximum"], ["consumed", "sorted"]];
    assert_eq!(says(outcome), pairs.map(than));
    let claims = outcome["claims"].as_array().unwrap();
    let mut ids: Vec<&str> = claims.iter().map(|claim| claim["id"].as_str().unwrap()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 3, "{ids:?}");
    for claim in claims {
        assert!((claim["error"].as_f64().unwrap() * 3.0 / 0.001 - 1.0).abs() < 1e-9, "{claim}");
    }
    let text = measured(state.path(), &arguments).stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "The error probability of 0.1 % is divided among 3 pairs: at most 0.034 % for each answer.";
    assert!(words.contains(said), "{text}");
    assert!(!measured(state.path(), &["--no-evidence", "calls", "--all-pairs"]).stdout.contains("share"), "one pair");
}

#[test]
fn functions_are_compared_with_the_first_at_their_input() {
    let state = tempfile::tempdir().unwrap();
    let ran = measured(state.path(), &["--format", "json", "last", "--skip", "sorted"]);
    let [outcome] = &ran.json()[..] else { panic!("{}", ran.stdout) };
    assert_eq!(
        says(outcome),
        [10, 1_000].map(|n| format!("consumed (numbers={n}) is faster than maximum (numbers={n})")),
        "{}",
        ran.stdout
    );
    let points = outcome["points"].as_array().unwrap();
    assert_eq!(points.len(), 8, "two functions, two inputs, two metrics");
    for point in points.iter().filter(|point| point["metric"] == "throughput") {
        assert_eq!(point["unit"], "1/s");
        let numbers = point["at"]["numbers"].as_f64().unwrap();
        let is_time = |other: &&Value| {
            other["metric"] == "time" && other["variant"] == point["variant"] && other["at"] == point["at"]
        };
        let time_ns = points.iter().find(is_time).unwrap();
        // The trial with the median of the three times also has the median throughput.
        let expected = numbers / time_ns["median"].as_f64().unwrap() * 1e9;
        assert!((point["median"].as_f64().unwrap() / expected - 1.0).abs() < 1e-9, "{point}");
    }
    let table = measured(state.path(), &["last/consumed", "last/maximum"]).stdout;
    let has_rates = [" G/s", " M/s", " k/s"].iter().any(|unit| table.contains(unit));
    assert!(table.contains("Throughput") && has_rates, "{table}");
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Too early to tell") && words.contains("So far `consumed (numbers=10)` won"), "{table}");
}

/// Each function allocates a list of four words and the words themselves. Allocations by the set-up do not count.
#[test]
fn allocations_are_counted_outside_of_the_time() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["--bench", "--no-evidence", "--max-trials", "5", "--max-time", "5min"];
    let ran = example_bench("allocations", state.path(), &[&arguments[..], &["--format", "json"]].concat());
    let [outcome] = &ran.json()[..] else { panic!("{}{}", ran.stdout, ran.stderr) };
    let of_metric = |name: &str| {
        let points = outcome["points"].as_array().unwrap().iter().filter(|point| point["metric"] == name);
        points.map(|point| [&point["min"], &point["max"], &point["n"]].map(|v| v.as_f64().unwrap())).collect::<Vec<_>>()
    };
    let bytes = "onetwothreefour".len() as f64;
    let list = 4.0 * size_of::<String>() as f64;
    assert_eq!(of_metric("allocations"), [1.0, 5.0, 0.0, 0.0].map(|count| [count, count, 3.0]));
    assert_eq!(of_metric("allocated_bytes"), [bytes, list + bytes, 0.0, 0.0].map(|bytes| [bytes, bytes, 3.0]));
    assert_eq!(of_metric("time").len(), 4);
    let table = example_bench("allocations", state.path(), &arguments).stdout;
    assert!(table.contains("Allocations") && table.contains("Allocated"), "{table}");
    // With another allocator, nothing is counted.
    assert!(!measured(state.path(), &["--no-evidence", "calls"]).stdout.contains("Allocat"));
}
