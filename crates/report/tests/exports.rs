//! Results for other tools: each kind against a file in `golden/` (`BLESS=1` writes the files anew), and what
//! holds of any run.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ascertain::claims_file::Place;
use ascertain::experiment::{Better, Experiment, Point};
use ascertain::function::Group;
use ascertain::outcome::{ClaimResult, Decision, Outcome, PointSummary, Verdict};
use ascertain::plan::{Config, Plan, Table};
use ascertain::run::Recording;
use ascertain::unit::Unit;
use ascertain_report::exports::{Files, KINDS, Mark, Purpose, Results, annotations};
use common::{arm, at_least_8, blank, compare_with_golden, measure, order, outcome};
use proptest::prelude::*;
use serde_json::Value;

/// Values that have each point's median, and as many as tools want to say anything.
fn values(outcome: &Outcome) -> Vec<Vec<f64>> {
    let of = |point: &PointSummary| {
        let factors = [0.98, 1.01, 0.99, 1.4, 1.0, 1.02, 0.985];
        point.median.map_or_else(Vec::new, |median| factors.map(|factor| median * factor).into())
    };
    outcome.points.iter().map(of).collect()
}

/// A run's results in a kind of file.
fn written(option: &str, outcome: &Outcome, purpose: &Purpose) -> String {
    let values = values(outcome);
    written_of(option, outcome, &values, purpose)
}

fn written_of(option: &str, outcome: &Outcome, values: &[Vec<f64>], purpose: &Purpose) -> String {
    let kind = KINDS.iter().find(|kind| kind.option == option).unwrap_or_else(|| panic!("{option}"));
    (kind.write)(&results(outcome, values, purpose))
}

fn results<'a>(outcome: &'a Outcome, values: &'a [Vec<f64>], purpose: &'a Purpose) -> Results<'a> {
    Results { outcome, values: values.iter().map(Vec::as_slice).collect(), purpose, is_final: true }
}

fn annotated(outcome: &Outcome, purpose: &Purpose) -> String {
    annotations(&results(outcome, &values(outcome), purpose))
}

fn placed(id: &str, file: &str, line: usize) -> Purpose {
    let place = Place { file: file.into(), line, column: 1 };
    Purpose { places: BTreeMap::from([(id.to_string(), place)]), ..Purpose::default() }
}

#[test]
fn each_kind_is_as_it_was_looked_at() {
    let (check, compare, functions) = (common::check(), common::compare(), common::functions());
    let placed = placed("sum.kahan-avx512-8x-naive", "claims/sum, \"all\".toml", 12);
    let gated = Purpose { failing: Some(Decision::Slower), ..Purpose::default() };
    let none = Purpose::default();
    compare_with_golden("check.junit.xml", &written("export-junit", &check, &placed));
    compare_with_golden("compare.junit.xml", &written("export-junit", &compare, &gated));
    compare_with_golden("check.github.md", &written("export-github", &check, &placed));
    compare_with_golden("check.annotations.txt", &annotated(&check, &placed));
    compare_with_golden("compare.bencher.json", &written("export-bencher", &compare, &none));
    compare_with_golden("functions.bencher.json", &written("export-bencher", &functions, &none));
    compare_with_golden("compare.go.txt", &written("export-go", &compare, &none));
    compare_with_golden("functions.google-benchmark.json", &written("export-google-benchmark", &functions, &none));
    compare_with_golden("functions.hyperfine.json", &written("export-json", &functions, &none));
    compare_with_golden("compare.org", &written("export-orgmode", &compare, &none));
}

#[test]
fn options_have_a_name_and_a_line_of_help_each() {
    let options: BTreeSet<&str> = KINDS.iter().map(|kind| kind.option).collect();
    assert_eq!(options.len(), KINDS.len());
    assert!(KINDS.iter().all(|kind| kind.option.starts_with("export-") && kind.about.len() > 20));
}

