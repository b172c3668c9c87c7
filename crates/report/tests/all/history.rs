//! The output of `history` in every format.

use std::collections::BTreeMap;

use ascertain_engine::claim::Measure;
use ascertain_engine::evidence::Revision;
use ascertain_engine::experiment::{Arm, Better, Point};
use ascertain_engine::outcome::{ClaimResult, Decision, PointSummary, Verdict};
use ascertain_engine::unit::Unit;
use ascertain_report::formats::Report;
use ascertain_report::history::changes::{Cause, Change, ChangeRun, Changes};
use ascertain_report::history::comparison::{ComparedRun, Difference, MedianEstimate, RunComparison};
use ascertain_report::history::list::{ListedRun, RunList};
use ascertain_report::history::prune::{PrunedRun, Pruning, SparedRun};
use ascertain_report::history::trend::{RunTrend, TrendLine, TrendPoint, VariantPair};
use ascertain_report::plot::{Layer, Scale};
use ascertain_report::terminal::Style;

use crate::common::{self, compare_with_golden};

const IDS: [&str; 4] =
    ["20261121T093012345Z-5eed", "20261120T180000000Z-0a1b", "20261120T120000000Z-c2d3", "20261119T235959999Z-zzzz"];

const STYLES: [Style; 2] = [Style { color: false, width: 80 }, Style { color: false, width: 120 }];

fn listed(id: &str, state: &'static str, command: &[&str], claims: &[(&str, u64)]) -> ListedRun {
    let (date, time) = (&id[..8], &id[9..15]);
    ListedRun {
        id: id.into(),
        started: Some(format!(
            "{}-{}-{}T{}:{}:{}.000Z",
            &date[..4],
            &date[4..6],
            &date[6..],
            &time[..2],
            &time[2..4],
            &time[4..]
        )),
        command_line: command.iter().map(|word| word.to_string()).collect(),
        label: None,
        revision: None,
        state,
        reason: None,
        claims: claims.iter().map(|(word, count)| (word.to_string(), *count)).collect(),
        bytes: 45_678,
    }
}

fn revision(dirty: Option<bool>) -> Option<Revision> {
    Some(Revision { commit: "a0e851a7c4d3b2e1f00918273645546372819aab".into(), dirty })
}

fn run_list() -> RunList {
    let check: [&str; 3] = ["/usr/bin/ascertain", "check", "claims.toml"];
    let long = ["ascertain", "compare", "sort -n --parallel=2 --buffer-size=50% big.txt", "awk '{ print \x1b[31m }'"];
    let unreadable = ListedRun {
        started: None,
        reason: Some("runs/x/run.json:3:1: cut off (EOF while parsing an object)".into()),
        claims: BTreeMap::new(),
        ..listed(IDS[3], "unreadable", &[], &[])
    };
    RunList {
        folder: "/home/u/.local/state/ascertain/runs".into(),
        count: 2117,
        runs: vec![
            ListedRun {
                label: Some("v1.2 \x1b[31m".into()),
                revision: revision(Some(true)),
                ..listed(IDS[0], "finished", &check, &[("holds", 7), ("refuted", 3)])
            },
            listed(IDS[1], "interrupted", &long, &[("faster", 1)]),
            ListedRun { revision: revision(None), ..listed(IDS[2], "killed", &["ascertain", "run", "sum"], &[]) },
            unreadable,
        ],
    }
}

fn estimate(median: f64) -> MedianEstimate {
    MedianEstimate { n: 43, median: Some(median), low: Some(median * 0.99), high: Some(median * 1.02) }
}

fn run_point(index: usize, machine: &str, estimate: MedianEstimate) -> TrendPoint {
    let listed = listed(IDS[index], "finished", &[], &[]);
    TrendPoint {
        run_id: listed.id,
        started: listed.started.unwrap(),
        machine: machine.into(),
        revision: None,
        estimate,
        baseline: None,
    }
}

fn medians() -> RunTrend {
    let machine = "Example 9000, Linux 6.18.0";
    let line = |variant: &str, at: Point, figures: &[(usize, f64)]| TrendLine {
        arm: Arm { variant: variant.into(), point: at },
        runs: figures.iter().map(|&(index, median)| run_point(index, machine, estimate(median))).collect(),
    };
    let at = Point::default().with("elements", 187_500);
    let mut trend = RunTrend {
        experiment: "sum".into(),
        metric: "time".into(),
        unit: Unit::Nanosecond,
        better: Better::Lower,
        ratio: None,
        lines: vec![
            line("naive", at.clone(), &[(3, 151e3), (2, 149e3), (1, 152e3), (0, 139e3)]),
            line("kahan", at, &[(3, 411e3), (1, 409e3), (0, 405e3)]),
        ],
        notes: vec!["Left out: runs/x/run.json:3:1: cut off".into()],
    };
    trend.lines[1].runs[2].estimate.high = None;
    trend.lines[1].runs[2].machine = "Example 8000, Linux 6.18.0".into();
    trend
}

