//! The output of a process that ran a workload in passes, and of a worker of pyperf.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// The passes of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct Passes {
    /// The result of the workload, as text.
    pub result: String,
    /// End of the first pass, in nanoseconds since the process was started.
    pub first_end_ns: f64,
    /// End of each pass, in nanoseconds since the process was started. Drivers print only the first and the last
    /// passes.
    pub ends_ns: Vec<f64>,
    /// The times of these passes, in nanoseconds.
    pub times_ns: Vec<f64>,
    /// The number of all passes between the first and the last one, and the mean of the logarithms of their times.
    /// `None` for a single pass.
    between: Option<(f64, f64)>,
}

impl Passes {
    /// Returns the last pass divided by the geometric mean of the passes before it, without the first. `None` if there
    /// are fewer than two such passes.
    pub fn drift(&self) -> Option<f64> {
        let (_, mean) = self.between.filter(|(count, _)| *count >= 2.0)?;
        // The logarithm of the quotient is 0 on average if the passes are alike, however they are distributed.
        Some((self.times_ns.last()?.ln() - mean).exp())
    }
}

/// Reads the passes that a driver has printed. `start_ns` is the reading of the monotonic clock at the start of the
/// process. `None` if the output is incomplete.
pub fn read_passes(output: &str, start_ns: u64) -> Option<Passes> {
    let result = output.lines().find_map(|line| line.strip_prefix("result "))?;
    let pass = |line: &str| {
        let (end, time) = line.strip_prefix("pass ")?.split_once(' ')?;
        Some((end.parse::<f64>().ok()? - start_ns as f64, time.parse::<f64>().ok()?))
    };
    let (ends_ns, times_ns): (Vec<f64>, Vec<f64>) = output.lines().filter_map(pass).unzip();
    let first_end_ns = *ends_ns.first()?;
    let between = output.lines().find_map(|line| line.strip_prefix("between ")?.split_once(' '));
    let between = between.and_then(|(count, sum)| {
        let (count, sum) = (count.parse::<f64>().ok()?, sum.parse::<f64>().ok()?);
        Some((count, sum / count)).filter(|(_, mean)| mean.is_finite())
    });
    let is_valid = times_ns.iter().all(|time| time.is_finite() && *time > 0.0);
    is_valid.then(|| Passes { result: result.into(), first_end_ns, ends_ns, times_ns, between })
}

/// Returns the end of the first pass, if the driver has printed it.
pub fn first_end_ns(output: &str, start_ns: u64) -> Option<f64> {
    let (end, _) = output.lines().find_map(|line| line.strip_prefix("pass "))?.split_once(' ')?;
    Some(end.parse::<f64>().ok()? - start_ns as f64)
}

/// Reads the only value in a file that a worker of pyperf has written, in seconds.
pub fn read_pyperf_value(path: &Path) -> Option<f64> {
    let file: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    let value = file["benchmarks"][0]["runs"][0]["values"][0].as_f64()?;
    (value > 0.0 && value.is_finite()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_read_and_incomplete_output_is_refused() {
        let output = "noise\nresult 42\npass 1500 400\npass 1900 300\npass 2200 300\npass 2400 150\nbetween 2 ";
        let passes = read_passes(&format!("{output}{}\n", 2.0 * 300_f64.ln()), 1000).unwrap();
        assert_eq!((passes.result.as_str(), passes.first_end_ns), ("42", 500.0));
        assert_eq!(passes.times_ns, [400.0, 300.0, 300.0, 150.0]);
        assert!((passes.drift().unwrap() - 0.5).abs() < 1e-12);
        for broken in ["", "result 42\n", "pass 1 2\n", "result 42\npass 5 x\n", "result 42\npass 5 0\n"] {
            assert_eq!(read_passes(broken, 0), None, "{broken}");
        }
        assert_eq!(first_end_ns("pass 1500 400\n", 1000), Some(500.0));
        assert_eq!(first_end_ns("result 42\n", 1000), None);
        for output in
            ["result 42\npass 5 4\n", "result 42\npass 5 4\nbetween 1 3.5\n", "result 4\npass 5 4\nbetween 0 0\n"]
        {
            assert_eq!(read_passes(output, 0).unwrap().drift(), None, "{output}");
        }
    }
}