#[test]
fn what_counts_as_a_failure() {
    let mark = |claim: ClaimResult, failing| {
        let run = outcome(Vec::new(), vec![claim]);
        let purpose = Purpose { failing, ..Purpose::default() };
        results(&run, &[], &purpose).mark(&run.claims[0])
    };
    let with = |verdict| common::counted(at_least_8("a", ""), verdict, 1, 2);
    assert_eq!(mark(with(Verdict::Holds), None), Mark::Passed);
    assert_eq!(mark(with(Verdict::Refuted), None), Mark::Failed);
    assert_eq!(mark(with(Verdict::Failed), None), Mark::Broken);
    for verdict in [Verdict::Undecided, Verdict::Unavailable, Verdict::Deferred] {
        assert_eq!(mark(with(verdict), None), Mark::Skipped);
    }
    let compared = |decision| common::decided(order("b", "a"), decision, 1, 2, 0);
    assert_eq!(mark(compared(Decision::Slower), None), Mark::Passed, "a comparison alone fails nothing");
    assert_eq!(mark(compared(Decision::Slower), Some(Decision::Slower)), Mark::Failed);
    assert_eq!(mark(compared(Decision::Faster), Some(Decision::Slower)), Mark::Passed);
    assert_eq!(mark(compared(Decision::Undecided), Some(Decision::Slower)), Mark::Skipped);
}

/// A run of one command, whose times are given.
fn timed(name: &str, wall_ns: Vec<f64>) -> (Outcome, Vec<Vec<f64>>) {
    let point = point("compare", name, "wall", Unit::Nanosecond);
    (outcome(vec![point], Vec::new()), vec![wall_ns])
}

fn point(experiment: &str, variant: &str, metric: &str, unit: Unit) -> PointSummary {
    PointSummary {
        experiment: experiment.into(),
        variant: variant.into(),
        at: Point::default(),
        metric: metric.into(),
        unit,
        better: Better::Lower,
        n: 1,
        median: Some(1.0),
        median_low: None,
        median_high: None,
        p90: None,
        p99: None,
        mean: None,
        std: None,
        min: None,
        max: None,
    }
}

#[test]
fn a_time_without_end_is_kept() {
    let (run, values) = timed("hangs", vec![5.0, f64::INFINITY, 7.0]);
    let none = Purpose::default();
    let json: Value = serde_json::from_str(&written_of("export-google-benchmark", &run, &values, &none)).unwrap();
    let second = &json["benchmarks"][1];
    assert_eq!(
        (second["error_occurred"].as_bool(), second["real_time"].as_f64()),
        (Some(true), Some(18446744073709551616.0))
    );
    assert_eq!(json["benchmarks"][0]["error_occurred"], Value::Null);
    assert_eq!(json["benchmarks"][3]["aggregate_name"], "median", "there is no mean of it");
    assert!(written_of("export-go", &run, &values, &none).contains(" 18446744073709552000 ns/op\n"));
}

#[test]
fn of_many_trials_some_are_written() {
    let (run, values) = timed("many", (0..2500).map(|trial| 1.0 + f64::from(trial)).collect());
    let text = written_of("export-go", &run, &values, &Purpose::default());
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("Benchmark")).collect();
    assert_eq!(lines.len(), 1000);
    assert_eq!((lines[0], lines[999]), ("BenchmarkCompare/many-2 1 1 ns/op", "BenchmarkCompare/many-2 1 2498 ns/op"));
}

#[test]
fn zeros_are_in_seconds_for_benchstat() {
    let (run, values) = timed("quick", vec![0.0, 5e6]);
    let text = written_of("export-go", &run, &values, &Purpose::default());
    assert!(text.contains("Unit sec/op better=lower\n"));
    assert!(text.contains("-2 1 0 sec/op\n") && text.contains("-2 1 0.005 sec/op\n"), "{text}");
}

#[test]
fn names_that_become_alike_are_told_apart() {
    let points = ["a b", "a_b", "a\tb"].map(|name| point("compare", name, "wall", Unit::Nanosecond));
    let run = outcome(points.into(), Vec::new());
    let text = written("export-go", &run, &Purpose::default());
    let names: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("Benchmark")?.split(' ').next()).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), [r"Compare/a\tb-2", "Compare/a_b#01-2", "Compare/a_b-2"]);
}

