//! The output for commands that were stopped at their time limit, and for trials whose distribution changed so that no
//! interval is valid.

use ascertain_engine::experiment::Arm;
use ascertain_engine::finding::{Estimated, Reason, Unlike};
use ascertain_engine::outcome::{Absence, Decision, LeftOut, Outcome, PointSummary, Verdict};
use ascertain_report::options::TableLayout;
use ascertain_report::terminal::{self, Style};
use ascertain_report::{json, markdown, sentence};

use crate::common::{at_least_8, compare, counted, decided, order, with_rate, with_ratio};

/// Creates a comparison in which some of the last command's 43 observations were stopped after 30 ms. `censored` is
/// their number.
fn stopped(censored: u64, change: impl Fn(&mut PointSummary)) -> Outcome {
    let mut run = compare();
    let point =
        run.points.iter_mut().find(|point| point.arm.variant.starts_with("awk") && point.metric == "wall").unwrap();
    (point.censored, point.limit, point.max) = (censored, Some(30e6), None);
    change(point);
    run
}

/// Returns the table row of the command that was stopped.
fn row(run: &Outcome) -> String {
    let text = markdown::outcome(run, &Default::default());
    text.lines().find(|line| line.starts_with("| ``awk")).unwrap_or_default().to_string()
}

#[test]
fn what_was_stopped_is_over_its_limit() {
    let all = stopped(43, |point| {
        (point.median, point.median_low, point.median_high, point.min, point.p99) = (None, None, None, None, None);
    });
    let cells = row(&all);
    assert!(cells.contains(" | over 30 ms | stopped in 43 of 43 | over 30 ms | "), "{cells}");
    let points = all.points.iter().map(|point| PointSummary { limit: None, ..point.clone() }).collect();
    let lost = Outcome { points, ..all.clone() };
    assert!(row(&lost).contains(" | unknown | lost in 43 of 43 | "), "{}", row(&lost));
    let some = stopped(3, |_| {});
    let cells = row(&some);
    assert!(cells.contains(" | 24.63 ms | 24.56 to 24.73 ms | 24.14 to over 30 ms | "), "{cells}");
    let half = stopped(20, |point| point.median_high = None);
    let cells = row(&half);
    assert!(cells.contains("24.56 to over 30 ms | 24.14 to over 30 ms"), "{cells}");
    // Ctrl-C stopped one trial after 25 ms, so the upper end of the interval is over 25 ms. Further below, Ctrl-C
    // stopped trials after about 1.2 ms. This is less than the lower end, so it does not bound the upper end.
    let short = stopped(1, |point| {
        (point.median_high, point.limit, point.seen) = (None, Some(25e6), Some(25.5e6));
    });
    assert!(row(&short).contains("24.56 to over 25 ms | 24.14 to over 25.5 ms"), "{}", row(&short));
    let shorter = stopped(2, |point| {
        (point.median_high, point.limit, point.seen) = (None, Some(1.2e6), point.min);
    });
    assert!(row(&shorter).contains(" | at least 24.56 ms | at least 24.14 ms | "), "{}", row(&shorter));
    // If the two ends of a range have different units, each end has its unit.
    let long = stopped(3, |point| {
        (point.median_high, point.limit, point.seen) = (None, Some(1.2e9), Some(1.3e9));
    });
    assert!(row(&long).contains("24.56 ms to over 1.2 s | 24.14 ms to over 1.3 s"), "{}", row(&long));
    let style = Style { color: false, width: 160 };
    let table = terminal::compare_table(&all, &TableLayout::default(), &style);
    assert!(!table.contains("too few trials"), "{table}");
}

#[test]
fn ratios_of_time_outs_bound_what_they_bound() {
    let says = |ratio: f64, low: f64, high: Option<f64>, decision| {
        let mut claim = decided(with_ratio(order("B", "A"), ratio, low, 0.0), decision, 4, 43, 1);
        claim.ratio_high = high;
        (claim.ratio, claim.ratio_low) = (Some(ratio).filter(|r| r.is_finite()), Some(low).filter(|r| r.is_finite()));
        sentence::claim(&claim)
    };
    let text = says(0.0, 0.0, Some(0.8), Decision::Slower);
    assert!(
        text.starts_with("`B` is slower than `A`: it took at least 1.250 times as long and lost 38 of 43"),
        "{text}"
    );
    let mut run = compare();
    let claim = run.claims.last_mut().unwrap();
    (claim.ratio, claim.ratio_low, claim.ratio_high) = (None, Some(1.5), None);
    let size = &serde_json::from_str::<serde_json::Value>(&json::outcome(&run)).unwrap()["claims"][1]["size"];
    assert_eq!(size, "at least 1.500 times as fast", "{}", row(&run));
    assert!(row(&run).contains(" | at least 1.500 times as fast | "), "{}", row(&run));
    let text = says(0.71, 0.0, None, Decision::Slower);
    assert!(text.contains(": it took 41 % longer (no interval: time-outs) and lost"), "{text}");
    let text = says(0.71, 0.0, Some(0.9), Decision::Slower);
    assert!(text.contains(": it took 41 % longer (99.9 % interval: at least 11 %) and lost"), "{text}");
    let text = says(0.71, 0.0, Some(1.1), Decision::Undecided);
    assert!(text.ends_with(": it took 41 % longer (99.9 % interval: at best 9.1 % less time)."), "{text}");
    let text = says(1.25, 0.8, None, Decision::Undecided);
    assert!(text.ends_with(": it took 20 % less time (99.9 % interval: at worst 25 % longer)."), "{text}");
    let text = says(0.0, 0.0, Some(0.0), Decision::Slower);
    assert!(text.contains("is slower than `A`: it lost 38 of 43 pairs"), "{text}");
    let text = says(f64::INFINITY, 1.5, None, Decision::Faster);
    assert!(text.contains("is faster than `A`: it was at least 1.500 times as fast and won"), "{text}");
    let ties = decided(with_ratio(order("B", "A"), 1.0, 1.0, 1.0), Decision::Undecided, 0, 20, 20);
    let text = sentence::claim(&ties);
    assert!(text.starts_with("No difference found between `B` and `A`: 20 pairs, and each was a tie."), "{text}");
    let ties = decided(with_ratio(order("B", "A"), 1.0, 1.0, 1.0), Decision::Undecided, 1, 424, 423);
    let text = sentence::claim(&ties);
    assert_eq!(text, "No difference found between `B` and `A`: 423 of 424 pairs were ties.");
    let text = says(0.0, 0.0, Some(1.2), Decision::Undecided);
    assert!(
        text.starts_with(
            "Not yet clear which is faster: `B` won 4 of 43 pairs, 1 tie against `A`: it was at most 1.200 times"
        ),
        "{text}"
    );
}

