//! The session of the experiment. It uploads files to a store, and measures the time.

use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ascertain_engine::experiment::{Arm, ArmId, Point, Samples, Session, Setup, TargetError, Trial};
use ascertain_experiments_networks::links::{failed, wait, watched};
use ascertain_sys::interrupt::Stop;
use ascertain_transfer::{
    Attempt, Error, Location, PartBody, PutOptions, Settings, TransferManager, TransferPlan, crc64,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use super::source::Source;
use super::stores::{TargetStore, scale, scaled, store_point};
use super::{BLOCK, BLOCKS, BYTES, CONNECTIONS, EXPECTED, LATE, MODEL, OFF, PROBED, RATE, REQUESTS, TIME, blocks};
use crate::shared;

/// Pause of [`stopped`] between two checks whether a stop was requested.
const STOP_CHECK: Duration = Duration::from_millis(20);

struct TransferSession {
    targets: Vec<ArmTarget>,
    runtime: Runtime,
    stop: Stop,
    seed: u64,
}

struct ArmTarget {
    store: Rc<TargetStore>,
    source: Arc<Source>,
    method: Method,
    /// Factor by which sizes are reduced: the level of `size`, divided by the size of the file that is actually sent.
    scale: f64,
    /// Name of the uploaded object. Each arm of each session has a different one.
    name: String,
}

#[derive(Clone, Copy)]
enum Method {
    OneStream,
    Blocks { block_bytes: u64, connections: usize },
    Model,
}

/// The measurements of one complete upload.
struct Measurement {
    elapsed: Duration,
    requests: u64,
    /// The model's first plan with its first forecast, and the number of bytes that were sent before the plan was made.
    /// `None` for the variants without the model.
    plan: Option<(TransferPlan, u64)>,
}

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Ok(Box::new(TransferSession::open(arms, setup)?))
}

fn method(arm: &Arm) -> Result<Method, TargetError> {
    Ok(match arm.variant.as_str() {
        BLOCKS => {
            Method::Blocks { block_bytes: scaled(arm, "block")?, connections: arm.integer("connections")? as usize }
        }
        MODEL => Method::Model,
        _ => Method::OneStream,
    })
}

impl TransferSession {
    /// Opens a session. Arms share a store if their levels describe the same store, and a file if they have the same
    /// file size.
    fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let (mut stores, mut sources) = (BTreeMap::new(), BTreeMap::new());
        let mut targets = Vec::new();
        for arm in arms {
            let store = shared(&mut stores, store_point(arm), || TargetStore::new(arm).map(Rc::new))?;
            let bytes = scaled(arm, "size")?;
            let make = || Source::new(bytes, setup.seed).map(Arc::new).map_err(failed);
            let source = shared(&mut sources, bytes, make)?;
            let name = format!("ascertain-{:016x}", rand::random::<u64>());
            targets.push(ArmTarget { store, source, method: method(arm)?, scale: scale(arm)? as f64, name });
        }
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(failed)?;
        Ok(Self { targets, runtime, stop: setup.stop.clone(), seed: setup.seed })
    }

    /// Uploads the file, and checks the object in the store. If `reads_back`, an object in another store is also read
    /// back, and the checksum of its bytes is compared. Then removes the object, even after a failure, because the next
    /// transfer could mistake it for its own.
    fn transfer(&self, target: &ArmTarget, reads_back: bool) -> Result<Measurement, TargetError> {
        let location = || target.store.open(&target.name).map_err(failed);
        let (to, after) = (location()?, location()?);
        self.runtime.block_on(async {
            let began = Instant::now();
            let put = async {
                let (requests, plan) = target.put(to, &self.stop, self.seed).await?;
                let elapsed = began.elapsed();
                match target.store.serving.is_some() {
                    true => target.check_served()?,
                    false => target.check_elsewhere(&after, reads_back, &self.stop).await?,
                }
                Ok(Measurement { elapsed, requests, plan })
            };
            let measured = put.await;
            let (store, name) = (&after.store, &after.name);
            if measured.is_err() {
                // On Azure, writing an object removes the parts of an upload that has the same name and was not
                // committed.
                let empty = PartBody { bytes: Default::default(), crc64: crc64(&[]) };
                let _ = store.put(name, empty, &PutOptions::default(), &mut Attempt::default()).await;
            }
            let removed = store.remove(name, &mut Attempt::default()).await;
            let measured = measured?;
            removed.map(|()| measured).map_err(failed)
        })
    }
}

