//! Samples that are pooled and reshuffled.

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::contrast::Contrast;
use crate::enclosure::Enclosure;
use crate::error::{Error, shown};
use crate::exactly;
use crate::pool::{Pool, all_positive, find};
use crate::precision::Precision;
use crate::question::{Alternative, Comparison, Null, Question, Sample, Statistic};
use crate::shuffled::{ShuffledPool, mean_weights, statistic_of};
use crate::subset::RandomSubset;
use crate::subset_statistics::SubsetStatistics;

/// The statistics of the samples as passed, before any reshuffle.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The statistic of each sample.
    pub statistics: Vec<f64>,
    /// The result of comparing these statistics: their difference or ratio, as the question asks.
    pub value: f64,
    /// Value of the comparison if the null hypothesis is true. Without a shift and a scale it is 0 for a difference and
    /// 1 for a ratio.
    pub expected: f64,
}

/// The result of one random assignment of the pooled values to the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reshuffle {
    /// The result of comparing the reshuffled samples' statistics: their difference or ratio.
    pub value: f64,
    /// `true` if the comparison is at least as far from the null hypothesis as the comparison of the original samples.
    /// Also `true` if rounding errors leave the answer open.
    pub exceeds: bool,
}

/// The method of reshuffling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Technique {
    /// Selects the values of the second of two samples by a random bit mask; the values themselves stay in place.
    Mask,
    /// Shuffles the values in memory, for any number of samples.
    Shuffle,
}

/// A source of random reshuffles of samples. The same seed gives the same reshuffles.
#[derive(Clone, Debug)]
pub struct Reshuffles {
    pub(crate) deal: Deal,
    contrast: Contrast,
    /// Input of the exact arithmetic, which is used if the bounds of the rounding errors do not decide. It consists of
    /// the question without the shift and scale of its null hypothesis, and the unrounded statistics of the data.
    /// `None` if exact arithmetic cannot decide either.
    exactly: Option<(Question, exactly::Statistics)>,
    observed: Observation,
    /// Lower and upper bound of the distance between the data's comparison and the value that the null hypothesis
    /// expects.
    distance: (f64, f64),
    /// A factor and a term that convert a comparison to the values' own unit. The comparison is divided by the factor,
    /// and the term is then added.
    unit: (f64, f64),
    random: Xoshiro256PlusPlus,
}

#[derive(Clone, Debug)]
pub(crate) enum Deal {
    Mask { subset: RandomSubset, statistics: SubsetStatistics },
    Shuffle(ShuffledPool),
}

impl Reshuffles {
    /// Creates reshuffles with the faster technique. Each value needs 8 bytes of memory, or 24 for a standard
    /// deviation, and 8 more during the creation.
    ///
    /// # Errors
    /// Fails in these cases:
    ///
    /// - there are fewer than two samples, or fewer than two values in one of them;
    /// - a value is not finite, or it is not positive and ratios are requested;
    /// - the question does not fit the number of samples;
    /// - memory cannot hold all values.
    pub fn new(samples: Vec<Sample>, question: &Question, seed: u64) -> Result<Reshuffles, Error> {
        let technique = if samples.len() == 2 { Technique::Mask } else { Technique::Shuffle };
        Reshuffles::with_technique(samples, question, seed, technique)
    }

    /// Creates reshuffles with the given technique. If there are more than two samples, they are always
    /// shuffled, whatever the technique is.
    ///
    /// # Errors
    /// Fails in the cases of [`Reshuffles::new`].
    pub fn with_technique(
        mut samples: Vec<Sample>,
        question: &Question,
        seed: u64,
        technique: Technique,
    ) -> Result<Reshuffles, Error> {
        check(&samples, question)?;
        let statistic = question.statistic;
        let rough = Precision::new(&[], 0.0, false);
        let each = samples.iter_mut().map(|sample| statistic_of(&mut sample.values, statistic, None, &rough));
        let own: Vec<Enclosure> = each.collect();
        let statistics: Vec<f64> = own.iter().map(|each| each.value).collect();
        // If the values are large, a difference of rounded statistics loses digits. Subtracting one of the values from
        // all of them avoids that and does not change the difference.
        let apart = match (question.comparison, statistic) {
            (Comparison::Ratio, _) | (_, Statistic::StandardDeviation) => own,
            (Comparison::Difference, _) => {
                let origin = samples[0].values[0];
                let moved = samples.iter().map(|sample| {
                    let mut values: Vec<f64> = sample.values.iter().map(|value| value - origin).collect();
                    statistic_of(&mut values, statistic, None, &rough)
                });
                moved.collect()
            }
        };
        if let (Comparison::Ratio, Some(flat)) = (question.comparison, statistics.iter().position(|s| *s <= 0.0)) {
            return Err(Error::NoSpread { sample: shown(&samples[flat].name) });
        }
        let Pool { values, sizes, per_unit, is_exact } = Pool::new(samples, question)?;
        let shift = question.null.shift * per_unit;
        let precision = Precision::new(&values, (shift / question.null.scale).abs(), is_exact);
        if !precision.is_finite(statistic == Statistic::StandardDeviation) {
            return Err(Error::TooLarge);
        }
        let without_null = Question { null: Null::default(), ..*question };
        let is_undone = null_cancels(question);
        let weights = if is_undone && statistic == Statistic::Mean { mean_weights(&sizes) } else { None };
        let means = weights.as_ref().map_or(1.0, |weights| weights[0] * sizes[0] as f64);
        let unit = match question.comparison {
            Comparison::Difference if is_undone && statistic != Statistic::StandardDeviation => {
                (per_unit * means, question.null.shift)
            }
            Comparison::Difference => (per_unit * means, 0.0),
            Comparison::Ratio if is_undone => (question.null.scale.recip(), 0.0),
            Comparison::Ratio => (1.0, 0.0),
        };
        let mut shuffled = ShuffledPool { values, sizes, statistic, weights, precision };
        let mut undone = shuffled.statistics();
        let exact = if is_exact && is_undone { shuffled.exact_statistics() } else { None };
        let pool = statistic_of(&mut shuffled.values, statistic, None, &precision).value;
        let asked = Question { null: Null { shift, ..question.null }, ..*question };
        let contrast = Contrast::new(if is_undone { &without_null } else { &asked }, pool);
        let observed = Observation {
            value: Contrast::new(&without_null, 0.0).compare(&apart).value,
            expected: Contrast::new(question, pool / per_unit).expected,
            statistics,
        };
        let deal = match (technique, shuffled.sizes.as_slice()) {
            (Technique::Mask, &[first, second]) => {
                let subset = RandomSubset::new(first + second, second);
                let is_difference = is_undone && question.comparison == Comparison::Difference;
                let statistics = SubsetStatistics::new(shuffled, is_difference)?;
                undone = statistics.of_the_last(second).unwrap_or(undone);
                Deal::Mask { subset, statistics }
            }
            _ => Deal::Shuffle(shuffled),
        };
        let distance = contrast.distance(contrast.compare(&undone));
        let exactly = exact.map(|exact| (without_null, exact));
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Ok(Reshuffles { deal, contrast, exactly, observed, distance, unit, random })
    }