#[test]
fn bencher_has_every_arm_and_metric_under_a_name_of_its_own() {
    let arms = [("a", "b/c"), ("a/b", "c"), ("a", "b/c (n=1)"), ("a", &"long".repeat(300)), ("a", &"long".repeat(301))];
    let metrics = [
        ("wall", Unit::Nanosecond),
        ("latency", Unit::Nanosecond),
        ("other-latency", Unit::Nanosecond),
        ("throughput", Unit::BytePerSecond),
        ("bandwidth", Unit::BytePerSecond),
        ("memory_peak", Unit::Byte),
        ("Memory peak", Unit::Byte),
    ];
    let mut points: Vec<PointSummary> = Vec::new();
    for (experiment, variant) in arms {
        points.extend(metrics.map(|(metric, unit)| point(experiment, variant, metric, unit)));
    }
    points.extend(
        metrics.map(|(metric, unit)| PointSummary {
            at: Point::default().with("n", 1),
            ..point("a", "b/c", metric, unit)
        }),
    );
    let text = written("export-bencher", &outcome(points, Vec::new()), &Purpose::default());
    let json: Value = serde_json::from_str(&text).unwrap();
    let benchmarks = json.as_object().unwrap();
    assert_eq!(benchmarks.len(), arms.len() + 1, "{:?}", benchmarks.keys());
    for (name, measures) in benchmarks {
        assert!(name.chars().count() <= 1024);
        assert_eq!(measures.as_object().unwrap().len(), metrics.len(), "{measures}");
    }
    assert!(benchmarks["a/b/c"]["other-latency#01"].is_object() && benchmarks["a/b/c"]["bandwidth#01"].is_object());
}

#[test]
fn a_comparison_that_gates_nothing_is_no_warning() {
    let run = outcome(Vec::new(), vec![common::decided(order("b", "a"), Decision::Undecided, 8, 15, 0)]);
    let kind = |purpose: &Purpose| annotated(&run, purpose).split(' ').next().unwrap().to_string();
    assert_eq!(kind(&Purpose::default()), "::notice");
    assert_eq!(kind(&Purpose { failing: Some(Decision::Slower), ..Purpose::default() }), "::warning");
}

#[test]
fn github_gets_no_more_than_it_takes() {
    let refuted = |index: usize| {
        let mut claim = at_least_8(&format!("claim-{index}"), &"It is fast. ".repeat(200));
        claim.verdict = Verdict::Refuted;
        (claim.trials, claim.successes) = (9, 1);
        claim
    };
    let run = outcome(Vec::new(), (0..500).map(refuted).collect());
    let summary = written("export-github", &run, &Purpose::default());
    assert!(summary.len() < 300_000, "{}", summary.len());
    assert!(summary.contains("- … and 450 more\n") && summary.contains("more lines, which GitHub would not show"));
    let lines = annotated(&run, &Purpose::default());
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 10);
    assert_eq!(lines[9], "::error title=Ascertain::… and 491 more, which the output names");
    let mut long = refuted(0);
    (long.verdict, long.reason) = (Verdict::Failed, Some("é".repeat(5000)));
    let line = annotated(&outcome(Vec::new(), vec![long]), &Purpose::default());
    assert!(line.chars().count() < 1200 && line.ends_with("é…\n"));
}

#[test]
fn results_that_are_not_final_say_so() {
    let (check, none) = (common::check(), Purpose::default());
    let values = values(&check);
    for (option, said) in [
        ("export-junit", "name=\"final\" value=\"false\""),
        ("export-github", "Not final"),
        ("export-go", ", not final\n"),
        ("export-google-benchmark", "\"final\": false"),
    ] {
        let kind = KINDS.iter().find(|kind| kind.option == option).unwrap();
        let text = (kind.write)(&Results { is_final: false, ..results(&check, &values, &none) });
        assert!(text.contains(said), "{option}: {text}");
        assert!(!written(option, &check, &none).contains(said), "{option}");
    }
}

/// Measures a function three times.
fn measure_a_function(group: &str, files: &mut Files) {
    let group = Group::new(group).function("f", || 1 + 1);
    let arms = vec![arm("f", &Point::default())];
    let tables = vec![Table { experiment: group.spec().id.clone(), arms }];
    let config = Config { exact_trials: Some(3), ..Config::default() };
    let plan = Plan { claims: Vec::new(), tables, commands: Vec::new(), config };
    let run = ascertain::run::run(&plan, &[&group], Recording::None, files).unwrap();
    files.keep(&run.outcome, &run.observations);
}

