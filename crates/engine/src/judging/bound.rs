//! A claim's tests with their arms looked up in a lane: a trial's values in, success or failure out.

use crate::block::Slots;
use crate::claim::{Bound, Claim, Effect, Judging, Test};
use crate::experiment::{Arm, Better, Spec, TargetError};
use crate::predicate::Predicate;
use crate::values::{Bounds, and};

/// What is known of a trial's values, by lane slot and metric.
pub(crate) struct TrialValues<'a> {
    /// The trial's number within the experiment.
    pub number: u64,
    pub values: &'a [Bounds],
    pub metrics: usize,
    /// The slots that the trial held.
    pub held: Slots,
    /// The one that was measured last.
    pub last: Option<usize>,
    /// Whether a signal cut the trial off, so that some of it was never seen.
    pub is_interrupted: bool,
    /// What a trial such as this takes where nothing cuts it off, as far as that is known.
    pub whole_ns: Option<f64>,
}

/// What a trial says of a claim.
pub(crate) struct Seen {
    /// Whether every test was true; `None` where what was cut off leaves that open.
    pub success: Option<bool>,
    /// Whether a candidate did as well as its baseline: two that met the same time limit did.
    pub tie: bool,
    /// The first ratio or difference.
    pub statistic: Option<Bounds>,
    /// What a predicate on one metric saw of it.
    pub value: Option<Bounds>,
    /// The predicates' conditions that were false, by bit, as far as there are bits.
    pub broken: u64,
}

/// A claim's tests, which a trial is put to without searching for its arms.
#[derive(Clone, Default)]
pub(crate) struct BoundTests {
    tests: Vec<BoundTest>,
    /// The slots of all arms.
    pub slots: Slots,
    /// The conditions of all predicates, each with its metric, as people write them: an exit that must be 0 without
    /// being spoken of comes first.
    pub conditions: Vec<(String, String)>,
}

#[derive(Clone)]
enum BoundTest {
    Versus { metric: usize, better: Better, candidate: usize, baseline: usize, scale: Comparing, bound: Bound },
    Predicate { slot: usize, predicate: Predicate, exit: Option<Exit>, is_timed: bool },
}

/// How two values are compared.
#[derive(Clone, Copy)]
struct Comparing {
    effect: Effect,
    /// Whether it is who is better that is asked, which zeros answer too, and not how many times.
    is_order: bool,
}

/// Which exits do not make a predicate false.
#[derive(Clone)]
enum Exit {
    /// 0 alone, of this metric.
    Success(usize),
    /// The predicate speaks of the exit itself; only a time-out is no exit, whatever it says.
    Any(usize),
}

impl Exit {
    fn metric(&self) -> usize {
        let (Exit::Success(metric) | Exit::Any(metric)) = *self;
        metric
    }
}

impl BoundTest {
    fn conditions(&self, spec: &Spec) -> Vec<(String, String)> {
        let BoundTest::Predicate { predicate, exit, .. } = self else { return Vec::new() };
        let unsaid = matches!(exit, Some(Exit::Success(_))).then(|| ("exit".to_string(), "exit == 0".to_string()));
        let metrics = predicate.0.iter().map(|part| spec.metrics[part.metric].name.clone());
        unsaid.into_iter().chain(metrics.zip(predicate.spelled_each(&spec.metrics))).collect()
    }
}

impl TrialValues<'_> {
    fn of(&self, slot: usize) -> &[Bounds] {
        &self.values[slot * self.metrics..][..self.metrics]
    }
}

impl BoundTests {
    /// Looks up the tests' arms.
    pub fn new(claim: &Claim, spec: &Spec, slot_of: impl Fn(&Arm) -> usize) -> BoundTests {
        let (tests, is_order) = (&claim.tests, claim.judging == Judging::Order);
        let bind = |test: &Test| match test {
            Test::Versus { metric, candidate, baseline, scale, bound } => BoundTest::Versus {
                metric: *metric,
                better: spec.metrics[*metric].better,
                candidate: slot_of(candidate),
                baseline: slot_of(baseline),
                scale: Comparing { effect: *scale, is_order },
                bound: *bound,
            },
            Test::Predicate { arm, predicate } => {
                let exit = spec.metric("exit").map(|exit| match predicate.mentions(exit) {
                    true => Exit::Any(exit),
                    false => Exit::Success(exit),
                });
                let is_timed = spec.metric("wall").is_some_and(|wall| predicate.mentions(wall));
                BoundTest::Predicate { slot: slot_of(arm), predicate: predicate.clone(), exit, is_timed }
            }
        };
        let slots = tests.iter().flat_map(Test::arms).map(&slot_of).collect();
        let tests: Vec<BoundTest> = tests.iter().map(bind).collect();
        let conditions = tests.iter().flat_map(|test| test.conditions(spec)).collect();
        BoundTests { tests, slots, conditions }
    }

