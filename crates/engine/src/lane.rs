//! Lanes: claims and tables that share arms, measured together in randomised trials.

use std::ops::Range;

use ascertain_sys::{clock, interrupt};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::bound::TrialValues;
use crate::evidence::Writer;
use crate::experiment::{Arm, Experiment, Metric, Reduce, Sample, Samples, Session, Setup, Status, TargetError, Trial};
use crate::judging::{ClaimJudge, Closed};
use crate::observations::Observations;
use crate::plan::Config;
use crate::slots::Slots;
use crate::values::{Bounds, Values};

/// Checks of results take at most this share of the time.
const VERIFY_SHARE: f64 = 0.02;

/// The number of trials that are thrown away.
const WARM_UP: u64 = u64::MAX;

/// Arms of one experiment that are measured together.
pub(crate) struct Lane<'a> {
    pub experiment: &'a dyn Experiment,
    pub arms: Vec<Arm>,
    /// The run's number of each arm.
    pub observations: Vec<usize>,
    /// Indices of the run's claims.
    pub claims: Vec<usize>,
    /// The arms that a table wants and that have not failed.
    pub table: Slots,
    /// Trials that counted.
    pub trials: u64,
    /// The cost of a trial, from the pilot on.
    pub cost_ns: f64,
    verify_cost_ns: f64,
    session: Option<Box<dyn Session + 'a>>,
    /// The trial's arms in the order in which they are measured.
    measured: Vec<Measured>,
    samples: Samples,
    values: Vec<Bounds>,
    scratch: Values,
}

/// One arm of a trial.
struct Measured {
    slot: usize,
    start_ns: u64,
    /// Its samples among those of the trial.
    samples: Range<usize>,
}

/// What a lane needs of the run for a trial.
pub(crate) struct Bench<'r> {
    pub claims: &'r mut [ClaimJudge],
    pub observations: &'r mut Observations,
    pub evidence: Option<&'r mut Writer>,
    pub config: &'r Config,
}

