//! From the samples' statistics to how far they are from the null hypothesis.

use crate::enclosure::Enclosure;
use crate::question::{Alternative, Comparison, Null, Question, Statistic};

/// How samples are compared, as numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contrast {
    comparison: Comparison,
    alternative: Alternative,
    /// What the null hypothesis does to the second sample's statistic.
    factor: f64,
    term: f64,
    /// The comparison that the null hypothesis expects: that of the pool's statistic with itself.
    pub expected: f64,
}

impl Contrast {
    /// `pooled` is the statistic of all values together, as the first sample has them.
    pub fn new(question: &Question, pooled: f64) -> Contrast {
        let Question { statistic, comparison, alternative, null: Null { shift, scale } } = *question;
        // A shift moves means and quantiles, and leaves the spread alone.
        let term = if statistic == Statistic::StandardDeviation { 0.0 } else { shift };
        let expected = match comparison {
            Comparison::Difference => pooled * (scale - 1.0) + term,
            Comparison::Ratio if term == 0.0 => scale,
            Comparison::Ratio => (scale * pooled + term) / pooled,
        };
        Contrast { comparison, alternative, factor: scale, term, expected }
    }

    /// The comparison of the samples' statistics, the null hypothesis being undone in them.
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

    /// How far a comparison is from what the null hypothesis expects, on a scale of its own on which more is further:
    /// the least and the most that it may be.
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
