//! The values of a claim's expression, which are computed while trials are judged.

use std::convert::Infallible;
use std::sync::Arc;

use ascertain_streams::{Advance, Engine, EngineState, Evidence};

use super::bound::TrialValues;
use crate::derived::DerivedMetric;
use crate::experiment::Spec;
use crate::unit::Unit;
use crate::values::Bounds;

/// Computes the values of an expression for each arm of a claim. A value takes the place of a further metric, after the
/// metrics of the experiment.
#[derive(Clone)]
pub(super) struct DerivedValues {
    metric: Arc<DerivedMetric>,
    /// For each series of the plan, whether its values can be negative.
    can_be_negative: Arc<[bool]>,
    arms: Vec<ArmState>,
    exit: Option<usize>,
    /// For each arm of the lane, the values of its metrics and the derived value.
    values: Vec<Bounds>,
}

/// The state of an arm since its last derived value.
#[derive(Clone)]
struct ArmState {
    slot: usize,
    state: Option<EngineState>,
    /// The exit code of a trial that failed, if any has.
    exit: Option<Bounds>,
    /// `true` if a trial lacked a metric of the expression.
    is_missing: bool,
}

impl DerivedValues {
    /// Allocates the state of an expression for the arms in these slots. Returns `None` if there is no memory for it.
    pub fn new(metric: DerivedMetric, spec: &Spec, slots: impl Iterator<Item = usize>) -> Option<DerivedValues> {
        let metric = Arc::new(metric);
        let state = Engine::new(&metric.plan).ok()?.pause();
        let arm = |slot| ArmState { slot, state: Some(state.clone()), exit: None, is_missing: false };
        let can_be_negative = metric.inputs.iter().map(|input| spec.metrics[*input].unit == Unit::One).collect();
        let (arms, exit) = (slots.map(arm).collect(), spec.metric("exit"));
        Some(DerivedValues { metric, can_be_negative, arms, exit, values: Vec::new() })
    }

    /// Returns the number of trials for each value; `None` if `where` selects trials.
    pub fn trials_per_value(&self) -> Option<u64> {
        self.metric.trials_per_value()
    }

    /// Adds the values of a trial. Returns whether every arm now has a derived value.
    pub fn advance(&mut self, trial: &TrialValues) -> bool {
        let width = trial.metrics + 1;
        self.values.clear();
        self.values.resize(trial.values.len() / trial.metrics.max(1) * width, Bounds::NONE);
        let mut is_ready = true;
        for arm in &mut self.arms {
            let row = &trial.values[arm.slot * trial.metrics..][..trial.metrics];
            let derived = arm.advance(&self.metric, &self.can_be_negative, row, self.exit);
            let Some(derived) = derived else {
                is_ready = false;
                continue;
            };
            let values = &mut self.values[arm.slot * width..][..width];
            values[..trial.metrics].copy_from_slice(row);
            values[trial.metrics] = derived;
            if let (Some(exit), Some(failed)) = (self.exit, arm.exit.take()) {
                values[exit] = failed;
            }
        }
        is_ready
    }

    /// Returns the trial with the derived values of its arms.
    pub fn values<'a>(&'a self, trial: &TrialValues) -> TrialValues<'a> {
        let TrialValues { number, metrics, held, is_interrupted, whole_ns, .. } = *trial;
        TrialValues { number, values: &self.values, metrics: metrics + 1, held, last: None, is_interrupted, whole_ns }
    }
}

