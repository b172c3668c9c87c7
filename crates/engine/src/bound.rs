//! A claim's tests with their arms looked up in a lane: a trial's values in, success or failure out.

use crate::claim::{Bound, Scale, Test};
use crate::experiment::{Arm, Better, Spec, TargetError};
use crate::predicate::Predicate;
use crate::slots::Slots;

/// The values of a trial, by lane slot and metric; NaN where there is none.
pub(crate) struct TrialValues<'a> {
    /// The trial's number within the experiment.
    pub number: u64,
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
    /// What a predicate on one metric saw of it.
    pub value: Option<f64>,
}

/// A claim's tests, which a trial is put to without searching for its arms.
#[derive(Clone, Default)]
pub(crate) struct BoundTests {
    tests: Vec<BoundTest>,
    /// The slots of all arms.
    pub slots: Slots,
}

#[derive(Clone)]
enum BoundTest {
    Versus { metric: usize, better: Better, candidate: usize, baseline: usize, scale: Scale, bound: Bound },
    Predicate { slot: usize, predicate: Predicate, exit: Option<Exit> },
}

/// Which exits do not make a predicate false.
#[derive(Clone)]
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
        let mut seen = Seen { success: true, tie: false, statistic: None, value: None };
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
                    seen.value = predicate.only_metric().map(|metric| values[metric]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Metric, Point};
    use crate::unit::Unit;

    fn spec() -> Spec {
        let metric = |name: &str, unit, better| Metric::new(name, "", unit, better);
        let metrics = vec![
            metric("wall", Unit::Nanosecond, Better::Lower),
            metric("exit", Unit::One, Better::Lower),
            metric("rate", Unit::PerSecond, Better::Higher),
        ];
        Spec { id: "bound".into(), metrics, ..Spec::default() }
    }

    fn arm(variant: &str) -> Arm {
        Arm { variant: variant.into(), point: Point::default() }
    }

    fn evaluate(test: Test, rows: &[[f64; 3]]) -> Result<Seen, TargetError> {
        let slot_of = |arm: &Arm| usize::from(arm.variant != "a");
        let tests = BoundTests::new(&[test], &spec(), slot_of);
        let held = (0..rows.len()).collect();
        tests.evaluate(&TrialValues { number: 0, values: rows.as_flattened(), metrics: 3, held })
    }

    fn versus(metric: usize, scale: Scale, candidate: f64, baseline: f64) -> Result<Seen, TargetError> {
        let (arms, bound) = ((arm("a"), arm("b")), Bound::AtLeast(if scale == Scale::Ratio { 1.0 } else { 0.0 }));
        let test = Test::Versus { metric, candidate: arms.0, baseline: arms.1, scale, bound };
        evaluate(test, &[[candidate; 3], [baseline; 3]])
    }

    #[test]
    fn better_is_more_than_one_whichever_way_is_better() {
        let statistic = |metric, scale, a, b| versus(metric, scale, a, b).unwrap().statistic.unwrap();
        assert_eq!(statistic(0, Scale::Ratio, 2.0, 6.0), 3.0);
        assert_eq!(statistic(2, Scale::Ratio, 6.0, 2.0), 3.0);
        assert_eq!(statistic(0, Scale::Difference, 2.0, 6.0), 4.0);
        assert_eq!(statistic(2, Scale::Difference, 6.0, 2.0), 4.0);
    }

    #[test]
    fn only_equals_tie() {
        let seen = |a, b| versus(0, Scale::Ratio, a, b).unwrap();
        // The ratio of these rounds to 1 one way and not the other.
        let (less, more) = (2.0_f64.next_down().next_down(), 2.0_f64.next_down());
        assert_eq!((seen(less, more).tie, seen(less, more).success), (false, true));
        assert_eq!((seen(more, less).tie, seen(more, less).success), (false, false));
        assert!(seen(more, more).tie);
        let timed_out = f64::INFINITY;
        assert!(seen(timed_out, timed_out).tie);
        assert_eq!((seen(timed_out, 1.0).success, seen(1.0, timed_out).success), (false, true));
        assert!(versus(0, Scale::Difference, timed_out, timed_out).unwrap().tie);
    }

    #[test]
    fn what_can_not_be_compared_is_an_error() {
        for (candidate, baseline) in [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (-1.0, -1.0), (f64::NAN, 1.0)] {
            assert!(versus(0, Scale::Ratio, candidate, baseline).is_err(), "{candidate} {baseline}");
        }
        assert!(versus(0, Scale::Difference, 1.0, f64::NAN).is_err());
        assert!(versus(0, Scale::Difference, 0.0, -1.0).is_ok());
    }

    #[test]
    fn exits_make_predicates_false() {
        let success = |text: &str, wall, exit| {
            let predicate = Predicate::parse(text, &spec().metrics).unwrap();
            evaluate(Test::Predicate { arm: arm("a"), predicate }, &[[wall, exit, f64::NAN]]).unwrap().success
        };
        assert!(success("wall <= 5 ns", 5.0, 0.0));
        assert!(!success("wall <= 5 ns", 5.0, 1.0));
        assert!(!success("wall >= 5 ns", f64::INFINITY, f64::INFINITY), "a time-out");
        assert!(success("wall <= 5 ns and exit != 0", 5.0, 1.0), "it speaks of the exit itself");
        assert!(!success("exit != 0", f64::INFINITY, f64::INFINITY), "a time-out is no exit");
        assert!(!success("rate >= 1 /s", 5.0, 0.0), "not observed");
    }
}
