//! The judge of a run. It passes the records of trials to the claims and collects the values of the arms.

use std::collections::VecDeque;

use ascertain_sys::clock;

use super::bound::TrialValues;
use super::diagnostics::FEWEST;
use super::{ClaimJudge, ClosedReason};
use crate::block::{Block, End, Slots, TrialRecord};
use crate::claim::Judging;
use crate::evidence::Writer;
use crate::experiment::{Arm, Experiment, Point, TargetError};
use crate::finding::Reason;
use crate::observations::Observations;
use crate::outcome::ClaimResult;
use crate::plan::Config;
use crate::values::{Bounds, Values};

/// Judges the trials of a run, whichever executor has measured them.
pub(crate) struct RunJudge<'a> {
    pub lanes: Vec<Lane<'a>>,
    pub claims: Vec<ClaimJudge>,
    pub observations: Observations,
    pub config: Config,
    /// `true` late in a run, when the arms of tables are measured even if claims are still open. Before that, claims
    /// have priority.
    pub tables_too: bool,
    /// The trials that were issued but not judged yet, the oldest first. Each trial has its block (the instruction to
    /// measure the trial), and its record once the record has arrived. A record is judged only after all earlier
    /// records, because otherwise the fast trials alone could give a verdict.
    issued: VecDeque<(Block, Option<TrialRecord>)>,
    values: Vec<Bounds>,
    scratch: Values,
}

/// A lane: arms of one experiment that are measured together. Claims that share arms are in the same lane. A lane may
/// also contain arms of tables.
pub(crate) struct Lane<'a> {
    pub experiment: &'a dyn Experiment,
    pub arms: Vec<Arm>,
    /// For each arm, its index in [`RunJudge::observations`]; `None` if this machine cannot measure the arm.
    pub observations: Vec<Option<usize>>,
    /// For each arm, its index for [`Writer::record`].
    evidence: Vec<usize>,
    /// Indices of the lane's claims in [`RunJudge::claims`].
    pub claims: Vec<usize>,
    /// The slots (indices in the lane) of those arms that a table needs and that have not failed.
    pub table: Slots,
    /// Number of trials so far, without warm-up trials.
    pub trials: u64,
    /// Number of trials so far that contained all arms of the table.
    pub table_trials: u64,
    /// Estimated time of a trial in nanoseconds; 0 before the first warm-up trial of the lane.
    pub cost_ns: f64,
    /// `true` if the run waits for precise medians, and a median of this lane's arms is not precise yet.
    is_coarse: bool,
    /// Number of trials at which the precision of the medians is next checked.
    next_look: u64,
}

impl<'a> Lane<'a> {
    pub fn new(experiment: &'a dyn Experiment) -> Lane<'a> {
        let (arms, observations, evidence, claims) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (table, trials, table_trials) = (Slots::default(), 0, 0);
        Lane {
            experiment,
            arms,
            observations,
            evidence,
            claims,
            table,
            trials,
            table_trials,
            cost_ns: 0.0,
            is_coarse: false,
            next_look: 1,
        }
    }

    /// Returns the slot of the arm, its index in the lane. Adds the arm if the lane does not have it yet.
    pub fn slot(&mut self, arm: &Arm) -> usize {
        self.arms.iter().position(|known| known == arm).unwrap_or_else(|| {
            self.arms.push(arm.clone());
            self.observations.push(None);
            self.arms.len() - 1
        })
    }

    /// Returns the arms that this machine can measure, with their slots.
    pub fn measurable(&self) -> Vec<(usize, Arm)> {
        let arms = self.arms.iter().zip(&self.observations).enumerate();
        arms.filter(|(_, (_, place))| place.is_some()).map(|(slot, (arm, _))| (slot, arm.clone())).collect()
    }

    /// Returns whether a table still needs trials of this lane: too few were measured, or a median is not precise yet.
    pub fn table_waits(&self, config: &Config) -> bool {
        let has_too_few = config.table_trials.is_some_and(|wanted| self.table_trials < wanted);
        (has_too_few || self.is_coarse) && !self.table.is_empty()
    }
}

impl<'a> RunJudge<'a> {
    pub fn new(mut lanes: Vec<Lane<'a>>, claims: Vec<ClaimJudge>, observations: Observations, config: &Config) -> Self {
        let config = config.clone();
        lanes.iter_mut().for_each(|lane| lane.is_coarse = config.median_precision.is_some());
        Self {
            lanes,
            claims,
            observations,
            config,
            tables_too: false,
            issued: VecDeque::new(),
            values: Vec::new(),
            scratch: Values::default(),
        }
    }

