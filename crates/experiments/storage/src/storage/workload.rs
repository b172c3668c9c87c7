//! The requests of one arm: prepared before, sent and timed together, and checked afterwards.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ascertain_engine::experiment::TargetError;
use ascertain_transfer::{Attempt, Failure, PutOptions, Store, crc64};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Operation;
use super::attempt::{Outcome, Request, is_refused, send};
use super::budget::{Budget, Usage};
use super::objects::{Content, Contents, Objects, is_transient};
use super::streams::{Load, Pace, Shared, send_all};

/// Largest object of the user that is read, in bytes.
const MOST_BYTES: u64 = 4_000_000_000;
/// Number of attempts of a request that is not timed.
const ATTEMPTS: u32 = 4;
/// Pause before the first repetition of a request that is not timed. Each further pause is twice as long.
const PAUSE: Duration = Duration::from_millis(250);
/// Interval at which a stop is noticed.
const STOP_CHECK: Duration = Duration::from_millis(20);
/// Longest wait after a stop for the answers of the writes in flight. A write that is abandoned could be stored after
/// its object was deleted.
const DRAIN: Duration = Duration::from_secs(10);

/// The properties of the requests of an arm.
#[derive(Clone, Debug)]
pub struct Shape {
    pub operation: Operation,
    /// Bytes that each request transfers.
    pub bytes: u64,
    pub is_fresh: bool,
    /// `true` to read only objects that were not read before.
    pub is_cold: bool,
    /// `true` to give each key its own prefix.
    pub is_spread: bool,
    pub concurrency: usize,
    pub requests: usize,
    /// Number of requests that are due per second; `None` to send each request when the previous one has ended.
    pub rate_per_s: Option<u64>,
    /// The wait before a request on a kept connection, during which the connection is idle.
    pub gap: Duration,
    pub limit: Duration,
    /// Size of the parts of an upload; 0 for a single request.
    pub part_bytes: u64,
    /// Name of an object of the user. The arm then reads only this object, and writes none. `None` if the experiment
    /// writes its own objects.
    pub key: Option<String>,
}

impl Shape {
    /// Returns the size of the objects for these requests. A ranged read is from the middle of an object twice as
    /// large.
    pub fn object_bytes(&self) -> u64 {
        if self.operation == Operation::Ranged { self.bytes.saturating_mul(2) } else { self.bytes }
    }

    /// Returns the content of the objects; empty if the requests only read an object of the user.
    pub fn content(&self, contents: &Contents) -> Rc<Content> {
        contents.get(if self.key.is_some() { 0 } else { self.object_bytes() }, self.part_bytes)
    }
}

/// The requests of one arm to one store.
pub struct Workload {
    pub objects: Rc<Objects>,
    pub shape: Shape,
    content: Rc<Content>,
    /// Checksum of the bytes that a read must return.
    expected_crc64: u64,
    budget: Option<Rc<Budget>>,
    /// The objects to read, which exist already.
    readable: Vec<String>,
    /// `true` after the first successful [`Self::prepare`].
    is_prepared: bool,
    shared: Shared,
}

impl Workload {
    pub fn new(
        objects: Rc<Objects>,
        shape: Shape,
        content: Rc<Content>,
        budget: Option<Rc<Budget>>,
        shared: Shared,
    ) -> Self {
        let mut workload = Self {
            objects,
            shape,
            content,
            expected_crc64: 0,
            budget,
            readable: Vec::new(),
            is_prepared: false,
            shared,
        };
        let whole = &workload.content.whole;
        workload.expected_crc64 = match workload.range() {
            Some(range) if workload.shape.key.is_none() => {
                crc64(&whole.bytes[range.start as usize..range.end as usize])
            }
            _ => whole.crc64,
        };
        workload
    }

