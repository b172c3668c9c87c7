//! The state of a run while it is judged: records of trials in, what each claim and each arm has seen out.

use std::collections::VecDeque;

use ascertain_sys::clock;

use super::bound::TrialValues;
use super::diagnostics::FEWEST;
use super::{ClaimJudge, Closed};
use crate::block::{Block, End, Slots, TrialRecord};
use crate::claim::Judging;
use crate::evidence::Writer;
use crate::experiment::{Arm, Experiment, Point, TargetError};
use crate::finding::Reason;
use crate::observations::Observations;
use crate::outcome::ClaimResult;
use crate::plan::Config;
use crate::values::{Bounds, Values};

/// Judges the trials of a run, wherever they were measured.
pub(crate) struct RunJudge<'a> {
    pub lanes: Vec<Lane<'a>>,
    pub claims: Vec<ClaimJudge>,
    pub observations: Observations,
    pub config: Config,
    /// `true` late in a run: tables are then measured although claims are open.
    pub tables_too: bool,
    /// Blocks that are not judged yet, in the order in which they were given out, with the record where it has come: it
    /// waits for those before it, since a verdict from what came first could leave out what is slow.
    issued: VecDeque<(Block, Option<TrialRecord>)>,
    values: Vec<Bounds>,
    scratch: Values,
}