    /// Registers the arms of all lanes (groups of arms) with the writer of the evidence.
    pub fn introduce(&mut self, evidence: &mut Writer) {
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            let spec = lane.experiment.spec();
            lane.evidence = lane.arms.iter().map(|arm| evidence.add_arm(spec, number, arm)).collect();
        }
    }

    /// Returns the open claims of the lane. While a median of the lane is not precise, also returns claims that have an
    /// answer but can count more trials.
    pub fn open_claims(&self, lane: usize) -> impl Iterator<Item = &ClaimJudge> {
        let lane = &self.lanes[lane];
        let claims = lane.claims.iter().map(|&claim| &self.claims[claim]);
        claims.filter(|judge| judge.is_open() || (lane.is_coarse && !judge.is_closed()))
    }

    /// Stops waiting for precise intervals. From now on, answers are enough.
    pub fn forgo_precision(&mut self) {
        self.claims.iter_mut().for_each(ClaimJudge::forgo_precision);
        self.lanes.iter_mut().for_each(|lane| lane.is_coarse = false);
    }

    /// Returns whether the run has claims that all compare two arms. Its trials are then called pairs.
    pub fn is_comparison(&self) -> bool {
        !self.claims.is_empty() && self.claims.iter().all(|judge| judge.claim.asked.judging == Judging::Order)
    }

    /// Returns the slots (indices in the lane) of the arms to measure in the next trial, for open claims and for the
    /// table. They are determined before the random order of the arms is drawn.
    pub fn wanted(&self, lane: usize) -> Slots {
        let claims = self.open_claims(lane).fold(Slots::default(), |slots, judge| slots.union(judge.slots()));
        let lane = &self.lanes[lane];
        let with_table = match (self.config.exact_trials, self.config.table_trials) {
            // An exact number of trials measures all arms of the table. If one arm failed and its claims were closed,
            // the others are still measured.
            (Some(_), _) => true,
            // Claims have priority over tables. But the table of a comparison has the same arms as the comparison.
            (None, Some(_)) => {
                let is_its_turn = claims.is_empty() || self.tables_too || self.is_comparison();
                is_its_turn && lane.table_waits(&self.config)
            }
            (None, None) => !claims.is_empty() || lane.table_waits(&self.config),
        };
        if with_table { claims.union(lane.table) } else { claims }
    }

    /// Returns whether a claim or a table needs another trial of this lane, and the maximum number of trials allows it.
    pub fn wants_more(&self, lane: usize) -> bool {
        let most = self.config.most_trials();
        let on_their_way = self.issued.iter().filter(|(block, _)| block.lane == lane).count() as u64;
        let has_room = most.is_none_or(|most| self.lanes[lane].trials + on_their_way < most);
        has_room && !self.wanted(lane).is_empty()
    }

    /// Returns the number of the lane's open claims that can use a trial of the arms in `held`.
    fn learns_from(&self, lane: usize, held: Slots) -> usize {
        self.open_claims(lane).filter(|judge| held.contains(judge.slots())).count()
    }

    /// Returns the block for a warm-up trial of the lane (group of arms). A block tells the executor to measure a
    /// trial. The values of a warm-up trial are discarded.
    pub fn warm_up(&self, lane: usize) -> Block {
        Block { lane, arms: self.wanted(lane), trial: Block::WARM_UP, seed: self.config.seed }
    }

    /// Returns the block for the next trial of the lane (group of arms). A block tells the executor to measure a trial.
    /// The evidence notes that the trial has begun, so that a kill of this process cannot hide the trial.
    pub fn issue(&mut self, lane: usize, evidence: Option<&mut Writer>) -> Block {
        let trial = self.observations.next_trial(&self.lanes[lane].experiment.spec().id);
        let block = Block { lane, arms: self.wanted(lane), trial, seed: self.config.seed };
        if let Some(evidence) = evidence {
            evidence.begin_trial(lane, block.arms);
        }
        self.issued.push_back((block, None));
        block
    }