    /// Returns the requests and bytes of one trial, including the requests that write and delete its objects.
    pub fn usage(shape: &Shape) -> Usage {
        let count = shape.requests as u64;
        let object_bytes = shape.object_bytes();
        let head = if shape.is_fresh { 0 } else { shape.concurrency as u64 };
        let parts = if shape.part_bytes == 0 { 1 } else { 2 + shape.bytes.div_ceil(shape.part_bytes.max(1)) };
        let write =
            Usage { writes: count * parts, deletes: count, bytes_written: count * object_bytes, ..Usage::default() };
        let read = Usage { reads: count + head, bytes_read: count * shape.bytes, ..Usage::default() };
        match shape.operation {
            Operation::Upload => write + Usage { reads: head, ..Usage::default() },
            _ if shape.is_cold => write + read,
            _ => read,
        }
    }

    fn spend(&self, usage: Usage) -> Result<(), TargetError> {
        let Some(budget) = &self.budget else { return Ok(()) };
        budget.spend(&self.objects.store.name, usage).map_err(TargetError::Failed)
    }

    /// Writes the objects that every trial reads, and reads one of them with a full check. Returns an error that
    /// explains wrong credentials, a missing bucket and the like. Later calls do nothing, because every trial checks
    /// the content that it has read.
    pub async fn prepare(&mut self) -> Result<(), TargetError> {
        if self.is_prepared {
            return Ok(());
        }
        if self.shape.key.is_some() {
            self.measure_key().await?;
        } else {
            let is_written_before = self.shape.operation != Operation::Upload && !self.shape.is_cold;
            if is_written_before && self.readable.is_empty() {
                self.readable = self.write(self.shape.concurrency as u64).await?;
            }
            // The first read makes the object a warm one.
            self.run_completely().await?;
        }
        self.is_prepared = true;
        Ok(())
    }

    /// Sends the requests of one trial, whose times are not needed, until all of them are answered completely. Repeats
    /// them a few times.
    async fn run_completely(&mut self) -> Result<(), TargetError> {
        let mut number = 1;
        loop {
            match self.run().await?.complete() {
                Err(_) if number < ATTEMPTS => self.pause(number).await?,
                done => return done.map(drop),
            }
            number += 1;
        }
    }

    /// Waits before a request is repeated. `number` is the number of attempts so far.
    async fn pause(&self, number: u32) -> Result<(), TargetError> {
        self.or_stopped(sleep(PAUSE * (1 << (number - 1)))).await
    }

    /// Finds out the size and the content of the only object to read. The store may send other bytes than it describes,
    /// if the object is compressed.
    async fn measure_key(&mut self) -> Result<(), TargetError> {
        let Some(key) = self.shape.key.clone().filter(|_| self.readable.is_empty()) else { return Ok(()) };
        let store = self.store();
        let missing = || TargetError::Failed(format!("{}: there is no object {key}", self.objects.store.name));
        let mut number = 1;
        let described = loop {
            self.spend(Usage { reads: 1, ..Usage::default() })?;
            match store.head(&key, &mut Attempt::default()).await {
                Err(failure) if is_transient(failure.kind) && number < ATTEMPTS => self.pause(number).await?,
                described => break described.map_err(fatal)?.ok_or_else(missing)?,
            }
            number += 1;
        };
        let key_or_address = if key.is_empty() { self.objects.store.name.clone() } else { key.clone() };
        if self.shape.operation == Operation::Ranged && described.bytes < self.shape.bytes {
            return Err(TargetError::Failed(format!(
                "{key_or_address} has {} bytes, fewer than the range of {}; choose a smaller `size`",
                described.bytes, self.shape.bytes
            )));
        }
        let bytes = if self.shape.operation == Operation::Download { described.bytes } else { self.shape.bytes };
        let request = Request::Read { key: key.clone(), range: self.range(), bytes: 0, most: MOST_BYTES };
        let buffers = self.shared.buffers.borrow_mut().take(1, bytes as usize);
        let (mut buffer, mut number) = (buffers.into_iter().next().unwrap_or_default(), 1);
        loop {
            self.spend(Usage { reads: 1, bytes_read: bytes, ..Usage::default() })?;
            let answer = send(&*store, &request, false, self.shape.limit, &mut buffer).await;
            match answer.complete() {
                Err(_) if number < ATTEMPTS && !matches!(answer.outcome, Outcome::Fatal { .. }) => {
                    self.pause(number).await?;
                }
                done => break done?,
            }
            number += 1;
        }
        let received = buffer.len() as u64;
        self.spend(Usage { bytes_read: received.saturating_sub(bytes), ..Usage::default() })?;
        (self.expected_crc64, self.shape.bytes) = (crc64(&buffer), received);
        self.shared.buffers.borrow_mut().give_back([buffer]);
        self.readable = vec![key; self.shape.concurrency];
        Ok(())
    }

