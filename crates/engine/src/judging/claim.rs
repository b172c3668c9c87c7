//! The judge of one claim. It turns the outcomes of trials into a verdict and an interval.

use ascertain_stats::{RateSequence, Tally};

use super::bound::{LaneTests, TrialOutcome, TrialValues};
use super::diagnostics::Diagnostics;
use super::rule::{Answer, Outcomes, PairedStatistic, Rule};
use super::tails::Tails;
use crate::block::Slots;
use crate::claim::{Claim, Effect, Hypothesis, Judging, Test};
use crate::error::Error;
use crate::experiment::{Arm, Spec};
use crate::finding::{Estimated, Reason, Unavailable, Unlike};
use crate::outcome::{Broken, ClaimResult, Decided, Decision, Gate, Verdict};
use crate::plan::Config;
use crate::recorded::{ClaimPath, PathRecorder};
use crate::run::Standing;
use crate::values::Bounds;

/// The state of a claim while it is judged.
#[derive(Clone)]
pub(crate) struct ClaimJudge {
    pub claim: Claim,
    emulated: Option<String>,
    asked: Hypothesis,
    error: f64,
    easier: Option<(f64, f64)>,
    most_trials: Option<u64>,
    precision: Option<f64>,
    /// `true` if the claim stays open until its confidence interval is precise enough. This setting does not change the
    /// trials after which the interval is updated. Judging the recorded trials again therefore gives the same interval,
    /// even if the setting differs.
    is_precision_awaited: bool,
    tests: LaneTests,
    rule: Rule,
    /// The first answer, with the counts of the trials that led to it. Later answers do not replace it.
    answer: Option<(Answer, Decided)>,
    /// `true` if the claim stays open after it has an answer, so that more trials are measured for it.
    to_the_end: bool,
    /// `true` if a claim with an answer also counts trials that are measured for other claims or for a table. This is
    /// the case if the run waits for precise medians or intervals. Evidence does not record when that wait ends. If a
    /// claim stopped counting at that moment, judging the recorded trials again would give another result.
    counts_all: bool,
    /// Number of trials that were measured for the claim. It differs from `trials` if the claim is about an expression
    /// that has one value for several trials.
    measured: u64,
    /// Number of judged trials after which the claim ends.
    most_judged: Option<u64>,
    trials: u64,
    successes: u64,
    ties: u64,
    /// Number of trials with an unknown outcome, because values were cut off.
    unknown: u64,
    /// `true` if some of the unknown outcomes are due to a time limit.
    has_met_limit: bool,
    /// Number of ties in which both arms reached the time limit.
    stopped_ties: u64,
    /// Outcomes of the latest trials, which are not evaluated yet. Trials are evaluated in sets of
    /// [`Claim::look_every`] trials, and the latest set is incomplete.
    unseen: Outcomes,
    paired: Option<PairedStatistic>,
    rate: RateSequence,
    diagnostics: Diagnostics,
    /// For each condition of the predicates, the number of trials in which it was false.
    broken: Vec<u64>,
    /// Number of counted trials at which the intervals are next updated.
    next_look: u64,
    elapsed_ns: u64,
    /// Number of trials whose duration is known, and the sum of their durations in nanoseconds.
    timed: (u64, f64),
    closed: Option<ClosedReason>,
    path: Option<PathRecorder>,
    /// Judges of the additional comparisons, which compare the same arms by other metrics.
    counters: Vec<ClaimJudge>,
    tails: Tails,
}

/// The reason for closing a claim, other than its answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ClosedReason {
    NotJudged(Reason),
    /// The claim has reached its own limit of trials or time.
    BudgetExhausted,
}

