//! Requests that read a real disk, and a server behind a link.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use std::{fs, io, thread};

use ascertain_engine::experiment::{Arm, Samples, Setup, TargetError};
use ascertain_experiments_networks::links::{failed, watched};
use ascertain_netlab::{Link, RunningLink, now_ns};
use ascertain_sys::interrupt::Stop;
use ascertain_transfer::crc64;
use ascertain_transfer::race::{Clock, Racer, Times, checked};
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, LocalSet, spawn_blocking};

use super::disk::{Disk, FILES};
use super::origin::Origin;
use super::races::{policy_of, push_counts};
use super::{LATE, OURS, RESIDENT, TIME, text, traces};

/// By how much tokio's timers are late at the most, and more.
const COARSE: Duration = Duration::from_millis(3);

/// The system's clock. The last of a sleep is a thread's: tokio's timers are of a millisecond, which is longer than
/// most reads of a disk.
pub struct Fine;

impl Clock for Fine {
    fn now(&self) -> Duration {
        Duration::from_nanos(now_ns())
    }

    async fn sleep(&self, time: Duration) {
        let end = self.now().saturating_add(time);
        if let Some(coarse) = time.checked_sub(COARSE) {
            tokio::time::sleep(coarse).await;
        }
        let left = end.saturating_sub(self.now());
        // Only the end of the runtime can be in the way, and nobody waits then.
        let _ = spawn_blocking(move || thread::sleep(left)).await;
    }
}

/// A cache and its origin, which arms share if nothing of it differs.
pub struct Place {
    pub disk: Disk,
    pub origin: Rc<Origin>,
    pub link: Rc<RunningLink>,
    /// Of what both have.
    sum: u64,
}

impl Place {
    pub async fn new(arm: &Arm, link: Rc<RunningLink>, port: u16) -> Result<Self, TargetError> {
        let (bytes, most_idle) = (arm.integer("bytes")?, arm.integer("concurrency")? as usize);
        let server = text(arm, "server");
        let origin = Rc::new(Origin::start(&server, link.clone(), port, bytes, most_idle).map_err(failed)?);
        let content = origin.clone().get().await.map_err(|error| failed(format!("{server}: {error}")))?;
        if content.len() as u64 != bytes {
            return Err(TargetError::WrongAnswer(format!("{} bytes instead of {bytes}", content.len())));
        }
        let disk = Disk::new(arm, &content, FILES).map_err(failed)?;
        Ok(Self { disk, origin, link, sum: crc64(&content) })
    }

    /// Both sides have the same.
    pub async fn verify(&self) -> Result<(), TargetError> {
        let sides = [read(self.disk.path(0)).await, self.origin.clone().get().await.map(|body| crc64(&body))];
        for (side, found) in ["the cache", "the origin"].iter().zip(sides) {
            let found = found.map_err(|error| failed(format!("{side}: {error}")))?;
            if found != self.sum {
                return Err(TargetError::WrongAnswer(format!("{side} has {found:016x}, not {:016x}", self.sum)));
            }
        }
        Ok(())
    }
}

/// An arm, and what it does there.
pub struct Live {
    pub racer: Racer<Fine>,
    pub place: Rc<Place>,
    permille: u64,
    requests: usize,
    concurrency: usize,
    record: Option<PathBuf>,
    stop: Stop,
}

/// The link of an arm.
pub fn link(arm: &Arm) -> Result<Link, TargetError> {
    Ok(Link { rtt: Duration::from_millis(arm.integer("rtt_ms")?), ..Link::default() })
}

/// The checksum of an object. A thread that reads goes on when nobody wants it any more: its time on the disk is taken.
async fn read(path: PathBuf) -> io::Result<u64> {
    spawn_blocking(|| Ok(crc64(&fs::read(path)?))).await.map_err(io::Error::from)?
}

/// In a runtime of one thread, with what lives there.
pub fn within<T>((runtime, local): &(Runtime, LocalSet), work: impl Future<Output = T>) -> T {
    local.block_on(runtime, work)
}

impl Live {
    pub fn new(arm: &Arm, place: Rc<Place>, setup: &Setup) -> Result<Self, TargetError> {
        Ok(Self {
            racer: Racer::with_clock(policy_of(arm)?, Fine).map_err(failed)?,
            place,
            permille: arm.integer("quantile_permille")?,
            requests: arm.integer("requests")? as usize,
            concurrency: arm.integer("concurrency")? as usize,
            record: Some(text(arm, "record")).filter(|path| path != OURS).map(|path| PathBuf::from(&*path)),
            stop: setup.stop.clone(),
        })
    }

