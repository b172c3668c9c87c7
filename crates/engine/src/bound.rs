//! A claim's tests with their arms looked up in a lane: a trial's values in, success or failure out.

use crate::claim::{Bound, Scale, Test};
use crate::experiment::{Arm, Better, Spec, TargetError};
use crate::predicate::Predicate;
use crate::slots::Slots;

/// The values of a trial, by lane slot and metric; NaN where there is none.
pub(crate) struct TrialValues<'a> {
    pub values: &'a [f64],
    pub metrics: usize,
    /// The slots that the trial held.
    pub held: Slots,
}

/// What a trial says of a claim.
pub(crate) struct Seen {
    /// Whether every test was true.
    pub success: bool,
    /// Whether a candidate did as well as its baseline: two time-outs do.
    pub tie: bool,
    /// The first ratio or difference.
    pub statistic: Option<f64>,
}

/// A claim's tests, which a trial is put to without searching for its arms.
#[derive(Default)]
pub(crate) struct BoundTests {
    tests: Vec<BoundTest>,
    /// The slots of all arms.
    pub slots: Slots,
}

enum BoundTest {
    Versus { metric: usize, better: Better, candidate: usize, baseline: usize, scale: Scale, bound: Bound },
    Predicate { slot: usize, predicate: Predicate, exit: Option<Exit> },
}

/// Which exits do not make a predicate false.
enum Exit {
    /// 0 alone, of this metric.
    Success(usize),
    /// The predicate speaks of the exit itself; only a time-out is false whatever it says.
    Any(usize),
}

impl TrialValues<'_> {
    fn of(&self, slot: usize) -> &[f64] {
        &self.values[slot * self.metrics..][..self.metrics]
    }
}

impl BoundTests {
    /// Looks up the tests' arms.
    pub fn new(tests: &[Test], spec: &Spec, slot_of: impl Fn(&Arm) -> usize) -> BoundTests {
        let bind = |test: &Test| match test {
            Test::Versus { metric, candidate, baseline, scale, bound } => BoundTest::Versus {
                metric: *metric,
                better: spec.metrics[*metric].better,
                candidate: slot_of(candidate),
                baseline: slot_of(baseline),
                scale: *scale,
                bound: *bound,
            },
            Test::Predicate { arm, predicate } => {
                let exit = spec.metric("exit").map(|exit| match predicate.mentions(exit) {
                    true => Exit::Any(exit),
                    false => Exit::Success(exit),
                });
                BoundTest::Predicate { slot: slot_of(arm), predicate: predicate.clone(), exit }
            }
        };
        let slots = tests.iter().flat_map(Test::arms).map(&slot_of).collect();
        BoundTests { tests: tests.iter().map(bind).collect(), slots }
    }

    /// Puts a trial to the tests.
    ///
    /// # Errors
    /// When a value to compare is missing, or is zero or below where a ratio is asked for.
    pub fn evaluate(&self, trial: &TrialValues) -> Result<Seen, TargetError> {
        let mut seen = Seen { success: true, tie: false, statistic: None };
        for test in &self.tests {
            match test {
                &BoundTest::Versus { metric, better, candidate, baseline, scale, bound } => {
                    let (candidate, baseline) = (trial.of(candidate)[metric], trial.of(baseline)[metric]);
                    let value = statistic(scale, better, candidate, baseline)?;
                    seen.success &= bound.admits(value);
                    seen.tie |= candidate == baseline;
                    seen.statistic = seen.statistic.or(Some(value));
                }
                BoundTest::Predicate { slot, predicate, exit } => {
                    let values = trial.of(*slot);
                    let exit_is_fine = match *exit {
                        None => true,
                        Some(Exit::Success(exit)) => values[exit] == 0.0,
                        Some(Exit::Any(exit)) => values[exit].is_finite(),
                    };
                    seen.success &= exit_is_fine && predicate.is_true(values);
                }
            }
        }
        Ok(seen)
    }
}

/// How much better the candidate is.
fn statistic(scale: Scale, better: Better, candidate: f64, baseline: f64) -> Result<f64, TargetError> {
    if candidate.is_nan() || baseline.is_nan() {
        return Err(TargetError::Failed("a value that the claim compares was not observed".into()));
    }
    let (worse, best) = match better {
        Better::Lower => (baseline, candidate),
        Better::Higher => (candidate, baseline),
    };
    match scale {
        // Also where both are infinite: two time-outs tie.
        Scale::Ratio if candidate == baseline && candidate > 0.0 => Ok(1.0),
        Scale::Difference if candidate == baseline => Ok(0.0),
        Scale::Ratio if worse > 0.0 && best > 0.0 => Ok(worse / best),
        Scale::Ratio => Err(TargetError::Failed(format!(
            "a ratio of {candidate} and {baseline} says nothing; claim a difference instead"
        ))),
        Scale::Difference => Ok(worse - best),
    }
}