/// If there is no interval, the output says so, but does not mention too few trials. If an interval includes 0 %, both
/// of its ends have a sign, and neither is written as 0 %.
#[test]
fn the_size_in_a_table_agrees_with_the_answer() {
    let cells = |ratio: f64, low: Option<f64>, high: Option<f64>, decision| {
        let mut run = compare();
        let claim = run.claims.last_mut().unwrap();
        (claim.ratio, claim.ratio_low, claim.ratio_high) = (Some(ratio), low, high);
        claim.decision = Some(decision);
        row(&run).rsplit(" | ").take(3).skip(1).map(str::to_string).collect::<Vec<_>>()
    };
    use Decision::{Slower, Undecided};
    for (ratio, low, high, decision, [value, range]) in [
        (1.25, Some(1.1), Some(1.4), Undecided, ["20 % less time", "9.1 to 29 %"]),
        (1.25, Some(0.8), Some(1.4), Undecided, ["20 % less time", "-29 to +25 %"]),
        (0.8, Some(0.7), Some(1.2), Undecided, ["25 % longer", "-17 to +43 %"]),
        (0.8, Some(0.7), Some(1.000_01), Undecided, ["25 % longer", "under 0 to +43 %"]),
        (1.25, Some(0.999_99), Some(1.4), Undecided, ["20 % less time", "-29 to over 0 %"]),
        (1.25, Some(0.8), None, Undecided, ["20 % less time", "at most +25 %"]),
        (0.8, None, Some(1.25), Undecided, ["25 % longer", "at least -20 %"]),
        (0.8, Some(0.7), None, Undecided, ["25 % longer", "at most +43 %"]),
        (0.9999, Some(0.9), Some(1.1), Undecided, ["about the same time", "-9 to +11 %"]),
        (0.9999, Some(0.9), Some(1.1), Slower, ["0.01 % longer", "-9 to +11 %"]),
    ] {
        assert_eq!(cells(ratio, low, high, decision), [range, value], "{ratio} {low:?} {high:?} {decision:?}");
    }
}

#[test]
fn trials_that_left_their_interval_say_so() {
    let claim = counted(at_least_8("x", ""), Verdict::Refuted, 30, 117);
    let mut claim = with_rate(with_ratio(claim, 7.2, 0.0, 0.0), 0.5, 0.0, 0.0);
    (claim.ratio_low, claim.ratio_high, claim.rate_low, claim.rate_high) = (None, None, None, None);
    claim.unlike = vec![Unlike::Left { of: Estimated::Ratio }];
    let text = sentence::claim(&claim);
    assert!(
        text.contains("7.2 times as fast (no interval: results changed during the run)") && !text.contains("too few"),
        "{text}"
    );
    claim.rate_claimed = 0.9;
    assert!(sentence::claim(&claim).contains("26 % (too few trials for an interval)"), "the rate has another reason");
    claim.unlike = vec![Unlike::NoneFits { of: Estimated::Rate }];
    assert!(
        sentence::claim(&claim).contains("26 % (no interval: results changed during the run)"),
        "{}",
        sentence::claim(&claim)
    );
}

#[test]
fn a_command_that_failed_is_named_as_often_as_it_must() {
    let mut run = compare();
    run.claims.truncate(1);
    let failed = |arm| Reason::Failed {
        arm,
        is_wrong: false,
        line: Some("false".into()),
        how: "command `false` ended with exit code 1".into(),
    };
    let claim = &mut run.claims[0];
    (claim.verdict, claim.decision) = (Verdict::Failed, None);
    claim.reasons = vec![failed(Some(Arm { variant: "false".into(), point: Default::default() }))];
    run.left_out = vec![LeftOut {
        experiment: claim.experiment.clone(),
        arm: Arm { variant: "false".into(), point: Default::default() },
        absence: Absence::Failed,
        reason: failed(None),
    }];
    let text = markdown::outcome(&run, &Default::default());
    assert_eq!(text.matches("exit code 1").count(), 1, "{text}");
}