impl ClaimJudge {
    /// Returns the judge of a claim before its first trial. `config` has the claim's share of the run's error. `easier`
    /// has a higher error for the run, and the claim's share of that error. The result uses `easier` for a hint to the
    /// user: the number of trials that would be enough at the higher error.
    pub fn new(claim: &Claim, spec: &Spec, config: &Config, easier: Option<(f64, f64)>) -> Result<ClaimJudge, Error> {
        let invalid = |reason| Error::Claim { id: claim.id.clone(), reason };
        // The comparison and each of its tails have the same share of the claim's error.
        let questions = 1.0 + claim.tails.len() as f64;
        let config = &Config { error: config.error / questions, ..config.clone() };
        let easier = easier.map(|(run, own)| (run, own / questions));
        let error = config.error;
        let end_error = direction_error(claim, error);
        let asked = Hypothesis { margin: claim.asked.margin.or(config.margin), ..claim.asked.clone() };
        // A predicate on a deterministic metric has an estimate too: the single value of the metric.
        let is_value = matches!((asked.judging, asked.tests.as_slice()), (Judging::Exact, [Test::Predicate { .. }]));
        let quantile = asked.quantile(claim.rate).or(is_value.then_some(0.5));
        // The additional comparisons count every trial of this claim, even trials after its answer.
        let besides = Config { margin: None, precision: None, gate: None, until_time_is_up: true, ..config.clone() };
        let asked_alone = Hypothesis { margin: None, ..claim.asked.clone() };
        let alone =
            Claim { asked: asked_alone, max_time: None, max_trials: None, counters: Vec::new(), ..claim.clone() };
        let alone = Claim { tails: Vec::new(), ..alone };
        let counter = |&metric: &usize| ClaimJudge::new(&alone.clone().by(&spec.metrics[metric]), spec, &besides, None);
        Ok(ClaimJudge {
            counters: claim.counters.iter().map(counter).collect::<Result<_, _>>()?,
            tails: Tails::new(&claim.tails, error).map_err(invalid)?,
            rule: Rule::new(claim, config).map_err(invalid)?,
            paired: quantile.map(|quantile| PairedStatistic::new(quantile, end_error, end_error)),
            rate: RateSequence::new(end_error, end_error).map_err(invalid)?,
            claim: claim.clone(),
            emulated: asked.tests.iter().flat_map(Test::arms).find_map(|arm| spec.emulated(arm)).map(str::to_string),
            asked,
            error,
            easier,
            most_trials: config.most_trials().into_iter().chain(claim.max_trials).min(),
            precision: config.precision,
            is_precision_awaited: config.precision.is_some(),
            tests: LaneTests::default(),
            answer: None,
            to_the_end: config.exact_trials.is_some() || config.until_time_is_up,
            counts_all: config.precision.is_some()
                || config.precision_time.is_some()
                || config.median_precision.is_some(),
            measured: 0,
            most_judged: None,
            trials: 0,
            successes: 0,
            ties: 0,
            unknown: 0,
            broken: Vec::new(),
            has_met_limit: false,
            stopped_ties: 0,
            unseen: Outcomes::default(),
            diagnostics: Diagnostics::default(),
            next_look: 1,
            elapsed_ns: 0,
            timed: (0, 0.0),
            closed: None,
            path: None,
        })
    }

    /// Starts to record the claim's path to its verdict: its outcomes and e-values, trial by trial.
    pub fn keep_path(&mut self) {
        let log_threshold = -direction_error(&self.claim, self.error).ln();
        self.path = Some(PathRecorder::new(log_threshold, log_threshold));
    }

    /// Looks up the arms and metrics of the claim's tests. `slot_of` returns the slot of an arm, its index in the lane.
    pub fn bind(&mut self, spec: &Spec, slot_of: impl Fn(&Arm) -> usize) {
        self.tests = LaneTests::new(&self.claim, spec, &slot_of);
        if self.tests.derived.is_none() && self.asked.tests.iter().any(|test| test.expression().is_some()) {
            self.close(ClosedReason::NotJudged(self.not_observed()));
        }
        self.broken.resize(self.tests.conditions.len(), 0);
        self.counters.iter_mut().for_each(|counter| counter.tests = LaneTests::new(&counter.claim, spec, &slot_of));
    }

