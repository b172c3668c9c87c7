//! Counting functions: the number of values that a path has produced after t observations of its source, its rate, and
//! the greatest lead of one path over another.

use std::sync::Arc;

use crate::ratio::{Ratio, gcd, lcm};

/// Largest number of observations over which counting functions are compared one by one. Beyond it, leads come from
/// envelopes. It covers hyperperiods of up to 10^6, after start-up phases of up to 10^6.
const MOST_SCANNED: u64 = 2_000_000;
/// Largest hyperperiod that is scanned.
const MOST_PERIOD: u64 = 1_000_000;
/// Most evaluations of operators while a plan is made, which take less than a second. Beyond it, numbers come
/// from envelopes.
pub(crate) const MOST_EVALUATIONS: u64 = 100_000_000;

/// The counting function of a path, as a tree of the operators on it.
///
/// The numbers of `Every`, `Repeat` and `Window` are at least 1. With 0, the functions of this type may panic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// The source itself: t values after t observations.
    Source,
    /// ⌈c/n⌉ values: the first of each n.
    Every(Arc<Count>, u64),
    /// n·c values.
    Repeat(Arc<Count>, u64),
    /// max(0, c − k) values.
    Drop(Arc<Count>, u64),
    /// ⌊(c − n)/step⌋ + 1 values, from c = n on.
    Window(Arc<Count>, u64, u64),
    /// The values of a join of two paths: as many as both have.
    Least(Arc<Count>, Arc<Count>),
}

/// The numbers that describe a counting function after its start-up phase: from `start` on, `period` further
/// observations give `values` further values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Number of observations of the start-up phase.
    pub start: u64,
    /// Number of observations after which the pattern repeats.
    pub period: u64,
    /// Number of values in a period.
    pub values: u64,
}

/// Straight lines around a counting function: `rate·t + low ≤ c(t) ≤ rate·t + high` for all t ≥ 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Values per observation.
    pub rate: Ratio,
    /// Offset of the lower line.
    pub low: Ratio,
    /// Offset of the upper line.
    pub high: Ratio,
}

/// The most values by which each of two paths is ever ahead of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// Most values by which the first path is ahead.
    pub first: u64,
    /// Most values by which the second path is ahead.
    pub second: u64,
    /// `true` if the leads are attained; `false` if they are bounds from envelopes ("at most").
    pub is_exact: bool,
}

impl Count {
    /// Returns the number of values after `observations` observations. Numbers above `u64::MAX` become `u64::MAX`.
    #[must_use]
    pub fn after(&self, observations: u64) -> u64 {
        match self {
            Count::Source => observations,
            Count::Every(input, n) => input.after(observations).div_ceil(*n),
            Count::Repeat(input, n) => input.after(observations).saturating_mul(*n),
            Count::Drop(input, k) => input.after(observations).saturating_sub(*k),
            Count::Window(input, n, step) => match input.after(observations).checked_sub(*n) {
                Some(after_first) => after_first / step + 1,
                None => 0,
            },
            Count::Least(first, second) => first.after(observations).min(second.after(observations)),
        }
    }

    /// Returns the number of the observation, counted from 0, at which the value with this index appears.
    #[must_use]
    pub fn observation_of(&self, index: u64) -> u64 {
        match self {
            Count::Source => index,
            Count::Every(input, n) => input.observation_of(index.saturating_mul(*n)),
            Count::Repeat(input, n) => input.observation_of(index / n),
            Count::Drop(input, k) => input.observation_of(index.saturating_add(*k)),
            Count::Window(input, n, step) => {
                input.observation_of(index.saturating_mul(*step).saturating_add(n.saturating_sub(1)))
            }
            Count::Least(first, second) => first.observation_of(index).max(second.observation_of(index)),
        }
    }

    /// Returns the repeating pattern of the function. Returns `None` if a number is too large, or if two joined paths
    /// have different rates.
    #[must_use]
    pub fn period(&self) -> Option<Period> {
        match self {
            Count::Source => Some(Period { start: 0, period: 1, values: 1 }),
            Count::Every(input, n) => input.period()?.divided(*n),
            Count::Repeat(input, n) => {
                let Period { start, period, values } = input.period()?;
                Some(Period { start, period, values: values.checked_mul(*n)? })
            }
            Count::Drop(input, k) => {
                let inner = input.period()?;
                Some(Period { start: inner.start.max(input.first_with(*k)?), ..inner })
            }
            Count::Window(input, n, step) => {
                let inner = input.period()?;
                Period { start: inner.start.max(input.first_with(*n)?), ..inner }.divided(*step)
            }
            Count::Least(first, second) => {
                let (first, second) = (first.period()?, second.period()?);
                let period = lcm(first.period, second.period)?;
                let values = |of: Period| (period / of.period).checked_mul(of.values);
                let is_alike = values(first)? == values(second)?;
                let start = first.start.max(second.start);
                is_alike.then_some(Period { start, period, values: values(first)? })
            }
        }
    }

