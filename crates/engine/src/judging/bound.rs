//! The tests of a claim, with the positions of the values that they compare. They turn a trial's values into success or
//! failure.

use super::derived::DerivedValues;
use crate::block::Slots;
use crate::claim::{Bound, Claim, Effect, Judging, Measure, Test};
use crate::derived::DerivedMetric;
use crate::experiment::{Arm, Better, Spec, TargetError};
use crate::values::{Bounds, and};

/// The values of a trial: one for each arm and each metric. They are ordered by arm, and for each arm by metric. The
/// arms are those of the trial's lane, a group of arms that are measured together.
pub(crate) struct TrialValues<'a> {
    /// Index of the trial within the experiment.
    pub number: u64,
    pub values: &'a [Bounds],
    pub metrics: usize,
    /// The slots of the arms that this trial measured. A slot is the index of an arm in its lane.
    pub held: Slots,
    /// The slot of the arm that was measured last.
    pub last: Option<usize>,
    /// `true` if a signal cut the trial off. Some values were then never observed.
    pub is_interrupted: bool,
    /// Duration that the trial would have had if it had not been cut off, in nanoseconds; `None` if that is not known.
    pub whole_ns: Option<f64>,
}

/// The outcome of one trial for one claim.
pub(crate) struct TrialOutcome {
    /// `true` if every test was true; `None` if this is unknown because values were cut off.
    pub success: Option<bool>,
    /// `true` if a candidate was as good as its baseline. Two arms that reached the same time limit count as equally
    /// good.
    pub tie: bool,
    /// The ratio or difference of the claim's first comparison; `None` if the claim is not a comparison.
    pub statistic: Option<Bounds>,
    /// The value of the metric that the claim's predicate compares; `None` if it compares several metrics.
    pub value: Option<Bounds>,
    /// The conditions of predicates that were false, as bits. Bit i stands for the condition with index i in
    /// [`LaneTests::conditions`]. Only the first 64 conditions have a bit.
    pub broken: u64,
}

/// The tests of a claim. Each has the indices of its arms and metrics, so that it need not look these up in every
/// trial.
#[derive(Clone, Default)]
pub(crate) struct LaneTests {
    tests: Vec<(Test, Indices)>,
    /// `true` if the claim is only about which arm is better, and not about the size of the difference. In this case,
    /// values of zero are allowed.
    is_order: bool,
    /// The slots (indices in the lane) of all arms that the tests need.
    pub slots: Slots,
    /// The conditions of all predicates. Each is a pair: the metric's name, and the condition as users write it. If a
    /// predicate implies the condition `exit == 0`, that condition comes first.
    pub conditions: Vec<(String, String)>,
    /// The values of the claim's expression, if it has one.
    pub derived: Option<DerivedValues>,
}

/// The indices of the arms and metrics that a test reads.
#[derive(Clone)]
struct Indices {
    /// The slots (indices in the lane) of the arms. A comparison has the candidate and the baseline, in this order; a
    /// predicate has one arm.
    slots: Vec<usize>,
    /// The indices of the metrics: one for a comparison, or one for each condition of a predicate.
    metrics: Vec<usize>,
    /// The index of the metric `exit`, if the experiment has it.
    exit: Option<usize>,
    /// `true` if a predicate has a condition on the time.
    is_timed: bool,
}

impl Indices {
    fn new(test: &Test, spec: &Spec, slot_of: &impl Fn(&Arm) -> usize) -> Indices {
        // The value of an expression follows the metrics of the experiment.
        let derived = |measure: &Measure| (!measure.inputs.is_empty()).then_some(spec.metrics.len());
        let known = |measure: &Measure| spec.metric(&measure.metric).expect("claims are about known metrics");
        let metric = |measure: &Measure| derived(measure).unwrap_or_else(|| known(measure));
        let (metrics, is_timed) = match test {
            Test::Versus { measure, .. } => (vec![metric(measure)], false),
            Test::Predicate { conditions, .. } => {
                let is_timed = conditions.iter().any(|condition| condition.measure.recorded().contains(&"wall"));
                (conditions.iter().map(|condition| metric(&condition.measure)).collect(), is_timed)
            }
        };
        let slots = test.arms().into_iter().map(slot_of).collect();
        Indices { slots, metrics, exit: spec.metric("exit"), is_timed }
    }

    fn mention_exit(&self) -> bool {
        self.exit.is_some_and(|exit| self.metrics.contains(&exit))
    }