    /// Closes each additional comparison for which `why` returns a reason, such as a metric that the machine cannot
    /// observe.
    pub fn close_counters(&mut self, why: impl Fn(&Claim) -> Option<Reason>) {
        for counter in &mut self.counters {
            why(&counter.claim).into_iter().for_each(|reason| counter.close(ClosedReason::NotJudged(reason)));
        }
    }

    /// Returns the slots (indices in the lane) of the arms that a trial must contain to count for this claim.
    pub fn slots(&self) -> Slots {
        self.tests.slots
    }

    /// Counts a trial that took `elapsed_ns`. Ignores a trial that lacks an arm of the claim. Ignores every trial if
    /// the claim counts no more trials.
    pub fn observe(&mut self, trial: &TrialValues, elapsed_ns: u64) {
        let counts = if self.counts_all { self.closed.is_none() } else { self.is_open() };
        if !counts || !trial.held.contains(self.slots()) {
            return;
        }
        for counter in self.counters.iter_mut().filter(|counter| counter.closed.is_none()) {
            match counter.tests.evaluate(trial) {
                Ok(seen) => counter.count(&seen, trial, elapsed_ns),
                Err(_) => counter.close(ClosedReason::NotJudged(counter.not_observed())),
            }
        }
        match self.tests.derived.take() {
            None => self.evaluate(trial, elapsed_ns),
            Some(mut derived) => {
                match derived.advance(trial) {
                    true => self.evaluate(&derived.values(trial), elapsed_ns),
                    false => self.add_time(trial, elapsed_ns),
                }
                self.tests.derived = Some(derived);
            }
        }
        self.close_if_exhausted();
    }

    fn evaluate(&mut self, trial: &TrialValues, elapsed_ns: u64) {
        match self.tests.evaluate(trial) {
            Ok(seen) => self.count(&seen, trial, elapsed_ns),
            Err(error) => self.close(ClosedReason::NotJudged(error.reason(None))),
        }
    }

    fn add_time(&mut self, trial: &TrialValues, elapsed_ns: u64) {
        self.measured += 1;
        self.elapsed_ns += elapsed_ns;
        if let Some(whole_ns) = trial.whole_ns {
            self.timed = (self.timed.0 + 1, self.timed.1 + whole_ns);
        }
    }

    /// Returns the reason to report if a trial cannot be judged, because a value is missing.
    fn not_observed(&self) -> Reason {
        let metric = match self.asked.tests.as_slice() {
            [Test::Versus { measure, .. }, ..] => measure.metric.clone(),
            _ => self.claim.id.clone(),
        };
        Reason::Unavailable { arm: None, lack: Unavailable::Metric { metric } }
    }

    fn count(&mut self, seen: &TrialOutcome, trial: &TrialValues, elapsed_ns: u64) {
        self.trials += 1;
        self.add_time(trial, elapsed_ns);
        if let (Some(paired), Some(value)) = (&mut self.paired, seen.statistic.or(seen.value)) {
            paired.push(value);
        }
        for (bit, count) in self.broken.iter_mut().enumerate().take(64).filter(|_| seen.broken != 0) {
            *count += seen.broken >> bit & 1;
        }
        let is_order = self.asked.judging == Judging::Order;
        let is_tie = is_order && seen.tie;
        // The test assumes that a pair with a difference of a given size is won by either arm at random. A user who
        // interrupts a pair determines this size, and may already know the winner. So the outcome counts as unknown.
        let is_known =
            !(is_order && trial.is_interrupted && seen.statistic.is_some_and(|ratio| ratio.value().is_none()));
        let success = seen.success.filter(|_| is_known);
        match success {
            _ if is_tie => {
                self.ties += 1;
                self.stopped_ties += u64::from(seen.statistic.is_some_and(|ratio| ratio.value().is_none()));
            }
            None => {
                self.unknown += 1;
                self.has_met_limit |= !trial.is_interrupted;
            }
            Some(success) => {
                self.successes += u64::from(success);
                self.diagnostics.push(success);
            }
        }
        self.diagnostics.end_trial(self.tests.candidate_is_last(trial));
        if let Some((better, pair)) = self.tests.pair(trial) {
            self.tails.observe(better, pair, trial.is_interrupted);
        }
        if !is_tie {
            self.judge(success, seen.statistic);
        }
        if self.look_is_due() {
            self.look();
        } else if self.awaits_pairs() {
            self.look_at_pairs();
        }
        if let Some(path) = &mut self.path {
            path.count(trial.number, success.filter(|_| !is_tie), seen.statistic);
            if self.unseen.trials() == 0 {
                path.look(self.answer.is_some(), || self.rule.log_e());
            }
        }
    }

