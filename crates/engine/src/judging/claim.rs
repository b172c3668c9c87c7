//! One claim while it is judged: outcomes in, a verdict and an interval out.

use ascertain_stats::{self as stats, RateSequence, Tally};

use super::bound::{BoundTests, Seen, TrialValues};
use super::diagnostics::Diagnostics;
use super::rule::{Answer, Outcomes, Paired, Rule};
use crate::block::Slots;
use crate::claim::{Claim, Effect, Judging, Test};
use crate::error::Error;
use crate::experiment::{Arm, Spec};
use crate::finding::{AtError, Estimated, Least, Reason, Unavailable, Unlike};
use crate::outcome::{Broken, ClaimResult, ClaimSpec, Decided, Decision, Gate, TestSpec, Verdict};
use crate::recorded::{ClaimPath, PathRecorder};
use crate::run::Standing;
use crate::values::Bounds;

/// A claim while it is judged.
#[derive(Clone)]
pub(crate) struct ClaimJudge {
    pub claim: Claim,
    emulated: Option<String>,
    asked: ClaimSpec,
    error: f64,
    easier: Option<(f64, f64)>,
    most_trials: Option<u64>,
    precision: Option<f64>,
    /// Whether the claim stays open for the precision. When its interval is looked at does not depend on it: recorded
    /// trials give the same interval.
    is_precision_awaited: bool,
    tests: BoundTests,
    rule: Rule,
    /// The first answer, which stands, and the trials that gave it.
    answer: Option<(Answer, Decided)>,
    to_the_end: bool,
    counts_all: bool,
    trials: u64,
    successes: u64,
    ties: u64,
    /// Trials that what was cut off leaves open.
    unknown: u64,
    /// Whether some of those met a time limit.
    has_met_limit: bool,
    /// Ties of two that met it.
    stopped_ties: u64,
    /// Outcomes since the last look, when the claim looks at sets of trials.
    unseen: Outcomes,
    paired: Option<Paired>,
    rate: RateSequence,
    diagnostics: Diagnostics,
    /// In how many trials each condition of its predicates was false.
    broken: Vec<u64>,
    /// The intervals are brought up to date again after so many trials.
    next_look: u64,
    elapsed_ns: u64,
    /// Trials of which it is known what they take, and that of all of them.
    timed: (u64, f64),
    closed: Option<Closed>,
    path: Option<PathRecorder>,
    /// The same comparison by other metrics.
    counters: Vec<ClaimJudge>,
}

/// How the run wants its claims judged.
pub(crate) struct JudgeTerms {
    pub error: f64,
    /// An error that a run might have instead, and what this claim would have of it.
    pub easier: Option<(f64, f64)>,
    /// No more trials than that.
    pub most_trials: Option<u64>,
    pub margin: Option<f64>,
    pub precision: Option<f64>,
    /// An answered claim counts trials that are measured for other claims or for a table. Otherwise it would depend on
    /// the clock how many it counts, if the time for its precision ends, and recorded trials have no clock.
    pub counts_all: bool,
    pub gate: Option<Gate>,
    /// Trials go on when there is an answer.
    pub to_the_end: bool,
}

/// Why a claim is not judged any further, other than by its answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Closed {
    For(Reason),
    /// Its own trials or time are used up.
    BudgetExhausted,
}