/// Arms of one experiment that are measured together: those of claims that share arms, and of tables.
pub(crate) struct Lane<'a> {
    pub experiment: &'a dyn Experiment,
    pub arms: Vec<Arm>,
    /// Where the observations of each arm go; none of one that this machine can't measure.
    pub observations: Vec<Option<usize>>,
    /// The evidence's number of each arm.
    evidence: Vec<usize>,
    /// Indices of the run's claims.
    pub claims: Vec<usize>,
    /// The arms that a table wants and that have not failed.
    pub table: Slots,
    /// Trials that counted.
    pub trials: u64,
    /// Those of them that held all arms of the table.
    pub table_trials: u64,
    /// The cost of a trial, from the pilot on.
    pub cost_ns: f64,
    /// Whether the run waits for precise medians, and this lane's are not.
    is_coarse: bool,
    /// The medians are looked at again after so many trials.
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

    /// The arm's slot, added when it is new.
    pub fn slot(&mut self, arm: &Arm) -> usize {
        self.arms.iter().position(|known| known == arm).unwrap_or_else(|| {
            self.arms.push(arm.clone());
            self.observations.push(None);
            self.arms.len() - 1
        })
    }

    /// The arms to be measured, with their slots.
    pub fn measurable(&self) -> Vec<(usize, Arm)> {
        let arms = self.arms.iter().zip(&self.observations).enumerate();
        arms.filter(|(_, (_, place))| place.is_some()).map(|(slot, (arm, _))| (slot, arm.clone())).collect()
    }

    /// Whether a table still waits for trials of this lane.
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

    /// Tells the evidence of every arm that may be measured.
    pub fn introduce(&mut self, evidence: &mut Writer) {
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            let spec = lane.experiment.spec();
            lane.evidence = lane.arms.iter().map(|arm| evidence.add_arm(spec, number, arm)).collect();
        }
    }

    /// The lane's claims that are open, or that could go on while the lane's medians are not precise.
    pub fn open_claims(&self, lane: usize) -> impl Iterator<Item = &ClaimJudge> {
        let lane = &self.lanes[lane];
        let claims = lane.claims.iter().map(|&claim| &self.claims[claim]);
        claims.filter(|judge| judge.is_open() || (lane.is_coarse && !judge.is_closed()))
    }

    /// Ends the wait for narrow intervals: answers are enough from now on.
    pub fn forgo_precision(&mut self) {
        self.claims.iter_mut().for_each(ClaimJudge::forgo_precision);
        self.lanes.iter_mut().for_each(|lane| lane.is_coarse = false);
    }

    /// Whether it is comparisons that are judged, whose trials are pairs.
    pub fn is_comparison(&self) -> bool {
        !self.claims.is_empty() && self.claims.iter().all(|judge| judge.claim.judging == Judging::Order)
    }

    /// The slots that the lane's next trial holds: what open claims need, and what the table does. Known before the
    /// order is drawn.
    pub fn wanted(&self, lane: usize) -> Slots {
        let claims = self.open_claims(lane).fold(Slots::default(), |slots, judge| slots.union(judge.slots()));
        let lane = &self.lanes[lane];
        let with_table = match (self.config.exact_trials, self.config.table_trials) {
            // Also where a claim was closed because one of its arms failed: the others go on.
            (Some(_), _) => true,
            // Claims come first; but the table of a comparison holds the arms that it compares.
            (None, Some(_)) => {
                let is_its_turn = claims.is_empty() || self.tables_too || self.is_comparison();
                is_its_turn && lane.table_waits(&self.config)
            }
            (None, None) => !claims.is_empty() || lane.table_waits(&self.config),
        };
        if with_table { claims.union(lane.table) } else { claims }
    }

    /// Whether another trial serves a claim or a table.
    pub fn wants_more(&self, lane: usize) -> bool {
        let most = self.config.most_trials();
        let on_their_way = self.issued.iter().filter(|(block, _)| block.lane == lane).count() as u64;
        let has_room = most.is_none_or(|most| self.lanes[lane].trials + on_their_way < most);
        has_room && !self.wanted(lane).is_empty()
    }

    /// How many open claims a trial of these slots would say something of.
    pub fn learns_from(&self, lane: usize, held: Slots) -> usize {
        self.open_claims(lane).filter(|judge| held.contains(judge.slots())).count()
    }

    /// The lane's next trial that is thrown away.
    pub fn warm_up(&self, lane: usize) -> Block {
        Block { lane, arms: self.wanted(lane), trial: Block::WARM_UP, seed: self.config.seed }
    }

    /// The lane's next trial. The evidence learns that it begins: should this process be killed, that is known.
    pub fn issue(&mut self, lane: usize, evidence: Option<&mut Writer>) -> Block {
        let trial = self.observations.next_trial(&self.lanes[lane].experiment.spec().id);
        let block = Block { lane, arms: self.wanted(lane), trial, seed: self.config.seed };
        if let Some(evidence) = evidence {
            evidence.begin_trial(lane, block.arms);
        }
        self.issued.push_back((block, None));
        block
    }

    /// Takes a record into account, in the evidence too, unless it has come before or is of no trial that was asked
    /// for.
    pub fn take(&mut self, record: &TrialRecord, mut evidence: Option<&mut Writer>) {
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

    /// The blocks that never came back count against both answers, as whatever was cut off does.
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

    /// Reduces the trial's samples to one number a metric, and judges the open claims.
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
                row[index] = metric.reduce.of(of_metric, &mut self.scratch).unwrap_or(Bounds::NONE);
            }
            is_interrupted |= row.contains(&Bounds::UNKNOWN);
            if let Some(place) = lane.observations[arm.slot] {
                self.observations.push(place, number, row);
                self.observations.push_by_key(place, &record.samples.0[arm.samples.clone()]);
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

    /// An arm was opened: its facts are known, or how it failed.
    pub fn learn(&mut self, lane: usize, slot: usize, facts: Result<Point, TargetError>) {
        match (facts, self.lanes[lane].observations[slot]) {
            (Ok(facts), Some(place)) => self.observations.note(place, facts),
            (Ok(_), None) => {}
            (Err(error), _) => self.set_aside(lane, slot, &error),
        }
    }

    /// An arm that failed is measured no more, and neither are the claims that need it.
    pub fn set_aside(&mut self, lane: usize, slot: usize, error: &TargetError) {
        let lane = &mut self.lanes[lane];
        let reason = error.reason(Some(&lane.arms[slot]));
        let is_wrong = matches!(error, TargetError::WrongAnswer(_));
        let arm = Slots::default().with(slot);
        for &claim in &lane.claims {
            let judge = &mut self.claims[claim];
            match judge.slots().contains(arm) {
                true if is_wrong => judge.disqualify(reason.clone()),
                true => judge.close(Closed::For(reason.clone())),
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

    /// Gives the lane up, with all its claims and arms.
    pub fn give_up(&mut self, lane: usize, why: &Reason) {
        let lane = &mut self.lanes[lane];
        for &claim in &lane.claims {
            self.claims[claim].close(Closed::For(why.clone()));
        }
        for &place in lane.observations.iter().flatten() {
            self.observations.leave_out(place, why.clone());
        }
        lane.table = Slots::default();
    }

    /// What became of each claim.
    pub fn results(&mut self) -> Vec<ClaimResult> {
        self.claims.iter_mut().map(ClaimJudge::result).collect()
    }

    /// What would become of each claim now. Looking at a claim moves its interval: copies are looked at.
    pub fn results_so_far(&self) -> Vec<ClaimResult> {
        self.claims.iter().map(|judge| judge.clone().result()).collect()
    }
}