    /// Whether the trial ended with the candidate rather than the baseline, where they are two arms and it was one of
    /// them.
    pub fn candidate_is_last(&self, trial: &TrialValues) -> Option<bool> {
        let [BoundTest::Versus { candidate, baseline, .. }] = self.tests.as_slice() else { return None };
        let last = trial.last.filter(|last| [candidate, baseline].contains(&last))?;
        Some(last == *candidate)
    }

    /// Puts a trial to the tests.
    ///
    /// # Errors
    /// When a value to compare is missing, or is zero or below where a ratio is asked for.
    pub fn evaluate(&self, trial: &TrialValues) -> Result<Seen, TargetError> {
        let mut seen = Seen { success: Some(true), tie: false, statistic: None, value: None, broken: 0 };
        let mut bit = 1_u64;
        for test in &self.tests {
            match test {
                &BoundTest::Versus { metric, better, candidate, baseline, scale, bound } => {
                    let (candidate, baseline) = (trial.of(candidate)[metric], trial.of(baseline)[metric]);
                    let value = statistic(scale, better, candidate, baseline)?;
                    seen.success = and(seen.success, value.keeps_to(bound));
                    seen.tie |= candidate == baseline && candidate != Bounds::UNKNOWN;
                    seen.statistic = seen.statistic.or(Some(value));
                }
                BoundTest::Predicate { slot, predicate, exit, is_timed } => {
                    let values = trial.of(*slot);
                    let seen_exit = exit.as_ref().map(|exit| values[exit.metric()]);
                    let is_stopped = seen_exit.is_some_and(|exit| exit.value().is_none() && exit != Bounds::UNKNOWN);
                    // It was stopped. Whether it would have succeeded in the time that the predicate gives it, which
                    // may be more, is for the time to say; where it gives none, the limit is what there was.
                    let open = exit.as_ref().map(Exit::metric).filter(|_| is_stopped && *is_timed);
                    let exit_is_fine = match exit {
                        _ if open.is_some() || seen_exit == Some(Bounds::UNKNOWN) => None,
                        _ if is_stopped => Some(false),
                        Some(Exit::Success(exit)) => values[*exit].keeps_to(Bound::Within(0.0, 0.0)),
                        Some(Exit::Any(_)) | None => Some(true),
                    };
                    let unsaid = matches!(exit, Some(Exit::Success(_))).then_some(exit_is_fine);
                    // One that was stopped has no exit that a condition on it could be true of.
                    let has_none = is_stopped && exit_is_fine == Some(false);
                    let of_exit = exit.as_ref().map(Exit::metric).filter(|_| has_none);
                    let each = predicate.each(values, open).zip(&predicate.0);
                    let each =
                        each.map(|(is_true, part)| if Some(part.metric) == of_exit { Some(false) } else { is_true });
                    for condition in unsaid.into_iter().chain(each) {
                        seen.success = and(seen.success, condition);
                        seen.broken |= if condition == Some(false) { bit } else { 0 };
                        // Those after the last bit are judged, and not counted.
                        bit <<= 1;
                    }
                    seen.success = and(seen.success, exit_is_fine);
                    seen.value = predicate.only_metric().map(|metric| values[metric]);
                }
            }
        }
        Ok(seen)
    }
}

/// How much better the candidate is.
fn statistic(scale: Comparing, better: Better, candidate: Bounds, baseline: Bounds) -> Result<Bounds, TargetError> {
    if candidate.is_none() || baseline.is_none() {
        return Err(TargetError::Failed("a value that the claim compares was not observed".into()));
    }
    let by_order = || scale.is_order.then(|| order(better, candidate, baseline)).flatten();
    scale.effect.compare(better, candidate, baseline).or_else(by_order).ok_or_else(|| {
        let (candidate, baseline) = (candidate.high, baseline.high);
        TargetError::Failed(format!("a ratio of {candidate} and {baseline} says nothing; claim a difference instead"))
    })
}

