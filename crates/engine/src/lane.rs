//! Lanes: claims and tables that share arms, measured together in randomised trials.

use ascertain_sys::clock;
use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::evidence::Writer;
use crate::experiment::{
    Arm, Experiment, Metric, Reduce, Sample, Samples, Session, Setup, Status, TargetError, Trial,
};
use crate::judging::{ClaimJudge, Closed, TrialValues};
use crate::observations::Observations;

/// The most arms that a trial may hold.
pub(crate) const MAX_ARMS: usize = 16;

/// Checks of results take at most this share of the time.
const VERIFY_SHARE: f64 = 0.02;

/// Arms of one experiment that are measured together.
pub(crate) struct Lane<'a> {
    pub experiment: &'a dyn Experiment,
    pub arms: Vec<Arm>,
    /// The run's number of each arm.
    pub observations: Vec<usize>,
    /// Indices of the run's claims.
    pub claims: Vec<usize>,
    /// Which arms the table wants.
    pub in_table: Vec<bool>,
    /// Why an arm is not measured any more.
    pub broken: Vec<Option<String>>,
    /// Trials that counted.
    pub trials: u64,
    /// The cost of a trial, from the pilot on.
    pub cost_ns: f64,
    verify_cost_ns: f64,
    session: Option<Box<dyn Session + 'a>>,
    values: Vec<f64>,
    samples: Samples,
    starts_ns: Vec<u64>,
    recorded: Vec<(usize, usize)>,
    scratch: Vec<f64>,
}

/// What a lane needs of the run for a trial.
pub(crate) struct Bench<'r> {
    pub claims: &'r mut [ClaimJudge],
    pub observations: &'r mut Observations,
    pub evidence: Option<&'r mut Writer>,
    pub seed: u64,
    pub table_trials: Option<u64>,
}

