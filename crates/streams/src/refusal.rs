//! The message for a join that would need memory in proportion to the length of the series.

use std::fmt;

use crate::describe::grouped;
use crate::ratio::Ratio;

/// The number of observations for which a message names the memory.
const EXAMPLE: f64 = 1e9;

/// Number of values in the buffer that a message suggests.
pub(crate) const SUGGESTED_BUFFER: u64 = 1_000_000;

/// A join of two paths that run out of step: the paths, the values that would wait, and the ways out.
#[derive(Clone, Debug, PartialEq)]
pub struct Unbounded {
    /// The join, as it is written.
    pub join: String,
    /// The two paths, each with its operators and its rate in values per observation.
    pub paths: [(String, Ratio); 2],
    /// Values that must wait, per observation.
    pub growth: Ratio,
    /// `true` if values wait before they are repeated.
    pub is_before_repeat: bool,
    /// Size of a value: 8 bytes, or 16 if values can be ranges.
    pub value_bytes: u64,
    /// The ways out: whole expressions that are accepted.
    pub ways: Vec<WayOut>,
    /// Another problem that the expression has with a way out.
    pub other: Option<String>,
}

/// A way out of a join that runs out of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Uses the latest value. `where` does not have this way out, because its condition selects values by their index.
    Hold,
    /// Drops values, so that both sides have the same rate.
    Every,
    /// Reads the evidence again. This is not possible after `where` and windows of time, or if the longer side has
    /// several clocks.
    Again,
    /// Keeps a stated number of values. `where` does not have this way out.
    Buffer,
}

/// A way out, with the whole expression that uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WayOut {
    /// The kind of the way out.
    pub way: Way,
    /// The expression, which is accepted.
    pub expression: String,
}

impl Way {
    /// Returns a clause about the meaning of the way out.
    fn meaning(self) -> String {
        match self {
            Way::Hold => "aligns by dropping: it uses the latest value of the longer side".into(),
            Way::Every => "aligns by dropping: it leaves out values, so that both sides have the same rate".into(),
            Way::Again => {
                "reads the evidence again; it is recorded, so \"recompute\" and \"spill\" both mean this".into()
            }
            Way::Buffer => {
                let values = grouped(SUGGESTED_BUFFER);
                format!("keeps at most {values} values; if the buffer is full, the run stops and reports that")
            }
        }
    }
}

impl fmt::Display for Unbounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unbounded { join, paths: [first, second], growth, value_bytes, ways, other, .. } = self;
        let gigabytes = growth.value() * EXAMPLE * *value_bytes as f64 / 1e9;
        let waiting = of_observations(*growth);
        let before = if self.is_before_repeat { ", counted before they are repeated" } else { "" };
        writeln!(f, "`{join}` needs memory that grows with the series, because its sides run out of step")?;
        writeln!(f, "  {}  ({} values after t observations)", first.0, of_observations(first.1))?;
        writeln!(f, "  {}  ({} values after t observations)", second.0, of_observations(second.1))?;
        write!(f, "  {waiting} values would wait{before}: {gigabytes:.3} GB after 10^9 observations")?;
        match (ways.is_empty(), other) {
            (false, _) => write!(f, "\nchoose a way out:")?,
            (true, Some(other)) => write!(f, "\nwith each way out, the expression has another problem: {other}")?,
            (true, None) => {}
        }
        for WayOut { way, expression } in ways {
            write!(f, "\n  {expression}\n      {}", way.meaning())?;
        }
        Ok(())
    }
}

/// Returns a rate times t: `t`, `t/2`, `2t/3`.
fn of_observations(rate: Ratio) -> String {
    let (above, below) = rate.parts();
    let above = if above == 1 { "t".to_string() } else { format!("{above}t") };
    if below == 1 { above } else { format!("{above}/{below}") }
}