    /// Returns whether a predicate implies `exit == 0`, because no condition mentions the exit code.
    fn imply_exit(&self) -> bool {
        self.exit.is_some() && !self.mention_exit()
    }
}

fn conditions(test: &Test, indices: &Indices) -> Vec<(String, String)> {
    let Test::Predicate { conditions, .. } = test else { return Vec::new() };
    let implied = indices.imply_exit().then(|| ("exit".to_string(), "exit == 0".to_string()));
    let written = conditions.iter().map(|condition| (condition.measure.metric.clone(), condition.to_string()));
    implied.into_iter().chain(written).collect()
}

impl TrialValues<'_> {
    fn arm(&self, slot: usize) -> &[Bounds] {
        &self.values[slot * self.metrics..][..self.metrics]
    }
}

impl LaneTests {
    /// Looks up the arms and metrics of the claim's tests. `slot_of` returns the slot of an arm, its index in the lane.
    pub fn new(claim: &Claim, spec: &Spec, slot_of: impl Fn(&Arm) -> usize) -> LaneTests {
        let tests = claim.asked.tests.iter().map(|test| (test.clone(), Indices::new(test, spec, &slot_of)));
        let tests: Vec<(Test, Indices)> = tests.collect();
        let slots: Slots = tests.iter().flat_map(|(_, indices)| indices.slots.iter().copied()).collect();
        let expression = claim.asked.tests.iter().find_map(Test::expression);
        let derived = expression.and_then(|measure| DerivedMetric::new(&measure.metric, spec).ok());
        LaneTests {
            derived: derived.and_then(|metric| DerivedValues::new(metric, spec, slots.iter())),
            is_order: claim.asked.judging == Judging::Order,
            slots,
            conditions: tests.iter().flat_map(|(test, indices)| conditions(test, indices)).collect(),
            tests,
        }
    }

    /// Returns `true` if the trial measured the candidate last, and `false` if it measured the baseline last. Returns
    /// `None` if another arm was last, or if the claim is more than a single comparison.
    pub fn candidate_is_last(&self, trial: &TrialValues) -> Option<bool> {
        let [(Test::Versus { .. }, indices)] = self.tests.as_slice() else { return None };
        let last = trial.last.filter(|last| indices.slots.contains(last))?;
        Some(last == indices.slots[0])
    }

    /// Returns the values of the candidate and the baseline, and the direction that is better. Returns `None` if the
    /// claim is more than a single comparison, or if it has no values in this trial.
    pub fn pair(&self, trial: &TrialValues) -> Option<(Better, [Bounds; 2])> {
        let [(Test::Versus { measure, .. }, indices)] = self.tests.as_slice() else { return None };
        let is_here = trial.values.len() > indices.slots.iter().max()? * trial.metrics + indices.metrics[0];
        is_here.then(|| (measure.better, [0, 1].map(|side| trial.arm(indices.slots[side])[indices.metrics[0]])))
    }

    /// Applies the tests to a trial.
    ///
    /// # Errors
    /// If a value to compare is missing, or if the claim is about a ratio and a value is zero or negative.
    pub fn evaluate(&self, trial: &TrialValues) -> Result<TrialOutcome, TargetError> {
        let mut outcome = TrialOutcome { success: Some(true), tie: false, statistic: None, value: None, broken: 0 };
        let mut bit = 1_u64;
        for (test, indices) in &self.tests {
            match test {
                Test::Versus { measure, scale, bound, .. } => {
                    let [candidate, baseline] = [0, 1].map(|side| trial.arm(indices.slots[side])[indices.metrics[0]]);
                    let value = self.statistic(*scale, measure.better, candidate, baseline)?;
                    outcome.success = and(outcome.success, value.keeps_to(*bound));
                    outcome.tie |= candidate == baseline && candidate != Bounds::UNKNOWN;
                    outcome.statistic = outcome.statistic.or(Some(value));
                }
                Test::Predicate { conditions, .. } => {
                    let values = trial.arm(indices.slots[0]);
                    let exit = indices.exit.map(|exit| values[exit]);
                    let is_stopped = exit.is_some_and(|exit| exit.value().is_none() && exit != Bounds::UNKNOWN);
                    // The command was stopped at its time limit, so its exit code is not known. If the predicate has a
                    // condition on the wall time, only this condition can decide it, because it may allow more time
                    // than the limit. Otherwise a stopped command counts as failed.
                    let open = indices.exit.filter(|_| is_stopped && indices.is_timed);
                    let exit_is_fine = match exit {
                        None => Some(true),
                        Some(exit) if open.is_some() || exit == Bounds::UNKNOWN => None,
                        Some(_) if is_stopped => Some(false),
                        Some(_) if indices.mention_exit() => Some(true),
                        Some(exit) => exit.keeps_to(Bound::Within(0.0, 0.0)),
                    };
                    let implied = indices.imply_exit().then_some(exit_is_fine);
                    // A stopped command has no exit code, so a condition on the exit code is false.
                    let missing = indices.exit.filter(|_| is_stopped && exit_is_fine == Some(false));
                    let written = conditions.iter().zip(&indices.metrics).map(|(condition, &metric)| match metric {
                        metric if Some(metric) == missing => Some(false),
                        metric if Some(metric) == open => None,
                        metric => condition.is_true(values[metric]),
                    });
                    for is_true in implied.into_iter().chain(written) {
                        outcome.success = and(outcome.success, is_true);
                        outcome.broken |= if is_true == Some(false) { bit } else { 0 };
                        // Conditions after the 64th are judged but not counted.
                        bit <<= 1;
                    }
                    outcome.success = and(outcome.success, exit_is_fine);
                    let first = indices.metrics.first().copied();
                    let only = first.filter(|first| indices.metrics.iter().all(|metric| metric == first));
                    outcome.value = only.map(|metric| values[metric]);
                }
            }
        }
        Ok(outcome)
    }

