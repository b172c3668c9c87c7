//! The executor that measures blocks in this process.

use ascertain_sys::interrupt::Stop;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::block::MAX_ARMS;
use crate::block::{Block, End, Executor, FactsBySlot, MeasuredArm, TrialRecord};
use crate::experiment::{Arm, Experiment, Session, Setup, TargetError, Trial};
use crate::now::Now;
use crate::plan::Registry;
use crate::time::Clock;

/// Maximum share of the measuring time that may be spent on verifying answers during the trials.
const VERIFY_SHARE: f64 = 0.02;

/// An executor that measures blocks in this process. It has one session for each lane. A lane is a group of arms that
/// are measured together.
pub(crate) struct LocalExecutor<'a> {
    registry: &'a Registry<'a>,
    setup: Setup,
    now: Now,
    clock: &'a dyn Clock,
    /// The open lanes (groups of arms that are measured together), by their index in the run. The element of a lane
    /// that is not open is `None`.
    lanes: Vec<Option<OpenLane<'a>>>,
}

struct OpenLane<'a> {
    experiment: &'a dyn Experiment,
    session: Box<dyn Session + 'a>,
    /// The [`ArmId`](crate::experiment::ArmId) of each arm in the session, by the arm's slot (its index in the lane).
    ids: [usize; MAX_ARMS],
    verify_cost_ns: f64,
    /// Moving average of the duration of a trial, in nanoseconds.
    cost_ns: f64,
}

impl<'a> LocalExecutor<'a> {
    pub fn new(registry: &'a Registry<'a>, seed: u64, stop: Stop, now: Now, clock: &'a dyn Clock) -> LocalExecutor<'a> {
        LocalExecutor { registry, setup: Setup { seed, stop, now: now.clone() }, now, clock, lanes: Vec::new() }
    }
}

impl Executor for LocalExecutor<'_> {
    fn open(&mut self, lane: usize, experiment: &str, arms: &[(usize, Arm)]) -> Result<FactsBySlot, TargetError> {
        let found = self.registry.iter().find(|known| known.spec().id == experiment);
        let experiment = *found.ok_or_else(|| TargetError::Failed(format!("there is no experiment `{experiment}`")))?;
        let opened: Vec<Arm> = arms.iter().map(|(_, arm)| arm.clone()).collect();
        let mut session = experiment.open(&opened, &self.setup)?;
        let (mut verify_ns, mut found, mut ids) = (0, FactsBySlot::new(), [0; MAX_ARMS]);
        for (id, &(slot, _)) in arms.iter().enumerate() {
            ids[slot] = id;
            let start_ns = self.clock.now_ns();
            let verified = session.verify(id);
            verify_ns += self.clock.now_ns() - start_ns;
            match verified.and_then(|()| session.facts(id)) {
                Err(TargetError::Interrupted) => return Err(TargetError::Interrupted),
                facts => found.push((slot, facts)),
            }
        }
        let verify_cost_ns = verify_ns as f64 / arms.len() as f64;
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, || None);
        }
        self.lanes[lane] = Some(OpenLane { experiment, session, ids, verify_cost_ns, cost_ns: 0.0 });
        Ok(found)
    }

    fn close(&mut self, lane: usize) {
        self.lanes.get_mut(lane).map(Option::take);
    }

    fn run(&mut self, block: Block, record: &mut TrialRecord) {
        record.begin(block);
        let Some(lane) = self.lanes.get_mut(block.lane).and_then(Option::as_mut) else {
            record.end = End::CutOff;
            return;
        };
        let start_ns = self.clock.now_ns();
        lane.measure(block, record, (&self.now, self.clock));
        record.elapsed_ns = self.clock.now_ns() - start_ns;
        if record.end == End::Whole && block.trial != Block::WARM_UP {
            lane.cost_ns += (record.elapsed_ns as f64 - lane.cost_ns) / if lane.cost_ns == 0.0 { 1.0 } else { 16.0 };
            lane.verify_at_random(block, record);
        }
    }
}

impl OpenLane<'_> {
    /// Measures the arms of the block in random order, and stores the samples in `record`. Ends early if an arm fails
    /// or a signal arrives.
    fn measure(&mut self, block: Block, record: &mut TrialRecord, (now, clock): (&Now, &dyn Clock)) {
        let spec = self.experiment.spec();
        let mut rng = trial_rng(block.seed, &spec.id, block.trial);
        let trial = Trial { number: block.trial, seed: rng.random() };
        record.measured.extend(block.arms.iter().map(|slot| MeasuredArm { slot, start_ns: 0, samples: 0..0 }));
        record.measured.shuffle(&mut rng);
        let mut failed = None;
        for arm in &mut record.measured {
            let before = record.samples.0.len();
            arm.start_ns = clock.now_ns();
            now.set_measuring(block.lane, arm.slot, arm.start_ns);
            let measured = self.session.measure(self.ids[arm.slot], &trial, &mut record.samples);
            arm.samples = before..record.samples.0.len();
            match measured {
                Ok(()) => continue,
                Err(TargetError::Interrupted) => {}
                Err(error) => failed = Some((arm.slot, error)),
            }
            record.end = End::CutOff;
            break;
        }
        // The failed arm is not judged, but the trial still counts for claims about other arms. Otherwise a user could
        // discard a trial by making an arm fail or by interrupting the run.
        if let Some((slot, _)) = &failed {
            record.measured.retain(|arm| arm.slot != *slot);
        }
        record.failure = failed;
        if record.end == End::CutOff {
            record.lose_the_rest(&spec.metrics);
        }
    }

    /// Verifies the answer of a randomly chosen arm, with a low probability. On average, verification takes less than
    /// [`VERIFY_SHARE`] of the time.
    fn verify_at_random(&mut self, block: Block, record: &mut TrialRecord) {
        let mut rng = trial_rng(block.seed ^ 1, &self.experiment.spec().id, block.trial);
        let chance = VERIFY_SHARE * self.cost_ns / self.verify_cost_ns.max(1.0);
        let Some(slot) = record.measured.choose(&mut rng).map(|arm| arm.slot) else { return };
        if rng.random::<f64>() >= chance {
            return;
        }
        match self.session.verify(self.ids[slot]) {
            Ok(()) | Err(TargetError::Interrupted) => {}
            Err(error) => record.failure = Some((slot, error)),
        }
    }
}

/// Returns the random number generator for the trial with the index `number`. It depends only on the seed, the
/// experiment and this index, so that the same seed gives the same order of arms.
fn trial_rng(seed: u64, experiment: &str, number: u64) -> Xoshiro256PlusPlus {
    // FNV-1a hash of the experiment's id. The generator mixes the bits further when it is seeded.
    let hash = experiment
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    Xoshiro256PlusPlus::seed_from_u64(seed ^ hash.rotate_left(17) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
