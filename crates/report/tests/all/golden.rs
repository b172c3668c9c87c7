//! Every format against a file in `golden/`; `BLESS=1` rewrites the files.

use ascertain_engine::claim::Test;
use ascertain_engine::experiment::Arm;
use ascertain_engine::finding::Reason;
use ascertain_engine::outcome::{Absence, LeftOut, PointSummary, Verdict};
use ascertain_engine::unit::Unit;
use ascertain_report::alphabet::Alphabet;
use ascertain_report::formats::Report;
use ascertain_report::options::{Order, Shown, TableLayout, TimeUnit};
use ascertain_report::terminal::{self, Style};
use ascertain_report::{csv, hyperfine, json, markdown, sentence};

use crate::common::{self, compare_with_golden};

/// Returns the width of the widest line in columns, not counting escapes for colours.
fn widest(text: &str) -> usize {
    text.lines().map(unicode_width::UnicodeWidthStr::width).max().unwrap_or(0)
}

#[test]
fn tables_are_drawn_in_ascii_where_that_is_all_there_is() {
    let plain = terminal::check_table(&common::check(), &Style::default());
    assert!(plain.contains("──") && plain.contains("… and"), "{plain}");
    assert_eq!(Alphabet::Ascii.shown(&plain), plain.replace('─', "-").replace('…', "~"));
}

/// In a run with several comparisons, any of them may have counters.
#[test]
fn counters_of_a_later_comparison_are_told_of() {
    let mut run = common::counted_commands("wall", Unit::Nanosecond);
    let mut first = run.claims[0].clone();
    first.counters.retain(|counter| counter.verdict == Verdict::Unavailable);
    run.claims.insert(0, first);
    let text = markdown::outcome(&run, &TableLayout::default());
    assert_eq!(text.matches("Not counted here: `cycles` (").count(), 1, "{text}");
    assert!(text.contains("Each counter has its own test"), "{text}");
}

#[test]
fn terminal_tables_fit_their_width() {
    let (check, compare, slo, many) = (common::check(), common::compare(), common::slo(), common::many());
    let functions = common::functions();
    let (counted, with_mean) =
        (common::counted_commands("memory_peak", Unit::Byte), TableLayout { mean: true, ..TableLayout::default() });
    for width in [80, 120] {
        let style = Style { color: false, width };
        for (name, text) in [
            ("check", terminal::check_table(&check, &style)),
            ("screen", terminal::checked(&many, &Shown::default(), Some("ascertain report latest"), &style)),
            ("compare", terminal::compare_table(&compare, &TableLayout::default(), &style)),
            ("functions", terminal::compare_table(&functions, &TableLayout::default(), &style)),
            ("compare-mean", terminal::compare_table(&compare, &with_mean, &style)),
            ("compare-memory", terminal::compare_table(&counted, &TableLayout::default(), &style)),
            ("counters", terminal::counters_table(&counted, &TableLayout::default(), &style)),
            ("compare-sentences", terminal::sentences(&compare, &style)),
            ("points", terminal::points_table(&check, &style)),
            ("sentences", terminal::sentences(&check, &style)),
            ("slo", terminal::slo(&slo, &style)),
            ("judge", common::judgement().text(&style)),
            ("threats", terminal::threats(&check, &style)),
        ] {
            compare_with_golden(&format!("{name}-{width}.txt"), &text);
            assert!(widest(&text) <= width, "{name} at {width} columns is {} wide", widest(&text));
            assert!(!text.contains('\x1b'), "{name} lets an escape through");
        }
    }
}

/// A path is not broken if the table fits with stacked columns.
#[test]
fn a_long_path_stays_whole_where_there_is_room_for_it() {
    let mut run = common::compare();
    let path = "/opt/a-vendor/a-product/releases/current/bin/app";
    for point in run.points.iter_mut().filter(|point| point.arm.variant.contains("parallel")) {
        point.arm.variant = format!("{path} big.txt");
    }
    for width in [114, 140] {
        let style = Style { color: false, width };
        let text = terminal::compare_table(&run, &TableLayout::default(), &style);
        assert!(text.contains(path) && text.starts_with("Command") && widest(&text) <= width, "{text}");
    }
}

