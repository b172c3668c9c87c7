//! The message for a join that would need memory in proportion to the length of the series.

use std::fmt;

use crate::describe::grouped;
use crate::ratio::Ratio;

/// The number of observations for which a message names the memory.
const EXAMPLE: f64 = 1e9;

/// Number of values in the buffer that a message suggests.
pub(crate) const SUGGESTED_BUFFER: u32 = 1_000_000;

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
    /// The expression that aligns by holding. `where` has none, because its condition selects values by their index.
    pub hold: Option<String>,
    /// The expression that reads the evidence again. There is none after `where` and windows of time, or if the longer
    /// side has several clocks.
    pub again: Option<String>,
    /// The expression with a buffer of a stated size. `where` has none.
    pub buffer: Option<String>,
}

impl fmt::Display for Unbounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unbounded { join, paths: [first, second], growth, value_bytes, hold, again, buffer, .. } = self;
        let gigabytes = growth.value() * EXAMPLE * *value_bytes as f64 / 1e9;
        let waiting = of_observations(*growth);
        let before = if self.is_before_repeat { ", counted before they are repeated" } else { "" };
        writeln!(f, "`{join}` needs memory that grows with the series, because its sides run out of step")?;
        writeln!(f, "  {}  ({} values after t observations)", first.0, of_observations(first.1))?;
        writeln!(f, "  {}  ({} values after t observations)", second.0, of_observations(second.1))?;
        writeln!(f, "  {waiting} values would wait{before}: {gigabytes:.3} GB after 10^9 observations")?;
        write!(f, "choose a way out:")?;
        match hold {
            Some(hold) => {
                writeln!(f, "\n  {hold}")?;
                write!(f, "      aligns by dropping: it uses the latest value; `every` on the other side also drops")?;
            }
            None => write!(f, "\n  `every` on the longer side, which aligns by dropping")?,
        }
        if let Some(again) = again {
            writeln!(f, "\n  {again}")?;
            write!(f, "      reads the evidence again; it is recorded, so \"recompute\" and \"spill\" both mean this")?;
        }
        if let Some(buffer) = buffer {
            let values = grouped(SUGGESTED_BUFFER.into());
            writeln!(f, "\n  {buffer}")?;
            write!(f, "      keeps at most {values} values; if the buffer is full, the run stops and reports that")?;
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