impl ArmState {
    /// Adds the values of a trial. Returns the derived value, if there is one.
    fn advance(
        &mut self,
        metric: &DerivedMetric,
        can_be_negative: &[bool],
        row: &[Bounds],
        exit: Option<usize>,
    ) -> Option<Bounds> {
        let inputs = || metric.inputs.iter().map(|input| row[*input]);
        self.is_missing |= inputs().any(Bounds::is_none);
        if let Some(exit) = exit.map(|exit| row[exit]).filter(|exit| exit.value() != Some(0.0)) {
            // A known exit code decides more than one that was cut off.
            self.exit = self.exit.filter(|known| known.value().is_some() || exit.value().is_none()).or(Some(exit));
        }
        let range = |(value, can_be_negative): (Bounds, &bool)| {
            let low = if *can_be_negative || value.is_none() { value.low } else { value.low.max(0.0) };
            [low, value.high]
        };
        let ranges = inputs().zip(can_be_negative).map(range).collect();
        let mut trial = OneTrial { inputs: &metric.inputs, ranges, is_read: false };
        let mut engine = Engine::resume(&metric.plan, self.state.take()?);
        let undecided = engine.undecided();
        let mut derived = None;
        let is_done = engine.run(&mut trial, |results| {
            derived =
                results.lows.last().zip(results.highs.last()).map(|(low, high)| Bounds { low: *low, high: *high });
            true
        });
        if engine.undecided() > undecided {
            // It is unknown whether `where` selects this trial.
            derived = Some(Bounds::UNKNOWN);
        }
        self.state = Some(engine.pause());
        let derived = derived.filter(|_| is_done.is_ok())?;
        let is_missing = std::mem::take(&mut self.is_missing) || derived.low.is_nan() || derived.high.is_nan();
        Some(if is_missing { Bounds::NONE } else { derived })
    }
}

/// The values of one trial: the index of each metric that the plan reads, and the range of its value.
struct OneTrial<'a> {
    inputs: &'a [usize],
    ranges: Vec<[f64; 2]>,
    is_read: bool,
}

