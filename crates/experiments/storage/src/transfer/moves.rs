//! Files on their way, and how long that takes.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ascertain_engine::experiment::{Arm, ArmId, Point, Samples, Session, Setup, TargetError, Trial};
use ascertain_experiments_networks::links::{failed, wait, watched};
use ascertain_sys::interrupt::Stop;
use ascertain_transfer::model::Plan;
use ascertain_transfer::{
    Attempt, Block, Found, Mover, Observer, Progress, PutOptions, Stop as Token, Store, Terms, crc64, crc64_of_blocks,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use super::places::{Place, place_of, scale_of, scaled};
use super::source::Source;
use super::{BLOCK, BLOCKS, CONNECTIONS, EXPECTED, LATE, MODEL, MOVED, OFF, PROBED, RATE, REQUESTS, TIME, blocks};

/// How often it is looked whether somebody asked for the end.
const LOOK: Duration = Duration::from_millis(20);
/// What is read back at a time.
const PIECE_BYTES: u64 = 8 << 20;

struct Moves {
    targets: Vec<Target>,
    runtime: Runtime,
    stop: Stop,
    seed: u64,
}

struct Target {
    place: Rc<Place>,
    source: Arc<Source>,
    way: Way,
    /// What a byte of the file stands for.
    scale: f64,
    /// Nobody else's in the store.
    name: String,
}

#[derive(Clone, Copy)]
enum Way {
    OneStream,
    Blocks { block_bytes: u64, connections: usize },
    Model,
}

/// What was seen of a move.
struct Seen {
    elapsed: Duration,
    requests: u64,
    plan: Option<(Plan, u64)>,
}

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Ok(Box::new(Moves::open(arms, setup)?))
}

fn way_of(arm: &Arm) -> Result<Way, TargetError> {
    Ok(match arm.variant.as_str() {
        BLOCKS => Way::Blocks { block_bytes: scaled(arm, "block")?, connections: arm.integer("connections")? as usize },
        MODEL => Way::Model,
        _ => Way::OneStream,
    })
}

impl Moves {
    /// Arms share what they can: places, and files of one size.
    fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let (mut places, mut sources) = (BTreeMap::new(), BTreeMap::new());
        let mut targets = Vec::new();
        for arm in arms {
            let key = place_of(arm);
            let place = match places.get(&key) {
                Some(place) => Rc::clone(place),
                None => Rc::new(Place::of(arm)?),
            };
            places.insert(key, place.clone());
            let bytes = scaled(arm, "size")?;
            let source = match sources.get(&bytes) {
                Some(source) => Arc::clone(source),
                None => Arc::new(Source::new(bytes, setup.seed).map_err(failed)?),
            };
            sources.insert(bytes, source.clone());
            let way = way_of(arm)?;
            let name = format!("ascertain-{:016x}", rand::random::<u64>());
            targets.push(Target { place, source, way, scale: scale_of(arm)? as f64, name });
        }
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(failed)?;
        Ok(Self { targets, runtime, stop: setup.stop.clone(), seed: setup.seed })
    }

    /// Moves the file, looks at what came of it, and takes it away again, whatever happens: what the next move leaves
    /// would not be told from it.
    fn moved(&self, target: &Target, reads_back: bool) -> Result<Seen, TargetError> {
        let found = || target.place.open(&target.name).map_err(failed);
        let to = found()?;
        let after = found()?;
        let (store, name): (Arc<dyn Store>, String) = (after.store.into(), after.name);
        self.runtime.block_on(async {
            let began = Instant::now();
            let moved = target.put(to, &self.stop, self.seed).await;
            let elapsed = began.elapsed();
            let seen = moved.map(|(requests, plan)| Seen { elapsed, requests, plan });
            let seen = match seen {
                Ok(seen) if target.place.store.is_some() => target.compare().map(|()| seen),
                Ok(seen) => target.compare_elsewhere(&*store, &name, reads_back).await.map(|()| seen),
                error => error,
            };
            if seen.is_err() {
                // What Azure has of an object's blocks is forgotten when that is written.
                let empty = Block { bytes: Default::default(), crc64: crc64(&[]) };
                let _ = store.put(&name, empty, &PutOptions::default(), &mut Attempt::default()).await;
            }
            let removed = store.remove(&name, &mut Attempt::default()).await;
            let seen = seen?;
            removed.map(|()| seen).map_err(failed)
        })
    }
}