#[test]
fn several_runs_go_into_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = KINDS.iter().map(|kind| (kind, folder.path().join(kind.option))).collect();
    let wanted = paths.iter().map(|(kind, path)| (*kind, path.as_path()));
    let mut files = Files::open(wanted, Purpose::default()).unwrap();
    for group in ["one", "two"] {
        measure_a_function(group, &mut files);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing shows before it is due");
    files.finish().unwrap();
    let read = |option: &str| std::fs::read_to_string(folder.path().join(option)).unwrap();
    let json: Value = serde_json::from_str(&read("export-json")).unwrap();
    let times: Vec<usize> = (0..2).map(|result| json["results"][result]["times"].as_array().unwrap().len()).collect();
    assert_eq!(times, [3, 3]);
    let go = read("export-go");
    assert!(go.contains("BenchmarkOne/f-") && go.contains("BenchmarkTwo/f-"), "{go}");
}

/// Any text, and often the characters that formats trip over.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a|`\"'<>&;%:,=/#\\\\\\n\\r\\t\\x00\\x1b\u{fffe} \u{2028}*_é和🚀-]{0,12}",
        Just("]]>".into())
    ]
}

prop_compose! {
    fn run()(names in prop::collection::vec(prop::array::uniform5(name()), 0..5), verdict in 0..6_usize) -> Outcome {
        let verdicts =
            [Verdict::Holds, Verdict::Refuted, Verdict::Undecided, Verdict::Unavailable, Verdict::Failed, Verdict::Deferred];
        let claim = |[id, says, variant, reason, experiment]: &[String; 5]| {
            let test = ascertain::outcome::AskedTest::Predicate {
                arm: arm(variant, &Point::default()),
                predicate: "exit == 0".into(),
                measure: Some(measure("wall", Unit::Nanosecond)),
            };
            let mut claim = common::counted(
                blank(id, says, ascertain::claim::Judging::Rate, test), verdicts[verdict], 3, 5,
            );
            (claim.reason, claim.experiment) = (Some(reason.clone()), experiment.clone());
            claim
        };
        let points = names.iter().map(|[_, _, variant, level, experiment]| PointSummary {
            at: Point::default().with("level", level.as_str()),
            ..point(experiment, variant, "wall", Unit::Nanosecond)
        });
        // An arm has each metric once.
        let mut seen = BTreeSet::new();
        let points = points.filter(|point| seen.insert((point.experiment.clone(), point.variant.clone(), point.at.clone())));
        outcome(points.collect(), names.iter().map(claim).collect())
    }
}