    fn store(&self) -> Arc<dyn Store> {
        self.objects.store.store.clone()
    }

    fn range(&self) -> Option<std::ops::Range<u64>> {
        let start = if self.shape.key.is_some() { 0 } else { self.shape.bytes / 2 };
        (self.shape.operation == Operation::Ranged).then(|| start..start + self.shape.bytes)
    }

    /// Writes objects that will be read, and returns their keys. These requests are not timed. If a write fails
    /// temporarily, it is repeated a few times. Each repetition has another key, because the first write may still be
    /// carried out.
    async fn write(&self, count: u64) -> Result<Vec<String>, TargetError> {
        let mut written = Vec::new();
        for _ in 0..count {
            let mut number = 1;
            loop {
                if self.shared.stop.is_requested() {
                    return Err(TargetError::Interrupted);
                }
                match self.write_one().await? {
                    Ok(key) => break written.push(key),
                    Err(failure) if is_transient(failure.kind) && number < ATTEMPTS => self.pause(number).await?,
                    Err(failure) => return Err(fatal(failure)),
                }
                number += 1;
            }
        }
        Ok(written)
    }

    /// Writes an object, and returns its key.
    async fn write_one(&self) -> Result<Result<String, Failure>, TargetError> {
        let bytes_written = self.content.bytes();
        self.spend(Usage { writes: 1, deletes: 1, bytes_written, ..Usage::default() })?;
        let key = self.objects.keys(1, self.shape.is_spread).map_err(journal)?.remove(0);
        let (store, options, mut attempt) = (self.store(), PutOptions::default(), Attempt::default());
        let whole = self.content.whole.clone();
        if let Err(failure) = self.or_drained(store.put(&key, whole, &options, &mut attempt)).await? {
            if is_refused(failure.kind) {
                self.objects.not_written(&key);
            }
            return Ok(Err(failure));
        }
        self.objects.written(&key, attempt.version).map_err(journal)?;
        Ok(Ok(key))
    }

