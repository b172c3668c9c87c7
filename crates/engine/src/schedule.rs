//! Which lane has the machine next, and for how long.

use std::ops::Range;
use std::time::Duration;

use ascertain_sys::interrupt;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::block::{Block, End, Executor, TrialRecord};
use crate::claim::Judging;
use crate::evidence::{self, Writer};
use crate::experiment::TargetError;
use crate::finding::Reason;
use crate::judging::{ClaimJudge, Closed, RunJudge};
use crate::now::Now;
use crate::outcome::Verdict;
use crate::run::{Observer, Outlook, Progress};
use crate::summary::{self, RunFacts};
use crate::time::Clock;

/// A lane keeps the machine to itself for that long before another may have it.
const SLICE_NS: u64 = 250_000_000;
/// The observer hears of the run this often.
const PROGRESS_NS: u64 = 100_000_000;
/// Nobody waits for trials that are quicker, once there were a few.
const SLOW_NS: f64 = 1e8;
const FEW: u64 = 64;
/// Tables wait while claims are open. In the last fourth of the time tables get every other slice, so that a claim that
/// can't be decided does not leave a table empty.
const CLAIMS_SHARE: f64 = 0.75;
/// What a comparison is given, by what it takes at the least: a pair may be lost, and the next ones be slower.
const ROOM: f64 = 1.25;
/// Pilots have the first fourth of the time; later no more than half of what has gone by.
const PILOTS_SHARE: u64 = 4;

/// Somebody asked for the end, or what was measured was cut off.
pub(crate) struct Interrupted;

/// Sends blocks to the executor and their records to the judge, until nobody wants more.
pub(crate) struct Schedule<'r, 'a> {
    executor: &'r mut dyn Executor,
    judge: &'r mut RunJudge<'a>,
    evidence: Option<&'r mut Writer>,
    /// Why what is measured now is not recorded any more. That trials begin still is: who goes on with what was
    /// recorded could otherwise drop those that were not.
    pub unkept: Option<evidence::Error>,
    facts: &'r RunFacts<'r>,
    stop: &'r interrupt::Stop,
    observer: &'r mut dyn Observer,
    time_ns: Range<u64>,
    clock: &'r dyn Clock,
    next_progress_ns: u64,
    /// The end of the time for narrow intervals.
    precision_ends_ns: u64,
    now: Now,
    /// Lanes that had their turn for a pilot, which are the first so many; those that were opened; and how long all
    /// that took.
    piloted: usize,
    opened: usize,
    pilots_ns: u64,
    /// Lanes that wanted trials at the start: of the others nothing can be measured, or nothing has to be.
    to_try: usize,
    /// Whether each lane is open.
    is_open: Vec<bool>,
    /// Whether each lane goes on from what was recorded.
    goes_on: Vec<bool>,
    /// Whether it was looked at what the answers take.
    has_looked_ahead: bool,
    slices: u64,
    record: TrialRecord,
}