fn ratios() -> RunTrend {
    let figures = [(2, 1.09), (1, 1.11), (0, 0.97)];
    RunTrend {
        experiment: "compare".into(),
        metric: "wall".into(),
        unit: Unit::One,
        better: Better::Higher,
        ratio: Some(VariantPair { candidate: "sort | uniq`".into(), baseline: "bin/a".into() }),
        lines: vec![TrendLine {
            arm: Arm { variant: "sort | uniq`".into(), point: Point::default() },
            runs: figures.map(|(index, ratio)| run_point(index, "Example 9000", estimate(ratio))).into(),
        }],
        notes: Vec::new(),
    }
}

fn changes() -> Changes {
    let mut trend = ratios();
    for (index, run) in trend.lines[0].runs.iter_mut().enumerate() {
        (run.baseline, run.revision) = (Some([5e6, 4.9e6, 6e6][index]), revision(Some(index == 1)));
    }
    let runs = trend.lines[0].runs.clone();
    let change = |cause, place: usize, ratios: [f64; 2], baselines: [f64; 2]| Change {
        arm: trend.lines[0].arm.clone(),
        cause,
        previous: ChangeRun::new(&runs[place - 1]),
        first: ChangeRun::new(&runs[place]),
        found_run_id: runs[2].run_id.clone(),
        ratio_before: ratios[0],
        ratio_after: ratios[1],
        baseline_before: baselines[0],
        baseline_after: baselines[1],
    };
    let changes = vec![
        change(Cause::Machine, 1, [1.09, 1.11], [5e6, 4.9e6]),
        change(Cause::Unclear, 2, [1.11, 0.97], [4.9e6, 6e6]),
    ];
    Changes { trend, changes, runs_per_false_alarm: 1000 }
}

fn run_comparison() -> RunComparison {
    let run = |index: usize, state| {
        let run = listed(IDS[index], state, &["ascertain", "compare", "bin/a", "bin/b x"], &[]);
        let ListedRun { id, started, command_line, .. } = run;
        let (label, revision) = match index {
            1 => (Some("v1.1".into()), revision(Some(false))),
            _ => (None, revision(Some(true))),
        };
        ComparedRun { id, started: started.unwrap(), state, command_line, label, revision }
    };
    let point = |metric: &str, unit, medians: [f64; 2]| {
        let measure = Measure { metric: metric.into(), unit, better: Better::Lower, inputs: Vec::new() };
        medians.map(|median| PointSummary {
            n: 43,
            median: Some(median),
            median_low: Some(median * 0.99),
            median_high: Some(median * 1.02),
            ..common::summary("compare", "bin/b x", Point::default(), &measure, median)
        })
    };
    let side = |decision, won, ratio| {
        let claim = common::with_ratio(common::order("bin/b x", "bin/a"), ratio, ratio * 0.98, ratio * 1.03);
        let (experiment, id) = ("compare".into(), "bin/b x".into());
        let says = "bin/b x is faster than bin/a".into();
        ClaimResult { experiment, id, says, ..common::decided(claim, decision, won, 43, 0) }
    };
    let difference =
        |what: &str, first: &str, second: &str| Difference { what: what.into(), values: [first.into(), second.into()] };
    RunComparison {
        runs: [run(1, "finished"), run(0, "killed")],
        differences: vec![
            difference("machine.kernel", "Linux 6.17.0", "Linux 6.18.0"),
            difference("machine.governor", "", "powersave"),
            difference("config.max_time", "30 s", "1 min"),
        ],
        points: vec![
            point("wall", Unit::Nanosecond, [11.31e6, 12.44e6]),
            point("memory_peak", Unit::Byte, [1.688e6, 1.688e6]),
            point("exit", Unit::One, [0.0, 0.0]),
        ],
        unmatched_points: [
            ["wall", "user", "system", "exit"].map(|metric| format!("compare, bin/c, {metric}")).into(),
            Vec::new(),
        ],
        claims: vec![[side(Decision::Slower, 2, 0.92), side(Decision::Undecided, 20, 1.001)]],
        unmatched_claims: [Vec::new(), vec!["bin/d".into()]],
    }
}

fn pruning(dry_run: bool) -> Pruning {
    Pruning {
        folder: "/home/u/.local/state/ascertain/runs".into(),
        dry_run,
        removed: [3, 2].map(|index: usize| PrunedRun { id: IDS[index].into(), bytes: 45_678 }).into(),
        removed_bytes: 91_356,
        kept: 2,
        spared: vec![SparedRun { id: IDS[1].into(), reason: "it is being written".into() }],
    }
}

#[test]
fn history_in_a_terminal() {
    for style in STYLES {
        for (name, text) in [
            ("history", run_list().text(&style)),
            ("history-trend", medians().text(&style)),
            ("history-ratio", ratios().text(&style)),
            ("history-changes", changes().text(&style)),
            ("history-compare", run_comparison().text(&style)),
            ("history-prune", pruning(false).text(&style)),
        ] {
            compare_with_golden(&format!("{name}-{}.txt", style.width), &text);
            assert!(!text.contains('\x1b'), "{name} lets an escape through");
            let widest = text.lines().map(unicode_width::UnicodeWidthStr::width).max();
            assert!(widest <= Some(style.width), "{name} is {widest:?} wide");
        }
    }
}

