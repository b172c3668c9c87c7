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
use crate::text::{escape_controls, grouped, grouped_count, quoted};

/// Returns a table with a row for each group of windows. If outcomes are unknown, a column has their share.
pub(crate) fn grid(report: &WindowReport) -> Grid {
    let has_unknown = report.total.unknown > 0;
    let headings = ["Time", "Observations", "Succeeded", "Unknown", "Median", "p90", "p99", "p99.9", "Max"];
    let kind = |heading| (heading, if heading == "Time" { ColumnKind::Prose } else { ColumnKind::Number });
    let shown_headings = headings.into_iter().filter(|heading| has_unknown || *heading != "Unknown");
    let mut grid = Grid::with_kinds(shown_headings.map(kind));
    for group in &report.groups {
        let [_, figures @ ..] = group.figures().map(|figure| shown(figure, report.unit, report.limit));
        let share = |share: Option<f64>| share.map_or_else(|| "–".into(), percent);
        let counts = [times(group), grouped(group.observations), share(group.share())];
        let unknown = has_unknown.then(|| share(group.unknown_share()));
        grid.rows.push(counts.into_iter().chain(unknown).chain(figures).map(Into::into).collect());
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
    let of_series = report.series.iter().flat_map(|series| [unbounded(series), ended_early(series, report)]);
    sentences.chain(of_series.flatten()).chain([recorded(report)]).collect()
}

/// Returns a sentence about the observations of a run without a verdict.
fn description(report: &WindowReport) -> String {
    let total = &report.total;
    let observations = grouped_count(total.observations, "observation");
    let share = match (report.condition.as_str(), total.share()) {
        ("", _) | (_, None) => String::new(),
        (condition, Some(share)) => {
            let unknown = match total.unknown {
                0 => String::new(),
                unknown => {
                    let share = percent(total.unknown_share().unwrap_or_default());
                    let were = if unknown == 1 { "was" } else { "were" };
                    format!(" and is unknown for {} ({share}), which {were} cut off", grouped(unknown))
                }
            };
            format!("; {} was true of {} ({}){unknown}", quoted(condition), grouped(total.successes), percent(share))
        }
    };
    let [_, median, _, p99, p999, most] = total.figures();
    let figures = [("median", median), ("p99", p99), ("p99.9", p999), ("maximum", most)];
    let figures = figures.map(|(name, value)| format!("{name} {}", shown(value, report.unit, report.limit)));
    format!(
        "{observations} in {}{share}. {}: {}.",
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
        1 => "From the first whole window to the last".to_string(),
        windows => format!("From the first {windows} whole windows to the last {windows}"),
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
    format!("{part}, the median changed {median}, and p99 {p99}.{trend}")
}

/// Returns a sentence about a run that ended before its time was up.
fn ending(report: &WindowReport) -> Option<String> {
    let (elapsed, duration) = (span(report.elapsed_ns as f64 / 1e9), span(report.duration_ns as f64 / 1e9));
    match &report.ended {
        Ended::Time => None,
        Ended::Command(how) => {
            let left_out = if report.is_last_line_left_out { " Its incomplete last line is left out." } else { "" };
            Some(format!("The command {how} after {elapsed} of {duration}.{left_out}"))
        }
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
    let WindowReport { total, is_last_cut_off, .. } = report;
    let error = exact_percent(report.relative_error);
    let is_most_known = total.figures()[5].value().is_some() && !is_last_cut_off;
    let maximum = if is_most_known { "; the maximum is exact" } else { "" };
    let without = match total.without_value.saturating_sub(u64::from(*is_last_cut_off)) {
        0 => String::new(),
        1 => " 1 observation without a value has no percentile.".to_string(),
        without => format!(" {} observations without a value have no percentile.", grouped(without)),
    };
    let last = match is_last_cut_off {
        true => " The end of the run cut off the last observation. It has no percentile, and may be above the maximum.",
        false => "",
    };
    let ranges = match (total.stopped, total.ranges) {
        (0, None) => String::new(),
        (0, Some(_)) => " Percentiles below 2⁻¹⁶ or above 2⁴⁸ are ranges.".to_string(),
        (stopped, _) => {
            let were = if stopped == 1 { "was" } else { "were" };
            format!(" {} {were} cut off, so some figures are ranges.", grouped_count(stopped, "observation"))
        }
    };
    format!("Each percentile is within {error} of the exact one{maximum}.{ranges}{without}{last}")
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
            grouped_count(results, "result")
        )
    })
}