impl<'a> Lane<'a> {
    pub fn new(experiment: &'a dyn Experiment) -> Lane<'a> {
        Lane {
            experiment,
            arms: Vec::new(),
            observations: Vec::new(),
            claims: Vec::new(),
            in_table: Vec::new(),
            broken: Vec::new(),
            trials: 0,
            cost_ns: 0.0,
            verify_cost_ns: 0.0,
            session: None,
            values: Vec::new(),
            samples: Samples(Vec::with_capacity(1 << 10)),
            starts_ns: Vec::new(),
            recorded: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The arm's slot, added when it is new.
    pub fn slot(&mut self, arm: &Arm, observations: &mut Observations) -> usize {
        if let Some(slot) = self.arms.iter().position(|known| known == arm) {
            return slot;
        }
        self.arms.push(arm.clone());
        self.observations.push(observations.arm(self.experiment.spec(), arm));
        self.in_table.push(false);
        self.broken.push(None);
        self.arms.len() - 1
    }

    /// Opens the arms and checks their answers.
    ///
    /// # Errors
    /// When they can't be opened, or when Ctrl-C came. An arm with a wrong answer is set aside instead.
    pub fn open(&mut self, bench: &mut Bench) -> Result<(), TargetError> {
        let setup = Setup { seed: bench.seed };
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
    pub fn table_waits(&self, table_trials: Option<u64>) -> bool {
        table_trials.is_some_and(|wanted| self.trials < wanted) && self.table_arms().next().is_some()
    }

    fn table_arms(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.arms.len()).filter(|&slot| self.in_table[slot] && self.broken[slot].is_none())
    }

    /// The slots that the next trial holds: what open claims need, and what the table does.
    fn active(&self, bench: &Bench) -> Vec<usize> {
        let table = bench.table_trials.is_none_or(|wanted| self.trials < wanted);
        let mut slots: Vec<usize> = if table { self.table_arms().collect() } else { Vec::new() };
        for &claim in self.claims.iter().filter(|&&claim| bench.claims[claim].is_open()) {
            for arm in bench.claims[claim].claim.arms() {
                slots.extend(self.arms.iter().position(|known| known == arm));
            }
        }
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Runs `trials` trials whose observations are thrown away; the last gives the cost.
    pub fn warm_up(&mut self, trials: u64, bench: &mut Bench) -> Result<(), TargetError> {
        for _ in 0..trials {
            let mut slots = self.active(bench);
            let number = u64::MAX;
            self.measure(&mut slots, number, bench)?;
        }
        Ok(())
    }

    /// Runs one trial: measures each active arm once, in a fresh random order, and judges.
    ///
    /// # Errors
    /// Only `Interrupted`: an arm that fails is set aside with its claims, and the trial is void.
    pub fn trial(&mut self, bench: &mut Bench) -> Result<(), TargetError> {
        let mut slots = self.active(bench);
        if slots.is_empty() {
            return Ok(());
        }
        let number = bench.observations.next_trial(self.experiment.spec());
        let start_ns = clock::now_ns();
        let whole = self.measure(&mut slots, number, bench)?;
        let elapsed_ns = clock::now_ns() - start_ns;
        let weight = 1.0 / (self.trials as f64 + 1.0).min(16.0);
        self.cost_ns += weight * (elapsed_ns as f64 - self.cost_ns);
        if whole {
            self.record(&slots, number, bench);
            self.conclude(&slots, elapsed_ns, bench);
            self.verify_at_random(&slots, number, bench)?;
        }
        Ok(())
    }

    /// Measures the slots in random order, which `slots` is left in. False when one of them failed.
    fn measure(&mut self, slots: &mut [usize], number: u64, bench: &mut Bench) -> Result<bool, TargetError> {
        let spec = self.experiment.spec();
        let mut rng = trial_rng(bench.seed, &spec.id, number);
        let trial = Trial { number, seed: rng.random() };
        slots.shuffle(&mut rng);
        self.samples.0.clear();
        self.starts_ns.clear();
        self.recorded.clear();
        let Some(session) = &mut self.session else { return Ok(false) };
        for &slot in &*slots {
            let before = self.samples.0.len();
            self.starts_ns.push(clock::now_ns());
            match session.measure(slot, &trial, &mut self.samples) {
                Ok(()) => self.recorded.push((before, self.samples.0.len())),
                Err(TargetError::Interrupted) => return Err(TargetError::Interrupted),
                Err(error) => {
                    self.set_aside(slot, &error, bench);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn record(&mut self, slots: &[usize], number: u64, bench: &mut Bench) {
        let Some(evidence) = bench.evidence.as_deref_mut() else { return };
        for (position, &slot) in slots.iter().enumerate() {
            let (from, to) = self.recorded[position];
            let arm = bench.observations.evidence_id(self.observations[slot]);
            evidence.record(arm, number, position as u32, self.starts_ns[position], &self.samples.0[from..to]);
        }
    }

    /// Reduces the trial's samples to one number a metric, and judges the open claims.
    fn conclude(&mut self, slots: &[usize], elapsed_ns: u64, bench: &mut Bench) {
        let metrics = &self.experiment.spec().metrics;
        self.values.clear();
        self.values.resize(self.arms.len() * metrics.len(), f64::NAN);
        for (position, &slot) in slots.iter().enumerate() {
            let (from, to) = self.recorded[position];
            let row = &mut self.values[slot * metrics.len()..][..metrics.len()];
            reduce(metrics, &self.samples.0[from..to], row, &mut self.scratch);
        }
        self.trials += 1;
        for &slot in slots {
            let row = &self.values[slot * metrics.len()..][..metrics.len()];
            bench.observations.push(self.observations[slot], row);
        }
        let values = TrialValues { values: &self.values, metrics: metrics.len() };
        for &claim in &self.claims {
            let judge = &mut bench.claims[claim];
            if judge.is_open()
                && let Err(error) = judge.observe(&values, elapsed_ns)
            {
                judge.close(Closed::Failed(error.to_string()));
            }
        }
    }

    /// Takes a recorded trial into account as if it had just been measured.
    pub fn replay(&mut self, trial: &[(usize, Vec<Sample>)], elapsed_ns: u64, bench: &mut Bench) {
        self.samples.0.clear();
        self.recorded.clear();
        let slots: Vec<usize> = trial.iter().map(|(slot, _)| *slot).collect();
        for (_, samples) in trial {
            let before = self.samples.0.len();
            self.samples.0.extend_from_slice(samples);
            self.recorded.push((before, self.samples.0.len()));
        }
        self.conclude(&slots, elapsed_ns, bench);
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
    fn verify_at_random(&mut self, slots: &[usize], number: u64, bench: &mut Bench) -> Result<(), TargetError> {
        let mut rng = trial_rng(bench.seed ^ 1, &self.experiment.spec().id, number);
        let chance = VERIFY_SHARE * self.cost_ns / self.verify_cost_ns.max(1.0);
        if rng.random::<f64>() < chance {
            let slot = slots[rng.random_range(0..slots.len())];
            self.verify(slot, bench)?;
        }
        Ok(())
    }

    /// An arm that failed is measured no more, and neither are the claims that need it.
    fn set_aside(&mut self, slot: usize, error: &TargetError, bench: &mut Bench) {
        let reason = format!("{}: {error}", self.arms[slot]);
        for &claim in &self.claims {
            let judge = &mut bench.claims[claim];
            if judge.claim.arms().contains(&&self.arms[slot]) {
                judge.close(Closed::Failed(reason.clone()));
            }
        }
        bench.observations.leave_out(self.observations[slot], error.to_string());
        self.broken[slot] = Some(reason);
    }
}

/// The random numbers of a trial: the same seed gives the same plan, and no two trials share a coin.
fn trial_rng(seed: u64, experiment: &str, number: u64) -> Xoshiro256PlusPlus {
    // FNV-1a over the experiment's id; the generator's own seeding mixes the rest.
    let hash = experiment.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Xoshiro256PlusPlus::seed_from_u64(seed ^ hash.rotate_left(17) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// One number a metric of an arm's samples.
fn reduce(metrics: &[Metric], samples: &[Sample], row: &mut [f64], scratch: &mut Vec<f64>) {
    for sample in samples {
        let censored = sample.status == Status::Censored;
        row[sample.metric] = if censored { f64::INFINITY } else { sample.value };
    }
    for (index, metric) in metrics.iter().enumerate() {
        let Reduce::Quantile(q) = metric.reduce else { continue };
        scratch.clear();
        scratch.extend(samples.iter().filter(|sample| sample.metric == index).map(|sample| sample.value));
        scratch.sort_by(f64::total_cmp);
        let rank = ((q * scratch.len() as f64).ceil() as usize).clamp(1, scratch.len().max(1));
        row[index] = scratch.get(rank - 1).copied().unwrap_or(f64::NAN);
    }
}