    /// Returns the least number of observations after which there are `values` values.
    fn first_with(&self, values: u64) -> Option<u64> {
        values.checked_sub(1).map_or(Some(0), |last| self.observation_of(last).checked_add(1))
    }

    /// Returns straight lines around the function. Returns `None` if a number is too large.
    #[must_use]
    pub fn envelope(&self) -> Option<Envelope> {
        let whole = |value: u64| Some(Ratio::whole(i128::from(value)));
        Some(match self {
            Count::Source => Envelope { rate: Ratio::ONE, low: Ratio::ZERO, high: Ratio::ZERO },
            Count::Every(input, n) => {
                let Envelope { rate, low, high } = input.envelope()?;
                let high = high.plus(whole(n - 1)?)?;
                Envelope { rate: rate.over(*n)?, low: low.over(*n)?, high: high.over(*n)? }
            }
            Count::Repeat(input, n) => {
                let Envelope { rate, low, high } = input.envelope()?;
                Envelope { rate: rate.times(*n)?, low: low.times(*n)?, high: high.times(*n)? }
            }
            Count::Drop(input, k) => {
                let Envelope { rate, low, high } = input.envelope()?;
                Envelope { rate, low: low.minus(whole(*k)?)?, high: high.minus(whole(*k)?)?.max(Ratio::ZERO) }
            }
            Count::Window(input, n, step) => {
                let Envelope { rate, low, high } = input.envelope()?;
                let low = low.minus(whole(n - 1)?)?.over(*step)?;
                let high = high.minus(whole(*n)?)?.plus(whole(*step)?)?.over(*step)?.max(Ratio::ZERO);
                Envelope { rate: rate.over(*step)?, low, high }
            }
            Count::Least(first, second) => {
                let (first, second) = (first.envelope()?, second.envelope()?);
                let slower = if first.rate <= second.rate { first } else { second };
                let high = if first.rate == second.rate { first.high.min(second.high) } else { slower.high };
                Envelope { rate: slower.rate, low: first.low.min(second.low), high }
            }
        })
    }

    /// Returns the leads of this path over another one and of the other one over this one. Returns `None` if the rates
    /// differ, so that no bound exists, or if a number is too large. See [`rate`](Self::rate).
    #[must_use]
    pub fn lead(&self, other: &Count) -> Option<Lead> {
        self.lead_within(other, &mut { MOST_EVALUATIONS })
    }

    /// As [`lead`](Self::lead), with the number of evaluations that are left.
    pub(crate) fn lead_within(&self, other: &Count, evaluations: &mut u64) -> Option<Lead> {
        if self == other {
            return Some(Lead { first: 0, second: 0, is_exact: true });
        }
        let (first, second) = (self.envelope()?, other.envelope()?);
        if first.rate != second.rate {
            return None;
        }
        if let Some(end) = self.scanned_with(other, evaluations) {
            let mut lead = Lead { first: 0, second: 0, is_exact: true };
            for observations in 0..=end {
                let (of_first, of_second) = (self.after(observations), other.after(observations));
                lead.first = lead.first.max(of_first.saturating_sub(of_second));
                lead.second = lead.second.max(of_second.saturating_sub(of_first));
            }
            return Some(lead);
        }
        let bound = |ahead: Envelope, behind: Envelope| ahead.high.minus(behind.low)?.max(Ratio::ZERO).floor();
        Some(Lead { first: bound(first, second)?, second: bound(second, first)?, is_exact: false })
    }

    /// Returns the number of observations that show every difference of two functions with the same rate. Returns
    /// `None` if it is too large, or if too few evaluations are left.
    fn scanned_with(&self, other: &Count, evaluations: &mut u64) -> Option<u64> {
        let (first, second) = (self.period()?, other.period()?);
        let period = lcm(first.period, second.period).filter(|period| *period <= MOST_PERIOD)?;
        let end = first.start.max(second.start).checked_add(period)?;
        if end > MOST_SCANNED {
            return None;
        }
        let needed = end.saturating_mul(self.operators() + other.operators());
        *evaluations = evaluations.checked_sub(needed)?;
        Some(end)
    }