    /// Returns the statistics of the samples before any reshuffle.
    pub fn observed(&self) -> &Observation {
        &self.observed
    }

    /// Draws the next reshuffle.
    pub fn draw(&mut self) -> Reshuffle {
        match &mut self.deal {
            Deal::Mask { subset, .. } => {
                subset.draw(&mut self.random);
            }
            Deal::Shuffle(shuffled) => shuffled.shuffle(&mut self.random),
        }
        self.judge()
    }

    /// Returns the comparison of the reshuffle that was drawn last, and whether it is an exceedance.
    pub(crate) fn judge(&mut self) -> Reshuffle {
        let compared = match &mut self.deal {
            Deal::Mask { subset, statistics } => self.contrast.compare(&statistics.for_mask(subset.drawn())),
            Deal::Shuffle(shuffled) => self.contrast.compare(&shuffled.statistics()),
        };
        let (least, most) = self.contrast.distance(compared);
        let (observed_least, observed_most) = self.distance;
        let exceeds = if least >= observed_most {
            true
        } else if most < observed_least {
            false
        } else {
            // The bounds do not decide, possibly because a quotient by zero is not a number.
            self.exceeds_exactly().unwrap_or(true)
        };
        let (factor, term) = self.unit;
        Reshuffle { value: compared.value / factor + term, exceeds }
    }

    /// Decides by exact arithmetic whether the reshuffle that was drawn last is at least as far from the null
    /// hypothesis as the data. Returns `None` if exact arithmetic cannot decide either.
    pub(crate) fn exceeds_exactly(&mut self) -> Option<bool> {
        let (question, observed) = self.exactly.as_ref()?;
        let statistics = match &mut self.deal {
            Deal::Mask { subset, statistics } => statistics.exactly(subset.drawn()),
            Deal::Shuffle(shuffled) => shuffled.exact_statistics(),
        };
        Some(exactly::exceeds(question, &statistics?, observed))
    }
}

/// The shift and the scale of the null hypothesis have been removed from the pooled values. Returns whether samples can
/// be compared without restoring them: restoring them would change every comparison by the same term or factor.
fn null_cancels(question: &Question) -> bool {
    match question.comparison {
        Comparison::Difference => question.null.scale == 1.0,
        Comparison::Ratio => question.null.shift == 0.0 || question.statistic == Statistic::StandardDeviation,
    }
}

fn check(samples: &[Sample], question: &Question) -> Result<(), Error> {
    let count = samples.len();
    let null = question.null;
    match () {
        () if count < 2 => return Err(Error::TooFewSamples(count)),
        () if count > 2 && question.alternative != Alternative::TwoSided => return Err(Error::OneSidedOfMany(count)),
        () if count > 2 && !null.is_plain() => return Err(Error::NullOfMany(count)),
        () if !(null.scale > 0.0 && null.scale.is_finite() && null.shift.is_finite()) => {
            return Err(Error::Null { shift: null.shift, scale: null.scale });
        }
        () => {}
    }
    for sample in samples {
        let name = || shown(&sample.name);
        if sample.values.len() < 2 {
            return Err(Error::TooFewValues { sample: name(), count: sample.values.len() });
        }
        if let Some((number, value)) = find(&sample.values, |value| !value.is_finite()) {
            return Err(Error::NotFinite { sample: name(), number, value });
        }
    }
    all_positive(samples, question, 1.0)
}