    fn judge(&mut self, success: Option<bool>, ratio: Option<Bounds>) {
        match success {
            Some(success) => self.unseen.known.add(success),
            None => self.unseen.unknown += 1,
        }
        if self.unseen.trials() < self.claim.look_every {
            return;
        }
        let answer = self.rule.observe(std::mem::take(&mut self.unseen), ratio);
        if let (Some(answer), None) = (answer, self.answer) {
            self.decide(answer);
            self.look();
        }
    }

    /// Stores the answer, with the counts of the trials so far.
    fn decide(&mut self, answer: Answer) {
        let Outcomes { known, unknown } = self.seen();
        let (trials, successes) = (known.trials + unknown + self.ties, known.successes);
        self.answer = Some((answer, Decided { trials, successes, ties: self.ties, unknown }));
    }

    /// Returns whether to update the intervals now. They are updated after each of the first twenty trials, and later
    /// whenever the number of trials has grown by a twentieth. More frequent updates would slow down runs whose trials
    /// take only microseconds.
    fn look_is_due(&self) -> bool {
        self.trials >= self.next_look
    }

    /// Returns whether to update the interval of the paired statistic (the ratios or differences) after every trial.
    /// The result is `true` for the first hundred trials, if an answer or a precision depends on the interval.
    fn awaits_pairs(&self) -> bool {
        self.trials <= 100 && (self.precision.is_some() || matches!(self.rule, Rule::OrderWithin(..)))
    }

    /// Updates all intervals.
    pub fn look(&mut self) {
        self.next_look = self.trials + 1 + self.trials / 20;
        let Outcomes { known, unknown } = self.seen();
        self.rate.update_with_unknown(known, unknown);
        self.look_at_pairs();
    }

    fn look_at_pairs(&mut self) {
        let Some(paired) = &mut self.paired else { return };
        paired.look();
        if self.answer.is_none()
            && !paired.is_empty()
            && let Some(answer) = self.rule.read(paired.interval())
        {
            self.decide(answer);
        }
    }

    /// Omits all updates of intervals on which no verdict depends. This makes tests of verdicts ten times as fast.
    #[cfg(test)]
    pub fn look_at_the_end(&mut self) {
        self.next_look = u64::MAX;
    }

    /// Returns the outcomes of all trials that have been evaluated, except ties.
    pub(super) fn seen(&self) -> Outcomes {
        let known = Tally { trials: self.trials - self.ties - self.unknown, successes: self.successes };
        let Outcomes { known: unseen, unknown } = self.unseen;
        Outcomes {
            known: Tally { trials: known.trials - unseen.trials, successes: known.successes - unseen.successes },
            unknown: self.unknown - unknown,
        }
    }

    /// Returns whether more trials could still change the result of the claim or of its tails.
    pub fn is_open(&self) -> bool {
        if self.closed.is_some() {
            return false;
        }
        let precise = match (&self.paired, self.precision) {
            (Some(paired), Some(wanted)) if self.is_precision_awaited => paired.precision() <= wanted,
            _ => true,
        };
        self.to_the_end || self.answer.is_none() || !precise || self.tails.are_open()
    }

    /// Returns whether the claim was closed for a reason other than its answer.
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Stops waiting for a precise interval. From now on, an answer is enough to end the claim.
    pub fn forgo_precision(&mut self) {
        self.is_precision_awaited = false;
    }

