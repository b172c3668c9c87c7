//! The plan of a long measurement, as plain data.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::WindowError;
use crate::claim::Test;

/// Largest number of windows. A window needs about 400 bytes of memory, and up to some 100 kB in `windows.jsonl`.
pub const MOST_WINDOWS: u64 = 10_000;
/// The shortest window of a run that has several windows. The end of a window takes a few milliseconds.
pub const LEAST_WINDOW: Duration = Duration::from_millis(100);
/// Number of windows of a run for which no length is given, before the length is rounded.
const USUAL_WINDOWS: u32 = 60;
/// Largest number of observations before and after a failure.
const MOST_AROUND: u64 = 10_000;

/// A long measurement of the plan's single command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowPlan {
    /// Duration of the run.
    pub duration: Duration,
    /// Length of a window. The last window is shorter if the duration is not a multiple of it.
    pub window: Duration,
    /// The conditions of a success. Claims of the plan have the same test.
    pub success: Test,
    /// Every n-th observation is recorded. With `None`, n is 1 at first, and doubles whenever
    /// [`ROWS_PER_STRIDE`](WindowPlan::ROWS_PER_STRIDE) further rows have been recorded.
    pub record_every: Option<u64>,
    /// The observations that are recorded because a failure is near.
    pub around: Around,
    /// Expressions over the metrics, which are computed live.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
    /// Limit of the announced memory in bytes; `None` for the memory of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
}

/// The choice of the observations that are recorded around failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Around {
    /// Number of observations before each failure, and after it.
    pub observations: u64,
    /// Largest number of observations that are recorded around failures in the whole run.
    pub most: u64,
}

impl Default for Around {
    fn default() -> Around {
        Around { observations: 10, most: 20_000 }
    }
}

impl WindowPlan {
    /// Number of rows after which the distance between recorded observations doubles. A run of 10⁹ values then has less
    /// than a million rows.
    pub const ROWS_PER_STRIDE: u64 = 50_000;

    /// Returns the number of windows.
    #[must_use]
    pub fn windows(&self) -> u64 {
        u64::try_from(self.duration.as_nanos().div_ceil(self.window.as_nanos().max(1))).unwrap_or(u64::MAX)
    }

    /// Checks the durations and counts.
    ///
    /// # Errors
    /// If a duration or count is zero or too large, or if there are too many windows.
    pub fn check(&self) -> Result<(), WindowError> {
        let WindowPlan { duration, window, .. } = *self;
        match () {
            () if duration.is_zero() => Err(WindowError::NoTime),
            () if window.is_zero() => Err(WindowError::NoWindow),
            () if window > duration => Err(WindowError::WindowTooLong { window, duration }),
            () if window < LEAST_WINDOW.min(duration) => Err(WindowError::WindowTooShort { window }),
            () if self.windows() > MOST_WINDOWS => {
                let least = rounded(duration / MOST_WINDOWS as u32);
                Err(WindowError::TooManyWindows { windows: self.windows(), least })
            }
            () if self.record_every == Some(0) => Err(WindowError::NoStride),
            () if self.around.observations > MOST_AROUND => {
                Err(WindowError::TooManyAround { given: self.around.observations, most: MOST_AROUND })
            }
            () => Ok(()),
        }
    }
}

/// Returns the length of a window for a run of this duration: about a sixtieth of it, rounded up, and at least 1 s.
///
/// ```
/// use std::time::Duration;
/// use ascertain_engine::windows::default_window;
///
/// assert_eq!(default_window(Duration::from_secs(600)), Duration::from_secs(10));
/// ```
#[must_use]
pub fn default_window(duration: Duration) -> Duration {
    rounded(duration / USUAL_WINDOWS).min(duration)
}

/// Rounds a length up to one that people use.
fn rounded(least: Duration) -> Duration {
    const SECONDS: [u64; 15] = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600];
    let usual = SECONDS.into_iter().map(Duration::from_secs).find(|usual| *usual >= least);
    usual.unwrap_or_else(|| Duration::from_secs(least.as_secs().div_ceil(3600) * 3600))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Arm;

    fn plan(duration_s: u64, window_s: f64) -> WindowPlan {
        let arm = Arm { variant: "true".into(), point: Default::default() };
        WindowPlan {
            duration: Duration::from_secs(duration_s),
            window: Duration::from_secs_f64(window_s),
            success: Test::Predicate { arm, predicate: String::new(), measure: None, conditions: Vec::new() },
            record_every: None,
            around: Around::default(),
            series: Vec::new(),
            memory_limit_bytes: None,
        }
    }

    #[test]
    fn windows_have_usual_lengths() {
        for (duration_s, window_s) in
            [(1, 1), (59, 1), (61, 2), (600, 10), (3600, 60), (86_400, 1800), (604_800, 10_800)]
        {
            let window = default_window(Duration::from_secs(duration_s));
            assert_eq!(window, Duration::from_secs(window_s), "{duration_s} s");
            assert_eq!(plan(duration_s, window.as_secs_f64()).check(), Ok(()));
        }
        assert_eq!(default_window(Duration::from_millis(300)), Duration::from_millis(300));
    }

    #[test]
    fn impossible_plans_are_refused() {
        let message = |plan: WindowPlan| plan.check().unwrap_err().to_string();
        assert!(message(plan(0, 1.0)).contains("a duration of zero"));
        assert!(message(plan(10, 0.0)).contains("a window of zero"));
        assert!(message(plan(10, 11.0)).contains("a window of 11 s is longer than the run, which lasts 10 s"));
        let many = message(plan(3600, 0.1));
        assert!(many.contains("36,000 windows") && many.contains("windows of at least 1 s"), "{many}");
        assert!(message(WindowPlan { record_every: Some(0), ..plan(10, 1.0) }).contains("an interval of 0"));
        let around = Around { observations: 10_001, most: 1 };
        assert!(message(WindowPlan { around, ..plan(10, 1.0) }).contains("at most 10,000"));
        assert_eq!(plan(10, 3.0).windows(), 4);
    }
}
