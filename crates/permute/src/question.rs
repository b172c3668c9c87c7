//! What is asked of samples.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// Values that were observed, all finite.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its name, for people.
    pub name: String,
    /// The values, in any order.
    pub values: Vec<f64>,
}

impl Sample {
    /// A sample.
    pub fn new(name: &str, values: Vec<f64>) -> Sample {
        Sample { name: name.into(), values }
    }
}

/// What is compared, and how. By default the difference of means, two-sided, and "one distribution" is the null
/// hypothesis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Question {
    /// What a sample is summed up by.
    pub statistic: Statistic,
    /// How the samples' statistics are compared.
    pub comparison: Comparison,
    /// Which differences count against the null hypothesis.
    pub alternative: Alternative,
    /// What the null hypothesis says of the second of two samples.
    pub null: Null,
}

/// What a sample is summed up by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Statistic {
    /// The arithmetic mean.
    #[default]
    Mean,
    /// The standard deviation, with one less than the number of values below.
    StandardDeviation,
    /// The quantile of this level within [0, 1], interpolated as by [`ascertain_stats::quantile_sorted`].
    Quantile(f64),
}

/// How the samples' statistics are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Comparison {
    /// The second's less the first's; of more than two, the greatest less the least.
    #[default]
    Difference,
    /// The second's divided by the first's; of more than two, the greatest by the least. For positive values only.
    Ratio,
}

/// Which differences count against the null hypothesis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Alternative {
    /// Both: the absolute value of the difference, or of the ratio's logarithm.
    #[default]
    TwoSided,
    /// The second sample's statistic is the greater one. Of two samples only.
    Greater,
    /// The second sample's statistic is the less one. Of two samples only.
    Less,
}

/// The null hypothesis: the second of two samples is distributed as `scale · X + shift`, where `X` is as the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Null {
    /// What is added, in the values' unit.
    pub shift: f64,
    /// What is multiplied with before that, above 0.
    pub scale: f64,
}

impl Default for Null {
    /// One distribution: no shift, and a scale of 1.
    fn default() -> Null {
        Null { shift: 0.0, scale: 1.0 }
    }
}

impl Null {
    /// Whether it says "one distribution", without a shift or a scale.
    pub fn is_plain(&self) -> bool {
        *self == Null::default()
    }
}

impl Comparison {
    /// The word in outputs.
    pub fn word(self) -> &'static str {
        match self {
            Comparison::Difference => "difference",
            Comparison::Ratio => "ratio",
        }
    }
}

impl Alternative {
    /// The word in outputs.
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

    /// Reads `mean`, `std`, `median`, `p99`, `p99.9`, or a level such as `q0.9`.
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
        // 99.9 % is the double 0.999, which 99.9 / 100 is not: the decimal point is moved.
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
    /// As it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statistic::Mean => f.write_str("mean"),
            Statistic::StandardDeviation => f.write_str("std"),
            Statistic::Quantile(0.5) => f.write_str("median"),
            Statistic::Quantile(level) => {
                // 0.29 * 100 is 28.999999999999996; and not every level is one of few digits.
                let percent = format!("p{}", (level * 1e12).round() / 1e10);
                if percent.parse().as_ref() == Ok(self) { f.write_str(&percent) } else { write!(f, "q{level}") }
            }
        }
    }
}