/// Returns a sentence about a derived series that ended before the run.
fn ended_early(series: &SeriesReport, report: &WindowReport) -> Option<String> {
    let error = escape_controls(series.error.as_ref()?);
    let last = series.windows.len().checked_sub(1).and_then(|last| report.windows.get(last));
    let place = last.map_or_else(String::new, |window| format!(" in window {} ({})", window.window + 1, times(window)));
    Some(format!("{}: an error ended this series{place}: {error}.", quoted(&series.expression)))
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
    let (failure, plural) = match report.total.unknown {
        0 => ("failure", "failures"),
        _ => ("failure or unknown outcome", "failures and unknown outcomes"),
    };
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
            let which = match failures {
                1 => format!("the {failure}"),
                _ => format!("each of {} {plural}", grouped(failures)),
            };
            format!("{} before and after {which}{all}{left_out}", grouped_count(around, "observation"))
        }
    };
    let ended = ended_ns.map_or_else(String::new, |ended_ns| {
        format!(" An error ended the recording after {}; the rows before it are readable.", span(ended_ns as f64 / 1e9))
    });
    format!("Recorded: {rows}; a histogram for each window; {failed}.{ended}")
}

/// Returns the windows as CSV, with a line for each window. Each derived series has further columns, with its number in
/// their names.
pub(crate) fn csv(report: &WindowReport) -> String {
    const FIGURES: [&str; 6] = ["least", "median", "p90", "p99", "p999", "most"];
    const OF_SERIES: [&str; 7] = ["unit", "results", "nulls", "unbounded", "least", "mean", "most"];
    let mut text =
        String::from("window,start_ns,end_ns,metric,unit,observations,successes,unknown,without_value,stopped");
    FIGURES.iter().for_each(|figure| text += &format!(",{figure}"));
    FIGURES.iter().for_each(|figure| text += &format!(",{figure}_low,{figure}_high"));
    for number in 1..=report.series.len() {
        text += &format!(",series_{number}");
        OF_SERIES.iter().for_each(|name| text += &format!(",series_{number}_{name}"));
    }
    text.push('\n');
    for (row, window) in report.windows.iter().enumerate() {
        let WindowSummary { window: index, start_ns, end_ns, observations, successes, unknown, .. } = window;
        let WindowSummary { without_value, stopped, least, median, p90, p99, p999, most, .. } = window;
        let place: [&dyn Field; 5] = [index, start_ns, end_ns, &report.metric, &report.unit.symbol()];
        let counts: [&dyn Field; 5] = [observations, successes, unknown, without_value, stopped];
        let ranges = window.figures().map(Range::of);
        let bounds: Vec<&dyn Field> = ranges.iter().flat_map(|Range { low, high }| [low as &dyn Field, high]).collect();
        let values: [&dyn Field; 6] = [least, median, p90, p99, p999, most];
        // A series that ended early has no results in the later windows.
        let of_series =
            report.series.iter().map(|series| (series, series.windows.get(row).copied().unwrap_or_default()));
        let of_series: Vec<_> = of_series.map(|(series, window)| (series, series.unit.symbol(), window)).collect();
        let of_series = of_series.iter().flat_map(|(SeriesReport { expression, .. }, unit, window)| {
            let SeriesWindow { results, nulls, unbounded, least, mean, most } = window;
            [expression as &dyn Field, unit, results, nulls, unbounded, least, mean, most]
        });
        text += &record(&[&place[..], &counts, &values, &bounds, &of_series.collect::<Vec<_>>()].concat());
    }
    text
}

#[cfg(test)]
mod tests {
    use ascertain_engine::unit::Unit;
    use ascertain_engine::windows::Ranges;

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

    fn series(windows: Vec<SeriesWindow>, error: Option<&str>) -> SeriesReport {
        let (expression, unit) = ("ewma(wall, .01)".into(), Unit::Nanosecond);
        SeriesReport { expression, unit, windows, error: error.map(str::to_string) }
    }

    #[test]
    fn unknown_outcomes_are_named_in_the_sentences_and_the_table() {
        let total =
            WindowSummary { observations: 104, successes: 72, unknown: 32, windows: 1, ..WindowSummary::default() };
        let recorded_part = RecordedReport { every: 1, around: 10, failures: 32, ..RecordedReport::default() };
        let report = WindowReport { total, groups: vec![total], recorded: recorded_part, ..report() };
        let sentence = description(&report);
        assert!(
            sentence.contains("was true of 72 (69 %) and is unknown for 32 (31 %), which were cut off"),
            "{sentence}"
        );
        let sentence = recorded(&report);
        assert!(sentence.contains("each of 32 failures and unknown outcomes"), "{sentence}");
        let grid = grid(&report);
        let place = grid.columns.iter().position(|column| column.heading == "Unknown").unwrap();
        assert_eq!((grid.rows[0][2].text(), grid.rows[0][place].text()), ("69 %", "31 %"));
        let known = WindowReport { total: WindowSummary { unknown: 0, ..total }, ..report };
        assert!(super::grid(&known).columns.iter().all(|column| column.heading != "Unknown"));
        assert!(!description(&known).contains("unknown"));
    }