impl Target {
    async fn put(&self, to: Found, stop: &Stop, seed: u64) -> Result<(u64, Option<(Plan, u64)>), TargetError> {
        let (store, name): (Arc<dyn Store>, &str) = (to.store.into(), &to.name);
        match self.way {
            Way::OneStream => {
                let block = self.source.block(0, self.source.bytes).map_err(failed)?;
                let (options, mut seen) = (PutOptions::default(), Attempt::default());
                tokio::select! {
                    put = store.put(name, block, &options, &mut seen) => put.map_err(failed)?,
                    () = asked(stop) => return Err(TargetError::Interrupted),
                };
                Ok((1, None))
            }
            Way::Blocks { block_bytes, connections } => {
                let shape = (block_bytes, connections);
                Ok((blocks::put(&store, name, &self.source, shape, asked(stop)).await?, None))
            }
            Way::Model => {
                let (token, first) = (Token::default(), First::default());
                let terms = Terms { seed, ..Terms::default() };
                let mover = Mover::new(terms, token.clone(), Box::new(first.clone()));
                let place = ascertain_transfer::Place { store, name: to.name, shown: to.shown };
                let path = self.source.path();
                let mut moving = mover.put_file(&path, &place);
                let moved = tokio::select! {
                    moved = &mut moving => moved,
                    () = asked(stop) => {
                        token.ask();
                        // It gives up what it has begun.
                        let _ = moving.await;
                        return Err(TargetError::Interrupted);
                    }
                };
                let moved = moved.map_err(failed)?;
                Ok((moved.blocks, moved.plan.zip(first.probed_bytes())))
            }
        }
    }

    /// Whether what our store has is what was sent.
    fn compare(&self) -> Result<(), TargetError> {
        let is_same = self.place.object(&self.name).is_some_and(|object| crc64(&object) == self.source.crc64);
        if is_same { Ok(()) } else { Err(wrong("what our store has")) }
    }

    /// The same of another one, by what it says, or by what it gives back.
    async fn compare_elsewhere(&self, store: &dyn Store, name: &str, reads_back: bool) -> Result<(), TargetError> {
        let Source { bytes, crc64: sum, .. } = *self.source;
        let mut seen = Attempt::default();
        let meta = store.head(name, &mut seen).await.map_err(failed)?.ok_or_else(|| wrong("nothing"))?;
        if meta.bytes != bytes || meta.crc64.is_some_and(|said| said != sum) {
            return Err(wrong("what the store says that it has"));
        }
        if !reads_back {
            return Ok(());
        }
        let mut sums = Vec::new();
        for from in (0..bytes).step_by(PIECE_BYTES as usize) {
            let range = from..bytes.min(from + PIECE_BYTES);
            let piece = store.get(&meta, range, &mut seen).await.map_err(failed)?;
            sums.push((piece.bytes.len() as u64, piece.crc64));
        }
        if crc64_of_blocks(sums) == sum { Ok(()) } else { Err(wrong("what was read back")) }
    }
}

fn wrong(what: &str) -> TargetError {
    TargetError::WrongAnswer(format!("{what} is not what was sent"))
}

/// Waits until somebody asks for the end.
async fn asked(stop: &Stop) {
    while !stop.is_asked() {
        sleep(LOOK).await;
    }
}

/// What had been moved when there was a plan.
#[derive(Clone, Default)]
struct First(Arc<Mutex<Option<u64>>>);

impl First {
    fn probed_bytes(&self) -> Option<u64> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for First {
    fn progress(&self, progress: &Progress<'_>) {
        if progress.plan.is_some() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(progress.done_bytes);
        }
    }
}

impl Session for Moves {
    /// What is in our store is looked at after each measurement; what is in another is read back this once.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        if target.place.store.is_some() { Ok(()) } else { self.moved(target, true).map(drop) }
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        self.targets[arm].place.facts()
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        wait(target.place.refill, &self.stop)?;
        watched(target.place.link.as_deref(), LATE, out, |out| {
            let Seen { elapsed, requests, plan } = self.moved(target, false)?;
            let (bytes, seconds) = (target.source.bytes as f64, elapsed.as_secs_f64());
            out.push(TIME, seconds * 1e9);
            out.push(MOVED, bytes);
            out.push(RATE, bytes / seconds);
            out.push(REQUESTS, requests as f64);
            if let Some((plan, probed_bytes)) = plan {
                out.push(BLOCK, plan.shape.block_bytes as f64 * target.scale);
                let blocks = target.source.bytes.div_ceil(plan.shape.block_bytes);
                out.push(CONNECTIONS, blocks.min(plan.shape.concurrency as u64) as f64);
                out.push(EXPECTED, plan.expected_s * 1e9);
                out.push(OFF, (plan.expected_s / seconds - 1.0).abs());
                out.push(PROBED, probed_bytes as f64 / bytes);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
