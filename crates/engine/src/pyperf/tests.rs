//! Tests of files of pyperf. The faults in public reports that each test repeats are named.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;

use super::*;

fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

/// Returns a file of processes that differ by 3 %, and within which values differ by 0.1 %.
fn file(rng: &mut Xoshiro256PlusPlus, processes: usize, values: usize) -> Value {
    let runs: Vec<Value> = (0..processes)
        .map(|_| {
            let mean = 0.01 * (1.0 + 0.03 * normal(rng));
            json!({ "values": (0..values).map(|_| mean * (1.0 + 0.001 * normal(rng))).collect::<Vec<f64>>() })
        })
        .collect();
    json!({ "version": "1.0", "metadata": { "name": "w", "unit": "second" }, "benchmarks": [{ "runs": runs }] })
}

/// faster-cpython/ideas#683: the two sides have different numbers of processes and values. Pooling all values finds a
/// difference in half of the pairs of files that have none.
#[test]
fn the_interval_is_that_of_processes_and_not_of_values() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(683);
    let mut missed = 0;
    for _ in 0..400 {
        let [a, b] = [(20, 3), (6, 10)].map(|(processes, values)| file(&mut rng, processes, values));
        let [a, b] = [("a.json", a), ("b.json", b)].map(|(name, file)| PyperfSuite::parse(name, &file).unwrap());
        let compared = compare(&b, &a);
        assert_eq!(compared.counts, [ValueCounts { benchmark: "w".into(), values: [60, 60] }]);
        let compared = compared.times;
        assert!(!compared.is_paired);
        assert_eq!(compared.workloads[0].values, [6, 20]);
        let ends = compared.workloads[0].interval.unwrap();
        missed += u32::from(!ends.contains(1.0));
        let mean = compared.mean.unwrap();
        assert_eq!((mean.this_suite, mean.like_these), (Some(ends), None));
    }
    // 20 of 400 are expected; the limits are five standard deviations.
    assert!((1..=41).contains(&missed), "{missed}");
}

/// psf/pyperf#98: one file has kilobytes and the other bytes, and both call them bytes.
#[test]
fn memory_stands_apart_and_a_ratio_of_1024_is_suspicious() {
    let benchmark = |name: &str, unit: &str, value: f64| {
        let runs: Vec<Value> = (0..10).map(|i| json!({ "values": [value * (1.0 + f64::from(i) / 1000.0)] })).collect();
        json!({ "metadata": { "name": name, "unit": unit }, "runs": runs })
    };
    let file = |factor: f64, time: f64| {
        let benchmarks = [
            benchmark("mem", "byte", 5_431_296.0 * factor),
            benchmark("t1", "second", 0.02 * time),
            benchmark("t2", "second", 0.5 * time),
        ];
        json!({ "version": "1.0", "benchmarks": benchmarks })
    };
    let a = PyperfSuite::parse("a.json", &file(1.0, 1.0)).unwrap();
    let b = PyperfSuite::parse("b.json", &file(1024.0, 0.8)).unwrap();
    let compared = compare(&b, &a);
    let names: Vec<&str> = compared.times.workloads.iter().map(|of| of.workload.as_str()).collect();
    assert_eq!(names, ["t1", "t2"]);
    let mean = compared.times.mean.unwrap().ratio.value().unwrap();
    assert!((mean - 1.25).abs() < 1e-12, "{mean}");
    let memory = compared.others[0].ratio.ratio.value().unwrap();
    assert!((memory - 1024.0).abs() < 1e-6);
    assert_eq!(compared.suspicious.len(), 1);
    assert_eq!(compared.suspicious[0].0, "mem");
    // Written again, the file has the same units and values.
    assert_eq!(PyperfSuite::parse("a.json", &a.to_json()).unwrap(), a);
    assert_eq!(b.to_json()["benchmarks"][0]["metadata"]["unit"], "byte");
    // kB and KiB, seconds and milliseconds, and no prefix at all.
    for (ratio, expected) in [(1000.0, true), (1e-3, true), (1e6, true), (500.0, false), (1.0, false), (1.04, false)] {
        assert_eq!(is_suspicious(ratio), expected, "{ratio}");
    }
}

#[test]
fn benchmarks_of_one_side_or_of_two_units_are_left_out_on_both() {
    let file = |names: &[(&str, &str)]| {
        let runs = json!([{ "warmups": [[1, 2.0]] }, { "values": [1.0, 3.0] }]);
        let of = |(name, unit): &(&str, &str)| json!({ "metadata": { "name": name, "unit": unit }, "runs": runs });
        json!({ "benchmarks": names.iter().map(of).collect::<Vec<_>>() })
    };
    let a = PyperfSuite::parse("a", &file(&[("x", "second"), ("only-a", "second"), ("mixed", "second")])).unwrap();
    let b = PyperfSuite::parse("b", &file(&[("x", "second"), ("only-b", "second"), ("mixed", "integer")])).unwrap();
    let compared = compare(&b, &a).times;
    assert_eq!(compared.workloads.len(), 1);
    // A process that only calibrated its loops does not count. One process has no interval.
    assert_eq!((compared.workloads[0].values, compared.workloads[0].interval), ([1, 1], None));
    let left_out: Vec<(&str, &str)> =
        compared.left_out.iter().map(|of| (of.workload.as_str(), of.arms[0].as_str())).collect();
    assert_eq!(left_out, [("only-a", "b"), ("mixed", "b"), ("only-b", "a")]);
    assert_eq!(compared.left_out[1].reason, WorkloadLack::OtherUnit);
}

#[test]
fn files_that_are_not_of_pyperf_are_refused_with_a_reason() {
    for (file, why) in [
        (json!([]), "it has no list `benchmarks`"),
        (json!({ "benchmarks": [] }), "it has no benchmarks"),
        (json!({ "benchmarks": [{ "metadata": { "name": "x" } }] }), "`x` has no list `runs`"),
        (json!({ "benchmarks": [{ "runs": [{ "values": 1 }] }] }), "the `values` of `benchmark 1` are not a list"),
        (
            json!({ "benchmarks": [{ "runs": [{ "values": ["1"] }] }] }),
            "`benchmark 1` has the value \"1\", which is not a number",
        ),
        (
            json!({ "benchmarks": [{ "runs": [{ "values": [0.0] }] }] }),
            "`benchmark 1` has the value 0; values must be above 0",
        ),
        (
            json!({ "metadata": { "name": "w" }, "benchmarks": [{ "runs": [] }, { "runs": [] }] }),
            "two of its benchmarks have the name `w`",
        ),
    ] {
        assert_eq!(PyperfSuite::parse("file", &file).unwrap_err(), why);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    let read = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        PyperfSuite::read(&path).unwrap_err().to_string()
    };
    assert!(read(b"\x1f\x8b\x08").contains("is compressed; unpack it"));
    assert!(read(b"{").contains("is not valid JSON"));
    assert!(read(b"{}").ends_with("is not a file of pyperf: it has no list `benchmarks`"));
    fs::remove_file(&path).unwrap();
    assert!(PyperfSuite::read(&path).unwrap_err().to_string().starts_with("could not read"));
}
