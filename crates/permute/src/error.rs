//! The errors of invalid samples and questions.

/// Returns a name from user input on a single line: control characters are escaped.
pub(crate) fn shown(name: &str) -> String {
    let each = name.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.into() });
    each.collect()
}

/// The reason why samples cannot be compared as the question asks.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There are fewer than two samples.
    #[error("a comparison needs two or more samples, but there are {0}")]
    TooFewSamples(usize),
    /// A sample has fewer than two values.
    #[error("`{sample}` has {count} value{}: a sample needs two or more", if *.count == 1 { "" } else { "s" })]
    TooFewValues {
        /// Name of the sample.
        sample: String,
        /// Number of values in this sample.
        count: usize,
    },
    /// A value is NaN or infinite.
    #[error("value {number} of `{sample}` is {value}: only finite values can be compared; remove or correct it")]
    NotFinite {
        /// Name of the sample.
        sample: String,
        /// The position of the value in its sample, counted from 1.
        number: usize,
        /// The value itself.
        value: f64,
    },
    /// The values of all samples together do not fit into memory.
    #[error("there is no memory for {count} values of up to 17 bytes each; use a random sample of them (shuf -n)")]
    NoMemory {
        /// Number of values in all samples.
        count: usize,
    },
    /// Sums or squares of the values exceed the range of a double.
    #[error("the values are so large that their sums overflow; use a larger unit")]
    TooLarge,
    /// A ratio was requested, but a value is not positive.
    #[error(
        "value {number} of `{sample}` is {value} (after the shift of the null hypothesis, if any), and a ratio needs \
         positive values; compare by difference"
    )]
    NotPositive {
        /// Name of the sample.
        sample: String,
        /// The position of the value in its sample, counted from 1.
        number: usize,
        /// The value itself.
        value: f64,
    },
    /// A ratio of standard deviations was requested, and one of them is zero.
    #[error(
        "the values of `{sample}` are all equal, so its standard deviation is 0 and a ratio is undefined; compare by \
         difference"
    )]
    NoSpread {
        /// Name of the sample whose standard deviation is zero.
        sample: String,
    },
    /// A one-sided test was requested for more than two samples. It is defined for two samples only.
    #[error(
        "a one-sided test needs two samples, but there are {0}; use a two-sided test, or compare two samples at a time"
    )]
    OneSidedOfMany(usize),
    /// The null hypothesis has a shift or a scale, and there are more than two samples.
    #[error("a shift or a scale needs two samples, but there are {0}; compare two samples at a time")]
    NullOfMany(usize),
    /// The scale of the null hypothesis is not finite or not above 0, or its shift is not finite.
    #[error("the null hypothesis B = {scale} A + {shift} is invalid; use a finite scale above 0 and a finite shift")]
    Null {
        /// The shift of the null hypothesis.
        shift: f64,
        /// The scale of the null hypothesis.
        scale: f64,
    },
    /// No statistic has this name.
    #[error("there is no statistic `{0}`; use mean, median, std, a percentile such as p99, or a quantile such as q0.9")]
    UnknownStatistic(String),
    /// A quantile level or an error probability is invalid.
    #[error(transparent)]
    Level(#[from] ascertain_stats::Error),
}