impl<'r, 'a> Schedule<'r, 'a> {
    pub fn new(
        executor: &'r mut dyn Executor,
        judge: &'r mut RunJudge<'a>,
        evidence: Option<&'r mut Writer>,
        facts: &'r RunFacts<'r>,
        (stop, observer): (&'r interrupt::Stop, &'r mut dyn Observer),
        (time_ns, clock): (Range<u64>, &'r dyn Clock),
        now: Now,
    ) -> Self {
        Schedule {
            precision_ends_ns: judge.config.precision_time.map_or(u64::MAX, |time| {
                time_ns.start.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
            }),
            is_open: vec![false; judge.lanes.len()],
            to_try: (0..judge.lanes.len()).filter(|&lane| judge.wants_more(lane)).count(),
            goes_on: judge.lanes.iter().map(|lane| lane.trials > 0).collect(),
            executor,
            judge,
            evidence,
            unkept: None,
            facts,
            stop,
            observer,
            time_ns,
            clock,
            next_progress_ns: 0,
            now,
            piloted: 0,
            opened: 0,
            pilots_ns: 0,
            has_looked_ahead: false,
            slices: 0,
            record: TrialRecord::default(),
        }
    }

    /// Measures until nobody wants more, the time is up, or somebody interrupts.
    pub fn go(&mut self) -> Result<(), Interrupted> {
        loop {
            let gone_ns = self.now_ns().saturating_sub(self.time_ns.start) as f64;
            self.judge.tables_too = gone_ns >= self.max_time().as_nanos() as f64 * CLAIMS_SHARE;
            if self.now_ns() >= self.precision_ends_ns {
                self.judge.forgo_precision();
                self.precision_ends_ns = u64::MAX;
            }
            if self.is_pilots_turn() {
                self.pilot_next()?;
                continue;
            }
            match self.choose() {
                Some(lane) => self.slice(lane)?,
                None if self.piloted < self.is_open.len() => self.pilot_next()?,
                None => break,
            }
        }
        while self.executor.collect(&mut self.record) {
            let evidence = self.evidence.as_deref_mut().filter(|_| self.unkept.is_none());
            self.judge.take(&self.record, evidence);
        }
        if self.stop.is_asked() {
            return Ok(());
        }
        // Other lanes promised more a second.
        for lane in 0..self.is_open.len() {
            if self.is_open[lane] && self.judge.lanes[lane].trials == 0 && self.judge.wants_more(lane) {
                self.give_up(lane, &Reason::TimeUp { was_tried: true, all_tried_ns: None });
            }
        }
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Whether the next lane has its pilot now: all of them come first where a part of the time is enough for that.
    /// Where it is not, what is cheap to judge is judged between pilots, lest the time ends with costs alone. What
    /// comparisons take is known when all have had theirs.
    fn is_pilots_turn(&self) -> bool {
        let gone_ns = self.now_ns().saturating_sub(self.time_ns.start);
        let all_ns = self.time_ns.end.saturating_sub(self.time_ns.start);
        let share_ns = (all_ns / PILOTS_SHARE).max(gone_ns / 2);
        let only_tables_are_left = || (self.piloted..self.is_open.len()).all(|lane| self.is_only_table(lane));
        let is_table_that_waits = || only_tables_are_left() && self.tables_wait();
        self.piloted < self.is_open.len()
            && !is_table_that_waits()
            && (self.judge.is_comparison() || self.pilots_ns < share_ns)
    }

    /// Returns whether no open claim needs the lane.
    fn is_only_table(&self, lane: usize) -> bool {
        self.judge.open_claims(lane).next().is_none()
    }

    /// Returns whether tables wait for claims that are open.
    fn tables_wait(&self) -> bool {
        let are_claims_open = (0..self.is_open.len()).any(|lane| {
            let may_be_measured = self.is_open[lane] || lane >= self.piloted;
            may_be_measured && !self.is_only_table(lane) && self.judge.wants_more(lane)
        });
        are_claims_open && !self.judge.tables_too
    }

    /// Opens the next lane, learns what a trial of it costs, and defers what is known not to fit.
    fn pilot_next(&mut self) -> Result<(), Interrupted> {
        let (lane, start_ns) = (self.piloted, self.now_ns());
        let pilots = match self.is_open.len() {
            1 => self.judge.config.warmup_trials,
            // A table needs no estimate of its cost.
            _ if self.is_only_table(lane) => self.judge.config.warmup_trials,
            _ => self.judge.config.warmup_trials.max(1),
        };
        self.piloted += 1;
        self.pilot(lane, pilots)?;
        self.pilots_ns += self.now_ns().saturating_sub(start_ns);
        match pilots {
            0 => {}
            _ if self.piloted == self.is_open.len() => self.look_ahead(),
            _ => self.defer(lane),
        }
        Ok(())
    }

    fn time_left_ns(&self) -> u64 {
        self.time_ns.end.saturating_sub(self.now_ns())
    }

    fn close(&mut self, lane: usize) {
        self.executor.close(lane);
        self.is_open[lane] = false;
    }

    fn give_up(&mut self, lane: usize, why: &Reason) {
        self.judge.give_up(lane, why);
        self.close(lane);
    }

    /// Opens a lane and learns what a trial of it costs.
    fn pilot(&mut self, lane: usize, pilots: u64) -> Result<(), Interrupted> {
        if !self.judge.wants_more(lane) || self.stop.is_asked() {
            return Ok(());
        }
        if self.time_left_ns() == 0 {
            if self.judge.lanes[lane].trials == 0 {
                let of_one_ns = (self.opened > 0).then(|| self.pilots_ns as f64 / self.opened as f64);
                let all_tried_ns = of_one_ns.map(|of_one_ns| of_one_ns * self.to_try as f64);
                self.give_up(lane, &Reason::TimeUp { was_tried: false, all_tried_ns });
            }
            return Ok(());
        }
        self.report_progress_if_due(self.now_ns(), lane);
        let spec = self.judge.lanes[lane].experiment.spec();
        self.now.opens();
        self.opened += 1;
        let opened = self.executor.open(lane, &spec.id, &self.judge.lanes[lane].measurable());
        self.now.rests();
        match opened {
            Ok(found) => {
                self.is_open[lane] = true;
                found.into_iter().for_each(|(slot, facts)| self.judge.learn(lane, slot, facts));
            }
            Err(TargetError::Interrupted) => return Err(Interrupted),
            Err(error) => {
                self.give_up(lane, &error.reason(None));
                return Ok(());
            }
        }
        for _ in 0..pilots {
            if self.time_left_ns() == 0 {
                break;
            }
            self.report_progress_if_due(self.now_ns(), lane);
            self.warm_up(lane)?;
        }
        Ok(())
    }

    /// Runs a trial whose observations are thrown away.
    fn warm_up(&mut self, lane: usize) -> Result<(), Interrupted> {
        if self.stop.is_asked() {
            return Err(Interrupted);
        }
        let block = self.judge.warm_up(lane);
        self.measure(block);
        self.judge.lanes[lane].cost_ns = self.record.elapsed_ns as f64;
        match &self.record {
            TrialRecord { failure: Some((slot, error)), .. } => self.judge.set_aside(lane, *slot, error),
            TrialRecord { end: End::Whole, .. } => {}
            TrialRecord { .. } => return Err(Interrupted),
        }
        Ok(())
    }

    /// Once it is known what a trial of each lane costs: defers what can't be decided, gives comparisons more time
    /// where that is allowed, and says what they take.
    fn look_ahead(&mut self) {
        self.has_looked_ahead = true;
        if self.judge.config.exact_trials.is_some() {
            return;
        }
        (0..self.is_open.len()).for_each(|lane| self.defer(lane));
        if let Some(outlook) = self.outlook() {
            // First the time that there is by now, lest what is drawn below the outlook contradicts it.
            let lane = self.is_open.iter().position(|is_open| *is_open).unwrap_or(0);
            self.observer.progress(&self.progress(self.now_ns(), lane));
            self.observer.outlook(&outlook);
        }
    }

    /// What a trial of the lane takes, with the time until the next.
    fn trial_ns(&self, lane: usize) -> f64 {
        self.judge.lanes[lane].cost_ns + self.judge.config.gap.map_or(0.0, |gap| gap.as_nanos() as f64)
    }

    /// Defers the claims whose shortest possible verdict does not fit in the time that is left. Not comparisons: their
    /// figures are better than none; nor what a table's trials tell anyway, if there are to be enough of them.
    fn defer(&mut self, lane: usize) {
        if self.goes_on[lane] || self.judge.config.exact_trials.is_some() {
            return;
        }
        let (left_ns, trial_ns) = (self.time_left_ns() as f64, self.trial_ns(lane));
        let RunJudge { lanes, claims, config, .. } = &mut *self.judge;
        let lane = &lanes[lane];
        for &claim in &lane.claims {
            let judge = &mut claims[claim];
            if judge.claim.judging == Judging::Order || !judge.is_open() {
                continue;
            }
            let trials = judge.soonest_verdict();
            if config.table_trials.is_some_and(|wanted| trials <= wanted) && lane.table.contains(judge.slots()) {
                continue;
            }
            let fits = |trials: u64| trial_ns * trials.saturating_sub(lane.trials) as f64 <= left_ns;
            if !fits(trials) {
                let needed_ns = trial_ns * trials as f64;
                let at_error = judge.soonest_at_easier().filter(|at| fits(at.trials));
                judge.close(Closed::For(Reason::TooLong { needed_ns, trials, at_error }));
            }
        }
    }

    /// What the open claims take, where they don't fit in the time: that of one lane, or of comparisons, which are all
    /// wanted. Gives comparisons the time, if they may have it.
    fn outlook(&mut self) -> Option<Outlook> {
        let is_comparison = self.judge.is_comparison();
        if !is_comparison && self.is_open.len() > 1 {
            return None;
        }
        let lanes = (0..self.is_open.len()).filter(|&lane| self.is_open[lane]);
        // The claim of each lane that takes longest stands for all that are measured with it.
        let slowest = lanes.filter_map(|lane| {
            let least = self.judge.open_claims(lane).map(|claim| claim.least(Some(self.trial_ns(lane))));
            Some((lane, least.max_by_key(|least| least.trials)?))
        });
        let slowest: Vec<_> = slowest.collect();
        let (_, mut least) = *slowest.iter().max_by_key(|(_, least)| least.trials)?;
        let takes_ns: f64 = slowest.iter().filter_map(|(_, least)| least.takes_ns).sum();
        least.takes_ns = Some(takes_ns);
        let trials = slowest.iter().map(|(lane, _)| self.judge.lanes[*lane].trials).min()?;
        let trial_ns = takes_ns / least.trials as f64;
        let clock = self.clock;
        let left = |end_ns: u64| end_ns.saturating_sub(clock.now_ns()) as f64;
        // Whoever limits the trials to fewer has said how long it is to take.
        let is_limited = self.judge.config.max_trials.is_some_and(|most| most < least.trials);
        let needed_ns = trial_ns * least.trials.saturating_sub(trials) as f64;
        let longest = self.judge.config.longest_time.filter(|_| is_comparison);
        let wanted_ns = if longest.is_some() { needed_ns * ROOM } else { needed_ns };
        if is_limited || wanted_ns <= left(self.time_ns.end) {
            return None;
        }
        let longest_ns = longest.map(|longest| self.time_ns.start.saturating_add(longest.as_nanos() as u64));
        let is_longer = longest_ns.is_some_and(|longest_ns| needed_ns <= left(longest_ns));
        if is_longer {
            self.time_ns.end = self.now_ns().saturating_add(wanted_ns as u64).min(longest_ns?);
        }
        // A trial that has started ends.
        let allowed = trials + (left(self.time_ns.end) / trial_ns).ceil() as u64;
        Some(Outlook { least, allowed, max_time: self.max_time(), is_longer })
    }

    /// Time that the run may take.
    fn max_time(&self) -> Duration {
        Duration::from_nanos(self.time_ns.end.saturating_sub(self.time_ns.start))
    }

    /// Chooses the lane for the next slice: the one with claims that expects most log-evidence a second, or else the table
    /// with the fewest trials. The choice looks only at the past, so it does not touch validity.
    fn choose(&mut self) -> Option<usize> {
        if self.time_left_ns() == 0 || self.stop.is_asked() {
            return None;
        }
        for lane in 0..self.is_open.len() {
            if self.is_open[lane] && !self.judge.wants_more(lane) {
                self.close(lane);
            }
        }
        let tables_wait = self.tables_wait();
        let is_tables_turn = !tables_wait && self.slices.is_multiple_of(2);
        let score = |lane: usize| {
            let table = 1.0 / (self.judge.lanes[lane].table_trials as f64 + 2.0);
            if self.is_only_table(lane) {
                // After all claims, or before them if it is the tables' turn.
                return (!tables_wait).then_some(if is_tables_turn { f64::MAX * table } else { -1.0 / table });
            }
            let growth: f64 = self.judge.open_claims(lane).map(ClaimJudge::expected_growth).sum();
            Some(growth / self.judge.lanes[lane].cost_ns.max(1.0))
        };
        let open = (0..self.is_open.len()).filter(|&lane| self.is_open[lane]);
        let scored = open.filter_map(|lane| Some((lane, score(lane)?)));
        // Of several that are equal, the first.
        scored.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(lane, _)| lane)
    }

    fn slice(&mut self, lane: usize) -> Result<(), Interrupted> {
        self.slices += 1;
        let slice_ends_ns = self.now_ns().saturating_add(SLICE_NS).min(self.time_ns.end).min(self.precision_ends_ns);
        loop {
            if !self.wait_for_gap(lane) {
                return Ok(());
            }
            self.report_progress_if_due(self.now_ns(), lane);
            self.trial(lane)?;
            if !self.has_looked_ahead && self.piloted == self.is_open.len() {
                self.look_ahead();
            }
            if self.now_ns() >= slice_ends_ns || !self.judge.wants_more(lane) || self.stop.is_asked() {
                return Ok(());
            }
        }
    }

    fn measure(&mut self, block: Block) {
        self.now.begins_trial(block.arms.iter().count(), self.now_ns());
        self.executor.run(block, &mut self.record);
        self.now.rests();
    }

    /// Runs one trial. An interrupted trial counts against either answer: whoever interrupts and continues could
    /// otherwise discard the trials that look bad.
    fn trial(&mut self, lane: usize) -> Result<(), Interrupted> {
        let block = self.judge.issue(lane, self.evidence.as_deref_mut());
        self.measure(block);
        let record = &self.record;
        let mut evidence = self.evidence.as_deref_mut().filter(|_| self.unkept.is_none());
        self.judge.take(record, evidence.as_deref_mut());
        let lane = &mut self.judge.lanes[record.block.map_or(lane, |block: Block| block.lane)];
        if let Some(whole_ns) = record.whole_ns() {
            // The first one measured of those that go on from what was recorded is all that is known.
            let known = if lane.cost_ns == 0.0 { 1.0 } else { lane.trials as f64 };
            lane.cost_ns += (whole_ns - lane.cost_ns) / known.clamp(1.0, 16.0);
        }
        if let Some(Err(error)) = evidence.map(|evidence| evidence.end_trial(lane.cost_ns)) {
            self.lose_evidence(error);
        }
        if self.record.end == End::Whole || self.record.failure.is_some() { Ok(()) } else { Err(Interrupted) }
    }

    /// What can't be written is no reason to lose what is measured.
    fn lose_evidence(&mut self, error: evidence::Error) {
        self.observer.unkept(&error);
        self.unkept = Some(error);
    }

    /// Trials that are to be spread over time start at random moments: a fixed rhythm could beat with
    /// what else the machine does. False when the run ends meanwhile.
    fn wait_for_gap(&mut self, lane: usize) -> bool {
        let Some(gap) = self.judge.config.gap else { return true };
        let seed = self.judge.config.seed ^ self.judge.lanes[lane].trials.rotate_left(32);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let wait_ns = (gap.as_nanos() as f64 * 2.0 * rng.random::<f64>()) as u64;
        let until_ns = self.now_ns().saturating_add(wait_ns).min(self.time_ns.end);
        loop {
            let now_ns = self.now_ns();
            if now_ns >= until_ns || self.stop.is_asked() {
                return now_ns < self.time_ns.end && !self.stop.is_asked();
            }
            self.report_progress_if_due(now_ns, lane);
            self.clock.sleep(Duration::from_nanos((until_ns - now_ns).min(20_000_000)));
        }
    }

    fn report_progress_if_due(&mut self, now_ns: u64, lane: usize) {
        if now_ns < self.next_progress_ns {
            return;
        }
        self.next_progress_ns = now_ns + PROGRESS_NS;
        // Nobody learns of a trial that a kill could still undo.
        let evidence = self.evidence.as_deref_mut().filter(|_| self.unkept.is_none());
        if let Some(Err(error)) = evidence.map(Writer::flush) {
            self.lose_evidence(error);
        }
        let progress = self.progress(now_ns, lane);
        self.observer.progress(&progress);
        let judge = &*self.judge;
        if judge.lanes.iter().any(|lane| lane.trials > 0) && self.observer.outcome_due(now_ns) {
            let outcome = summary::outcome(self.facts, &judge.observations, judge.results_so_far(), false);
            self.observer.outcome(&outcome, &judge.observations);
        }
    }

    fn progress(&self, now_ns: u64, lane: usize) -> Progress {
        let judge = &*self.judge;
        let state = &judge.lanes[lane];
        let (cost_ns, id) = (state.cost_ns, &state.experiment.spec().id);
        let open = judge.open_claims(lane).next();
        let closed = judge.claims.iter().filter(|claim| !claim.is_open());
        let verdicts: Vec<Verdict> = closed.map(|claim| claim.verdict().0).collect();
        let is_early = cost_ns == 0.0 || cost_ns >= SLOW_NS || state.trials < FEW;
        let least = judge.open_claims(lane).filter(|_| is_early).map(|claim| claim.least(None).trials).max();
        Progress {
            at_ns: now_ns,
            elapsed: Duration::from_nanos(now_ns.saturating_sub(self.time_ns.start)),
            max_time: self.max_time(),
            closed: Verdict::ALL.map(|verdict| verdicts.iter().filter(|known| **known == verdict).count()),
            claims: judge.claims.len(),
            what: open.map_or(id, |claim| &claim.claim.id).clone(),
            standing: open.map(ClaimJudge::standing),
            is_comparison: judge.is_comparison(),
            trials: state.trials,
            most_trials: judge.config.most_trials(),
            least,
            trial_ns: (cost_ns > 0.0).then_some(cost_ns),
            now: self.now.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