    /// Returns the number of operators in the tree, with the sources.
    fn operators(&self) -> u64 {
        match self {
            Count::Source => 1,
            Count::Every(input, _) | Count::Repeat(input, _) | Count::Drop(input, _) | Count::Window(input, ..) => {
                1 + input.operators()
            }
            Count::Least(first, second) => 1 + first.operators() + second.operators(),
        }
    }

    /// Returns the number of values per observation in the long run. Returns `None` if a number is too large.
    #[must_use]
    pub fn rate(&self) -> Option<Ratio> {
        self.envelope().map(|envelope| envelope.rate)
    }

    /// Returns the most values that any `observations` successive observations give. This is a bound if the period is
    /// very long. Returns `None` if a number is too large.
    #[must_use]
    pub fn most_of(&self, observations: u64) -> Option<u64> {
        self.most_within(observations, &mut { MOST_EVALUATIONS })
    }

    /// As [`most_of`](Self::most_of), with the number of evaluations that are left.
    pub(crate) fn most_within(&self, observations: u64, evaluations: &mut u64) -> Option<u64> {
        match self {
            Count::Source => Some(observations),
            Count::Drop(input, _) => input.most_within(observations, evaluations),
            Count::Every(input, n) if **input == Count::Source => Some(observations.div_ceil(*n)),
            Count::Window(input, _, step) if **input == Count::Source => Some(observations.div_ceil(*step)),
            Count::Repeat(input, n) => input.most_within(observations, evaluations)?.checked_mul(*n),
            _ => {
                if let Some(end) = self.scanned_with(self, evaluations) {
                    let given = |from: u64| self.after(from + observations) - self.after(from);
                    return (0..=end).map(given).max();
                }
                let Envelope { rate, low, high } = self.envelope()?;
                rate.times(observations)?.plus(high)?.minus(low)?.floor()
            }
        }
    }
}

impl Period {
    /// Returns the pattern of every n-th value.
    fn divided(self, n: u64) -> Option<Period> {
        let periods = n / gcd(self.values, n);
        let values = self.values.checked_mul(periods)? / n;
        Some(Period { start: self.start, period: self.period.checked_mul(periods)?, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Arc<Count> {
        Arc::new(Count::Source)
    }

    #[test]
    fn leads_of_the_measured_examples() {
        let lead = |first: &Count, second: &Count| first.lead(second).map(|lead| (lead.first, lead.second));
        let every = |n| Arc::new(Count::Every(source(), n));
        assert_eq!(lead(&Count::Source, &Count::Repeat(every(2), 2)), Some((0, 1)));
        assert_eq!(lead(&Count::Repeat(every(6), 4), &Count::Repeat(every(3), 2)), Some((2, 0)));
        assert_eq!(lead(&Count::Window(source(), 1000, 1), &Count::Source), Some((0, 999)));
        assert_eq!(lead(&every(2), &Count::Source), None);
        assert_eq!(lead(&Count::Repeat(source(), 2), &Count::Source), None);
    }

    #[test]
    fn long_hyperperiods_have_a_bound_from_envelopes() {
        let path = |n| Count::Repeat(Arc::new(Count::Every(source(), n)), n);
        let lead = path(1009).lead(&path(1013)).unwrap();
        assert!(!lead.is_exact, "the hyperperiod is 1,022,117");
        assert_eq!((lead.first, lead.second), (1008, 1012));
        let most = (0..3_000_000).map(|t| path(1009).after(t).saturating_sub(path(1013).after(t))).max();
        assert_eq!(most, Some(1008), "the bound is attained here");
    }

    #[test]
    fn numbers_that_are_too_large_are_reported() {
        let large = (0..8).fold(Count::Source, |count, _| Count::Repeat(Arc::new(count), 1 << 31));
        assert_eq!((large.period(), large.envelope(), large.rate()), (None, None, None));
        assert_eq!(large.after(1 << 40), u64::MAX);
    }

    #[test]
    fn a_value_appears_at_its_observation() {
        let paths = [
            Count::Every(Arc::new(Count::Drop(source(), 3)), 4),
            Count::Repeat(Arc::new(Count::Window(source(), 5, 2)), 3),
            Count::Least(source(), Arc::new(Count::Window(source(), 7, 1))),
        ];
        for path in paths {
            for index in 0..100 {
                let at = path.observation_of(index);
                assert!(path.after(at) <= index && path.after(at + 1) > index, "{path:?} {index}");
            }
        }
    }
}
