//! Live requests. Their cache is a real disk, and their origin is a server behind an emulated link.

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
use ascertain_transfer::race::{Clock, Racer, RequestTimes, checked};
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, LocalSet, spawn_blocking};

use super::disk::{Disk, FILES};
use super::origin::Origin;
use super::session::{policy, push_counts};
use super::{LATE, OURS, RESIDENT, TIME, text, traces};

/// Length of the last part of each sleep, which runs on a blocking thread because tokio's timers are imprecise. It is
/// longer than any delay of these timers.
const COARSE: Duration = Duration::from_millis(3);

/// The system's clock. Each sleep ends on a blocking thread, because tokio's timers have a resolution of one
/// millisecond. Most reads of a disk are faster than that.
pub struct FineClock;

impl Clock for FineClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(now_ns())
    }

    async fn sleep(&self, time: Duration) {
        let end = self.now().saturating_add(time);
        if let Some(coarse) = time.checked_sub(COARSE) {
            tokio::time::sleep(coarse).await;
        }
        let left = end.saturating_sub(self.now());
        // An error occurs only if the runtime shuts down, and then no task needs the sleep.
        let _ = spawn_blocking(move || thread::sleep(left)).await;
    }
}

/// A cache on a disk, and the server that is its origin. Two arms share them if all factors that determine the cache
/// and the origin have the same levels in both arms.
pub struct CachedOrigin {
    pub disk: Disk,
    pub origin: Rc<Origin>,
    pub link: Rc<RunningLink>,
    /// CRC-64 of the object. The cache and the origin have the same object.
    sum: u64,
}

impl CachedOrigin {
    pub async fn new(arm: &Arm, link: Rc<RunningLink>, port: u16) -> Result<Self, TargetError> {
        let (bytes, most_idle) = (arm.integer("bytes")?, arm.integer("concurrency")? as usize);
        let server = text(arm, "server");
        let origin = Rc::new(Origin::start(&server, link.clone(), port, bytes, most_idle).map_err(failed)?);
        let content = origin.clone().get().await.map_err(|error| failed(format!("{server}: {error}")))?;
        if content.len() as u64 != bytes {
            return Err(TargetError::WrongAnswer(format!(
                "the server sent {} bytes instead of {bytes}",
                content.len()
            )));
        }
        let disk = Disk::new(arm, &content, FILES).map_err(failed)?;
        Ok(Self { disk, origin, link, sum: crc64(&content) })
    }

    /// Checks that the cache and the origin have the same object.
    pub async fn verify(&self) -> Result<(), TargetError> {
        let sides = [read(self.disk.path(0)).await, self.origin.clone().get().await.map(|body| crc64(&body))];
        for (side, found) in ["the cache", "the origin"].iter().zip(sides) {
            let found = found.map_err(|error| failed(format!("{side}: {error}")))?;
            if found != self.sum {
                return Err(TargetError::WrongAnswer(format!(
                    "{side} has an object with the checksum {found:016x} instead of {:016x}",
                    self.sum
                )));
            }
        }
        Ok(())
    }
}

/// An arm whose requests go to a real disk and a server: its policy, its cache and its origin.
pub struct Live {
    pub racer: Racer<FineClock>,
    pub target: Rc<CachedOrigin>,
    permille: u64,
    requests: usize,
    concurrency: usize,
    record: Option<PathBuf>,
    stop: Stop,
}

/// Returns the link that the arm's level of `rtt_ms` describes.
pub fn link(arm: &Arm) -> Result<Link, TargetError> {
    Ok(Link { rtt: Duration::from_millis(arm.integer("rtt_ms")?), ..Link::default() })
}

/// Returns the CRC-64 of a file. If the future is dropped, its thread still reads the file to the end, and so keeps the
/// disk busy.
async fn read(path: PathBuf) -> io::Result<u64> {
    spawn_blocking(|| Ok(crc64(&fs::read(path)?))).await.map_err(io::Error::from)?
}

/// Runs a future, and the local tasks that it spawns, on a single-threaded runtime.
pub fn within<T>((runtime, local): &(Runtime, LocalSet), work: impl Future<Output = T>) -> T {
    local.block_on(runtime, work)
}