    /// Closes the claim, unless it is closed already. An answer that was reached before stays valid.
    pub fn close(&mut self, why: ClosedReason) {
        self.closed.get_or_insert(why);
    }

    /// Closes the claim because an arm computes a wrong result. The claim's answer is withdrawn, because the arm did
    /// not do the required work.
    pub fn disqualify(&mut self, reason: Reason) {
        self.answer = None;
        self.closed = Some(ClosedReason::NotJudged(reason));
    }
}

/// Returns the error probability of each verdict, "holds" or "refuted". In a claim about a rate, only one verdict can
/// be wrong, whatever the true rate is, so each gets the full error probability. In a comparison of two equally fast
/// arms, both answers are wrong, so each gets half of the error probability.
fn direction_error(claim: &Claim, error: f64) -> f64 {
    if claim.asked.judging == Judging::Order { error / 2.0 } else { error }
}

/// Returns the largest distance from 1 that a ratio in the interval from `low` to `high` can have. Returns `None` if
/// the interval excludes 1, or has no width because all trials are ties. Also returns `None` if the distance is 50 % or
/// more, because such a bound is of little use.
fn difference_below(low: f64, high: f64) -> Option<f64> {
    let most = high.max(low.recip()) - 1.0;
    (low <= 1.0 && high >= 1.0 && most > 0.0 && most < 0.5).then_some(most)
}

/// An estimated quantile of the paired statistic (the ratios or differences), and those bounds of its interval that are
/// known.
struct PairedEstimate {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    /// `true` if the estimate is outside its interval. The interval is then not valid.
    strays: bool,
}

impl ClaimJudge {
    /// Returns the state of the claim, for progress reports.
    pub fn standing(&self) -> Standing {
        let Outcomes { known, unknown } = self.seen();
        let (is_ratio, measure) = match self.asked.tests.as_slice() {
            [Test::Versus { scale, measure, .. }] => (*scale == Effect::Ratio, Some(measure)),
            [Test::Predicate { measure, .. }] => (false, measure.as_ref()),
            _ => (false, None),
        };
        Standing {
            judging: self.asked.judging,
            trials: known.trials + unknown,
            successes: known.successes,
            failures: known.trials - known.successes,
            estimate: self.paired.as_ref().and_then(PairedStatistic::estimate).and_then(Bounds::estimate),
            is_ratio,
            unit: measure.map(|measure| measure.unit),
        }
    }

