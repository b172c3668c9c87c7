//! Long measurements in words and tables: the announcement, a line for each window, and the result.

use ascertain_engine::outcome::Outcome;
use ascertain_engine::plan::Plan;
use ascertain_engine::unit::Unit;
use ascertain_engine::windows::{Drift, Ended, MemoryReport, RecordedReport, WindowPlan, WindowReport, WindowSummary};

use crate::csv::{Field, record};
use crate::figure::{exact_percent, percent};
use crate::grid::{ColumnKind, Grid};
use crate::outlook::span;
use crate::text::{counted, escape_controls, grouped, quoted};

/// Returns sentences about a long measurement before it starts: its windows, its memory, and its recorded observations.
/// Names are marked as in `crate::text::quoted`.
pub(crate) fn announcement(plan: &Plan, windows: &WindowPlan, memory: &MemoryReport, is_recorded: bool) -> Vec<String> {
    let command = plan.commands.first().and_then(|set| set.commands.first());
    let command = quoted(command.map_or("", |command| &command.line));
    let count = windows.windows();
    let (length, duration) = (span(windows.window.as_secs_f64()), span(windows.duration.as_secs_f64()));
    let parts: Vec<String> = memory.parts.iter().map(|part| format!("{} {} B", part.name, grouped(part.bytes))).collect();
    let total = grouped(memory.total_bytes());
    let recorded = match is_recorded {
        true => recorded_beforehand(windows),
        false => "Nothing is recorded.".to_string(),
    };
    vec![
        format!("Measuring {command} for {duration}, in {} of {length}.", counted(count, "window")),
        format!(
            "Memory: {total} B for buffers and states, however many observations there are ({}).",
            escape_controls(&parts.join(", "))
        ),
        recorded,
    ]
}

/// Returns a sentence about the observations that will be recorded.
fn recorded_beforehand(windows: &WindowPlan) -> String {
    let every = match windows.record_every {
        Some(1) => "every observation".to_string(),
        Some(every) => format!("every {} observation", ordinal(every)),
        None => format!(
            "every observation at first, and half as many after each {} rows",
            grouped(WindowPlan::ROWS_PER_STRIDE)
        ),
    };
    let around = windows.around.observations;
    let most = grouped(windows.around.most);
    format!(
        "Recorded: {every}; a histogram for each window; and {} before and after each failure, {most} at most.",
        counted(around, "observation")
    )
}

/// Writes an ordinal number: "2nd", "11th", "1,003rd".
fn ordinal(number: u64) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{}{ending}", grouped(number))
}

/// Returns a line about a window that has ended, for a log.
pub(crate) fn window_line(window: &WindowSummary, unit: Unit) -> String {
    let number = window.window + 1;
    let figures = [("median", window.median), ("p99", window.p99), ("max", window.most)];
    let figures = figures.map(|(name, value)| format!("{name} {}", shown(value, window, unit)));
    let share = window.share().map_or_else(String::new, |share| format!(", {} succeeded", percent(share)));
    let observations = format!("{} observation{}", grouped(window.observations), if window.observations == 1 { "" } else { "s" });
    match window.observations {
        0 => format!("window {number} ({}): no observations", times(window)),
        _ => format!("window {number} ({}): {observations}{share}; {}", times(window), figures.join(", ")),
    }
}

/// Returns the start and the end of a window: "20 s to 30 s".
fn times(window: &WindowSummary) -> String {
    let at = |ns: u64| if ns == 0 { "0 s".to_string() } else { span(ns as f64 / 1e9) };
    format!("{} to {}", at(window.start_ns), at(window.end_ns))
}

/// Writes a figure of a window. A figure that is unknown because observations were stopped is above their limit.
fn shown(value: Option<f64>, window: &WindowSummary, unit: Unit) -> String {
    match value {
        Some(value) => unit.human(value),
        None if window.stopped > 0 => "> limit".into(),
        None => "–".into(),
    }
}