/// A ratio that says no more than who is better, of which one may be zero: two zeros are as good as each other, and
/// what is above zero is beyond any multiple of it. None of values below zero.
fn order(better: Better, candidate: Bounds, baseline: Bounds) -> Option<Bounds> {
    const ALL_OR_NOTHING: Bounds = Bounds { low: 0.0, high: f64::INFINITY };
    let (worse, best) = match better {
        Better::Lower => (baseline, candidate),
        Better::Higher => (candidate, baseline),
    };
    let is_zero = |bounds: Bounds| bounds.value() == Some(0.0);
    match (is_zero(worse), is_zero(best)) {
        (true, true) => Some(Bounds::exact(1.0)),
        (false, true) if worse.low >= 0.0 => Some(Bounds::exact(f64::INFINITY)),
        (true, false) if best.low >= 0.0 => Some(Bounds::exact(0.0)),
        // What was lost could be zero as well.
        _ if worse.value().is_none() || best.value().is_none() => Some(ALL_OR_NOTHING),
        _ => None,
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

    fn evaluate(test: Test, rows: &[[Bounds; 3]]) -> Result<Seen, TargetError> {
        evaluate_as(false, test, rows)
    }

    fn evaluate_as(is_order: bool, test: Test, rows: &[[Bounds; 3]]) -> Result<Seen, TargetError> {
        let slot_of = |arm: &Arm| usize::from(arm.variant != "a");
        let judging = if is_order { Judging::Order } else { Judging::Rate };
        let claim = Claim { tests: vec![test], judging, ..Claim::order("bound", &arm("a"), &arm("b")) };
        let tests = BoundTests::new(&claim, &spec(), slot_of);
        let held = (0..rows.len()).collect();
        tests.evaluate(&TrialValues {
            number: 0,
            values: rows.as_flattened(),
            metrics: 3,
            held,
            last: None,
            is_interrupted: false,
            whole_ns: None,
        })
    }

    fn at_least(bound: f64, metric: usize, scale: Effect, values: [Bounds; 2]) -> Result<Seen, TargetError> {
        let (candidate, baseline) = (arm("a"), arm("b"));
        let test = Test::Versus { metric, candidate, baseline, scale, bound: Bound::AtLeast(bound) };
        evaluate(test, &values.map(|value| [value; 3]))
    }

    fn versus(metric: usize, scale: Effect, candidate: f64, baseline: f64) -> Result<Seen, TargetError> {
        let bound = if scale == Effect::Ratio { 1.0 } else { 0.0 };
        at_least(bound, metric, scale, [candidate, baseline].map(Bounds::exact))
    }

    #[test]
    fn better_is_more_than_one_whichever_way_is_better() {
        let statistic = |metric, scale, a, b| versus(metric, scale, a, b).unwrap().statistic.unwrap().value().unwrap();
        assert_eq!(statistic(0, Effect::Ratio, 2.0, 6.0), 3.0);
        assert_eq!(statistic(2, Effect::Ratio, 6.0, 2.0), 3.0);
        assert_eq!(statistic(0, Effect::Difference, 2.0, 6.0), 4.0);
        assert_eq!(statistic(2, Effect::Difference, 6.0, 2.0), 4.0);
    }

    #[test]
    fn only_equals_tie() {
        let seen = |a, b| versus(0, Effect::Ratio, a, b).unwrap();
        // The ratio of these rounds to 1 one way and not the other.
        let (less, more) = (2.0_f64.next_down().next_down(), 2.0_f64.next_down());
        assert_eq!((seen(less, more).tie, seen(less, more).success), (false, Some(true)));
        assert_eq!((seen(more, less).tie, seen(more, less).success), (false, Some(false)));
        assert!(seen(more, more).tie);
    }

    /// A time-out is above its limit, and no more is known.
    #[test]
    fn what_was_cut_off_says_no_more_than_it_saw() {
        let (stopped, took) = (Bounds::above(40.0), Bounds::exact(15.0));
        let success = |bound, scale, values| at_least(bound, 0, scale, values).unwrap().success;
        assert_eq!(success(1.0, Effect::Ratio, [took, stopped]), Some(true));
        assert_eq!(success(8.0, Effect::Ratio, [took, stopped]), None, "over 40 by 15");
        assert_eq!(success(1.0, Effect::Ratio, [stopped, took]), Some(false));
        assert_eq!(success(0.25, Effect::Ratio, [stopped, took]), None, "15 by over 40");
        assert_eq!(success(1.0, Effect::Ratio, [stopped, stopped]), None);
        assert_eq!(success(20.0, Effect::Difference, [took, stopped]), Some(true));
        assert_eq!(success(30.0, Effect::Difference, [took, stopped]), None);
        let tie = |values| at_least(1.0, 0, Effect::Ratio, values).unwrap().tie;
        assert!(tie([stopped, stopped]));
        assert!(!tie([stopped, Bounds::above(3.0)]) && !tie([Bounds::UNKNOWN; 2]), "cut off by something else");
    }

    #[test]
    fn what_can_not_be_compared_is_an_error() {
        for (candidate, baseline) in [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (-1.0, -1.0), (f64::NAN, 1.0)] {
            assert!(versus(0, Effect::Ratio, candidate, baseline).is_err(), "{candidate} {baseline}");
        }
        assert!(versus(0, Effect::Difference, 1.0, f64::NAN).is_err());
        assert!(versus(0, Effect::Difference, 0.0, -1.0).is_ok());
    }

    /// Who wins is asked of an order, which no ratio has to say.
    #[test]
    fn zeros_have_an_order_and_no_ratio() {
        let (zero, three, stopped) = (Bounds::exact(0.0), Bounds::exact(3.0), Bounds::above(3.0));
        let seen = |values: [Bounds; 2]| {
            let (candidate, baseline, bound) = (arm("a"), arm("b"), Bound::AtLeast(1.0));
            let test = Test::Versus { metric: 0, candidate, baseline, scale: Effect::Ratio, bound };
            let seen = evaluate_as(true, test, &values.map(|value| [value; 3]))?;
            Ok::<_, TargetError>((seen.success.filter(|_| !seen.tie), seen.tie, seen.statistic.unwrap().value()))
        };
        assert_eq!(seen([zero, zero]).unwrap(), (None, true, Some(1.0)));
        assert_eq!(seen([zero, three]).unwrap(), (Some(true), false, Some(f64::INFINITY)));
        assert_eq!(seen([three, zero]).unwrap(), (Some(false), false, Some(0.0)));
        assert_eq!(seen([zero, stopped]).unwrap(), (Some(true), false, Some(f64::INFINITY)));
        assert_eq!(seen([stopped, zero]).unwrap(), (Some(false), false, Some(0.0)));
        for lost in [[zero, Bounds::UNKNOWN], [Bounds::UNKNOWN, zero]] {
            assert_eq!(seen(lost).unwrap(), (None, false, None), "it could be zero as well");
        }
        assert!(seen([zero, Bounds::exact(-1.0)]).is_err());
        assert!(seen([zero, Bounds::NONE]).is_err());
    }

    #[test]
    fn exits_make_predicates_false() {
        let success = |text: &str, wall, exit| {
            let predicate = Predicate::parse(text, &spec().metrics).unwrap();
            evaluate(Test::Predicate { arm: arm("a"), predicate }, &[[wall, exit, Bounds::NONE]]).unwrap().success
        };
        let (five, zero, one) = (Bounds::exact(5.0), Bounds::exact(0.0), Bounds::exact(1.0));
        assert_eq!(success("wall <= 5 ns", five, zero), Some(true));
        assert_eq!(success("wall <= 5 ns", five, one), Some(false));
        assert_eq!(success("wall <= 5 ns and exit != 0", five, one), Some(true), "it speaks of the exit itself");
        assert_eq!(success("rate >= 1 /s", five, zero), Some(false), "not observed");
        // A time-out: the command had not ended, and was made to.
        let (stopped, killed) = (Bounds::above(5.0), Bounds::above(0.0));
        assert_eq!(success("wall <= 5 ns", stopped, killed), Some(false), "it did not succeed in its time");
        assert_eq!(success("wall <= 9 ns", stopped, killed), None, "it was not given the time");
        assert_eq!(success("wall >= 9 ns", stopped, killed), None);
        assert_eq!(success("exit == 0 and wall <= 9 ns", stopped, killed), None, "the same, said aloud");
        assert_eq!(success("exit == 0 and wall <= 5 ns", stopped, killed), Some(false));
        assert_eq!(success("exit == 0", stopped, killed), Some(false), "the limit is the time that there was");
        assert_eq!(success("exit != 0", stopped, killed), Some(false), "a time-out is no exit");
        // Ctrl-C: who knows how it would have ended?
        assert_eq!(success("wall <= 9 ns", stopped, Bounds::UNKNOWN), None);
        assert_eq!(success("wall <= 5 ns", stopped, Bounds::UNKNOWN), Some(false));
        assert_eq!(success("exit != 0", stopped, Bounds::UNKNOWN), None);
    }

    #[test]
    fn the_conditions_that_were_false_are_known() {
        let broken = |text: &str, wall, exit| {
            let predicate = Predicate::parse(text, &spec().metrics).unwrap();
            let test = Test::Predicate { arm: arm("a"), predicate };
            evaluate(test, &[[wall, exit, Bounds::NONE]]).unwrap().broken
        };
        let (five, zero, one) = (Bounds::exact(5.0), Bounds::exact(0.0), Bounds::exact(1.0));
        assert_eq!(
            broken("wall <= 5 ns and rate >= 1 /s", five, zero),
            0b100,
            "the exit that is not spoken of is first"
        );
        assert_eq!(broken("wall <= 4 ns", five, one), 0b11);
        assert_eq!(broken("wall <= 4 ns and exit == 0", five, one), 0b11);
        assert_eq!(broken("wall <= 4 ns and exit != 0", five, one), 0b1);
        let (stopped, killed) = (Bounds::above(5.0), Bounds::above(0.0));
        assert_eq!(broken("exit != 0", stopped, killed), 0b1, "a time-out is no exit");
        assert_eq!(
            broken("exit == 0 and wall <= 5 ns", stopped, killed),
            0b10,
            "given the time, who knows how it ends"
        );
    }
}
