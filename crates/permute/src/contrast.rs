//! The test statistic: compares the statistics of the samples, and computes the distance of the result from its value
//! under the null hypothesis.

use crate::enclosure::Enclosure;
use crate::question::{Alternative, Comparison, Null, Question, Statistic};

/// The comparison of the samples' statistics, with the parameters of the null hypothesis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contrast {
    comparison: Comparison,
    alternative: Alternative,
    /// The factor by which the second sample's statistic is multiplied; 1 if the null hypothesis has no scale.
    factor: f64,
    /// The number that is added to the second sample's statistic after the multiplication. It is 0 without a shift, and
    /// for standard deviations, which a shift does not change.
    term: f64,
    /// The result of the comparison under the null hypothesis. For this result, the first sample is assumed to have the
    /// statistic of all pooled values. The second sample's statistic is then this number times the factor, plus the
    /// term.
    pub expected: f64,
}

impl Contrast {
    /// Creates a contrast. `pooled` is the statistic of all values together, on the scale of the first sample.
    pub fn new(question: &Question, pooled: f64) -> Contrast {
        let Question { statistic, comparison, alternative, null: Null { shift, scale } } = *question;
        // A shift moves means and quantiles but does not change the spread.
        let term = if statistic == Statistic::StandardDeviation { 0.0 } else { shift };
        let expected = match comparison {
            Comparison::Difference => pooled * (scale - 1.0) + term,
            Comparison::Ratio if term == 0.0 => scale,
            Comparison::Ratio => (scale * pooled + term) / pooled,
        };
        Contrast { comparison, alternative, factor: scale, term, expected }
    }

    /// Compares the samples' statistics. The shift and the scale of the null hypothesis were removed from the pooled
    /// values. They are therefore applied again to the second sample's statistic before the comparison.
    pub fn compare(&self, statistics: &[Enclosure]) -> Enclosure {
        let compare = |greater: Enclosure, less: Enclosure| match self.comparison {
            Comparison::Difference => greater.less(less),
            Comparison::Ratio => greater.divided_by(less),
        };
        if let [first, second] = statistics {
            return compare(second.transformed(self.factor, self.term), *first);
        }
        compare(Enclosure::extreme(statistics, f64::max), Enclosure::extreme(statistics, f64::min))
    }

    /// Returns a lower and an upper bound of the distance between `compared`, the result of a comparison, and the
    /// result under the null hypothesis. Depending on the question, the distance is a signed value, an absolute
    /// difference or a ratio. A greater number always means a greater distance.
    pub fn distance(&self, compared: Enclosure) -> (f64, f64) {
        let Enclosure { low, high, .. } = compared;
        match (self.comparison, self.alternative) {
            (_, Alternative::Greater) => (low, high),
            (_, Alternative::Less) => (-high, -low),
            (Comparison::Difference, Alternative::TwoSided) => {
                let Enclosure { low, high, .. } = compared.less(Enclosure::exact(self.expected));
                (low.max(-high).max(0.0), high.max(-low))
            }
            (Comparison::Ratio, Alternative::TwoSided) => {
                let expected = Enclosure::exact(self.expected);
                let (above, below) = (compared.divided_by(expected), expected.divided_by(compared));
                (above.low.max(below.low), above.high.max(below.high))
            }
        }
    }
}