/// Each row becomes a paragraph if columns would be too narrow even when stacked.
#[test]
fn narrow_tables_keep_words_and_numbers_whole() {
    let (check, compare) = (common::check(), common::compare());
    for width in [40, 60, 70] {
        let style = Style { color: false, width };
        let tables = [terminal::check_table(&check, &style), terminal::points_table(&check, &style)];
        for text in tables.into_iter().chain([terminal::compare_table(&compare, &TableLayout::default(), &style)]) {
            assert!(widest(&text) <= width, "{width}: {text}");
            let words: Vec<&str> = text.split_whitespace().collect();
            for word in ["Verdict", "refuted", "neumaier", "undecided", "reference", "slower", "Trials", "Answer"] {
                let is_broken = |pair: &[&str]| pair.concat() == word && pair.iter().all(|part| !part.is_empty());
                assert!(!words.windows(2).any(is_broken), "`{word}` at {width} columns: {text}");
            }
        }
    }
    let narrow = terminal::check_table(&check, &Style { color: false, width: 40 });
    assert!(narrow.contains("\n  Verdict  "), "{narrow}");
    let colored = terminal::check_table(&check, &Style { color: true, width: 40 });
    assert!(colored.contains("\n  Verdict  \x1b[1;34mholds\x1b[0m\n"), "{colored}");
    // If the first column of a table is a number, its heading must be in the paragraph of a row.
    let mut slo = common::slo();
    for metric in ["user", "system", "memory_peak"] {
        slo.points.push(PointSummary { metric: metric.into(), ..slo.points[0].clone() });
    }
    let slo = terminal::slo(&slo, &Style { color: false, width: 40 });
    assert!(slo.contains("\nTrials ") && slo.contains("\n  wall  "), "{slo}");
}

/// An id that is broken over two lines can't be copied.
#[test]
fn ids_are_whole_at_every_width() {
    let mut many = common::many();
    many.claims[8].id = "decimal.packed-faster-at-each-length-than-radix-10-reversed[digits=1]".into();
    for width in [40, 60, 80, 120] {
        let style = Style { color: false, width };
        let checked = |all| terminal::checked(&many, &Shown { all, only: Vec::new() }, None, &style);
        let (screen, all) = (checked(false), checked(true));
        assert!(screen.contains(&many.claims[8].id) && screen.contains("sum.pairwise"), "{width}: {screen}");
        let is_whole = |claim: &ascertain_engine::outcome::ClaimResult| all.matches(&claim.id).count() >= 2;
        assert!(many.claims.iter().all(is_whole), "{width}: {all}");
        let too_wide = |line: &&str| unicode_width::UnicodeWidthStr::width(*line) > width && !line.contains("digits=1");
        assert_eq!(screen.lines().find(too_wide), None, "{width}");
        assert!(screen.contains("  at least 8 times"), "what was claimed has room: {screen}");
    }
}

/// The 99th percentile of only a hundred values is nearly the largest one, so it is left out. A metric may itself have
/// the name of a quantile.
#[test]
fn tails_are_those_of_enough_trials_and_say_so() {
    let table = |n| {
        let mut check = common::check();
        check.points.iter_mut().for_each(|point| point.n = n);
        terminal::points_table(&check, &Style { color: false, width: 120 })
    };
    assert!(!table(100).contains("p99") && !table(100).contains("198.1 µs"));
    assert!(table(101).contains("  p99 of trials\n") && table(101).contains("198.1 µs\n"));
}