    /// Adds the record of a trial to the evidence and judges the trial, once the records of all earlier trials have
    /// arrived. Ignores a record that has already arrived, and a record of a block that was never issued.
    pub fn observe(&mut self, record: &TrialRecord, mut evidence: Option<&mut Writer>) {
        match self.issued.iter().position(|(block, _)| Some(*block) == record.block) {
            None => return,
            Some(0) => {
                self.issued.pop_front();
                self.judge(record, evidence.as_deref_mut());
            }
            Some(place) => _ = self.issued[place].1.get_or_insert_with(|| record.clone()),
        }
        while let Some((_, Some(_))) = self.issued.front() {
            let next = self.issued.pop_front().and_then(|(_, record)| record);
            next.iter().for_each(|record| self.judge(record, evidence.as_deref_mut()));
        }
    }

    fn judge(&mut self, record: &TrialRecord, evidence: Option<&mut Writer>) {
        let Some(block) = record.block else { return };
        let held = record.measured.iter().map(|arm| arm.slot).collect();
        let is_void = record.end == End::CutOff && record.failure.is_some() && self.learns_from(block.lane, held) == 0;
        if !is_void {
            self.keep(block, record, evidence);
            self.conclude(block.lane, block.trial, record);
        }
        if let Some((slot, error)) = &record.failure {
            self.set_aside(block.lane, *slot, error);
        }
    }

    /// Records as lost all trials whose records never arrived. These trials count as evidence against both answers,
    /// like all trials that were cut off.
    pub fn lose_the_rest(&mut self, mut evidence: Option<&mut Writer>) {
        while let Some((block, record)) = self.issued.pop_front() {
            let metrics = &self.lanes[block.lane].experiment.spec().metrics;
            let record = record.unwrap_or_else(|| TrialRecord::lost(block, metrics));
            self.judge(&record, evidence.as_deref_mut());
        }
    }

    fn keep(&mut self, block: Block, record: &TrialRecord, evidence: Option<&mut Writer>) {
        let Some(evidence) = evidence else { return };
        let lane = &self.lanes[block.lane];
        for (position, arm) in record.measured.iter().enumerate() {
            let start_ns = if arm.start_ns == 0 { clock::now_ns() } else { arm.start_ns };
            let samples = &record.samples.0[arm.samples.clone()];
            evidence.record(lane.evidence[arm.slot], block.trial, position as u32, start_ns, samples);
        }
    }

    /// Reduces the samples of trial `number` to one number per metric and arm, and judges the lane's claims by them.
    pub fn conclude(&mut self, lane: usize, number: u64, record: &TrialRecord) {
        let lane = &mut self.lanes[lane];
        let metrics = &lane.experiment.spec().metrics;
        lane.trials += 1;
        let held: Slots = record.measured.iter().map(|arm| arm.slot).collect();
        lane.table_trials += u64::from(held.contains(lane.table));
        self.values.clear();
        self.values.resize(lane.arms.len() * metrics.len(), Bounds::NONE);
        let mut is_interrupted = false;
        for arm in &record.measured {
            let row = &mut self.values[arm.slot * metrics.len()..][..metrics.len()];
            for (index, metric) in metrics.iter().enumerate() {
                let samples = record.samples.0[arm.samples.clone()].iter();
                let of_metric = samples.filter(|sample| sample.metric == index).map(|sample| sample.bounds());
                row[index] = metric.reduce.apply(of_metric, &mut self.scratch).unwrap_or(Bounds::NONE);
            }
            is_interrupted |= row.contains(&Bounds::UNKNOWN);
            if let Some(place) = lane.observations[arm.slot] {
                self.observations.push(place, number, row);
                self.observations.push_by_key(place, number, &record.samples.0[arm.samples.clone()]);
            }
        }
        let values = TrialValues {
            number,
            values: &self.values,
            metrics: metrics.len(),
            held,
            last: record.measured.last().map(|arm| arm.slot),
            is_interrupted,
            whole_ns: record.whole_ns(),
        };
        for &claim in &lane.claims {
            self.claims[claim].observe(&values, record.elapsed_ns);
        }
        if let Some(wanted) = self.config.median_precision.filter(|_| lane.is_coarse && lane.trials >= lane.next_look) {
            lane.next_look = lane.trials + 1 + lane.trials / 20;
            let mut medians = lane.table.iter().filter_map(|slot| lane.observations[slot]);
            lane.is_coarse = (!lane.claims.is_empty() && lane.trials < FEWEST as u64)
                || medians.any(|arm| self.observations.median_precision(arm).is_none_or(|half| half > wanted));
        }
    }