    /// How long an object takes that is asked for as the policy has it.
    pub async fn request(&self, index: usize) -> Result<Duration, TargetError> {
        let Place { disk, origin, sum, .. } = &*self.place;
        let from_disk = checked(read(disk.path(index)), *sum, |found| *found);
        let fetched = async { origin.clone().get().await.map(|body| crc64(&body)) };
        let from_origin = checked(fetched, *sum, |found| *found);
        let start_ns = now_ns();
        self.racer.race(from_disk, from_origin).await.map_err(failed)?;
        Ok(Duration::from_nanos(now_ns() - start_ns))
    }

    /// How long it takes where only the origin is asked.
    async fn fetch(&self) -> Result<Duration, TargetError> {
        let start_ns = now_ns();
        self.place.origin.clone().get().await.map_err(failed)?;
        Ok(Duration::from_nanos(now_ns() - start_ns))
    }

    /// What is to be recorded, where something is.
    pub async fn measure(self: &Rc<Self>, out: &mut Samples) -> Result<Vec<Times>, TargetError> {
        let (before, disk) = (self.racer.counts(), &self.place.disk);
        let (mut times, mut recorded, mut resident) = (Vec::with_capacity(self.requests), Vec::new(), 0.0);
        self.place.origin.open_ahead();
        while times.len() < self.requests {
            let files = disk.files().min(self.requests - times.len());
            for index in 0..files {
                resident += disk.prepare(index).map_err(failed)? / self.requests as f64;
            }
            let cache = self.each_of(files, async |live, index| live.request(index).await).await?;
            if self.record.is_some() {
                // Who waited for the origin between two reads would leave the disk with less to do at once.
                let origin = self.each_of(files, async |live, _| live.fetch().await).await?;
                recorded.extend(cache.iter().zip(origin).map(|(&cache, origin)| Times { cache, origin }));
            }
            times.extend(cache);
        }
        // A race is answered by the other side where one fails, and the time would be that of no race.
        let after = self.racer.counts();
        if (after.cache_failed, after.origin_failed) != (before.cache_failed, before.origin_failed) {
            return Err(failed("the cache or the server failed meanwhile"));
        }
        // A server that is down is not noticed where the cache is always first.
        self.place.verify().await?;
        out.push(RESIDENT, resident);
        out.push(TIME, traces::quantile(&mut times, self.permille).as_nanos() as f64);
        push_counts(before, self.racer.counts(), out);
        Ok(recorded)
    }

    /// The times of so many files, each asked for once, several at a time; in the order in which they were.
    async fn each_of(
        self: &Rc<Self>,
        files: usize,
        ask: impl AsyncFn(&Self, usize) -> Result<Duration, TargetError> + Copy + 'static,
    ) -> Result<Vec<Duration>, TargetError> {
        let next = Rc::new(Cell::new(0));
        let mut workers = JoinSet::new();
        for _ in 0..self.concurrency.min(files) {
            let (live, next) = (self.clone(), next.clone());
            workers.spawn_local(async move {
                let mut seen = Vec::new();
                while next.get() < files {
                    if live.stop.is_asked() {
                        return Err(TargetError::Interrupted);
                    }
                    let index = next.replace(next.get() + 1);
                    seen.push((index, ask(&live, index).await?));
                }
                Ok(seen)
            });
        }
        let mut times = vec![Duration::ZERO; files];
        while let Some(done) = workers.join_next().await {
            done.map_err(failed)??.into_iter().for_each(|(index, time)| times[index] = time);
        }
        Ok(times)
    }

    /// When a trial is over: its requests are recorded, unless the link was not what it should have been.
    pub fn end(&self, recorded: &[Times], out: &Samples) -> Result<(), TargetError> {
        let is_unfaithful = out.iter().any(|sample| sample.metric == LATE + 1 && sample.value > 0.0);
        let Some(path) = self.record.as_ref().filter(|_| !is_unfaithful) else { return Ok(()) };
        traces::append(path, recorded).map_err(|error| failed(format!("{}: {error}", path.display())))
    }
}

/// Measures an arm, and how faithful its link was meanwhile.
pub fn measure(live: &Rc<Live>, runtime: &(Runtime, LocalSet), out: &mut Samples) -> Result<(), TargetError> {
    let mut recorded = Vec::new();
    watched(Some(&live.place.link), LATE, out, |out| {
        recorded = within(runtime, live.measure(out))?;
        Ok(())
    })?;
    live.end(&recorded, out)
}
