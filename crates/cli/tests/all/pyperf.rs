//! The subcommand `pyperf`: comparisons, refusals, and files written from a run.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::ascertain;

/// Writes a file with benchmarks: their names, units and means.
fn write(folder: &Path, name: &str, benchmarks: &[(&str, &str, f64)]) {
    let benchmark = |(name, unit, mean): &(&str, &str, f64)| {
        let runs: Vec<Value> = (0..10).map(|i| json!({ "values": [mean * (1.0 + f64::from(i) / 1000.0)] })).collect();
        json!({ "metadata": { "name": name, "unit": unit }, "runs": runs })
    };
    let all: Vec<Value> = benchmarks.iter().map(benchmark).collect();
    fs::write(folder.join(name), json!({ "version": "1.0", "benchmarks": all }).to_string()).unwrap();
}

/// psf/pyperf#98: one file has kilobytes where the other has bytes.
#[test]
fn two_files_give_a_mean_of_the_times_alone() {
    let folder = tempfile::tempdir().unwrap();
    let memory = 5_431_296.0;
    write(folder.path(), "a.json", &[("mem", "byte", memory), ("t1", "second", 0.02), ("t2", "second", 0.5)]);
    write(folder.path(), "b.json", &[("mem", "byte", 1024.0 * memory), ("t1", "second", 0.016), ("t2", "second", 0.4)]);
    let ran = ascertain(folder.path(), &["pyperf", "a.json", "b.json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let text = ran.stdout.replace('\n', " ");
    assert!(text.contains("`b.json` is 1.25 times as fast as `a.json` (geometric mean of 2 workloads)"), "{text}");
    assert!(text.contains("The samples are not paired"), "{text}");
    assert!(text.contains("`b.json` has 10 processes, and `a.json` has 10 processes"), "{text}");
    assert!(text.contains("mem: `b.json` needs more memory than `a.json`, 1024"), "{text}");
    assert!(text.contains("Careful: the ratio of mem is 1024"), "{text}");
    let json = ascertain(folder.path(), &["pyperf", "a.json", "b.json", "--format", "json"]).json();
    assert_eq!(json["schema"], "ascertain.pyperf/1");
    let times = &json["comparisons"][0]["times"];
    assert_eq!(times["is_paired"], false);
    assert!((times["mean"]["ratio"]["low"].as_f64().unwrap() - 1.25).abs() < 1e-9);
    let csv = ascertain(folder.path(), &["pyperf", "a.json", "b.json", "--format", "csv"]).stdout;
    assert_eq!(csv.lines().count(), 4);
    assert!(csv.contains("b.json,a.json,mem,byte,1024"), "{csv}");
    let markdown = ascertain(folder.path(), &["pyperf", "a.json", "b.json", "--format", "markdown"]).stdout;
    assert!(markdown.contains("| t1 ") || markdown.contains("`t1`"), "{markdown}");
    // An export keeps names, units and values, and replaces no file.
    let export = ["pyperf", "a.json", "b.json", "--export", "out"];
    assert_eq!(ascertain(folder.path(), &export).code, Some(0));
    let written: Value = serde_json::from_slice(&fs::read(folder.path().join("out/b.json")).unwrap()).unwrap();
    assert_eq!(written["benchmarks"][0]["metadata"], json!({ "name": "mem", "unit": "byte" }));
    let again = ascertain(folder.path(), &export);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("choose another folder"), "{}", again.stderr);
}

/// faster-cpython/ideas#683: the two sides have different numbers of processes, and of values in each process.
#[test]
fn processes_and_values_of_both_sides_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, processes: usize, values: usize| {
        let runs = vec![json!({ "values": vec![0.01; values] }); processes];
        let benchmark = json!({ "metadata": { "name": "w", "unit": "second" }, "runs": runs });
        fs::write(folder.path().join(name), json!({ "benchmarks": [benchmark] }).to_string()).unwrap();
    };
    file("a.json", 20, 3);
    file("b.json", 6, 8);
    let pyperf = |format: &str| ascertain(folder.path(), &["pyperf", "a.json", "b.json", "--format", format]);
    let text = pyperf("table").stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "`b.json` has 6 processes, and `a.json` has 20 processes.",
        "Each process counts once, by the mean of its values: `b.json` has 48 values for each benchmark, and `a.json` has \
         60 values.",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let json = pyperf("json").json();
    assert_eq!(json["comparisons"][0]["counts"], json!([{ "benchmark": "w", "values": [48, 60] }]));
    let markdown = pyperf("markdown").stdout;
    assert!(markdown.contains("| 6 / 20 | 48 / 60 |"), "{markdown}");
    let csv = pyperf("csv").stdout;
    assert!(csv.ends_with(",6,20,48,60\n"), "{csv}");
}

#[test]
fn wrong_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.json", &[("t", "second", 0.02)]);
    fs::write(folder.path().join("b.json"), "{").unwrap();
    fs::write(folder.path().join("c.json.gz"), b"\x1f\x8b\x08").unwrap();
    for (inputs, why) in [
        (&["a.json", "b.json"][..], "b.json is not valid JSON"),
        (&["a.json", "c.json.gz"], "is compressed; unpack it"),
        (&["a.json", "d.json"], "there is no file d.json"),
        (&["a.json"], "a.json has one runtime; a comparison needs another file"),
    ] {
        let ran = ascertain(folder.path(), &[&["pyperf"][..], inputs].concat());
        assert_eq!(ran.code, Some(2), "{inputs:?}");
        assert!(ran.stderr.contains(why), "{inputs:?}: {}", ran.stderr);
    }
    // The same file twice is an A/A comparison, and the two sides have different names.
    let ran = ascertain(folder.path(), &["pyperf", "a.json", "a.json"]);
    assert!(ran.stdout.contains("a.json (again) is 1.00 times as fast as a.json"), "{}", ran.stdout);
}
