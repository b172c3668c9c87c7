//! The question about samples: what is compared, and how.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// Observed values with a name. All of them must be finite.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Name of the sample, for outputs and error messages.
    pub name: String,
    /// The observed values, in any order.
    pub values: Vec<f64>,
}

impl Sample {
    /// Creates a sample from its name and values.
    pub fn new(name: &str, values: Vec<f64>) -> Sample {
        Sample { name: name.into(), values }
    }
}

/// The question to answer about samples: which statistic is compared, and how. By default, it is a two-sided test of
/// the difference of means, with the null hypothesis "one distribution".
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Question {
    /// The statistic of each sample.
    pub statistic: Statistic,
    /// The comparison of the samples' statistics.
    pub comparison: Comparison,
    /// The direction of the differences that count against the null hypothesis.
    pub alternative: Alternative,
    /// The null hypothesis: how the second of two samples is distributed, given the distribution of the first.
    pub null: Null,
}

/// The statistic that summarises a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Statistic {
    /// The arithmetic mean.
    #[default]
    Mean,
    /// The standard deviation, with the number of values less one as the divisor.
    StandardDeviation,
    /// The quantile of this level within [0, 1], interpolated as by [`ascertain_stats::quantile_sorted`].
    Quantile(f64),
}

/// The comparison of the samples' statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Comparison {
    /// The second statistic minus the first; with more than two samples, the greatest minus the smallest.
    #[default]
    Difference,
    /// The second statistic divided by the first; with more than two samples, the greatest divided by the smallest. All
    /// values must be positive.
    Ratio,
}

/// The direction of the differences that count against the null hypothesis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Alternative {
    /// Differences in both directions count. They are measured by the absolute value of the difference, or of the
    /// ratio's logarithm.
    #[default]
    TwoSided,
    /// A difference counts only if the second of two samples has the greater statistic.
    Greater,
    /// A difference counts only if the second of two samples has the smaller statistic.
    Less,
}

/// The null hypothesis about two samples: the second is distributed as `scale · X + shift`, where `X` is distributed as
/// the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Null {
    /// The added constant, in the values' unit.
    pub shift: f64,
    /// The factor that is applied before the shift is added. It is above 0.
    pub scale: f64,
}

impl Default for Null {
    /// Returns the null hypothesis "one distribution": no shift, and a scale of 1.
    fn default() -> Null {
        Null { shift: 0.0, scale: 1.0 }
    }
}

impl Null {
    /// Returns whether the null hypothesis is "one distribution", without a shift or a scale.
    pub fn is_plain(&self) -> bool {
        *self == Null::default()
    }
}

impl Comparison {
    /// Returns the name for outputs, such as `difference`.
    pub fn word(self) -> &'static str {
        match self {
            Comparison::Difference => "difference",
            Comparison::Ratio => "ratio",
        }
    }
}

impl Alternative {
    /// Returns the name for outputs, such as `two_sided`.
    pub fn word(self) -> &'static str {
        match self {
            Alternative::TwoSided => "two_sided",
            Alternative::Greater => "greater",
            Alternative::Less => "less",
        }
    }
}

impl FromStr for Statistic {
    type Err = Error;

    /// Reads the name of a statistic: `mean`, `std`, `median`, `p99`, `p99.9`, or a quantile such as `q0.9`.
    ///
    /// ```
    /// use ascertain_permute::Statistic;
    /// assert_eq!("p99".parse(), Ok(Statistic::Quantile(0.99)));
    /// assert!("p101".parse::<Statistic>().is_err());
    /// for as_read in ["median", "p29", "p99.9", "q0.3333333333333333", "q0.0000000000001"] {
    ///     assert_eq!(as_read.parse::<Statistic>().unwrap().to_string(), as_read);
    /// }
    /// ```
    fn from_str(text: &str) -> Result<Statistic, Error> {
        let unknown = || Error::UnknownStatistic(text.to_string());
        // Moves the decimal point, because 99.9 % is the double 0.999 but 99.9 / 100 is not.
        let level = match text {
            "mean" => return Ok(Statistic::Mean),
            "std" => return Ok(Statistic::StandardDeviation),
            "median" => Ok(0.5),
            _ => match (text.strip_prefix('p'), text.strip_prefix('q')) {
                (Some(percent), _) if percent.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
                    format!("{percent}e-2").parse()
                }
                (_, Some(level)) => level.parse(),
                _ => return Err(unknown()),
            },
        };
        let level: f64 = level.map_err(|_| unknown())?;
        if (0.0..=1.0).contains(&level) { Ok(Statistic::Quantile(level)) } else { Err(unknown()) }
    }
}

impl fmt::Display for Statistic {
    /// Writes the name that `Statistic::from_str` reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statistic::Mean => f.write_str("mean"),
            Statistic::StandardDeviation => f.write_str("std"),
            Statistic::Quantile(0.5) => f.write_str("median"),
            Statistic::Quantile(level) => {
                // Rounds because 0.29 * 100 is 28.999999999999996; levels with many digits are not written as
                // percentiles.
                let percent = format!("p{}", (level * 1e12).round() / 1e10);
                if percent.parse().as_ref() == Ok(self) { f.write_str(&percent) } else { write!(f, "q{level}") }
            }
        }
    }
}