/// What XML 1.0 can hold of a text and shows as it is; the rest is written as an escape.
fn in_xml(text: &str) -> String {
    let is_legal =
        |c: char| matches!(c, '\t' | '\n' | '\r') || !(c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'));
    let written = |c: char| match is_legal(c) && !steers(c) {
        true => c.to_string(),
        false => c.escape_unicode().to_string(),
    };
    text.chars().map(written).collect()
}

/// Whether a character that is no control character changes how others look.
fn steers(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// CSV alone has names as they are: it knows no escapes, and programs read it.
#[test]
fn no_kind_lets_a_name_steer_what_shows_it() {
    let hostile = "\u{202e}a\u{9b}2J\u{1b}[31m\u{200b}";
    let mut claim = common::counted(at_least_8(hostile, hostile), Verdict::Failed, 1, 2);
    (claim.reason, claim.experiment) = (Some(hostile.into()), hostile.into());
    let run = outcome(vec![point(hostile, hostile, "wall", Unit::Nanosecond)], vec![claim]);
    let purpose = placed(hostile, hostile, 1);
    let texts = KINDS.iter().filter(|kind| kind.option != "export-csv");
    let mut texts: Vec<(&str, String)> =
        texts.map(|kind| (kind.option, written(kind.option, &run, &purpose))).collect();
    texts.push(("annotations", annotated(&run, &purpose)));
    texts.push(("json", ascertain_report::json::outcome(&run)));
    texts.push(("markdown", ascertain_report::markdown::outcome(&run)));
    for (kind, text) in texts {
        assert!(text.contains("202e"), "{kind}: {text}");
        assert!(!text.chars().any(|c| c != '\n' && (c.is_control() || steers(c))), "{kind}: {text:?}");
    }
}

fn unescaped(text: &str) -> String {
    text.replace("%2C", ",").replace("%3A", ":").replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn junit_always_parses_and_names_read_back(run in run(), file in name()) {
        let ids: BTreeSet<&String> = run.claims.iter().map(|claim| &claim.id).collect();
        let places = ids.iter().map(|id| ((*id).clone(), Place { file: Path::new(&file).into(), line: 7, column: 1 }));
        let purpose = Purpose { places: places.collect(), ..Purpose::default() };
        let text = written("export-junit", &run, &purpose);
        let document = roxmltree::Document::parse(&text).unwrap();
        let cases: Vec<_> = document.descendants().filter(|node| node.has_tag_name("testcase")).collect();
        prop_assert_eq!(cases.len(), run.claims.len());
        let mut read: Vec<_> = cases.iter().map(|case| (case.attribute("classname").unwrap(), case.attribute("name").unwrap())).collect();
        let claimed: Vec<_> = run.claims.iter().map(|claim| (in_xml(&claim.experiment), in_xml(&claim.id))).collect();
        let mut claimed: Vec<_> = claimed.iter().map(|(class, name)| (class.as_str(), name.as_str())).collect();
        read.sort_unstable();
        claimed.sort_unstable();
        prop_assert_eq!(read, claimed);
        let file = in_xml(&file);
        prop_assert!(cases.iter().all(|case| case.attribute("file") == Some(&file) && case.attribute("line") == Some("7")));
        let count = |tag: &str| document.descendants().filter(|node| node.has_tag_name(tag)).count().to_string();
        for (attribute, tag) in [("failures", "failure"), ("errors", "error"), ("skipped", "skipped"), ("tests", "testcase")] {
            let counted = count(tag);
            prop_assert_eq!(document.root_element().attribute(attribute), Some(counted.as_str()));
        }
    }

    #[test]
    fn go_lines_have_a_name_of_one_word_each_and_values_read_back(run in run(), values in prop::collection::vec(1e-3..1e12_f64, 1..9)) {
        let all: Vec<Vec<f64>> = run.points.iter().map(|_| values.clone()).collect();
        let text = written_of("export-go", &run, &all, &Purpose::default());
        let mut by_name: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for line in text.lines().filter(|line| line.starts_with("Benchmark")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            prop_assert_eq!((words.len(), words[1], words[3]), (4, "1", "ns/op"));
            by_name.entry(words[0]).or_default().push(words[2].parse().unwrap());
        }
        prop_assert_eq!(by_name.len(), run.points.len());
        prop_assert!(by_name.values().all(|read| *read == values));
        let others = text.lines().filter(|line| !line.starts_with("Benchmark"));
        let known = ["# ", "goos: ", "goarch: ", "cpu: ", "Unit ", "pkg: "];
        prop_assert!(others.into_iter().all(|line| known.iter().any(|known| line.starts_with(known))), "{}", text);
    }

    #[test]
    fn github_reads_each_command_on_a_line_of_its_own(run in run()) {
        let text = annotated(&run, &Purpose::default());
        let failing = run.claims.iter().filter(|claim| !matches!(claim.verdict, Verdict::Holds | Verdict::Unavailable));
        prop_assert_eq!(text.lines().count(), failing.clone().count());
        for (line, claim) in text.lines().zip(failing) {
            let (title, message) = line.split_once(" title=").unwrap().1.split_once("::").unwrap();
            prop_assert!(!title.contains([':', ',']) && !line.chars().any(char::is_control), "{}", line);
            prop_assert!(unescaped(title).ends_with(claim.verdict.word()));
            prop_assert_eq!(unescaped(message), ascertain_report::sentence::claim(claim));
        }
    }

    #[test]
    fn json_kinds_read_back(run in run()) {
        let purpose = Purpose::default();
        let arms: BTreeSet<_> = run.points.iter().map(|point| (&point.experiment, &point.variant, &point.at)).collect();
        let bencher: Value = serde_json::from_str(&written("export-bencher", &run, &purpose)).unwrap();
        prop_assert_eq!(bencher.as_object().unwrap().len(), arms.len());
        let google: Value = serde_json::from_str(&written("export-google-benchmark", &run, &purpose)).unwrap();
        let names: BTreeSet<&str> = google["benchmarks"].as_array().unwrap().iter().map(|entry| entry["run_name"].as_str().unwrap()).collect();
        prop_assert_eq!(names.len(), arms.len());
    }
}
