//! The result of a long measurement: its table, and sentences about drift and the recorded observations.

use ascertain_engine::outcome::Outcome;
use ascertain_engine::windows::{
    Drift, Ended, Range, RecordedReport, SeriesReport, SeriesWindow, WindowReport, WindowSummary,
};

use super::{shown, times};
use crate::csv::{Field, record};
use crate::figure::{exact_percent, percent};
use crate::grid::{ColumnKind, Grid};
use crate::outlook::span;
use crate::text::{counted, escape_controls, grouped, quoted};

/// Returns a table with a row for each group of windows.
pub(crate) fn grid(report: &WindowReport) -> Grid {
    let headings = ["Time", "Observations", "Succeeded", "Median", "p90", "p99", "p99.9", "Max"];
    let kind = |heading| (heading, if heading == "Time" { ColumnKind::Prose } else { ColumnKind::Number });
    let mut grid = Grid::with_kinds(headings.map(kind));
    for group in &report.groups {
        let [_, figures @ ..] = group.figures().map(|figure| shown(figure, report.unit, report.limit));
        let counts = [times(group), grouped(group.observations), group.share().map_or_else(|| "–".into(), percent)];
        grid.rows.push(counts.into_iter().chain(figures).map(Into::into).collect());
    }
    grid
}

/// Returns sentences about a run that has ended. The verdict is a sentence of its own. Names are marked as in
/// `crate::text::quoted`.
pub(crate) fn sentences(outcome: &Outcome) -> Vec<String> {
    let Some(report) = &outcome.windows else { return Vec::new() };
    let without_verdict = if outcome.claims.is_empty() { Some(description(report)) } else { None };
    let drift = report.drift.as_ref().map(|drift| drift_sentence(drift, report));
    let ended = ending(report);
    let sentences = without_verdict.into_iter().chain(drift).chain(ended).chain([error_sentence(report)]);
    sentences.chain(report.series.iter().filter_map(unbounded)).chain([recorded(report)]).collect()
}

/// Returns a sentence about the observations of a run without a verdict.
fn description(report: &WindowReport) -> String {
    let total = &report.total;
    let observations = grouped(total.observations);
    let share = match (report.condition.as_str(), total.share()) {
        ("", _) | (_, None) => String::new(),
        (condition, Some(share)) => {
            format!("; {} was true of {} ({})", quoted(condition), grouped(total.successes), percent(share))
        }
    };
    let [_, median, _, p99, p999, most] = total.figures();
    let figures = [("median", median), ("p99", p99), ("p99.9", p999), ("maximum", most)];
    let figures = figures.map(|(name, value)| format!("{name} {}", shown(value, report.unit, report.limit)));
    format!(
        "{observations} observations in {}{share}. {}: {}.",
        span(report.elapsed_ns as f64 / 1e9),
        report.metric,
        figures.join(", ")
    )
}

/// Returns a sentence about the change of the figures in the course of the run.
fn drift_sentence(drift: &Drift, report: &WindowReport) -> String {
    let change = |first: Range, last: Range| match first.value().zip(last.value()) {
        Some((first, last)) if first == last => " (unchanged)".to_string(),
        Some((first, last)) if first > 0.0 => {
            format!(" ({}{})", if last >= first { "+" } else { "−" }, percent((last / first - 1.0).abs()))
        }
        _ => String::new(),
    };
    let course = |first: Range, last: Range| {
        let [from, to] = [first, last].map(|range| shown(range.bounds(), report.unit, report.limit));
        format!("from {from} to {to}{}", change(first, last))
    };
    let part = match drift.windows {
        1 => "From the first window to the last".to_string(),
        windows => format!("From the first {windows} windows to the last {windows}"),
    };
    let median = course(drift.median_first, drift.median_last);
    let p99 = course(drift.p99_first, drift.p99_last);
    let trend = match drift.trend {
        None => " There are too few windows for a trend.".to_string(),
        Some(trend) if trend.is_notable => {
            let way = if trend.tau > 0.0 { "rise" } else { "fall" };
            format!(
                " The medians of the windows {way} in the course of the run: Kendall's tau is {:.2}, which is {:.1} standard \
                 deviations from no trend.",
                trend.tau,
                trend.deviations.abs()
            )
        }
        Some(trend) => format!(" The medians of the windows show no notable trend (Kendall's tau {:.2}).", trend.tau),
    };
    format!("{part}, the median went {median}, and p99 {p99}.{trend}")
}

