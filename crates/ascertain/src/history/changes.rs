//! Finds the runs at which the ratio of two variants changed, and tells a change of the code from one of the machine.

use std::path::Path;

use ascertain_report::history::changes::{Cause, Change, ChangeRun, Changes};
use ascertain_report::history::trend::{TrendLine, TrendPoint};
use ascertain_stats::{ChangePoint, VALUES_PER_FALSE_ALARM, change_points, median_sorted};

use super::trend::{TrendRequest, trend};
use crate::error::{Error, refused};

/// Number of runs by which the changes of two series may be apart and still count as one. The places are estimates.
const NEAR: usize = 5;

/// Returns the runs at which the ratio of two variants, or the baseline of the ratio alone, reached a new level.
///
/// # Errors
/// If no ratio is requested, and the errors of [`trend`].
pub fn changes(below: &Path, asked: &TrendRequest) -> Result<Changes, Error> {
    if asked.ratio.is_none() {
        return refused("changes need the ratio of two variants, in the form A/B".into());
    }
    let trend = trend(below, asked)?;
    let changes = trend.lines.iter().flat_map(changes_of_line).collect();
    Ok(Changes { trend, changes, runs_per_false_alarm: VALUES_PER_FALSE_ALARM as u64 })
}

/// A run with a ratio and with the baseline's own median.
#[derive(Clone, Copy)]
struct Known<'a> {
    run: &'a TrendPoint,
    ratio: f64,
    baseline: f64,
}

/// Returns the changes of one arm's ratio and of its baseline, the oldest first.
fn changes_of_line(line: &TrendLine) -> Vec<Change> {
    let runs: Vec<Known> = line.runs.iter().filter_map(Known::new).collect();
    let places = places(&runs);
    let firsts = || places.iter().map(|(place, _)| place.first);
    let ends = firsts().skip(1).chain([runs.len()]);
    let starts = [0].into_iter().chain(firsts());
    let levels = starts.zip(ends);
    let change = |((place, cause), (before, end)): (&(ChangePoint, Cause), (usize, usize))| Change {
        arm: line.arm.clone(),
        cause: *cause,
        previous: ChangeRun::new(runs[place.first - 1].run),
        first: ChangeRun::new(runs[place.first].run),
        found_run_id: runs[place.found].run.run_id.clone(),
        ratio_before: median(&runs[before..place.first], |run| run.ratio),
        ratio_after: median(&runs[place.first..end], |run| run.ratio),
        baseline_before: median(&runs[before..place.first], |run| run.baseline),
        baseline_after: median(&runs[place.first..end], |run| run.baseline),
    };
    places.iter().zip(levels).map(change).collect()
}

impl<'a> Known<'a> {
    fn new(run: &'a TrendPoint) -> Option<Known<'a>> {
        Some(Known { run, ratio: run.estimate.median?, baseline: run.baseline? })
    }
}

/// Returns the changes with their causes, sorted by place. If the ratio changes while the baseline and the name of the
/// machine stay the same, the code changed. If only the baseline changes, the machine changed both variants alike.
fn places(runs: &[Known]) -> Vec<(ChangePoint, Cause)> {
    let places_of = |value: fn(&Known) -> f64| change_points(&runs.iter().map(value).collect::<Vec<_>>());
    let (of_ratio, of_baseline) = (places_of(|run| run.ratio), places_of(|run| run.baseline));
    let is_near = |place: &ChangePoint, others: &[ChangePoint]| {
        others.iter().any(|other| other.first.abs_diff(place.first) <= NEAR)
    };
    let machine = |index: usize| &runs[index].run.machine;
    let cause = |place: ChangePoint| {
        let is_same_machine = machine(place.first - 1) == machine(place.first);
        let is_code = is_same_machine && !is_near(&place, &of_baseline);
        (place, if is_code { Cause::Code } else { Cause::Unclear })
    };
    let of_machine = of_baseline.iter().filter(|place| !is_near(place, &of_ratio));
    let mut places: Vec<_> = of_machine.map(|place| (*place, Cause::Machine)).collect();
    places.extend(of_ratio.iter().copied().map(cause));
    places.sort_by_key(|(place, _)| place.first);
    places
}

fn median(runs: &[Known], value: fn(&Known) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    median_sorted(&values).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ascertain_engine::experiment::{Arm, Point};
    use ascertain_report::history::comparison::MedianEstimate;

    /// Returns runs in which the ratio and the baseline have given levels, with noise of 1 %.
    fn line(count: usize, levels: impl Fn(usize) -> (f64, f64), machine: impl Fn(usize) -> &'static str) -> TrendLine {
        let run = |index: usize| {
            let noise = |factor: usize| 1.0 + (index * factor % 101) as f64 / 3000.0;
            let (ratio, baseline) = levels(index);
            TrendPoint {
                run_id: format!("run {index}"),
                started: String::new(),
                machine: machine(index).into(),
                revision: None,
                estimate: MedianEstimate { n: 9, median: Some(ratio * noise(7919)), low: None, high: None },
                baseline: Some(baseline * noise(6947)),
            }
        };
        TrendLine { arm: Arm { variant: "new".into(), point: Point::default() }, runs: (0..count).map(run).collect() }
    }

    fn found(line: &TrendLine) -> Vec<(Cause, String)> {
        changes_of_line(line).into_iter().map(|change| (change.cause, change.first.run_id)).collect()
    }

    /// In run 20 the code changed, in run 40 the machine, and in run 60 both.
    #[test]
    fn code_and_machine_are_told_apart() {
        let ratio = |index| if (20..60).contains(&index) { 0.94 } else { 1.0 };
        let baseline = |index| if (40..60).contains(&index) { 6e6 } else { 5e6 };
        let line = line(80, |index| (ratio(index), baseline(index)), |_| "A");
        let expected = [(Cause::Code, 20), (Cause::Machine, 40), (Cause::Unclear, 60)];
        assert_eq!(found(&line), expected.map(|(cause, index)| (cause, format!("run {index}"))));
        let [code, machine, _] = &changes_of_line(&line)[..] else { panic!("three changes") };
        assert_eq!((&*code.previous.run_id, &*code.found_run_id), ("run 19", "run 24"));
        let near = |value: f64, expected: f64| assert!((value / expected - 1.0).abs() < 0.03, "{value} {expected}");
        near(code.ratio_before, 1.0);
        near(code.ratio_after, 0.94);
        near(code.baseline_after, 5e6);
        near(machine.ratio_after, 0.94);
        near(machine.baseline_after, 6e6);
    }

    #[test]
    fn a_machine_with_another_name_makes_the_cause_unclear() {
        let line =
            line(40, |index| (if index < 20 { 1.0 } else { 1.06 }, 5e6), |index| if index < 20 { "A" } else { "B" });
        assert_eq!(found(&line), [(Cause::Unclear, "run 20".into())]);
    }

    #[test]
    fn runs_without_a_ratio_are_left_out() {
        let mut line = line(30, |index| (if index < 15 { 1.0 } else { 1.06 }, 5e6), |_| "A");
        line.runs[15].estimate.median = None;
        line.runs[3].baseline = None;
        assert_eq!(found(&line), [(Cause::Code, "run 16".into())]);
        line.runs.clear();
        assert_eq!(found(&line), []);
    }
}