/// In an interrupted run, an arm without trials has a row in the table, unless a sentence gives the reason.
#[test]
fn arms_without_trials_have_their_row() {
    let mut check = common::check();
    let naive = &mut check.points[0];
    (naive.n, naive.median, naive.median_low, naive.median_high) = (0, None, None, None);
    let style = Style { color: false, width: 120 };
    let row = |check: &_| {
        let table = terminal::points_table(check, &style);
        table
            .lines()
            .find(|line| line.starts_with("naive "))
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(row(&check).as_deref(), Some("naive accumulators=1 0 no trials"));
    check.left_out = vec![LeftOut {
        experiment: "sum".into(),
        arm: Arm { variant: "naive".into(), point: check.points[0].arm.point.clone() },
        absence: Absence::Deferred,
        reason: Reason::TimeUp { was_tried: false, all_tried_ns: None },
    }];
    assert_eq!(row(&check), None);
}

/// A table of 88 rows with nine lines each would be too long.
#[test]
fn tables_of_many_rows_do_without_what_they_have_no_room_for() {
    let check = common::check();
    let point = check.points[0].clone();
    let of = |number: usize, metric: &str, value: f64| {
        let mut point = point.clone();
        (point.arm.variant, point.metric) = (format!("neumaier-avx512-{number:02}"), metric.into());
        (point.median, point.p99) = (Some(value), Some(value));
        point
    };
    let points = |rows| {
        let metrics = ["time", "throughput", "error", "instructions"];
        let points = (0..rows).flat_map(|row| metrics.map(|metric| of(row, metric, 12.5 + row as f64)));
        terminal::points_table(&common::outcome(points.collect(), Vec::new()), &Style { color: false, width: 80 })
    };
    let many = points(12);
    assert!(many.lines().count() < 20 && widest(&many) <= 80, "{many}");
    assert!(many.contains("\nLeft out, because the terminal is too narrow: instructions. The report and"), "{many}");
    let few = points(3);
    assert!(few.contains("instructions") && !few.contains("Left out"), "{few}");
}

/// All formats warn if a verdict is from too few trials to check whether the trials are alike.
#[test]
fn claims_with_too_few_trials_to_see_whether_they_are_alike_say_so() {
    let mut check = common::check();
    let says = "too few trials to check that trials are alike (40 are needed).";
    let style = Style { color: false, width: 200 };
    let said = |check: &_| {
        [terminal::checked(check, &Shown::default(), None, &style), markdown::outcome(check, &TableLayout::default())]
            .map(|text| text.contains(says))
    };
    assert_eq!(said(&check), [false, false]);
    check.claims.iter_mut().for_each(|claim| claim.undiagnosed = true);
    assert_eq!(said(&check), [true, true]);
    // A claim without a verdict needs no warning.
    check.claims.iter_mut().for_each(|claim| claim.verdict = Verdict::Undecided);
    assert_eq!(said(&check), [false, false]);
}

/// Metrics of claims come first. A metric with the same value in every row is printed in the heading instead.
#[test]
fn columns_of_claims_come_first_and_constant_ones_go() {
    let mut check = common::check();
    let point = check.points[0].clone();
    let of = |variant: &str, metric: &str, value: f64| {
        let mut point = PointSummary { metric: metric.into(), ..point.clone() };
        point.arm.variant = variant.into();
        (point.median, point.p99) = (Some(value), Some(value));
        point
    };
    let rows = |number: usize| {
        let value = number as f64;
        let metrics = [("time", 1.0 + value), ("exit", 0.0), ("late", 7.0 + value), ("error", 0.5)];
        metrics.map(|(metric, value)| of(&format!("variant-{number}"), metric, value))
    };
    check.points = [rows(0), rows(1)].concat();
    // The claims of this check are about the metric `error`.
    let is_about = |test: &Test| matches!(test, Test::Versus { measure, .. } if measure.metric == "error");
    for claim in &mut check.claims {
        for test in &mut claim.asked.tests {
            if let Test::Versus { measure, .. } = test {
                measure.metric = "error".into();
            }
        }
    }
    assert!(check.claims.iter().flat_map(|claim| &claim.asked.tests).any(is_about));
    let table = terminal::points_table(&check, &Style { color: false, width: 120 });
    let heading = table.lines().find(|line| line.starts_with("Variant")).unwrap();
    let places = ["time", "error", "late"].map(|metric| heading.find(metric).unwrap());
    assert!(places.is_sorted() && !heading.contains("exit"), "{table}");
    assert!(table.lines().next().unwrap().contains("; the same in every row: exit"), "{table}");
}

/// Quantiles of one quantity are next to each other, in ascending order, each with its interval. Shares follow, with
/// their means.
#[test]
fn quantiles_have_their_intervals_and_shares_their_means() {
    let point = common::check().points[0].clone();
    let of = |(metric, median): (&str, f64)| {
        let mut point = PointSummary { metric: metric.into(), median: Some(median), ..point.clone() };
        (point.median_low, point.median_high) = (Some(median - 0.5), Some(median + 0.5));
        if metric == "overloaded" {
            (point.is_share, point.unit, point.mean) = (true, Unit::One, Some(0.25));
        }
        point
    };
    let metrics = [("latency_p50", 50.0), ("latency_p99", 99.0), ("overloaded", 0.0), ("latency_p99.9", 999.0)];
    let points = [&metrics[..], &[("latency_p90", 90.0)]].concat().into_iter().map(of).collect();
    let text = terminal::points_table(&common::outcome(points, Vec::new()), &Style { color: false, width: 200 });
    let [heading, columns, _, row] = text.lines().take(4).collect::<Vec<_>>().try_into().unwrap();
    assert!(heading.ends_with("; shares are means"), "{text}");
    let places =
        ["latency_p50", "latency_p90", "latency_p99 ", "latency_p99.9", "overloaded"].map(|name| columns.find(name));
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{text}");
    assert_eq!(columns.matches("95 % interval").count(), 4, "{text}");
    assert!(row.contains("89.5 to 90.5") && row.contains("998.5 to 999.5") && row.ends_with(" 0.2500"), "{text}");
}

#[test]
fn colours_are_all_that_colour_adds() {
    let check = common::check();
    let [plain, colored] = [false, true].map(|color| terminal::check_table(&check, &Style { color, width: 100 }));
    assert!(colored.contains("\x1b[1;34mholds\x1b[0m") && colored.contains("\x1b[1;31mrefuted\x1b[0m"));
    let mut stripped = colored;
    for code in ["\x1b[1;34m", "\x1b[1;31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped, plain);
    let sentences = terminal::sentences(&check, &Style { color: true, width: 100 });
    assert!(sentences.contains("\x1b[1;34mHolds\x1b[0m: "));
}

#[test]
fn a_run_for_programs() {
    let (check, compare) = (common::check(), common::compare());
    compare_with_golden("check.json", &json::outcome(&check));
    compare_with_golden("judge.json", &common::judgement().json());
    compare_with_golden("points.csv", &csv::outcome(&compare));
    compare_with_golden("claims.csv", &csv::claims(&check));
    compare_with_golden("judge.csv", &common::judgement().csv());
    compare_with_golden("check.md", &markdown::outcome(&check, &TableLayout::default()));
    compare_with_golden("compare.md", &markdown::outcome(&compare, &TableLayout::default()));
    let counted = common::counted_commands("user", Unit::Nanosecond);
    compare_with_golden("counters.md", &markdown::outcome(&counted, &TableLayout::default()));
    compare_with_golden("counters.json", &json::outcome(&counted));
    compare_with_golden("judge.md", &common::judgement().markdown());
}

#[test]
fn formats_of_hyperfine() {
    let times = common::times();
    let layout = TableLayout::default();
    compare_with_golden("hyperfine.json", &hyperfine::json(&times, &common::machine()));
    compare_with_golden("hyperfine-1.json", &hyperfine::json_1(&times));
    compare_with_golden("hyperfine.csv", &hyperfine::csv(&times));
    compare_with_golden("hyperfine.md", &hyperfine::markdown(&times, layout));
    compare_with_golden("hyperfine.adoc", &hyperfine::asciidoc(&times, layout));
}

/// The requested order and unit also apply to the tables in hyperfine 1's formats.
#[test]
fn order_and_unit_are_those_asked_for() {
    let mut times = common::times();
    times.reverse();
    let layout = TableLayout { order: Order::Time, time_unit: Some(TimeUnit::Microsecond), ..TableLayout::default() };
    for text in [hyperfine::markdown, hyperfine::asciidoc, hyperfine::orgmode].map(|write| write(&times, layout)) {
        assert!(text.contains("Mean [µs]") && text.contains("11603.4 ± "), "{text}");
        assert!(text.find("sleep 0.01") < text.find("sh -c"), "{text}");
    }
    let compared = markdown::outcome(&common::compare(), &TableLayout { time_unit: Some(TimeUnit::Second), ..layout });
    assert!(compared.contains(" s ") && !compared.contains(" ms "), "{compared}");
}

#[test]
fn every_claim_has_its_sentence() {
    let claims = [common::check().claims, common::compare().claims, common::slo().claims].concat();
    let text: String = claims.iter().map(|claim| sentence::claim(claim) + "\n").collect();
    compare_with_golden("sentences.txt", &text);
}

/// One trial of a function took ten thousand times as long as the others. Each number then has its own digits and unit.
#[test]
fn numbers_far_apart_have_digits_of_their_own() {
    let mut functions = common::functions();
    let time = &mut functions.points[0];
    (time.median, time.median_low, time.median_high) = (Some(16_603.0), Some(16_599.0), Some(16_607.0));
    (time.min, time.max) = (Some(16_571.0), Some(188_042_123.0));
    let style = Style { color: false, width: 120 };
    let shown = terminal::compare_table(&functions, &TableLayout::default(), &style);
    assert!(shown.contains("16.603 µs") && shown.contains("16.6 µs to 188 ms"), "{shown}");
    let time = &mut functions.points[0];
    (time.median_high, time.max) = (Some(188_042_123.0), Some(842_000.0));
    let shown = terminal::compare_table(&functions, &TableLayout::default(), &style);
    assert!(shown.contains("16.6 µs to 188 ms") && shown.contains("16.6 to 842"), "{shown}");
}

#[test]
fn what_is_asked_for_is_said_in_whole() {
    let (many, style) = (common::many(), Style { color: false, width: 100 });
    let checked = |all, only: &[Verdict]| terminal::checked(&many, &Shown { all, only: only.into() }, None, &style);
    let all = checked(true, &[]);
    assert!(many.claims.iter().all(|claim| all.contains(&claim.id)), "{all}");
    assert!(all.contains("Holds: `kahan-avx512 (") && all.contains("Said"), "sentences and the table: {all}");
    let refuted = checked(false, &[Verdict::Refuted]);
    let is_said = |verdict| many.claims.iter().any(|claim| claim.verdict == verdict && refuted.contains(&*claim.id));
    assert!(is_said(Verdict::Refuted) && !is_said(Verdict::Holds) && !is_said(Verdict::Unavailable), "{refuted}");
    assert!(refuted.contains(&format!("{} claims:", many.claims.len())), "how many others there are: {refuted}");
    let few = common::outcome(Vec::new(), many.claims[..2].to_vec());
    let only_failed = Shown { only: vec![Verdict::Failed], ..Shown::default() };
    let none = terminal::checked(&few, &only_failed, None, &style);
    assert!(none.starts_with("No claim has the verdict failed.\n") && none.contains("2 claims:"), "{none}");
    let few = terminal::checked(&few, &Shown::default(), None, &style);
    assert!(few.contains("error at most ") && few.contains("2 claims:"), "{few}");
}