    #[test]
    fn a_series_is_part_of_the_csv_until_it_ends() {
        let window = SeriesWindow { results: 5, nulls: 1, mean: Some(2.5), ..SeriesWindow::default() };
        let (all, early) = (series(vec![window; 2], None), series(vec![window], Some("the buffer is full")));
        let windows = [0, 1].map(|window| WindowSummary { window, windows: 1, ..WindowSummary::default() }).to_vec();
        let report = WindowReport { windows, series: vec![all, early], ..report() };
        let text = csv(&report);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with(
            ",series_2,series_2_unit,series_2_results,series_2_nulls,series_2_unbounded,\
                                    series_2_least,series_2_mean,series_2_most"
        ));
        let of_series = r#""ewma(wall, .01)",ns,5,1,0,,2.5,"#;
        assert!(lines[1].ends_with(&format!(",{of_series},{of_series}")), "{text}");
        assert!(lines[2].ends_with(&format!(r#",{of_series},"ewma(wall, .01)",ns,0,0,0,,,"#)), "{text}");
        let sentence = ended_early(&report.series[1], &report).unwrap();
        assert!(
            sentence.contains("an error ended this series in window 1") && sentence.contains("is full"),
            "{sentence}"
        );
        assert_eq!(ended_early(&report.series[0], &report), None);
    }

    #[test]
    fn an_incomplete_last_line_has_a_sentence_of_its_own() {
        let ended = Ended::Command("was ended by signal 9".into());
        let report = WindowReport { ended, is_last_line_left_out: true, elapsed_ns: 3_000_000_000, ..report() };
        assert_eq!(
            ending(&report).unwrap(),
            "The command was ended by signal 9 after 3 s of 60 s. Its incomplete last line is left out."
        );
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
            "From the first 15 whole windows to the last 15, the median changed from 5.000 ms to > 200 ms, and p99 from \
             8.000 ms to > 200 ms. There are too few windows for a trend."
        );
        let alike = Drift { median_last: Range::exact(6e6), p99_last: Range::exact(8e6), ..drift };
        let sentence = drift_sentence(&alike, &report());
        assert!(sentence.contains("to 6.000 ms (+20 %), and p99 from 8.000 ms to 8.000 ms (unchanged)."), "{sentence}");
    }

    #[test]
    fn results_without_bounds_are_counted_in_a_sentence() {
        let window = SeriesWindow { results: 50, unbounded: 2, ..SeriesWindow::default() };
        let series = |windows| series(windows, None);
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
    fn observations_are_counted_with_their_noun() {
        for (observations, begin) in [(1, "1 observation in 60 s"), (1_234_567, "1,234,567 observations in 60 s")] {
            let total = WindowSummary { observations, ..WindowSummary::default() };
            let sentence = description(&WindowReport { total, condition: String::new(), ..report() });
            assert!(sentence.starts_with(begin), "{sentence}");
        }
    }

    #[test]
    fn cut_off_observations_are_named_beside_the_error() {
        let ranges = Some(Ranges { most: Range { low: Some(2e8), high: None }, ..Ranges::default() });
        let total = WindowSummary { observations: 9, stopped: 3, ranges, ..WindowSummary::default() };
        let sentence = error_sentence(&WindowReport { total, ..report() });
        assert!(sentence.contains("3 observations were cut off, so some figures are ranges."), "{sentence}");
        assert!(!sentence.contains("maximum"), "{sentence}");
    }

    /// A run that is interrupted does not know how long its last observation would have taken.
    #[test]
    fn the_maximum_is_not_called_exact_if_the_last_observation_was_cut_off() {
        let total = WindowSummary { observations: 9, without_value: 2, most: Some(5e6), ..WindowSummary::default() };
        let whole = WindowReport { total, ..report() };
        assert_eq!(
            error_sentence(&whole),
            "Each percentile is within 0.0367 % of the exact one; the maximum is exact. 2 observations without a value \
             have no percentile."
        );
        assert_eq!(
            error_sentence(&WindowReport { is_last_cut_off: true, ..whole }),
            "Each percentile is within 0.0367 % of the exact one. 1 observation without a value has no percentile. The \
             end of the run cut off the last observation. It has no percentile, and may be above the maximum."
        );
    }
}