    /// Stores the facts about an arm: properties of the system that were found out when the arm was opened. If opening
    /// it failed, stops measuring the arm.
    pub fn learn(&mut self, lane: usize, slot: usize, facts: Result<Point, TargetError>) {
        match (facts, self.lanes[lane].observations[slot]) {
            (Ok(facts), Some(place)) => self.observations.note(place, facts),
            (Ok(_), None) => {}
            (Err(error), _) => self.set_aside(lane, slot, &error),
        }
    }

    /// Stops measuring an arm that failed, and closes the claims that need it.
    pub fn set_aside(&mut self, lane: usize, slot: usize, error: &TargetError) {
        let lane = &mut self.lanes[lane];
        let reason = error.reason(Some(&lane.arms[slot]));
        let is_wrong = matches!(error, TargetError::WrongAnswer(_));
        let arm = Slots::default().with(slot);
        for &claim in &lane.claims {
            let judge = &mut self.claims[claim];
            match judge.slots().contains(arm) {
                true if is_wrong => judge.disqualify(reason.clone()),
                true => judge.close(ClosedReason::NotJudged(reason.clone())),
                false => {}
            }
        }
        lane.table = lane.table.without(slot);
        let Some(place) = lane.observations[slot] else { return };
        self.observations.leave_out(place, error.reason(None));
        if is_wrong {
            self.observations.forget(place);
        }
    }

    /// Closes all claims of the lane and stops measuring its arms. `why` is the reason.
    pub fn give_up(&mut self, lane: usize, why: &Reason) {
        let lane = &mut self.lanes[lane];
        for &claim in &lane.claims {
            self.claims[claim].close(ClosedReason::NotJudged(why.clone()));
        }
        for &place in lane.observations.iter().flatten() {
            self.observations.leave_out(place, why.clone());
        }
        lane.table = Slots::default();
    }

    /// Returns the result of each claim.
    pub fn results(&mut self) -> Vec<ClaimResult> {
        let mut results: Vec<ClaimResult> = self.claims.iter_mut().map(ClaimJudge::result).collect();
        self.add_time_of_run(&mut results);
        results
    }

    /// Adds the time that all claims need together to each reason that there was too little time. Claims of one lane share
    /// its trials, so the slowest claim of each lane counts. A lane without such a claim needs the time that it took.
    fn add_time_of_run(&self, results: &mut [ClaimResult]) {
        let needed_ns = |reason: &Reason| match reason {
            Reason::TooLong { needed_ns, .. } => Some(*needed_ns),
            Reason::TooEarly { least, .. } => least.takes_ns,
            _ => None,
        };
        let of_lane = |lane: &Lane| {
            let reasons = lane.claims.iter().flat_map(|claim| &results[*claim].reasons);
            reasons.filter_map(needed_ns).fold(lane.trials as f64 * lane.cost_ns, f64::max)
        };
        let all_ns: f64 = self.lanes.iter().map(of_lane).sum();
        for reason in results.iter_mut().flat_map(|result| &mut result.reasons) {
            let is_known = needed_ns(&*reason).is_some();
            if let Reason::TooLong { run_ns, .. } | Reason::TooEarly { run_ns, .. } = reason {
                *run_ns = is_known.then_some(all_ns);
            }
        }
    }

    /// Returns the result that each claim would have if the run ended now. Works on copies of the judges, because
    /// computing a result changes a claim's interval.
    pub fn results_so_far(&self) -> Vec<ClaimResult> {
        self.claims.iter().map(|judge| judge.clone().result()).collect()
    }
}