impl Evidence for OneTrial<'_> {
    type Error = Infallible;

    fn advance(&mut self, _reading: usize, _clock: Option<usize>, _most: usize) -> Result<Advance, Infallible> {
        let observations = usize::from(!std::mem::replace(&mut self.is_read, true));
        Ok(Advance { clock: 0, observations })
    }

    fn fill(&self, _reading: usize, series: usize, lows: &mut [f64], highs: &mut [f64]) {
        let place = self.inputs.iter().position(|input| *input == series);
        let Some([low, high]) = place.and_then(|place| self.ranges.get(place)) else { return };
        lows.fill(*low);
        highs.fill(*high);
    }

    fn fill_times(&self, _reading: usize, times: &mut [f64]) {
        times.fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::{Claim, Hypothesis, Judging, Test};
    use crate::experiment::{Arm, Better, Metric, Point};
    use crate::judging::ClaimJudge;
    use crate::outcome::Verdict;
    use crate::plan::Config;
    use crate::predicate::Predicate;

    fn spec() -> Spec {
        let metric = |name: &str, unit| Metric::new(name, "", unit, Better::Lower);
        let metrics = vec![metric("wall", Unit::Nanosecond), metric("exit", Unit::One)];
        Spec { id: "derived".into(), metrics, ..Spec::default() }
    }

    fn judge(text: &str, max_trials: Option<u64>) -> ClaimJudge {
        let spec = spec();
        let expression = *Predicate::subjects(text).last().unwrap();
        let derived = DerivedMetric::new(expression, &spec).unwrap();
        let metrics: Vec<Metric> = spec.metrics.iter().cloned().chain([derived.metric(expression)]).collect();
        let mut predicate = Predicate::parse(text, &metrics).unwrap();
        let is_derived = |condition: &&mut crate::predicate::Condition| condition.measure.metric == expression;
        predicate.0.iter_mut().filter(is_derived).for_each(|one| one.measure = derived.measure(expression, &spec));
        let arm = Arm { variant: "a".into(), point: Point::default() };
        let asked = Hypothesis { judging: Judging::Rate, margin: None, tests: vec![Test::predicate(arm, predicate)] };
        let any = Claim::in_half("derived", "d".into(), "d".into(), asked.tests[0].clone());
        let claim = Claim { asked, max_trials, ..any };
        let mut judge = ClaimJudge::new(&claim, &spec, &Config::default(), None).unwrap();
        judge.bind(&spec, |_| 0);
        judge
    }

    fn observe(judge: &mut ClaimJudge, trials: &[[Bounds; 2]]) {
        for (number, values) in trials.iter().enumerate() {
            let (number, held, last) = (number as u64, (0..1).collect(), Some(0));
            let trial =
                TrialValues { number, values, metrics: 2, held, last, is_interrupted: false, whole_ns: Some(2.0) };
            judge.observe(&trial, 2);
        }
    }

    /// Returns the counts of outcomes, of successes, and of unknown outcomes.
    fn outcomes(text: &str, trials: &[[Bounds; 2]]) -> (u64, u64, u64) {
        let mut judge = judge(text, None);
        observe(&mut judge, trials);
        let result = judge.result();
        (result.trials, result.successes, result.unknown)
    }

    fn walls(walls: &[f64]) -> Vec<[Bounds; 2]> {
        walls.iter().map(|wall| [Bounds::exact(*wall), Bounds::exact(0.0)]).collect()
    }

    #[test]
    fn each_value_is_one_outcome() {
        let trials = walls(&[1.0, 3.0, 5.0, 7.0, 2.0, 2.0, 9.0]);
        assert_eq!(
            outcomes("mean(window(wall, 2)) <= 3 ns", &trials),
            (3, 2, 0),
            "means 2, 6, 2; the last is not whole"
        );
        assert_eq!(outcomes("every(wall, 3) <= 3 ns", &trials), (3, 1, 0), "1, 7 and 9");
        assert_eq!(outcomes("wall / 1 ns <= 3", &trials), (7, 4, 0));
        assert_eq!(outcomes("where(wall, wall > 3 ns) <= 6 ns", &trials), (3, 1, 0), "5, 7 and 9");
    }

    #[test]
    fn a_trial_that_fails_or_is_cut_off_is_not_hidden_by_its_window() {
        let fine = [Bounds::exact(1.0), Bounds::exact(0.0)];
        let failed = [Bounds::exact(1.0), Bounds::exact(1.0)];
        let lost = [Bounds::UNKNOWN; 2];
        let missing = [Bounds::NONE, Bounds::exact(0.0)];
        let text = "mean(window(wall, 2)) <= 3 ns";
        assert_eq!(outcomes(text, &[failed, fine, fine, fine]), (2, 1, 0), "the first trial failed");
        assert_eq!(outcomes("exit >= 0 and mean(window(wall, 2)) <= 3 ns", &[failed, fine]), (1, 1, 0));
        assert_eq!(outcomes(text, &[lost, fine, fine, fine]), (2, 1, 1), "the mean may be above");
        assert_eq!(outcomes("min(window(wall, 2)) > 3 ns", &[lost, fine]), (1, 0, 0), "one value decides");
        assert_eq!(outcomes(text, &[missing, fine, fine, fine]), (2, 1, 0), "not observed");
        assert_eq!(outcomes("where(wall, wall > 3 ns) <= 6 ns", &[lost, fine]), (1, 0, 1), "it may be selected");
    }

    #[test]
    fn limits_and_predictions_count_measured_trials() {
        let text = "mean(window(wall, 2)) <= 3 ns";
        let (plain, derived) = (judge("wall / 1 ns <= 3", None), judge(text, None));
        assert_eq!(derived.soonest_verdict(), 2 * plain.soonest_verdict());
        let mut judged = judge(text, None);
        observe(&mut judged, &walls(&[1.0]).repeat(derived.soonest_verdict() as usize - 1));
        assert_eq!(judged.verdict().0, Verdict::Undecided);
        observe(&mut judged, &walls(&[1.0]));
        assert_eq!(judged.verdict().0, Verdict::Holds);
        let mut limited = judge(text, Some(5));
        observe(&mut limited, &walls(&[1.0; 20]));
        let result = limited.result();
        assert_eq!((result.trials, result.elapsed_ns), (2, 10));
    }
}