#[test]
fn history_for_programs() {
    compare_with_golden("history.json", &run_list().json());
    compare_with_golden("history.csv", &run_list().csv());
    compare_with_golden("history.md", &run_list().markdown());
    compare_with_golden("history-trend.json", &medians().json());
    compare_with_golden("history-trend.csv", &medians().csv());
    compare_with_golden("history-trend.md", &ratios().markdown());
    compare_with_golden("history-changes.json", &changes().json());
    compare_with_golden("history-changes.csv", &changes().csv());
    compare_with_golden("history-changes.md", &changes().markdown());
    compare_with_golden("history-changes-otava.csv", &changes().otava_csv().unwrap());
    compare_with_golden("history-compare.json", &run_comparison().json());
    compare_with_golden("history-compare.csv", &run_comparison().csv());
    compare_with_golden("history-compare.md", &run_comparison().markdown());
    compare_with_golden("history-prune.json", &pruning(true).json());
    compare_with_golden("history-prune.csv", &pruning(true).csv());
    compare_with_golden("history-prune.md", &pruning(true).markdown());
}

/// The list of runs must have a name for every answer that the engine knows.
#[test]
fn every_answer_is_told() {
    let decisions = [Decision::Faster, Decision::Slower, Decision::Same, Decision::NotSlower, Decision::NotFaster];
    let words = decisions.map(Decision::word).into_iter().chain(Verdict::ALL.map(Verdict::word));
    for word in words {
        let runs = vec![listed(IDS[0], "finished", &["ascertain", "compare"], &[(word, 1)])];
        let told = RunList { runs, ..run_list() }.csv();
        assert!(told.contains(&format!(",1 {word},")), "{told}");
    }
}

#[test]
fn the_plot_has_a_place_for_each_run() {
    let plot = medians().plot();
    let Scale::Names(names) = &plot.x.scale else { panic!("runs are names") };
    assert_eq!(names, &["19 23:59", "20 12:00", "20 18:00", "21 09:30"]);
    let mut within_a_minute = medians();
    for run in within_a_minute.lines.iter_mut().flat_map(|line| &mut line.runs) {
        run.started.replace_range(11.., "09:30:00.000Z");
        run.started.replace_range(8..10, "21");
    }
    let Scale::Names(names) = within_a_minute.plot().x.scale else { panic!("runs are names") };
    assert_eq!(names, ["zzzz", "c2d3", "0a1b", "5eed"]);
    let Layer::Band { ranges, .. } = &plot.layers[3] else { panic!("{:?}", plot.layers[3]) };
    let places: Vec<f64> = ranges.iter().map(|range| range.x).collect();
    assert_eq!(places, [0.0, 2.0, 3.0], "the second variant was not in the second run");
    assert_eq!(ranges[2].high, f64::INFINITY, "an unknown end is open");
    assert_eq!(ratios().plot().layers.len(), 4, "with a rule where both are equal");
}

#[test]
fn one_run_is_one_run() {
    let mut list = run_list();
    (list.count, list.folder) = (1, "runs".into());
    list.runs.truncate(1);
    assert!(list.text(&Style::default()).ends_with("1 run in runs.\n"));
    let mut pruning = pruning(true);
    pruning.removed.truncate(1);
    (pruning.removed_bytes, pruning.kept, pruning.folder) = (1000, 1, "runs".into());
    assert!(pruning.text(&Style::default()).ends_with("1 run of 1.000 kB would be deleted; 1 run stays in runs.\n"));
    pruning.removed.clear();
    assert!(pruning.text(&Style::default()).ends_with("Nothing to delete; 1 run stays in runs.\n"));
}

#[test]
fn a_change_is_a_line_between_two_runs() {
    let places = changes().plot().layers.into_iter().filter_map(|layer| match layer {
        Layer::Rule { at, label, .. } if label != "equal" => Some((at, label)),
        _ => None,
    });
    assert_eq!(places.collect::<Vec<_>>(), [(0.5, "machine".to_string()), (1.5, "unclear".to_string())]);
}

#[test]
fn a_series_without_changes_has_no_table() {
    let unchanged = Changes { changes: Vec::new(), ..changes() };
    let text = unchanged.text(&Style::default()).replace('\n', " ");
    assert!(text.contains("did not change in 3 runs.") && !text.contains("Cause"), "{text}");
}

/// Otava cannot read a row without a number, and its CSV has a single series.
#[test]
fn otava_gets_whole_rows_of_one_series() {
    let mut changes = changes();
    changes.trend.lines[0].runs[1].baseline = None;
    assert_eq!(changes.otava_csv().unwrap().lines().count(), 3);
    changes.trend.lines.push(changes.trend.lines[0].clone());
    assert_eq!(changes.otava_csv(), None);
}