    /// Returns the factor or the amount by which the candidate is better than the baseline. `scale` selects a ratio or
    /// a difference.
    fn statistic(
        &self,
        scale: Effect,
        better: Better,
        candidate: Bounds,
        baseline: Bounds,
    ) -> Result<Bounds, TargetError> {
        if candidate.is_none() || baseline.is_none() {
            return Err(TargetError::Failed("a value that the claim compares was not observed".into()));
        }
        let by_order = || self.is_order.then(|| order(better, candidate, baseline)).flatten();
        scale.compare(better, candidate, baseline).or_else(by_order).ok_or_else(|| {
            let (candidate, baseline) = (candidate.high, baseline.high);
            TargetError::Failed(format!(
                "the ratio of {candidate} and {baseline} is undefined; claim a difference instead"
            ))
        })
    }
}

/// Compares two values that may be zero. Returns a ratio that only shows which value is better: 1 for two zeros, and
/// zero or infinity for a single zero. Returns `None` if a value is negative.
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
        // A lost value could also be zero, so either value may be the better one.
        _ if worse.value().is_none() || best.value().is_none() => Some(ALL_OR_NOTHING),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Hypothesis;
    use crate::experiment::{Metric, Point};
    use crate::predicate::Predicate;
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

    fn evaluate(test: Test, rows: &[[Bounds; 3]]) -> Result<TrialOutcome, TargetError> {
        evaluate_as(false, test, rows)
    }

    fn evaluate_as(is_order: bool, test: Test, rows: &[[Bounds; 3]]) -> Result<TrialOutcome, TargetError> {
        let slot_of = |arm: &Arm| usize::from(arm.variant != "a");
        let judging = if is_order { Judging::Order } else { Judging::Rate };
        let claim = Claim::order("bound", &spec().metrics[0], &arm("a"), &arm("b"));
        let claim = Claim { asked: Hypothesis { tests: vec![test], judging, ..claim.asked.clone() }, ..claim };
        let tests = LaneTests::new(&claim, &spec(), slot_of);
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

    fn at_least(bound: f64, metric: usize, scale: Effect, values: [Bounds; 2]) -> Result<TrialOutcome, TargetError> {
        let (candidate, baseline) = (arm("a"), arm("b"));
        let measure = (&spec().metrics[metric]).into();
        let test = Test::Versus { measure, candidate, baseline, scale, bound: Bound::AtLeast(bound) };
        evaluate(test, &values.map(|value| [value; 3]))
    }

    fn versus(metric: usize, scale: Effect, candidate: f64, baseline: f64) -> Result<TrialOutcome, TargetError> {
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
        // The ratio of these numbers rounds to 1 in one direction only.
        let (less, more) = (2.0_f64.next_down().next_down(), 2.0_f64.next_down());
        assert_eq!((seen(less, more).tie, seen(less, more).success), (false, Some(true)));
        assert_eq!((seen(more, less).tie, seen(more, less).success), (false, Some(false)));
        assert!(seen(more, more).tie);
    }

    /// If a command reached its time limit, its time is only known to be above the limit.
    #[test]
    fn what_was_cut_off_says_no_more_than_it_saw() {
        let (stopped, took) = (Bounds::above(40.0), Bounds::exact(15.0));
        let success = |bound, scale, values| at_least(bound, 0, scale, values).unwrap().success;
        assert_eq!(success(1.0, Effect::Ratio, [took, stopped]), Some(true));
        assert_eq!(success(8.0, Effect::Ratio, [took, stopped]), None, "more than 40, divided by 15");
        assert_eq!(success(1.0, Effect::Ratio, [stopped, took]), Some(false));
        assert_eq!(success(0.25, Effect::Ratio, [stopped, took]), None, "15, divided by more than 40");
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

    /// A claim about which arm is better allows values of zero, although their ratio is meaningless.
    #[test]
    fn zeros_have_an_order_and_no_ratio() {
        let (zero, three, stopped) = (Bounds::exact(0.0), Bounds::exact(3.0), Bounds::above(3.0));
        let seen = |values: [Bounds; 2]| {
            let (candidate, baseline, bound) = (arm("a"), arm("b"), Bound::AtLeast(1.0));
            let measure = (&spec().metrics[0]).into();
            let test = Test::Versus { measure, candidate, baseline, scale: Effect::Ratio, bound };
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
            evaluate(Test::predicate(arm("a"), predicate), &[[wall, exit, Bounds::NONE]]).unwrap().success
        };
        let (five, zero, one) = (Bounds::exact(5.0), Bounds::exact(0.0), Bounds::exact(1.0));
        assert_eq!(success("wall <= 5 ns", five, zero), Some(true));
        assert_eq!(success("wall <= 5 ns", five, one), Some(false));
        assert_eq!(success("wall <= 5 ns and exit != 0", five, one), Some(true), "it mentions the exit code itself");
        assert_eq!(success("rate >= 1 /s", five, zero), Some(false), "not observed");
        // A time-out: the command was killed before it ended.
        let (stopped, killed) = (Bounds::above(5.0), Bounds::above(0.0));
        assert_eq!(success("wall <= 5 ns", stopped, killed), Some(false), "it did not succeed in its time");
        assert_eq!(success("wall <= 9 ns", stopped, killed), None, "its limit was shorter");
        assert_eq!(success("wall >= 9 ns", stopped, killed), None);
        assert_eq!(success("exit == 0 and wall <= 9 ns", stopped, killed), None, "the same, written explicitly");
        assert_eq!(success("exit == 0 and wall <= 5 ns", stopped, killed), Some(false));
        assert_eq!(
            success("exit == 0", stopped, killed),
            Some(false),
            "without a condition on the time, the limit counts"
        );
        assert_eq!(success("exit != 0", stopped, killed), Some(false), "a time-out has no exit code");
        // Ctrl-C: it is unknown how the command would have ended.
        assert_eq!(success("wall <= 9 ns", stopped, Bounds::UNKNOWN), None);
        assert_eq!(success("wall <= 5 ns", stopped, Bounds::UNKNOWN), Some(false));
        assert_eq!(success("exit != 0", stopped, Bounds::UNKNOWN), None);
    }

    #[test]
    fn the_conditions_that_were_false_are_known() {
        let broken = |text: &str, wall, exit| {
            let predicate = Predicate::parse(text, &spec().metrics).unwrap();
            let test = Test::predicate(arm("a"), predicate);
            evaluate(test, &[[wall, exit, Bounds::NONE]]).unwrap().broken
        };
        let (five, zero, one) = (Bounds::exact(5.0), Bounds::exact(0.0), Bounds::exact(1.0));
        assert_eq!(broken("wall <= 5 ns and rate >= 1 /s", five, zero), 0b100, "the implied exit code comes first");
        assert_eq!(broken("wall <= 4 ns", five, one), 0b11);
        assert_eq!(broken("wall <= 4 ns and exit == 0", five, one), 0b11);
        assert_eq!(broken("wall <= 4 ns and exit != 0", five, one), 0b1);
        let (stopped, killed) = (Bounds::above(5.0), Bounds::above(0.0));
        assert_eq!(broken("exit != 0", stopped, killed), 0b1, "a time-out has no exit code");
        assert_eq!(
            broken("exit == 0 and wall <= 5 ns", stopped, killed),
            0b10,
            "with more time, the result is not known"
        );
    }
}