impl ClaimJudge {
    /// A claim at its start.
    pub fn new(claim: &Claim, spec: &Spec, terms: &JudgeTerms) -> Result<ClaimJudge, Error> {
        let invalid = |reason| Error::Claim { id: claim.id.clone(), reason };
        let error = terms.error;
        let end_error = direction_error(claim, error);
        let asked = ClaimSpec::of(claim, claim.margin.or(terms.margin), spec);
        // Where there is no chance in it, a predicate has a figure too: the one value of its metric.
        let is_value = matches!((claim.judging, claim.tests.as_slice()), (Judging::Exact, [Test::Predicate { .. }]));
        let quantile = asked.quantile(claim.rate).or(is_value.then_some(0.5));
        // They are told of each of this claim's trials, whatever is decided.
        let besides =
            JudgeTerms { easier: None, margin: None, precision: None, gate: None, to_the_end: true, ..*terms };
        let alone = Claim { margin: None, max_time: None, max_trials: None, counters: Vec::new(), ..claim.clone() };
        let counter = |&metric: &usize| ClaimJudge::new(&alone.clone().by(spec, metric), spec, &besides);
        Ok(ClaimJudge {
            counters: claim.counters.iter().map(counter).collect::<Result<_, _>>()?,
            rule: Rule::new(claim, terms).map_err(invalid)?,
            paired: quantile.map(|quantile| Paired::new(quantile, end_error, end_error)),
            rate: RateSequence::new(end_error, end_error).map_err(invalid)?,
            claim: claim.clone(),
            emulated: asked
                .tests
                .iter()
                .flat_map(TestSpec::arms)
                .find_map(|arm| spec.emulated(arm))
                .map(str::to_string),
            asked,
            error,
            easier: terms.easier,
            most_trials: terms.most_trials.into_iter().chain(claim.max_trials).min(),
            precision: terms.precision,
            is_precision_awaited: terms.precision.is_some(),
            tests: BoundTests::default(),
            answer: None,
            to_the_end: terms.to_the_end,
            counts_all: terms.counts_all,
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

    /// Keeps the claim's path from now on.
    pub fn keep_path(&mut self) {
        let log_threshold = -direction_error(&self.claim, self.error).ln();
        self.path = Some(PathRecorder::new(log_threshold, log_threshold));
    }

    /// Looks up the tests' arms among the lane's.
    pub fn bind(&mut self, spec: &Spec, slot_of: impl Fn(&Arm) -> usize) {
        self.tests = BoundTests::new(&self.claim, spec, &slot_of);
        self.broken.resize(self.tests.conditions.len(), 0);
        self.counters.iter_mut().for_each(|counter| counter.tests = BoundTests::new(&counter.claim, spec, &slot_of));
    }

    /// Closes those of the other metrics that the machine can't show, for the reason that is given.
    pub fn close_counters(&mut self, why: impl Fn(&Claim) -> Option<Reason>) {
        for counter in &mut self.counters {
            why(&counter.claim).into_iter().for_each(|reason| counter.close(Closed::For(reason)));
        }
    }

    /// The lane's slots that a trial must hold for this claim.
    pub fn slots(&self) -> Slots {
        self.tests.slots
    }

    /// Takes a trial into account, if the trial held all of the claim's arms, and the claim is open or counts all.
    pub fn observe(&mut self, trial: &TrialValues, elapsed_ns: u64) {
        let counts = if self.counts_all { self.closed.is_none() } else { self.is_open() };
        if !counts || !trial.held.contains(self.slots()) {
            return;
        }
        for counter in self.counters.iter_mut().filter(|counter| counter.closed.is_none()) {
            match counter.tests.evaluate(trial) {
                Ok(seen) => counter.count(&seen, trial, elapsed_ns),
                Err(_) => counter.close(Closed::For(counter.not_observed())),
            }
        }
        match self.tests.evaluate(trial) {
            Ok(seen) => self.count(&seen, trial, elapsed_ns),
            Err(error) => self.close(Closed::For(error.reason(None))),
        }
    }

    /// Without one of the values there is nothing to compare.
    fn not_observed(&self) -> Reason {
        let metric = match self.asked.tests.as_slice() {
            [TestSpec::Versus { measure, .. }, ..] => measure.metric.clone(),
            _ => self.claim.id.clone(),
        };
        Reason::Unavailable { arm: None, lack: Unavailable::Metric { metric } }
    }

    fn count(&mut self, seen: &Seen, trial: &TrialValues, elapsed_ns: u64) {
        self.trials += 1;
        self.elapsed_ns += elapsed_ns;
        if let Some(whole_ns) = trial.whole_ns {
            self.timed = (self.timed.0 + 1, self.timed.1 + whole_ns);
        }
        if let (Some(paired), Some(value)) = (&mut self.paired, seen.statistic.or(seen.value)) {
            paired.push(value);
        }
        for (bit, count) in self.broken.iter_mut().enumerate().take(64).filter(|_| seen.broken != 0) {
            *count += seen.broken >> bit & 1;
        }
        let is_order = self.claim.judging == Judging::Order;
        let is_tie = is_order && seen.tie;
        // Whoever interrupts a pair chooses how large its difference seems: no coin's outcome given that size.
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
        if self.claim.max_trials.is_some_and(|most| self.trials >= most)
            || self.claim.max_time.is_some_and(|most| u128::from(self.elapsed_ns) >= most.as_nanos())
        {
            self.close(Closed::BudgetExhausted);
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

    /// The first answer is the one that stands, with the trials that gave it.
    fn decide(&mut self, answer: Answer) {
        let Outcomes { known, unknown } = self.seen();
        let (trials, successes) = (known.trials + unknown + self.ties, known.successes);
        self.answer = Some((answer, Decided { trials, successes, ties: self.ties, unknown }));
    }

    /// Intervals are costly beside a trial of a microsecond: they are brought up to date at every trial
    /// of the first twenty, and else each time a twentieth is added.
    fn look_is_due(&self) -> bool {
        self.trials >= self.next_look
    }

    /// Whether something waits for the paired statistic's interval, which then is brought up to date at every trial of
    /// the first hundred.
    fn awaits_pairs(&self) -> bool {
        self.trials <= 100 && (self.precision.is_some() || matches!(self.rule, Rule::OrderWithin(..)))
    }

    /// Brings the intervals up to date.
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

    /// Leaves intervals out that no verdict needs: a test of verdicts takes a tenth of the time.
    #[cfg(test)]
    pub fn look_at_the_end(&mut self) {
        self.next_look = u64::MAX;
    }

    /// The outcomes that have been looked at, ties aside.
    pub(super) fn seen(&self) -> Outcomes {
        let known = Tally { trials: self.trials - self.ties - self.unknown, successes: self.successes };
        let Outcomes { known: unseen, unknown } = self.unseen;
        Outcomes {
            known: Tally { trials: known.trials - unseen.trials, successes: known.successes - unseen.successes },
            unknown: self.unknown - unknown,
        }
    }

    /// Whether more trials could still change what is said of the claim.
    pub fn is_open(&self) -> bool {
        if self.closed.is_some() {
            return false;
        }
        let precise = match (&self.paired, self.precision) {
            (Some(paired), Some(wanted)) if self.is_precision_awaited => paired.precision() <= wanted,
            _ => true,
        };
        self.to_the_end || self.answer.is_none() || !precise
    }

    /// Returns whether the claim was closed by something else than its answer.
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Ends the wait for a narrow interval: an answer is enough from now on.
    pub fn forgo_precision(&mut self) {
        self.is_precision_awaited = false;
    }

    /// Closes the claim, unless it is closed already. An answer stands.
    pub fn close(&mut self, why: Closed) {
        self.closed.get_or_insert(why);
    }

    /// Closes the claim because an arm's answer is wrong. Its times were then no times of the work that
    /// it should do, so that an answer drawn from them does not stand.
    pub fn disqualify(&mut self, reason: Reason) {
        self.answer = None;
        self.closed = Some(Closed::For(reason));
    }

    /// The fewest trials that any verdict needs.
    pub fn soonest_verdict(&self) -> u64 {
        self.soonest_of_any(self.error)
    }

    /// The same with the error that the run might have instead, where that takes fewer.
    pub fn soonest_at_easier(&self) -> Option<AtError> {
        let at_error = self.easier.map(|(error, own)| AtError { error, trials: self.soonest_of_any(own) });
        at_error.filter(|at| at.trials < self.soonest_verdict())
    }

    fn soonest_of_any(&self, error: f64) -> u64 {
        let [holds, refuted] = VERDICTS.map(|verdict| self.soonest(verdict, error));
        holds.min(refuted)
    }

    /// The fewest trials that this verdict needs with this error.
    fn soonest(&self, verdict: stats::Verdict, error: f64) -> u64 {
        let trials = self.rule.soonest(verdict, error);
        trials.checked_next_multiple_of(self.claim.look_every.max(1)).unwrap_or(u64::MAX)
    }

    /// What the verdict takes that most trials so far speak for, where a trial takes so long; before the first, what it
    /// takes to uphold the claim.
    pub fn least(&self, trial_ns: Option<f64>) -> Least {
        let Outcomes { known, unknown } = self.seen();
        let is_upheld = known.successes as f64 >= self.claim.rate * (known.trials + unknown) as f64;
        let (verdict, said) = match is_upheld {
            true => (stats::Verdict::Holds, Verdict::Holds),
            false => (stats::Verdict::Refuted, Verdict::Refuted),
        };
        let trials = self.soonest(verdict, self.error);
        let at_error = self.easier.map(|(error, own)| AtError { error, trials: self.soonest(verdict, own) });
        Least {
            verdict: (self.claim.judging != Judging::Order).then_some(said),
            trials,
            takes_ns: trial_ns.map(|trial_ns| trial_ns * trials as f64),
            at_error: at_error.filter(|at| at.trials < trials),
        }
    }

    /// That there were fewer trials than a verdict takes.
    fn too_early(&self) -> Option<Reason> {
        let (timed, whole_ns) = self.timed;
        let least = self.least((timed > 0).then(|| whole_ns / timed as f64));
        let most_trials = self.most_trials.filter(|most| *most < least.trials);
        (self.trials > 0 && self.trials < least.trials).then_some(Reason::TooEarly {
            least,
            most_trials,
            is_interrupted: false,
            is_shared: false,
        })
    }

    /// The log-evidence that a trial is expected to add, in nats.
    pub fn expected_growth(&self) -> f64 {
        let decided = (self.trials - self.ties - self.unknown) as f64;
        let growth = self.rule.expected_growth((self.successes as f64 + 0.5) / (decided + 1.0));
        // What so many trials say of the growth may be off by about a nat among all of them: a claim
        // that began unluckily gets another chance before one that hardly moves has all of the time.
        growth + 1.0 / (self.trials as f64 + 1.0)
    }
}

const VERDICTS: [stats::Verdict; 2] = [stats::Verdict::Holds, stats::Verdict::Refuted];

/// The error of a verdict in one direction. A rate can't be on the wrong side of both, so that each has
/// all of it; a comparison asks two questions.
fn direction_error(claim: &Claim, error: f64) -> f64 {
    if claim.judging == Judging::Order { error / 2.0 } else { error }
}

/// The share by which a ratio in this interval differs from 1 at most. `None` if the interval excludes 1 or has no width
/// (ties alone), or a ratio of 1.5 or more is possible: then nobody would call it small.
fn difference_below(low: f64, high: f64) -> Option<f64> {
    let most = high.max(low.recip()) - 1.0;
    (low <= 1.0 && high >= 1.0 && most > 0.0 && most < 0.5).then_some(most)
}

/// The quantile of the paired statistic, and its interval as far as it is known.
struct PairedEstimate {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    /// Whether the value left the interval, which then says nothing.
    strays: bool,
}

impl ClaimJudge {
    /// How the claim stands, for progress.
    pub fn standing(&self) -> Standing {
        let Outcomes { known, unknown } = self.seen();
        let (is_ratio, measure) = match self.asked.tests.as_slice() {
            [TestSpec::Versus { scale, measure, .. }] => (*scale == Effect::Ratio, Some(measure)),
            [TestSpec::Predicate { measure, .. }] => (false, measure.as_ref()),
            _ => (false, None),
        };
        Standing {
            judging: self.claim.judging,
            trials: known.trials + unknown,
            successes: known.successes,
            failures: known.trials - known.successes,
            estimate: self.paired.as_ref().and_then(Paired::estimate).and_then(Bounds::estimate),
            is_ratio,
            unit: measure.map(|measure| measure.unit),
        }
    }

    /// What became of the claim.
    pub fn result(&mut self) -> ClaimResult {
        if self.trials > 0 {
            self.look();
        }
        let Outcomes { known, unknown } = self.seen();
        let is_rate = !matches!(self.rule, Rule::Exact) && known.trials > 0;
        // What is left open is no success.
        let counted = (known.trials + unknown) as f64;
        let rate = (known.trials > 0).then(|| known.successes as f64 / counted);
        let rates = Some(self.rate.interval()).filter(|rates| is_rate && !rates.is_empty());
        let rate_strays = rates.zip(rate).is_some_and(|(rates, rate)| rate < rates.low || rate > rates.high);
        let rates = rates.filter(|_| !rate_strays);
        let estimate = self.estimate();
        let (log_e_holds, log_e_refuted) = self.rule.log_e().unzip();
        let (verdict, reasons) = self.verdict();
        let decision = (self.claim.judging == Judging::Order).then(|| self.decision());
        let (ratio_min, ratio_max) = self.paired.as_ref().and_then(Paired::extremes).unzip();
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
            interferes: self.claim.judging == Judging::Order && self.diagnostics.interference().is_some(),
            undiagnosed: self.claim.judging != Judging::Exact && self.trials > 0 && self.diagnostics.has_too_few(),
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
                // With a margin, the question is another one. An answer that was withdrawn had a difference.
                .filter(|_| self.asked.margin.is_none() && self.answer.is_none())
                .and_then(|_| difference_below(estimate.low?, estimate.high?)),
            log_e_holds,
            log_e_refuted,
            drifted: is_decided && self.claim.judging == Judging::Rate && unlike.iter().any(drifts),
            unlike,
            median: None,
            broken: self.broken(),
            // What failed is not compared by anything else either.
            counters: match verdict {
                Verdict::Failed => Vec::new(),
                _ => self.counters.iter_mut().map(ClaimJudge::result).collect(),
            },
        }
    }

    /// The conditions that were false at least once.
    fn broken(&self) -> Vec<Broken> {
        let counted = self.tests.conditions.iter().zip(&self.broken).filter(|(_, trials)| **trials > 0);
        let said = |(metric, condition): &(String, String), trials| Broken {
            condition: condition.clone(),
            metric: metric.clone(),
            trials,
        };
        counted.map(|(condition, &trials)| said(condition, trials)).collect()
    }

    fn estimate(&self) -> PairedEstimate {
        let finite = |value: f64| value.is_finite().then_some(value);
        let value = self.paired.as_ref().and_then(Paired::estimate).and_then(Bounds::estimate).and_then(finite);
        let interval = self.paired.as_ref().filter(|paired| !paired.is_empty()).map(Paired::interval);
        let (low, high) = interval.map_or((None, None), |(low, high)| (finite(low), finite(high)));
        // The interval is what all looks so far allow. Trials that drift leave it behind.
        let strays =
            value.is_some_and(|value| low.is_some_and(|low| value < low) || high.is_some_and(|high| value > high));
        let (low, high) = if strays { (None, None) } else { (low, high) };
        PairedEstimate { value, low, high, strays }
    }

    /// Signs that the trials are not alike.
    fn unlike(&self, rate_strays: bool, estimate_strays: bool) -> Vec<Unlike> {
        let of = match self.asked.tests.as_slice() {
            [TestSpec::Versus { scale: Effect::Difference, .. }] => Estimated::Difference,
            _ => Estimated::Ratio,
        };
        let fits_none = self.paired.as_ref().is_some_and(Paired::is_empty);
        let lost = [
            self.rate.interval().is_empty().then_some(Unlike::NoneFits { of: Estimated::Rate }),
            rate_strays.then_some(Unlike::Left { of: Estimated::Rate }),
            fits_none.then_some(Unlike::NoneFits { of }),
            estimate_strays.then_some(Unlike::Left { of }),
        ];
        lost.into_iter().flatten().chain(self.diagnostics.signs()).collect()
    }

    /// How the claim came to its [result](Self::result), as far as its trials are judged; empty when it
    /// was not asked for.
    pub fn take_path(&mut self) -> ClaimPath {
        let seen = self.seen().trials() + self.ties;
        let path = self.path.take();
        path.map(|path| path.finish(seen, self.answer.is_some(), || self.rule.log_e())).unwrap_or_default()
    }

    /// The answer, whatever closed the claim later, unless later trials contradict it: then they are not alike, and
    /// there is none.
    fn standing_answer(&self) -> Option<Answer> {
        let (answer, _) = self.answer?;
        (!self.rule.contradicts(answer, self.seen(), self.paired.as_ref())).then_some(answer)
    }

    /// How the claim stands, and why where it has no answer.
    pub fn verdict(&self) -> (Verdict, Vec<Reason>) {
        match (self.standing_answer(), &self.closed) {
            (Some(Answer::Holds | Answer::Same | Answer::Passes(_)), _) => (Verdict::Holds, vec![]),
            (Some(Answer::Refuted), _) => (Verdict::Refuted, vec![]),
            (None, Some(Closed::For(reason))) => (reason.verdict(), vec![reason.clone()]),
            (None, None | Some(Closed::BudgetExhausted)) => {
                let reasons = match self.withdrawn() {
                    Some(withdrawn) => vec![withdrawn],
                    None => [self.too_early(), self.left_open(), self.unfinished_set()].into_iter().flatten().collect(),
                };
                (Verdict::Undecided, reasons)
            }
        }
    }

    /// Why an answer was taken back.
    fn withdrawn(&self) -> Option<Reason> {
        let (answer, decided) = self.answer?;
        let verdict = if answer == Answer::Refuted { Verdict::Refuted } else { Verdict::Holds };
        Some(Reason::Withdrawn { verdict, decision: self.decision_of(answer), trials: decided.trials })
    }

    /// What was cut off may be why there is no answer.
    fn left_open(&self) -> Option<Reason> {
        let all = self.trials;
        if self.stopped_ties > 0 && self.unknown == 0 {
            return Some(Reason::BothStopped { pairs: self.stopped_ties, all });
        }
        let (trials, has_met_limit) = (self.unknown, self.has_met_limit);
        (trials > 0).then_some(Reason::LeftOpen { trials, all, has_met_limit })
    }

    /// Trials that are not judged, since the set that they belong to was not finished.
    fn unfinished_set(&self) -> Option<Reason> {
        let measured = self.unseen.trials();
        (measured > 0).then_some(Reason::UnfinishedSet { trials: self.claim.look_every, measured })
    }

    fn decision(&self) -> Decision {
        self.standing_answer().and_then(|answer| self.decision_of(answer)).unwrap_or(Decision::Undecided)
    }

    /// The answer to a comparison.
    fn decision_of(&self, answer: Answer) -> Option<Decision> {
        (self.claim.judging == Judging::Order).then_some(match answer {
            Answer::Holds => Decision::Faster,
            Answer::Refuted => Decision::Slower,
            Answer::Same => Decision::Same,
            Answer::Passes(Gate::Slower) => Decision::NotSlower,
            Answer::Passes(Gate::Faster) => Decision::NotFaster,
        })
    }
}

#[cfg(test)]
mod tests;