impl ArmTarget {
    async fn put(
        &self,
        to: Location,
        stop: &Stop,
        seed: u64,
    ) -> Result<(u64, Option<(TransferPlan, u64)>), TargetError> {
        match self.method {
            Method::OneStream => {
                let body = self.source.block(0, self.source.bytes).map_err(failed)?;
                let (options, mut attempt) = (PutOptions::default(), Attempt::default());
                tokio::select! {
                    put = to.store.put(&to.name, body, &options, &mut attempt) => put.map_err(failed)?,
                    () = stopped(stop) => return Err(TargetError::Interrupted),
                };
                Ok((1, None))
            }
            Method::Blocks { block_bytes, connections } => {
                let shape = (block_bytes, connections);
                Ok((blocks::put(&to.store, &to.name, &self.source, shape, stopped(stop)).await?, None))
            }
            Method::Model => {
                let settings = Settings { seed, ..Settings::default() };
                let manager = TransferManager::new(settings, stop.clone(), Box::new(()));
                let result = manager.put_file(&self.source.path(), &to).await.map_err(transfer_error)?;
                Ok((result.parts, result.plan.map(|plan| (plan, result.probed_bytes))))
            }
        }
    }

    /// Compares the object in our own store with the file.
    fn check_served(&self) -> Result<(), TargetError> {
        let is_same = self.store.object(&self.name).is_some_and(|object| crc64(&object) == self.source.crc64);
        if is_same { Ok(()) } else { Err(wrong("the stored bytes differ")) }
    }

    /// Compares the object in another store with the file, by its size and checksum. If `reads_back`, also reads the
    /// object and compares the checksum of the bytes that arrive.
    async fn check_elsewhere(&self, object: &Location, reads_back: bool, stop: &Stop) -> Result<(), TargetError> {
        let head = object.store.head(&object.name, &mut Attempt::default()).await;
        let meta = head.map_err(failed)?.ok_or_else(|| wrong("there is no object"))?;
        if meta.bytes != self.source.bytes || meta.crc64.is_some_and(|crc64| crc64 != self.source.crc64) {
            return Err(wrong("the size or the checksum differs"));
        }
        if !reads_back {
            return Ok(());
        }
        let manager = TransferManager::new(Settings::default(), stop.clone(), Box::new(()));
        let read = manager.get_stream(object, &mut io::sink()).await.map_err(transfer_error)?;
        if read.crc64 == Some(self.source.crc64) { Ok(()) } else { Err(wrong("the bytes that were read back differ")) }
    }
}

fn wrong(what: &str) -> TargetError {
    TargetError::WrongAnswer(format!("the store does not have the file that was sent: {what}"))
}

fn transfer_error(error: Error) -> TargetError {
    if matches!(error, Error::Stopped) { TargetError::Interrupted } else { failed(error) }
}

async fn stopped(stop: &Stop) {
    while !stop.is_requested() {
        sleep(STOP_CHECK).await;
    }
}

impl Session for TransferSession {
    /// Reads the object in another store back, and compares it with the file. Does nothing for our own store, because
    /// its object is compared after each measurement.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        if target.store.serving.is_some() { Ok(()) } else { self.transfer(target, true).map(drop) }
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        self.targets[arm].store.facts()
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        wait(target.store.refill, &self.stop)?;
        watched(target.store.link.as_deref(), LATE, out, |out| {
            let Measurement { elapsed, requests, plan } = self.transfer(target, false)?;
            let (bytes, seconds) = (target.source.bytes as f64, elapsed.as_secs_f64());
            out.push(TIME, seconds * 1e9);
            out.push(BYTES, bytes);
            out.push(RATE, bytes / seconds);
            out.push(REQUESTS, requests as f64);
            if let Some((plan, probed_bytes)) = plan {
                out.push(BLOCK, plan.shape.part_bytes as f64 * target.scale);
                let blocks = target.source.bytes.div_ceil(plan.shape.part_bytes);
                out.push(CONNECTIONS, blocks.min(plan.shape.concurrency as u64) as f64);
                if let Some(forecast) = plan.forecast {
                    out.push(EXPECTED, forecast.expected_s * 1e9);
                    out.push(OFF, (forecast.expected_s / seconds - 1.0).abs());
                }
                out.push(PROBED, probed_bytes as f64 / bytes);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