impl Live {
    pub fn new(arm: &Arm, target: Rc<CachedOrigin>, setup: &Setup) -> Result<Self, TargetError> {
        Ok(Self {
            racer: Racer::with_clock(policy(arm)?, FineClock).map_err(failed)?,
            target,
            permille: arm.integer("quantile_permille")?,
            requests: arm.integer("requests")? as usize,
            concurrency: arm.integer("concurrency")? as usize,
            record: Some(text(arm, "record")).filter(|path| path != OURS).map(|path| PathBuf::from(&*path)),
            stop: setup.stop.clone(),
        })
    }

    /// Makes the request number `index` under the arm's policy, and returns its duration.
    pub async fn request(&self, index: usize) -> Result<Duration, TargetError> {
        let CachedOrigin { disk, origin, sum, .. } = &*self.target;
        let from_disk = checked(read(disk.path(index)), *sum, |found| *found);
        let fetched = async { origin.clone().get().await.map(|body| crc64(&body)) };
        let from_origin = checked(fetched, *sum, |found| *found);
        let start_ns = now_ns();
        self.racer.race(from_disk, from_origin).await.map_err(failed)?;
        Ok(Duration::from_nanos(now_ns() - start_ns))
    }

    /// Requests the object from the origin only, not from the cache, and returns the duration of the request.
    async fn fetch(&self) -> Result<Duration, TargetError> {
        let start_ns = now_ns();
        self.target.origin.clone().get().await.map_err(failed)?;
        Ok(Duration::from_nanos(now_ns() - start_ns))
    }

    /// Measures a trial, and adds its metrics to `out`. Returns the durations of its requests, which belong in the
    /// arm's file of recorded durations. The list is empty if the arm has no such file.
    pub async fn measure(self: &Rc<Self>, out: &mut Samples) -> Result<Vec<RequestTimes>, TargetError> {
        let (before, disk) = (self.racer.counts(), &self.target.disk);
        let (mut times, mut recorded, mut resident) = (Vec::with_capacity(self.requests), Vec::new(), 0.0);
        self.target.origin.open_ahead();
        while times.len() < self.requests {
            let files = disk.files().min(self.requests - times.len());
            for index in 0..files {
                resident += disk.prepare(index).map_err(failed)? / self.requests as f64;
            }
            let cache = self.each_of(files, async |live, index| live.request(index).await).await?;
            if self.record.is_some() {
                // The origin is measured after all reads. Requests between the reads would reduce the load of the disk.
                let origin = self.each_of(files, async |live, _| live.fetch().await).await?;
                recorded.extend(cache.iter().zip(origin).map(|(&cache, origin)| RequestTimes { cache, origin }));
            }
            times.extend(cache);
        }
        // If the cache or the origin failed for a request, the other one answered alone. The duration of this request
        // is not that of a race, so the trial fails.
        let after = self.racer.counts();
        if (after.cache_failed, after.origin_failed) != (before.cache_failed, before.origin_failed) {
            return Err(failed("the cache or the server failed during the trial"));
        }
        // If the cache always wins, a server that is down does not affect the races. So the server is checked here.
        self.target.verify().await?;
        out.push(RESIDENT, resident);
        out.push(TIME, traces::quantile(&mut times, self.permille).as_nanos() as f64);
        push_counts(before, self.racer.counts(), out);
        Ok(recorded)
    }

    /// Calls `ask`, which makes one request, for each of the first `files` files. Several calls run at a time. Returns
    /// the durations in the order of the files.
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
                    if live.stop.is_requested() {
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

    /// Ends a trial: appends its durations `recorded` to the arm's file of durations, if the arm has one. Appends
    /// nothing if the samples in `out` show that the link was emulated too inaccurately.
    pub fn end(&self, recorded: &[RequestTimes], out: &Samples) -> Result<(), TargetError> {
        let is_unfaithful = out.iter().any(|sample| sample.metric == LATE + 1 && sample.value > 0.0);
        let Some(path) = self.record.as_ref().filter(|_| !is_unfaithful) else { return Ok(()) };
        traces::append(path, recorded).map_err(|error| failed(format!("{}: {error}", path.display())))
    }
}

/// Measures one trial of an arm. Also measures how accurately the link was emulated during the trial.
pub fn measure(live: &Rc<Live>, runtime: &(Runtime, LocalSet), out: &mut Samples) -> Result<(), TargetError> {
    let mut recorded = Vec::new();
    watched(Some(&live.target.link), LATE, out, |out| {
        recorded = within(runtime, live.measure(out))?;
        Ok(())
    })?;
    live.end(&recorded, out)
}