    /// Runs `work` until it ends or a stop is requested.
    async fn or_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, TargetError> {
        let stopped = async {
            while !self.shared.stop.is_requested() {
                sleep(STOP_CHECK).await;
            }
        };
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = stopped => Err(TargetError::Interrupted),
        }
    }

    /// Runs `work`, which writes objects, until it ends. After a stop, waits for [`DRAIN`] at most.
    async fn or_drained<T>(&self, work: impl Future<Output = T>) -> Result<T, TargetError> {
        let mut work = std::pin::pin!(work);
        match self.or_stopped(&mut work).await {
            Err(_) => tokio::time::timeout(DRAIN, work).await.map_err(|_| TargetError::Interrupted),
            done => done,
        }
    }

    /// Sends the requests of one trial. Returns an error if one of them failed in a way that will not go away, or if
    /// the content is wrong.
    pub async fn run(&mut self) -> Result<Load, TargetError> {
        let writes = self.shape.operation == Operation::Upload;
        let mut usage = Self::usage(&self.shape);
        if self.shape.is_cold && !writes {
            // `write` adds these.
            usage = Usage { writes: 0, deletes: 0, bytes_written: 0, ..usage };
        }
        self.spend(usage)?;
        let keys = match () {
            () if writes => {
                let count = self.shape.requests as u64;
                self.objects.keys(count, self.shape.is_spread).map_err(journal)?
            }
            () if self.shape.is_cold => self.write(self.shape.requests as u64).await?,
            () => (0..self.shape.requests).map(|at| self.readable[at % self.readable.len()].clone()).collect(),
        };
        let requests: Arc<[Request]> = keys.iter().map(|key| self.request(key)).collect();
        self.warm_up().await?;
        let buffer_bytes = if writes { 0 } else { self.shape.bytes as usize };
        let buffers = self.shared.buffers.borrow_mut().take(self.shape.concurrency, buffer_bytes);
        let pace = |rate_per_s| Ok::<_, TargetError>(Pace { rate_per_s, timer: self.shared.timer()? });
        let pace = self.shape.rate_per_s.map(pace).transpose()?;
        let sending = send_all(self.store(), requests, self.shape.clone(), (buffers, pace), self.shared.stop.clone());
        let (mut load, last) = if writes { self.or_drained(sending).await? } else { self.or_stopped(sending).await? };
        if self.shared.stop.is_requested() {
            // The session deletes all objects that may exist.
            return Err(TargetError::Interrupted);
        }
        let is_wrong = !writes && last.iter().any(|last| last.is_complete && !self.is_expected(&last.bytes));
        self.shared.buffers.borrow_mut().give_back(last.into_iter().map(|last| last.bytes));
        let fatal_outcome = load.answers.iter().find_map(|(answer, _)| match &answer.outcome {
            Outcome::Fatal { why, .. } => Some(why.clone()),
            _ => None,
        });
        // The answers are in the order of the requests.
        for (key, (answer, _)) in keys.iter().zip(&mut load.answers) {
            let is_whole = answer.outcome == Outcome::Complete;
            if writes && matches!(answer.outcome, Outcome::Fatal { is_refused: true, .. }) {
                self.objects.not_written(key);
            } else if writes {
                self.objects.written(key, answer.version.take()).map_err(journal)?;
            }
            if writes || self.shape.is_cold {
                // A failure to delete is not a result of the request. The object stays in the journal.
                let removed = self.objects.remove(key, is_whole || !writes).await;
                if let (Err(failure), None) = (removed, &fatal_outcome) {
                    return Err(fatal(failure));
                }
            }
        }
        match (fatal_outcome, is_wrong) {
            (Some(why), _) => Err(TargetError::Failed(why)),
            (None, true) => Err(self.wrong_answer()),
            (None, false) => Ok(load),
        }
    }

    fn request(&self, key: &str) -> Request {
        match self.shape.operation {
            Operation::Upload => {
                Request::Write { key: key.into(), parts: self.content.parts.clone(), crc64: self.content.whole.crc64 }
            }
            _ => {
                let bytes = self.shape.bytes;
                Request::Read {
                    key: key.into(),
                    range: self.range(),
                    bytes,
                    most: bytes.saturating_mul(2).max(1 << 20),
                }
            }
        }
    }

    /// Opens the kept connections, so that no timed request opens one. Then sends a small request over each of them,
    /// and waits for the gap. So the idle time before the first request of each stream is the same for all arms. The
    /// small request reads nothing of an object that is to be cold.
    async fn warm_up(&self) -> Result<(), TargetError> {
        if self.shape.is_fresh {
            return Ok(());
        }
        let (store, key) = (self.store(), self.shape.key.clone());
        let key: Arc<str> = key.unwrap_or_else(|| self.objects.unwritten_key()).into();
        self.or_stopped(store.connect(self.shape.concurrency)).await?;
        let mut requests = JoinSet::new();
        for _ in 0..self.shape.concurrency {
            let (store, key, limit) = (store.clone(), key.clone(), self.shape.limit);
            // Errors will show with the timed requests.
            requests.spawn(async move {
                let _ = tokio::time::timeout(limit, store.head(&key, &mut Attempt::default())).await;
            });
        }
        self.or_stopped(async { while requests.join_next().await.is_some() {} }).await?;
        // A server may close a connection after the small request.
        self.or_stopped(store.connect(self.shape.concurrency)).await?;
        self.or_stopped(sleep(self.shape.gap)).await
    }

    fn is_expected(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 == self.shape.bytes && crc64(bytes) == self.expected_crc64
    }

    fn wrong_answer(&self) -> TargetError {
        TargetError::WrongAnswer(match &self.shape.key {
            Some(key) => format!("{key} has changed while it was measured, or its bytes were damaged"),
            None => "the bytes that were read differ from those that were written".into(),
        })
    }
}

fn fatal(failure: Failure) -> TargetError {
    TargetError::Failed(failure.to_string())
}

fn journal(error: std::io::Error) -> TargetError {
    TargetError::Failed(format!("the journal of objects could not be written: {error}"))
}
