//! What can be wrong with samples and questions.

/// A name that others chose, in one line: control characters as escapes.
pub(crate) fn shown(name: &str) -> String {
    let each = name.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.into() });
    each.collect()
}

/// Samples can't be compared as they were asked to be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to compare with.
    #[error("a comparison needs two samples or more, and this is {0}")]
    TooFewSamples(usize),
    /// A sample says next to nothing.
    #[error("`{sample}` has {count} value{}: a sample needs two or more", if *.count == 1 { "" } else { "s" })]
    TooFewValues {
        /// The sample's name.
        sample: String,
        /// How many values it has.
        count: usize,
    },
    /// NaN or an infinity.
    #[error("value {number} of `{sample}` is {value}: only finite values can be compared; leave it out, or mend it")]
    NotFinite {
        /// The sample's name.
        sample: String,
        /// Which of its values, from 1.
        number: usize,
        /// The value.
        value: f64,
    },
    /// All values are held at once.
    #[error(
        "there is no memory for {count} values, which take up to 17 bytes each; take a part of them at random (shuf -n)"
    )]
    NoMemory {
        /// How many they are.
        count: usize,
    },
    /// Sums or squares of the values are more than a double holds.
    #[error("the values are so large that their sums overflow: give them in a larger unit")]
    TooLarge,
    /// A ratio of what need not be positive.
    #[error(
        "value {number} of `{sample}` is {value}, and a ratio needs positive values (also without the shift of the null hypothesis): compare by difference"
    )]
    NotPositive {
        /// The sample's name.
        sample: String,
        /// Which of its values, from 1.
        number: usize,
        /// The value.
        value: f64,
    },
    /// A ratio to nothing.
    #[error("the values of `{sample}` are all alike, so its standard deviation has no ratio: compare by difference")]
    NoSpread {
        /// The sample's name.
        sample: String,
    },
    /// "Greater" says nothing of three samples.
    #[error(
        "{0} samples differ only two-sidedly, by the greatest and the least: leave the alternative out, or compare two"
    )]
    OneSidedOfMany(usize),
    /// Only the second of two samples may be shifted or scaled.
    #[error("a shift or a scale speaks of the second of two samples, and there are {0}: compare two at a time")]
    NullOfMany(usize),
    /// A null hypothesis that can't be undone.
    #[error("the null hypothesis B = {scale} A + {shift} can't be undone: the scale is above 0, and both are finite")]
    Null {
        /// The shift that was given.
        shift: f64,
        /// The scale that was given.
        scale: f64,
    },
    /// The statistic is not one that there is.
    #[error(
        "there is no statistic `{0}`; there are mean, median, std, a percentile such as p99, and a quantile such as q0.9"
    )]
    UnknownStatistic(String),
    /// A level or an error that nothing can be decided at.
    #[error(transparent)]
    Level(#[from] ascertain_stats::Error),
}