/// Returns a table with a row for each group of windows.
pub(crate) fn grid(report: &WindowReport) -> Grid {
    let headings = ["Time", "Observations", "Succeeded", "Median", "p90", "p99", "p99.9", "Max"];
    let kind = |heading| (heading, if heading == "Time" { ColumnKind::Prose } else { ColumnKind::Number });
    let mut grid = Grid::with_kinds(headings.map(kind));
    for group in &report.groups {
        let figures = [group.median, group.p90, group.p99, group.p999, group.most];
        let figures = figures.map(|value| shown(value, group, report.unit));
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
    without_verdict.into_iter().chain(drift).chain(ended).chain([error_sentence(report), recorded(report)]).collect()
}

/// Returns a sentence about the observations of a run without a verdict.
fn description(report: &WindowReport) -> String {
    let total = &report.total;
    let observations = grouped(total.observations);
    let share = match (report.condition.as_str(), total.share()) {
        ("", _) | (_, None) => String::new(),
        (condition, Some(share)) => format!(
            "; {} was true of {} ({})",
            quoted(condition),
            grouped(total.successes),
            percent(share)
        ),
    };
    let figures = [("median", total.median), ("p99", total.p99), ("p99.9", total.p999), ("maximum", total.most)];
    let figures = figures.map(|(name, value)| format!("{name} {}", shown(value, total, report.unit)));
    format!("{observations} observations in {}{share}. {}: {}.", span(report.elapsed_ns as f64 / 1e9), report.metric, figures.join(", "))
}

/// Returns a sentence about the change of the figures in the course of the run.
fn drift_sentence(drift: &Drift, report: &WindowReport) -> String {
    let unit = report.unit;
    let change = |first: f64, last: f64| match first > 0.0 {
        true => format!(" ({}{})", if last >= first { "+" } else { "−" }, percent((last / first - 1.0).abs())),
        false => String::new(),
    };
    let part = match drift.windows {
        1 => "From the first window to the last".to_string(),
        windows => format!("From the first {windows} windows to the last {windows}"),
    };
    let median = format!(
        "the median went from {} to {}{}",
        unit.human(drift.median_first),
        unit.human(drift.median_last),
        change(drift.median_first, drift.median_last)
    );
    let p99 = drift.p99_first.zip(drift.p99_last).map_or_else(String::new, |(first, last)| {
        format!(", and p99 from {} to {}{}", unit.human(first), unit.human(last), change(first, last))
    });
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
    format!("{part}, {median}{p99}.{trend}")
}

/// Returns a sentence about a run that ended before its time was up.
fn ending(report: &WindowReport) -> Option<String> {
    let (elapsed, duration) = (span(report.elapsed_ns as f64 / 1e9), span(report.duration_ns as f64 / 1e9));
    match &report.ended {
        Ended::Time => None,
        Ended::Command(how) => Some(format!("The command {how} after {elapsed} of {duration}.")),
        Ended::Interrupted => Some(format!("The run was interrupted after {elapsed} of {duration}.")),
        Ended::Error(error) => Some(format!("An error ended the run after {elapsed} of {duration}: {}.", escape_controls(error))),
        Ended::Open => Some(format!("The figures are those of the windows that had ended after {elapsed} of {duration}.")),
    }
}

fn error_sentence(report: &WindowReport) -> String {
    let error = exact_percent(report.relative_error);
    let without = match report.total.without_value {
        0 => String::new(),
        without => format!(" {} without a value are not part of them.", counted(without, "observation")),
    };
    format!("Percentiles are within {error} of the value with that rank; the maximum is exact.{without}")
}

/// Returns a sentence about the recorded observations.
fn recorded(report: &WindowReport) -> String {
    let RecordedReport { every, is_growing, observations, around, around_observations, failures, failures_left_out } =
        report.recorded;
    if every == 0 {
        return "Nothing was recorded.".to_string();
    }
    let rows = match (every, is_growing) {
        (1, _) => "every observation".to_string(),
        (every, false) => format!("every {} observation", ordinal(every)),
        (every, true) => format!("every observation at first, and every {} at the end", ordinal(every)),
    };
    let rows = if observations > 0 { format!("{rows} ({} in all)", grouped(observations)) } else { rows };
    let failed = match failures {
        0 => "no observation failed".to_string(),
        failures => {
            let left_out = match failures_left_out {
                0 => String::new(),
                left_out => format!("; {} of them are left out, because the limit was reached", grouped(left_out)),
            };
            let all = if around_observations > 0 { format!(" ({} in all)", grouped(around_observations)) } else { String::new() };
            format!("{around} observations before and after each of {} failures{all}{left_out}", grouped(failures))
        }
    };
    format!("Recorded: {rows}; a histogram for each window; {failed}.")
}

/// Returns the windows as CSV, with a line for each window.
pub(crate) fn csv(report: &WindowReport) -> String {
    let mut text = String::from(
        "window,start_ns,end_ns,metric,unit,observations,successes,unknown,without_value,stopped,least,median,p90,p99,p999,\
         most\n",
    );
    for window in &report.windows {
        let WindowSummary { window: index, start_ns, end_ns, observations, successes, unknown, .. } = window;
        let WindowSummary { without_value, stopped, least, median, p90, p99, p999, most, .. } = window;
        let place: [&dyn Field; 5] = [index, start_ns, end_ns, &report.metric, &report.unit.symbol()];
        let counts: [&dyn Field; 5] = [observations, successes, unknown, without_value, stopped];
        text += &record(&[&place[..], &counts, &[least, median, p90, p99, p999, most]].concat());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_lines() {
        let window = WindowSummary {
            window: 2,
            windows: 1,
            start_ns: 20_000_000_000,
            end_ns: 30_000_000_000,
            observations: 1234,
            successes: 1230,
            median: Some(1.25e6),
            p99: Some(3e6),
            stopped: 1,
            ..WindowSummary::default()
        };
        assert_eq!(
            window_line(&window, Unit::Nanosecond),
            "window 3 (20 s to 30 s): 1,234 observations, 99.68 % succeeded; median 1.250 ms, p99 3.000 ms, max > limit"
        );
        let empty = WindowSummary { end_ns: 1_000_000_000, ..WindowSummary::default() };
        assert_eq!(window_line(&empty, Unit::Nanosecond), "window 1 (0 s to 1 s): no observations");
    }

    #[test]
    fn ordinals_have_their_endings() {
        let ordinals = [1, 2, 3, 4, 11, 12, 13, 21, 112, 1003].map(ordinal);
        assert_eq!(ordinals, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th", "1,003rd"]);
    }
}
