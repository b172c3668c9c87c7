//! Requests that read a real disk, and a server behind a link.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use std::{fs, io};

use ascertain_engine::experiment::{Arm, Samples, TargetError};
use ascertain_netlab::{Link, RunningLink, now_ns};
use ascertain_sys::interrupt::Stop;
use ascertain_transfer::crc64;
use ascertain_transfer::race::{Counts, Racer, Side, Times, checked};
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, LocalSet, spawn_blocking};

use super::disk::Disk;
use super::origin::Origin;
use super::races::{policy_of, push_counts};
use super::{LATE, OURS, RESIDENT, TIME, text, traces};
use crate::links::{failed, watched};

/// An arm's cache and origin. Each is its own: what one leaves behind in memory is nothing of another's.
pub struct Live {
    pub racer: Racer,
    pub disk: Disk,
    pub origin: Rc<Origin>,
    pub link: Rc<RunningLink>,
    /// Of what the origin has.
    sum: u64,
    permille: u64,
    requests: usize,
    concurrency: usize,
    record: Option<PathBuf>,
    /// How many were begun in all trials.
    begun: Cell<usize>,
    stop: Stop,
}

/// What was seen of a request.
pub struct Seen {
    time: Duration,
    pub side: Side,
    resident: f64,
    /// Where that is recorded.
    origin: Option<Duration>,
}

/// The link of an arm.
pub fn link(arm: &Arm) -> Result<Link, TargetError> {
    Ok(Link { rtt: Duration::from_millis(arm.integer("rtt_ms")?), ..Link::default() })
}

/// A thread that reads goes on when nobody wants it any more: its time on the disk is taken.
async fn read(path: PathBuf) -> io::Result<Vec<u8>> {
    spawn_blocking(|| fs::read(path)).await.map_err(io::Error::from)?
}

/// In a runtime of one thread, with what lives there.
pub fn within<T>((runtime, local): &(Runtime, LocalSet), work: impl Future<Output = T>) -> T {
    local.block_on(runtime, work)
}

impl Live {
    pub async fn new(arm: &Arm, link: Rc<RunningLink>, port: u16, stop: Stop) -> Result<Self, TargetError> {
        let (bytes, concurrency) = (arm.integer("bytes")?, arm.integer("concurrency")? as usize);
        let server = text(arm, "server");
        let origin = Rc::new(Origin::start(&server, link.clone(), port, bytes, concurrency).map_err(failed)?);
        let content = origin.clone().get().await.map_err(|error| failed(format!("{server}: {error}")))?;
        if content.len() as u64 != bytes {
            return Err(TargetError::WrongAnswer(format!("{} bytes instead of {bytes}", content.len())));
        }
        let disk = Disk::new(arm, &content).map_err(failed)?;
        Ok(Self {
            racer: Racer::new(policy_of(arm)?).map_err(failed)?,
            disk,
            origin,
            link,
            sum: crc64(&content),
            permille: arm.integer("quantile_permille")?,
            requests: arm.integer("requests")? as usize,
            concurrency,
            record: Some(text(arm, "record")).filter(|path| path != OURS).map(|path| PathBuf::from(&*path)),
            begun: Cell::new(0),
            stop,
        })
    }

    /// Both sides have the same, and it was read as it should be.
    pub async fn verify(&self) -> Result<(), TargetError> {
        let (path, _) = self.disk.prepare(0).map_err(failed)?;
        let sides = [read(path).await, self.origin.clone().get().await];
        for (side, body) in ["the cache", "the origin"].iter().zip(sides) {
            let found = crc64(&body.map_err(|error| failed(format!("{side}: {error}")))?);
            if found != self.sum {
                return Err(TargetError::WrongAnswer(format!("{side} has {found:016x}, not {:016x}", self.sum)));
            }
        }
        Ok(())
    }

    pub async fn request(&self, index: usize) -> Result<Seen, TargetError> {
        let (path, resident) = self.disk.prepare(index).map_err(failed)?;
        let cache = checked(read(path), self.sum, |body| crc64(body));
        let origin = checked(self.origin.clone().get(), self.sum, |body| crc64(body));
        let start_ns = now_ns();
        let side = self.racer.race(cache, origin).await.map_err(failed)?.side;
        let time = Duration::from_nanos(now_ns() - start_ns);
        let origin = match &self.record {
            None => None,
            Some(_) => {
                let start_ns = now_ns();
                self.origin.clone().get().await.map_err(failed)?;
                Some(Duration::from_nanos(now_ns() - start_ns))
            }
        };
        Ok(Seen { time, side, resident, origin })
    }

    pub async fn measure(self: &Rc<Self>, out: &mut Samples) -> Result<(), TargetError> {
        let before = self.racer.counts();
        let seen = Rc::new(RefCell::new(Vec::with_capacity(self.requests)));
        let end = self.begun.get() + self.requests;
        self.origin.open_ahead();
        let mut workers = JoinSet::new();
        for _ in 0..self.concurrency {
            let (live, seen) = (self.clone(), seen.clone());
            workers.spawn_local(async move {
                while live.begun.get() < end {
                    if live.stop.is_asked() {
                        return Err(TargetError::Interrupted);
                    }
                    let request = live.request(live.begun.replace(live.begun.get() + 1)).await?;
                    seen.borrow_mut().push(request);
                }
                Ok(())
            });
        }
        while let Some(done) = workers.join_next().await {
            done.map_err(failed)??;
        }
        self.push(&seen.borrow(), before, out)
    }

    fn push(&self, seen: &[Seen], before: Counts, out: &mut Samples) -> Result<(), TargetError> {
        if let Some(path) = &self.record {
            record(path, seen)?;
        }
        let mut times: Vec<_> = seen.iter().map(|seen| seen.time).collect();
        out.push(TIME, traces::quantile(&mut times, self.permille).as_nanos() as f64);
        push_counts(before, self.racer.counts(), out);
        out.push(RESIDENT, seen.iter().map(|seen| seen.resident).sum::<f64>() / seen.len() as f64);
        Ok(())
    }
}

fn record(path: &Path, seen: &[Seen]) -> Result<(), TargetError> {
    let times = seen.iter().filter_map(|seen| Some(Times { cache: seen.time, origin: seen.origin? }));
    let appended = traces::append(path, &times.collect::<Vec<_>>());
    appended.map_err(|error| failed(format!("{}: {error}", path.display())))
}

/// Measures an arm, and how faithful its link was meanwhile.
pub fn measure(live: &Rc<Live>, place: &(Runtime, LocalSet), out: &mut Samples) -> Result<(), TargetError> {
    watched(Some(&live.link), LATE, out, |out| within(place, live.measure(out)))
}