    /// Returns the result of the claim from the trials so far.
    pub fn result(&mut self) -> ClaimResult {
        if self.trials > 0 {
            self.look();
        }
        let Outcomes { known, unknown } = self.seen();
        let is_rate = !matches!(self.rule, Rule::Exact) && known.trials > 0;
        // Trials with an unknown outcome do not count as successes.
        let counted = (known.trials + unknown) as f64;
        let rate = (known.trials > 0).then(|| known.successes as f64 / counted);
        let rates = Some(self.rate.interval()).filter(|rates| is_rate && !rates.is_empty());
        let rate_strays = rates.zip(rate).is_some_and(|(rates, rate)| rate < rates.low || rate > rates.high);
        let rates = rates.filter(|_| !rate_strays);
        let estimate = self.estimate();
        let (log_e_holds, log_e_refuted) = self.rule.log_e().unzip();
        let (verdict, reasons) = self.verdict();
        let decision = (self.asked.judging == Judging::Order).then(|| self.decision());
        let (ratio_min, ratio_max) = self.paired.as_ref().and_then(PairedStatistic::extremes).unzip();
        let unlike = self.unlike(rate_strays, estimate.strays);
        let is_decided = matches!(verdict, Verdict::Holds | Verdict::Refuted);
        let drifts = |sign: &Unlike| matches!(sign, Unlike::Drifts { .. });
        ClaimResult {
            id: self.claim.id.clone(),
            says: self.claim.says.clone(),
            source: self.claim.source.clone(),
            source_value: self.claim.source_value.clone(),
            experiment: self.claim.experiment.clone(),
            emulated: self.emulated.clone(),
            asked: self.asked.clone(),
            verdict,
            reasons,
            decision,
            trials: known.trials + unknown + self.ties,
            successes: known.successes,
            ties: self.ties,
            unknown,
            decided: self.answer.map(|(_, decided)| decided),
            basis: self.standing_answer().and(self.rule.basis()),
            interferes: self.asked.judging == Judging::Order && self.diagnostics.interference().is_some(),
            undiagnosed: self.asked.judging != Judging::Exact && self.trials > 0 && self.diagnostics.has_too_few(),
            elapsed_ns: self.elapsed_ns,
            rate,
            rate_low: rates.map(|rates| rates.low),
            rate_high: rates.map(|rates| rates.high),
            rate_claimed: self.claim.rate,
            error: self.error,
            ratio: estimate.value,
            ratio_low: estimate.low,
            ratio_high: estimate.high,
            ratio_min,
            ratio_max,
            difference_below: decision
                .filter(|decision| *decision == Decision::Undecided)
                // With a margin, the question is not whether there is any difference. After a withdrawn answer, some
                // trials did show a difference. In both cases there is no statement on how small the difference is.
                .filter(|_| self.asked.margin.is_none() && self.answer.is_none())
                .and_then(|_| difference_below(estimate.low?, estimate.high?)),
            log_e_holds,
            log_e_refuted,
            drifted: is_decided && self.asked.judging == Judging::Rate && unlike.iter().any(drifts),
            unlike,
            median: None,
            broken: self.broken(),
            // If the target failed, other metrics are not compared either.
            counters: match verdict {
                Verdict::Failed => Vec::new(),
                _ => self.counters.iter_mut().map(ClaimJudge::result).collect(),
            },
            tails: match (verdict, self.asked.tests.as_slice()) {
                (Verdict::Failed, _) => Vec::new(),
                (_, [Test::Versus { measure, .. }]) => self.tails.results(measure.better),
                _ => Vec::new(),
            },
            tail_hint: None,
        }
    }

    /// Returns the conditions that were false at least once.
    fn broken(&self) -> Vec<Broken> {
        let counted = self.tests.conditions.iter().zip(&self.broken).filter(|(_, trials)| **trials > 0);
        let broken = counted.map(|((metric, condition), &trials)| Broken {
            condition: condition.clone(),
            metric: metric.clone(),
            trials,
        });
        broken.collect()
    }

    fn estimate(&self) -> PairedEstimate {
        let finite = |value: f64| value.is_finite().then_some(value);
        let value =
            self.paired.as_ref().and_then(PairedStatistic::estimate).and_then(Bounds::estimate).and_then(finite);
        let interval = self.paired.as_ref().filter(|paired| !paired.is_empty()).map(PairedStatistic::interval);
        let (low, high) = interval.map_or((None, None), |(low, high)| (finite(low), finite(high)));
        // The interval is the intersection of the intervals at all updates. The estimate may leave it if the trials
        // change in the course of time.
        let strays =
            value.is_some_and(|value| low.is_some_and(|low| value < low) || high.is_some_and(|high| value > high));
        let (low, high) = if strays { (None, None) } else { (low, high) };
        PairedEstimate { value, low, high, strays }
    }

    /// Returns signs that the trials are not alike, for example that their rate changes in the course of the run.
    fn unlike(&self, rate_strays: bool, estimate_strays: bool) -> Vec<Unlike> {
        let of = match self.asked.tests.as_slice() {
            [Test::Versus { scale: Effect::Difference, .. }] => Estimated::Difference,
            _ => Estimated::Ratio,
        };
        let fits_none = self.paired.as_ref().is_some_and(PairedStatistic::is_empty);
        let lost = [
            self.rate.interval().is_empty().then_some(Unlike::NoneFits { of: Estimated::Rate }),
            rate_strays.then_some(Unlike::Left { of: Estimated::Rate }),
            fits_none.then_some(Unlike::NoneFits { of }),
            estimate_strays.then_some(Unlike::Left { of }),
        ];
        lost.into_iter().flatten().chain(self.diagnostics.signs()).collect()
    }