impl<'a> Lane<'a> {
    pub fn new(experiment: &'a dyn Experiment) -> Lane<'a> {
        Lane {
            experiment,
            arms: Vec::new(),
            observations: Vec::new(),
            claims: Vec::new(),
            table: Slots::default(),
            trials: 0,
            cost_ns: 0.0,
            verify_cost_ns: 0.0,
            session: None,
            measured: Vec::new(),
            samples: Samples(Vec::with_capacity(1 << 10)),
            values: Vec::new(),
            scratch: Values::default(),
        }
    }

    /// The arm's slot, added when it is new.
    pub fn slot(&mut self, arm: &Arm, observations: &mut Observations) -> usize {
        if let Some(slot) = self.arms.iter().position(|known| known == arm) {
            return slot;
        }
        self.arms.push(arm.clone());
        self.observations.push(observations.arm(self.experiment.spec(), arm));
        self.arms.len() - 1
    }

    /// Opens the arms and checks their answers.
    ///
    /// # Errors
    /// When they can't be opened, or when Ctrl-C came. An arm with a wrong answer is set aside instead.
    pub fn open(&mut self, bench: &mut Bench) -> Result<(), TargetError> {
        let setup = Setup { seed: bench.config.seed };
        self.session = Some(self.experiment.open(&self.arms, &setup)?);
        let start_ns = clock::now_ns();
        for slot in 0..self.arms.len() {
            self.verify(slot, bench)?;
        }
        self.verify_cost_ns = (clock::now_ns() - start_ns) as f64 / self.arms.len() as f64;
        Ok(())
    }

    /// Whether the arms are open.
    pub fn is_open(&self) -> bool {
        self.session.is_some()
    }

    /// Undoes what opening did.
    pub fn shut(&mut self) {
        self.session = None;
    }

    /// Whether a table still waits for trials of this lane.
    pub fn table_waits(&self, config: &Config) -> bool {
        config.table_trials.is_some_and(|wanted| self.trials < wanted) && !self.table.is_empty()
    }

    /// The slots that the next trial holds: what open claims need, and what the table does. Known before
    /// the order is drawn.
    fn wanted(&self, bench: &Bench) -> Slots {
        let open = self.claims.iter().map(|&claim| &bench.claims[claim]).filter(|judge| judge.is_open());
        let claims = open.fold(Slots::default(), |slots, judge| slots.union(judge.slots()));
        let with_table = match (bench.config.exact_trials, bench.config.table_trials) {
            (Some(_), _) => self.claims.is_empty() || !claims.is_empty(),
            (None, Some(_)) => self.table_waits(bench.config),
            (None, None) => !claims.is_empty(),
        };
        if with_table { claims.union(self.table) } else { claims }
    }

    /// Whether another trial serves a claim or a table.
    pub fn wants_more(&self, bench: &Bench) -> bool {
        let most = bench.config.exact_trials.or(bench.config.max_trials);
        most.is_none_or(|most| self.trials < most) && !self.wanted(bench).is_empty()
    }

    /// Runs a trial whose observations are thrown away, and learns what a trial costs.
    ///
    /// # Errors
    /// Only `Interrupted`.
    pub fn warm_up(&mut self, bench: &mut Bench) -> Result<(), TargetError> {
        if interrupt::requested() {
            return Err(TargetError::Interrupted);
        }
        let start_ns = clock::now_ns();
        self.measure(self.wanted(bench), WARM_UP, bench)?;
        self.cost_ns = (clock::now_ns() - start_ns) as f64;
        Ok(())
    }

    /// Runs one trial: measures each arm that is wanted once, in a fresh random order, and judges.
    ///
    /// # Errors
    /// Only `Interrupted`. What had been seen by then counts: a run that is interrupted and continued would else lose its
    /// slow trials. Where an arm fails it is set aside with its claims, and the trial is void.
    pub fn trial(&mut self, bench: &mut Bench) -> Result<(), TargetError> {
        let number = bench.observations.next_trial(&self.experiment.spec().id);
        let start_ns = clock::now_ns();
        let whole = match self.measure(self.wanted(bench), number, bench) {
            // Before anything was measured, as in a preparation, there is nothing to lose.
            Err(TargetError::Interrupted) if self.samples.0.is_empty() => return Err(TargetError::Interrupted),
            Err(TargetError::Interrupted) => {
                self.lose_the_rest();
                self.record(number, bench);
                self.conclude(number, clock::now_ns() - start_ns, bench);
                return Err(TargetError::Interrupted);
            }
            measured => measured?,
        };
        let elapsed_ns = clock::now_ns() - start_ns;
        let weight = 1.0 / (self.trials as f64 + 1.0).min(16.0);
        self.cost_ns += weight * (elapsed_ns as f64 - self.cost_ns);
        if whole {
            self.record(number, bench);
            self.conclude(number, elapsed_ns, bench);
            self.verify_at_random(number, bench)?;
        }
        Ok(())
    }

    /// Measures the slots in random order. False when one of them failed.
    fn measure(&mut self, slots: Slots, number: u64, bench: &mut Bench) -> Result<bool, TargetError> {
        let mut rng = trial_rng(bench.config.seed, &self.experiment.spec().id, number);
        let trial = Trial { number, seed: rng.random() };
        self.measured.clear();
        self.measured.extend(slots.iter().map(|slot| Measured { slot, start_ns: 0, samples: 0..0 }));
        self.measured.shuffle(&mut rng);
        self.samples.0.clear();
        if let Some(evidence) = bench.evidence.as_deref().filter(|_| number != WARM_UP) {
            let arms = self.measured.iter().map(|arm| bench.observations.evidence_id(self.observations[arm.slot]));
            evidence.begin_trial(number, arms);
        }
        for position in 0..self.measured.len() {
            let Some(session) = &mut self.session else { return Ok(false) };
            let arm = &mut self.measured[position];
            let before = self.samples.0.len();
            arm.start_ns = clock::now_ns();
            let measured = session.measure(arm.slot, &trial, &mut self.samples);
            arm.samples = before..self.samples.0.len();
            match measured {
                Ok(()) => {}
                Err(TargetError::Interrupted) => return Err(TargetError::Interrupted),
                Err(error) => {
                    let slot = arm.slot;
                    self.set_aside(slot, &error, bench);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// What the trial did not come to see could be anything, and so could the quantile of samples that are not all there.
    fn lose_the_rest(&mut self) {
        let metrics = &self.experiment.spec().metrics;
        let seen = std::mem::take(&mut self.samples.0);
        for arm in &mut self.measured {
            let seen = &seen[arm.samples.clone()];
            let before = self.samples.0.len();
            self.samples.0.extend_from_slice(seen);
            let has = |metric: usize| seen.iter().any(|sample| sample.metric == metric);
            if !(0..metrics.len()).all(has) {
                let is_lost = |metric: &usize| !has(*metric) || metrics[*metric].reduce != Reduce::Value;
                (0..metrics.len()).filter(is_lost).for_each(|metric| self.samples.push_sample(Sample::lost(metric)));
            }
            arm.samples = before..self.samples.0.len();
        }
    }

    fn record(&mut self, number: u64, bench: &mut Bench) {
        let Some(evidence) = bench.evidence.as_deref_mut() else { return };
        for (position, arm) in self.measured.iter().enumerate() {
            let id = bench.observations.evidence_id(self.observations[arm.slot]);
            let samples = &self.samples.0[arm.samples.clone()];
            evidence.record(id, number, position as u32, arm.start_ns, samples);
        }
    }

    /// Reduces the trial's samples to one number a metric, and judges the open claims.
    fn conclude(&mut self, number: u64, elapsed_ns: u64, bench: &mut Bench) {
        let metrics = &self.experiment.spec().metrics;
        self.trials += 1;
        self.values.clear();
        self.values.resize(self.arms.len() * metrics.len(), Bounds::NONE);
        // Of an arm that is measured alone nothing may have been learnt when a signal came early. Of several, who had come
        // first had been, which is what the coin is for.
        let (mut is_interrupted, mut says_nothing) = (false, self.measured.len() == 1);
        for arm in &self.measured {
            let row = &mut self.values[arm.slot * metrics.len()..][..metrics.len()];
            reduce(metrics, &self.samples.0[arm.samples.clone()], row, &mut self.scratch);
            is_interrupted |= row.contains(&Bounds::UNKNOWN);
            says_nothing &= !bench.observations.push(self.observations[arm.slot], row);
        }
        let values = TrialValues {
            number,
            values: &self.values,
            metrics: metrics.len(),
            held: self.measured.iter().map(|arm| arm.slot).collect(),
            last: self.measured.last().map(|arm| arm.slot),
            is_interrupted,
            says_nothing,
        };
        for &claim in &self.claims {
            bench.claims[claim].observe(&values, elapsed_ns);
        }
    }

    /// How many open claims a trial of these slots would say something of.
    pub fn learns_from(&self, slots: impl Iterator<Item = usize>, bench: &Bench) -> usize {
        let held: Slots = slots.collect();
        let claims = self.claims.iter().map(|&claim| &bench.claims[claim]);
        claims.filter(|judge| judge.is_open() && held.contains(judge.slots())).count()
    }

    /// Takes a recorded trial into account as if it had just been measured: the slot, the metric and what is known of each
    /// sample, one slot after the other.
    pub fn replay(&mut self, number: u64, samples: impl Iterator<Item = (usize, usize, Bounds)>, bench: &mut Bench) {
        self.samples.0.clear();
        self.measured.clear();
        for (slot, metric, bounds) in samples {
            let before = self.samples.0.len();
            let (value, status) = match bounds {
                Bounds::UNKNOWN => (f64::NAN, Status::Lost),
                Bounds { low, high } if low < high => (low, Status::Censored),
                Bounds { low, .. } => (low, Status::Ok),
            };
            self.samples.push_with(metric, value, status);
            match self.measured.last_mut() {
                Some(arm) if arm.slot == slot => arm.samples.end += 1,
                _ => self.measured.push(Measured { slot, start_ns: 0, samples: before..before + 1 }),
            }
        }
        self.conclude(number, 0, bench);
    }

    fn verify(&mut self, slot: usize, bench: &mut Bench) -> Result<(), TargetError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        match session.verify(slot) {
            Err(TargetError::Interrupted) => Err(TargetError::Interrupted),
            Err(error) => {
                self.set_aside(slot, &error, bench);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Checks one arm's answer now and then, such that checking takes its small share of the time.
    fn verify_at_random(&mut self, number: u64, bench: &mut Bench) -> Result<(), TargetError> {
        let mut rng = trial_rng(bench.config.seed ^ 1, &self.experiment.spec().id, number);
        let chance = VERIFY_SHARE * self.cost_ns / self.verify_cost_ns.max(1.0);
        match self.measured.choose(&mut rng).map(|arm| arm.slot) {
            Some(slot) if rng.random::<f64>() < chance => self.verify(slot, bench),
            _ => Ok(()),
        }
    }

    /// An arm that failed is measured no more, and neither are the claims that need it.
    fn set_aside(&mut self, slot: usize, error: &TargetError, bench: &mut Bench) {
        let reason = format!("{}: {error}", self.arms[slot]);
        let is_wrong = matches!(error, TargetError::WrongAnswer(_));
        let arm = Slots::default().with(slot);
        for &claim in &self.claims {
            let judge = &mut bench.claims[claim];
            match judge.slots().contains(arm) {
                true if is_wrong => judge.discredit(reason.clone()),
                true => judge.close(Closed::Failed(reason.clone())),
                false => {}
            }
        }
        self.table = self.table.without(slot);
        let number = self.observations[slot];
        bench.observations.leave_out(number, Closed::Failed(error.to_string()));
        if is_wrong {
            bench.observations.forget(number);
        }
    }

    /// Gives the lane up, with all its claims and arms.
    pub fn give_up(&mut self, why: &Closed, bench: &mut Bench) {
        for &claim in &self.claims {
            bench.claims[claim].close(why.clone());
        }
        for &arm in &self.observations {
            bench.observations.leave_out(arm, why.clone());
        }
        self.table = Slots::default();
        self.shut();
    }
}

/// The random numbers of a trial: the same seed gives the same plan, and no two trials share a coin.
fn trial_rng(seed: u64, experiment: &str, number: u64) -> Xoshiro256PlusPlus {
    // FNV-1a over the experiment's id; the generator's own seeding mixes the rest.
    let hash = experiment
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    Xoshiro256PlusPlus::seed_from_u64(seed ^ hash.rotate_left(17) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// What is known of the one number that each metric of an arm's samples comes to.
fn reduce(metrics: &[Metric], samples: &[Sample], row: &mut [Bounds], scratch: &mut Values) {
    for sample in samples {
        row[sample.metric] = sample.bounds();
    }
    // Of several the last one is the number, but where a quantile is.
    for (index, metric) in metrics.iter().enumerate().filter(|(_, metric)| metric.reduce != Reduce::Value) {
        scratch.clear();
        scratch.extend(samples.iter().filter(|sample| sample.metric == index).map(Sample::bounds));
        row[index] = metric.reduce.of(scratch).unwrap_or(Bounds::NONE);
    }
}