/// Returns a sentence about a run that ended before its time was up.
fn ending(report: &WindowReport) -> Option<String> {
    let (elapsed, duration) = (span(report.elapsed_ns as f64 / 1e9), span(report.duration_ns as f64 / 1e9));
    match &report.ended {
        Ended::Time => None,
        Ended::Command(how) => Some(format!("The command {how} after {elapsed} of {duration}.")),
        Ended::Interrupted => Some(format!("The run was interrupted after {elapsed} of {duration}.")),
        Ended::Error(error) => {
            Some(format!("An error ended the run after {elapsed} of {duration}: {}.", escape_controls(error)))
        }
        Ended::Open => {
            Some(format!("The figures are those of the windows that had ended after {elapsed} of {duration}."))
        }
    }
}

fn error_sentence(report: &WindowReport) -> String {
    let error = exact_percent(report.relative_error);
    let without = match report.total.without_value {
        0 => String::new(),
        without => format!(" {} without a value are not part of them.", counted(without, "observation")),
    };
    let ranges = match (report.total.stopped, report.total.ranges) {
        (0, None) => String::new(),
        (0, Some(_)) => " Percentiles below 2⁻¹⁶ or above 2⁴⁸ are ranges.".to_string(),
        (stopped, _) => {
            let were = if stopped == 1 { "was" } else { "were" };
            format!(" {} {were} cut off, so some figures are ranges.", counted(stopped, "observation"))
        }
    };
    format!("Percentiles are within {error} of the value with that rank; the maximum is exact.{ranges}{without}")
}

/// Returns a sentence about a derived series with results that have no bound.
fn unbounded(series: &SeriesReport) -> Option<String> {
    let sum = |of: fn(&SeriesWindow) -> u64| series.windows.iter().map(of).sum::<u64>();
    let (results, unbounded) = (sum(|window| window.results), sum(|window| window.unbounded));
    (unbounded > 0).then(|| {
        format!(
            "{}: {} of {} have an infinite bound, for example because an observation was cut off. They count with their \
             lower bounds, so the means of their windows are lower bounds.",
            quoted(&series.expression),
            grouped(unbounded),
            counted(results, "result")
        )
    })
}

/// Returns a sentence about the recorded observations.
fn recorded(report: &WindowReport) -> String {
    let RecordedReport { every, is_growing, observations, around, around_observations, failures, .. } = report.recorded;
    let RecordedReport { ended_ns, failures_left_out, .. } = report.recorded;
    if every == 0 {
        return "Nothing was recorded.".to_string();
    }
    let rows = match (every, is_growing) {
        (1, _) => "every observation".to_string(),
        (every, false) => format!("one observation in {}", grouped(every)),
        (every, true) => format!("every observation at first, and one in {} at the end", grouped(every)),
    };
    let rows = if observations > 0 { format!("{rows} ({} in all)", grouped(observations)) } else { rows };
    let failed = match failures {
        0 => "no observation failed".to_string(),
        failures => {
            let left_out = match failures_left_out {
                0 => String::new(),
                left_out => format!("; {} of them are left out, because the limit was reached", grouped(left_out)),
            };
            let all = if around_observations > 0 {
                format!(" ({} in all)", grouped(around_observations))
            } else {
                String::new()
            };
            let which =
                if failures == 1 { "the failure".into() } else { format!("each of {} failures", grouped(failures)) };
            format!("{} before and after {which}{all}{left_out}", counted(around, "observation"))
        }
    };
    let ended = ended_ns.map_or_else(String::new, |ended_ns| {
        format!(" An error ended the recording after {}; the rows before it are readable.", span(ended_ns as f64 / 1e9))
    });
    format!("Recorded: {rows}; a histogram for each window; {failed}.{ended}")
}

