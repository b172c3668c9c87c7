//! The errors of long measurements.

use std::time::Duration;

use ascertain_streams::grouped;

/// The reason why a long measurement cannot start, or ended early.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowError {
    /// The run lasts no time.
    #[error("a duration of zero measures nothing; give a duration such as 10min")]
    NoTime,
    /// A window lasts no time.
    #[error("a window of zero holds no observations; give a length such as 10s")]
    NoWindow,
    /// A window is longer than the run.
    #[error(
        "a window of {} is longer than the run, which lasts {}; give a shorter window or a longer duration",
        seconds(*.window), seconds(*.duration)
    )]
    WindowTooLong {
        /// Length of a window.
        window: Duration,
        /// Duration of the run.
        duration: Duration,
    },
    /// A window is so short that ending the windows would take much of the time.
    #[error(
        "a window of {} is too short: the end of a window takes a few milliseconds; use windows of at least {}",
        seconds(*.window), seconds(super::LEAST_WINDOW)
    )]
    WindowTooShort {
        /// Length of a window.
        window: Duration,
    },
    /// The run has more windows than are kept in memory.
    #[error(
        "the run would have {} windows, and at most {} are possible; use windows of at least {}",
        grouped(*.windows), grouped(super::MOST_WINDOWS), seconds(*.least)
    )]
    TooManyWindows {
        /// Number of windows.
        windows: u64,
        /// A length of windows that would be possible.
        least: Duration,
    },
    /// No observation would be recorded.
    #[error("an interval of 0 records no observation; give a whole number from 1")]
    NoStride,
    /// Too many observations around a failure.
    #[error(
        "{} observations before and after each failure are too many; at most {} are possible",
        grouped(*.given), grouped(*.most)
    )]
    TooManyAround {
        /// The given number of observations.
        given: u64,
        /// The largest number that is accepted.
        most: u64,
    },
    /// The announced memory exceeds its limit.
    #[error(
        "the run needs {} B of memory for its buffers and states, and the limit is {} B; {}",
        grouped(*.needed), grouped(*.limit), way_out_of_memory(*.limit, *.fixed, *.with_one_window, *.without_series)
    )]
    Memory {
        /// The announced memory in bytes.
        needed: u64,
        /// The limit in bytes.
        limit: u64,
        /// The memory with a single window and without series, in bytes.
        fixed: u64,
        /// The memory with a single window, in bytes.
        with_one_window: u64,
        /// The memory without series, in bytes.
        without_series: u64,
    },
    /// An expression is refused.
    #[error("series `{expression}`: {reason}")]
    Series {
        /// The expression that is refused.
        expression: String,
        /// The reason for the refusal, with the column.
        reason: String,
    },
    /// A line of the command is not an observation.
    #[error(
        "line {number} of the command is `{text}`: {reason}; let the command print one observation per line, or count such \
         lines as failures"
    )]
    Line {
        /// Number of the line, from 1.
        number: u64,
        /// The text of the line, or its beginning.
        text: String,
        /// The reason why the line is not an observation.
        reason: &'static str,
    },
    /// A line does not fit into the buffer.
    #[error("line {number} of the command is longer than {most} bytes; let the command print one observation per line")]
    LongLine {
        /// Number of the line, from 1.
        number: u64,
        /// Largest length of a line, in bytes.
        most: usize,
    },
    /// The command printed no line.
    #[error(
        "the command `{command}` {end} without printing an observation; let it print one per line, such as `12.5 ms`"
    )]
    NoLines {
        /// The command line.
        command: String,
        /// The way in which the command ended, or the time that it was given.
        end: String,
    },
    /// The output of the command cannot be read.
    #[error("the output of the command can't be read: {0}")]
    Read(String),
    /// The command cannot be started or prepared.
    #[error("{0}")]
    Target(String),
    /// A table or buffer of a plan is full.
    #[error("{0}")]
    State(String),
}

/// Returns advice for a run that needs too much memory: the changes that are enough.
fn way_out_of_memory(limit: u64, fixed: u64, with_one_window: u64, without_series: u64) -> String {
    if fixed > limit {
        let fixed = grouped(fixed);
        return format!("its fixed tables and buffers alone need {fixed} B, so set a limit of at least that size");
    }
    let changes = match (with_one_window <= limit, without_series <= limit) {
        (true, true) => "longer windows, fewer series,",
        (true, false) => "longer windows",
        (false, true) => "fewer series",
        (false, false) => "longer windows and fewer series,",
    };
    format!("use {changes} or a higher limit")
}

/// Writes a duration in seconds.
fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::way_out_of_memory;

    #[test]
    fn advice_about_memory_is_enough() {
        for (fixed, with_one_window, without_series, advice) in [
            (101, 200, 300, "its fixed tables and buffers alone need 101 B, so set a limit of at least that size"),
            (50, 100, 100, "use longer windows, fewer series, or a higher limit"),
            (50, 100, 101, "use longer windows or a higher limit"),
            (50, 101, 100, "use fewer series or a higher limit"),
            (50, 101, 101, "use longer windows and fewer series, or a higher limit"),
        ] {
            assert_eq!(way_out_of_memory(100, fixed, with_one_window, without_series), advice);
        }
    }
}
