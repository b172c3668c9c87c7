//! Long measurements in words and tables: the announcement, a line for each window, and the result.

#[cfg(feature = "html")]
mod result;

use ascertain_engine::plan::Plan;
use ascertain_engine::unit::Unit;
use ascertain_engine::values::Bounds;
use ascertain_engine::windows::{MemoryReport, WindowPlan, WindowSummary};

use crate::figure::percent;
use crate::outlook::span;
use crate::text::{escape_controls, grouped, grouped_count, quoted};
#[cfg(feature = "html")]
pub(crate) use result::{csv, grid, sentences};

/// Largest relative distance of a lower bound from the time limit that it stands for: the error of the quantile tables.
const RELATIVE_ERROR: f64 = 4e-4;

/// Returns sentences about a long measurement before it starts: its windows, its memory, and its recorded observations.
/// Names are marked as in `crate::text::quoted`.
pub(crate) fn announcement(plan: &Plan, windows: &WindowPlan, memory: &MemoryReport, is_recorded: bool) -> Vec<String> {
    let command = plan.commands.first().and_then(|set| set.commands.first());
    let command = quoted(command.map_or("", |command| &command.line));
    let count = windows.windows();
    let (length, duration) = (span(windows.window.as_secs_f64()), span(windows.duration.as_secs_f64()));
    let parts: Vec<String> =
        memory.parts.iter().map(|part| format!("{} {} B", part.name, grouped(part.bytes))).collect();
    let total = grouped(memory.total_bytes());
    let recorded = match is_recorded {
        true => recorded_beforehand(windows),
        false => "Nothing is recorded.".to_string(),
    };
    vec![
        format!("Measuring {command} for {duration}, in {} of {length}.", grouped_count(count, "window")),
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
        Some(every) => format!("one observation in {}", grouped(every)),
        None => format!(
            "every observation at first, and half as many after each {} rows",
            grouped(WindowPlan::ROWS_PER_STRIDE)
        ),
    };
    let around = windows.around.observations;
    let most = grouped(windows.around.most);
    format!(
        "Recorded: {every}; a histogram for each window; and {} before and after each failure, {most} at most.",
        grouped_count(around, "observation")
    )
}

/// Returns a line about a window that has ended, for a log.
pub(crate) fn window_line(window: &WindowSummary, unit: Unit, limit: Option<f64>) -> String {
    let number = window.window + 1;
    let [_, median, _, p99, _, most] = window.figures();
    let figures = [("median", median), ("p99", p99), ("max", most)];
    let figures = figures.map(|(name, value)| format!("{name} {}", shown(value, unit, limit)));
    let share = window.share().map_or_else(String::new, |share| format!(", {} succeeded", percent(share)));
    let unknown = window.unknown_share().filter(|share| *share > 0.0);
    let unknown = unknown.map_or_else(String::new, |share| format!(", {} unknown", percent(share)));
    let observations = grouped_count(window.observations, "observation");
    match window.observations {
        0 => format!("window {number} ({}): no observations", times(window)),
        _ => format!("window {number} ({}): {observations}{share}{unknown}; {}", times(window), figures.join(", ")),
    }
}

/// Returns the start and the end of a window: "20 s to 30 s".
fn times(window: &WindowSummary) -> String {
    let at = |ns: u64| if ns == 0 { "0 s".to_string() } else { span(ns as f64 / 1e9) };
    format!("{} to {}", at(window.start_ns), at(window.end_ns))
}

/// Writes a figure of a window, which may be known only as a range. `limit` is the time limit of observations.
fn shown(range: Bounds, unit: Unit, limit: Option<f64>) -> String {
    let Bounds { low, high } = range;
    // Only numbers without a unit can be negative, so a lower bound of zero says nothing about the others.
    let has_low = low.is_finite() && (low != 0.0 || unit == Unit::One);
    match range.value() {
        Some(value) => unit.human(value),
        None if range.is_none() => "–".into(),
        None if has_low && high.is_finite() => format!("{} to {}", unit.human(low), unit.human(high)),
        None if high.is_finite() => format!("< {}", unit.human(high)),
        None if has_low => match limit.filter(|limit| (low / limit - 1.0).abs() <= RELATIVE_ERROR) {
            Some(limit) => format!("> {}", unit.exact(limit)),
            None => format!("> {}", unit.human(low)),
        },
        None => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use ascertain_engine::windows::{Range, Ranges};

    use super::*;

    #[test]
    fn figures_may_be_ranges() {
        let text = |low, high| shown(Bounds { low, high }, Unit::Nanosecond, Some(2e8));
        let infinity = f64::INFINITY;
        assert_eq!(text(1e6, 1e6), "1.000 ms");
        assert_eq!(text(199.95e6, infinity), "> 200 ms", "within the error of the table");
        assert_eq!(text(150e6, infinity), "> 150.0 ms", "between a known value and the limit");
        assert_eq!(text(1e6, 2e6), "1.000 ms to 2.000 ms");
        assert_eq!(text(0.0, 2e6), "< 2.000 ms");
        assert_eq!(text(0.0, infinity), "unknown");
        assert_eq!(text(f64::NAN, f64::NAN), "–");
    }

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
            ranges: Some(Ranges {
                median: Range::exact(1.25e6),
                p99: Range::exact(3e6),
                most: Range { low: Some(2e8), high: None },
                ..Ranges::default()
            }),
            ..WindowSummary::default()
        };
        assert_eq!(
            window_line(&window, Unit::Nanosecond, Some(2e8)),
            "window 3 (20 s to 30 s): 1,234 observations, 99.68 % succeeded; median 1.250 ms, p99 3.000 ms, max > 200 ms"
        );
        let cut_off = WindowSummary { successes: 617, unknown: 309, ..window };
        let line = window_line(&cut_off, Unit::Nanosecond, Some(2e8));
        assert!(line.contains("1,234 observations, 50 % succeeded, 25 % unknown; median"), "{line}");
        let empty = WindowSummary { end_ns: 1_000_000_000, ..WindowSummary::default() };
        assert_eq!(window_line(&empty, Unit::Nanosecond, None), "window 1 (0 s to 1 s): no observations");
    }
}