    /// Returns the trial-by-trial path of the claim to its [result](Self::result), which ends with the last judged
    /// trial. The path is empty if it was not recorded.
    pub fn take_path(&mut self) -> ClaimPath {
        let seen = self.seen().trials() + self.ties;
        let path = self.path.take();
        path.map(|path| path.finish(seen, self.answer.is_some(), || self.rule.log_e())).unwrap_or_default()
    }

    /// Returns the answer, even if the claim was closed for another reason later. Returns `None` if later trials
    /// contradict the answer, which shows that the trials are not alike.
    fn standing_answer(&self) -> Option<Answer> {
        let (answer, _) = self.answer?;
        (!self.rule.contradicts(answer, self.seen(), self.paired.as_ref())).then_some(answer)
    }

    /// Returns the verdict. If there is no answer, also returns the reasons; otherwise the list is empty.
    pub fn verdict(&self) -> (Verdict, Vec<Reason>) {
        match (self.standing_answer(), &self.closed) {
            (Some(Answer::Holds | Answer::Same | Answer::Passes(_)), _) => (Verdict::Holds, vec![]),
            (Some(Answer::Refuted), _) => (Verdict::Refuted, vec![]),
            (None, Some(ClosedReason::NotJudged(reason))) => (reason.verdict(), vec![reason.clone()]),
            (None, None | Some(ClosedReason::BudgetExhausted)) => {
                let reasons = match self.withdrawn() {
                    Some(withdrawn) => vec![withdrawn],
                    None => [self.too_early(), self.left_open(), self.unfinished_set()].into_iter().flatten().collect(),
                };
                (Verdict::Undecided, reasons)
            }
        }
    }

    /// Returns the reason to report if later trials contradict the answer, which is then withdrawn. Returns `None` if
    /// there was no answer.
    fn withdrawn(&self) -> Option<Reason> {
        let (answer, decided) = self.answer?;
        let verdict = if answer == Answer::Refuted { Verdict::Refuted } else { Verdict::Holds };
        Some(Reason::Withdrawn { verdict, decision: self.decision_of(answer), trials: decided.trials })
    }

    /// Returns a reason to report if values were cut off, because this may have prevented an answer.
    fn left_open(&self) -> Option<Reason> {
        let all = self.trials;
        if self.stopped_ties > 0 && self.unknown == 0 {
            return Some(Reason::BothStopped { pairs: self.stopped_ties, all });
        }
        let (trials, has_met_limit) = (self.unknown, self.has_met_limit);
        (trials > 0).then_some(Reason::LeftOpen { trials, all, has_met_limit })
    }

    /// Returns a reason to report if the last trials are not judged, because their set is incomplete.
    fn unfinished_set(&self) -> Option<Reason> {
        let measured = self.unseen.trials();
        (measured > 0).then_some(Reason::UnfinishedSet { trials: self.claim.look_every, measured })
    }

    fn decision(&self) -> Decision {
        self.standing_answer().and_then(|answer| self.decision_of(answer)).unwrap_or(Decision::Undecided)
    }

    /// Returns the decision of a comparison, such as "faster", for an answer; `None` if the claim is not a comparison.
    fn decision_of(&self, answer: Answer) -> Option<Decision> {
        (self.asked.judging == Judging::Order).then_some(match answer {
            Answer::Holds => Decision::Faster,
            Answer::Refuted => Decision::Slower,
            Answer::Same => Decision::Same,
            Answer::Passes(Gate::Slower) => Decision::NotSlower,
            Answer::Passes(Gate::Faster) => Decision::NotFaster,
        })
    }
}

mod counted;
mod limits;
#[cfg(test)]
mod tests;