/// Returns the windows as CSV, with a line for each window.
pub(crate) fn csv(report: &WindowReport) -> String {
    const FIGURES: [&str; 6] = ["least", "median", "p90", "p99", "p999", "most"];
    let mut text =
        String::from("window,start_ns,end_ns,metric,unit,observations,successes,unknown,without_value,stopped");
    FIGURES.iter().for_each(|figure| text += &format!(",{figure}"));
    FIGURES.iter().for_each(|figure| text += &format!(",{figure}_low,{figure}_high"));
    text.push('\n');
    for window in &report.windows {
        let WindowSummary { window: index, start_ns, end_ns, observations, successes, unknown, .. } = window;
        let WindowSummary { without_value, stopped, least, median, p90, p99, p999, most, .. } = window;
        let place: [&dyn Field; 5] = [index, start_ns, end_ns, &report.metric, &report.unit.symbol()];
        let counts: [&dyn Field; 5] = [observations, successes, unknown, without_value, stopped];
        let ranges = window.figures().map(Range::of);
        let bounds: Vec<&dyn Field> = ranges.iter().flat_map(|Range { low, high }| [low as &dyn Field, high]).collect();
        let values: [&dyn Field; 6] = [least, median, p90, p99, p999, most];
        text += &record(&[&place[..], &counts, &values, &bounds].concat());
    }
    text
}

#[cfg(test)]
mod tests {
    use ascertain_engine::unit::Unit;

    use super::*;

    fn report() -> WindowReport {
        let json = serde_json::json!({
            "metric": "wall", "unit": "ns", "condition": "wall <= 20 ms", "duration_ns": 60_000_000_000_u64,
            "window_ns": 1_000_000_000, "elapsed_ns": 60_000_000_000_u64, "ended": "time", "relative_error": 3.67e-4,
            "limit": 2e8, "total": WindowSummary::default(), "groups": [], "windows": [], "drift": null,
            "recorded": RecordedReport::default(), "memory": { "parts": [] },
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_median_above_the_limit_is_part_of_the_drift() {
        let above = Range { low: Some(2e8), high: None };
        let drift = Drift {
            windows: 15,
            median_first: Range::exact(5e6),
            median_last: above,
            p99_first: Range::exact(8e6),
            p99_last: above,
            trend: None,
        };
        assert_eq!(
            drift_sentence(&drift, &report()),
            "From the first 15 windows to the last 15, the median went from 5.000 ms to > 200 ms, and p99 from 8.000 ms to \
             > 200 ms. There are too few windows for a trend."
        );
        let alike = Drift { median_last: Range::exact(6e6), p99_last: Range::exact(8e6), ..drift };
        let sentence = drift_sentence(&alike, &report());
        assert!(sentence.contains("to 6.000 ms (+20 %), and p99 from 8.000 ms to 8.000 ms (unchanged)."), "{sentence}");
    }

    #[test]
    fn results_without_bounds_are_counted_in_a_sentence() {
        let window = SeriesWindow { results: 50, unbounded: 2, ..SeriesWindow::default() };
        let series = |windows| SeriesReport { expression: "ewma(wall, .01)".into(), unit: Unit::Nanosecond, windows };
        let sentence = unbounded(&series(vec![window, SeriesWindow::default(), window])).unwrap();
        assert!(sentence.contains("4 of 100 results have an infinite bound"), "{sentence}");
        assert_eq!(unbounded(&series(vec![SeriesWindow { unbounded: 0, ..window }])), None);
    }

    #[test]
    fn a_recording_that_ended_early_is_not_called_empty() {
        let ended_ns = Some(3_000_000_000);
        let recorded_part = RecordedReport { every: 4, is_growing: true, ended_ns, ..RecordedReport::default() };
        let sentence = recorded(&WindowReport { recorded: recorded_part, ..report() });
        assert!(sentence.contains("one in 4 at the end"), "{sentence}");
        assert!(
            sentence.ends_with("An error ended the recording after 3 s; the rows before it are readable."),
            "{sentence}"
        );
        assert_eq!(recorded(&report()), "Nothing was recorded.");
    }

    #[test]
    fn cut_off_observations_are_named_beside_the_error() {
        let total = WindowSummary { stopped: 3, ..WindowSummary::default() };
        let sentence = error_sentence(&WindowReport { total, ..report() });
        assert!(sentence.contains("3 observations were cut off, so some figures are ranges."), "{sentence}");
    }
}
