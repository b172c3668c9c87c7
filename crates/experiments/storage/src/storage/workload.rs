//! The requests of one arm: prepared before, sent and timed together, and checked afterwards.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ascertain_engine::experiment::TargetError;
use ascertain_sys::clock::thread_cpu_ns;
use ascertain_sys::interrupt::Stop;
use ascertain_transfer::{Attempt, Failure, Kind, PutOptions, Store, crc64};
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;

use super::Operation;
use super::attempt::{Answer, Outcome, Request, is_refused, send};
use super::budget::{Budget, Usage};
use super::objects::{Content, Objects};

/// Number of attempts of a request that is not timed.
const ATTEMPTS: u32 = 4;
/// Pause before the first repetition of a request that is not timed. Each further pause is twice as long.
const PAUSE: Duration = Duration::from_millis(250);
/// Interval at which a stop is noticed.
const STOP_CHECK: Duration = Duration::from_millis(20);
/// Longest wait after a stop for the answers of the writes in flight. A write that is abandoned could be stored after
/// its object was deleted.
const DRAIN: Duration = Duration::from_secs(10);
/// The runtime's timers are late by up to this time. So the last part of a wait for a due time is spent spinning.
const SPIN: Duration = Duration::from_micros(1_500);

/// The properties of the requests of an arm.
#[derive(Clone, Debug)]
pub struct Shape {
    pub operation: Operation,
    /// Bytes that each request transfers.
    pub bytes: u64,
    pub is_fresh: bool,
    /// `true` to read only objects that were not read before.
    pub is_cold: bool,
    /// `true` to give each key a prefix of its own.
    pub is_spread: bool,
    pub concurrency: usize,
    pub requests: usize,
    /// Rate at which requests are due, per second; `None` to send each one when the one before has ended.
    pub rate_per_s: Option<u64>,
    /// The wait before a request on a kept connection, during which the connection is idle.
    pub gap: Duration,
    pub limit: Duration,
    /// Size of the parts of an upload; 0 for a single request.
    pub part_bytes: u64,
    /// The only object to read. With it, nothing is written.
    pub key: Option<String>,
}

/// The requests of one arm to one store.
pub struct Workload {
    pub objects: Rc<Objects>,
    pub shape: Shape,
    content: Rc<Content>,
    budget: Option<Rc<Budget>>,
    /// The objects to read, which exist already.
    readable: Vec<String>,
    buffers: Vec<Vec<u8>>,
    /// `true` after the first successful [`Self::prepare`].
    is_prepared: bool,
    stop: Stop,
}

/// The results of all requests of a trial.
pub struct Load {
    /// Each answer, with the time from the moment when the request was due until it was sent. The time is zero in a
    /// closed loop.
    pub answers: Vec<(Answer, Duration)>,
    /// Time from the first request to the end of the last one.
    pub took: Duration,
    /// CPU time of the client.
    pub cpu_ns: u64,
    /// Idle time of the connection before the request, if there is only one kept connection.
    pub gap: Option<Duration>,
}

impl Workload {
    pub fn new(
        objects: Rc<Objects>,
        shape: Shape,
        content: Rc<Content>,
        budget: Option<Rc<Budget>>,
        stop: Stop,
    ) -> Self {
        let buffers = (0..shape.concurrency).map(|_| Vec::new()).collect();
        Self { objects, shape, content, budget, readable: Vec::new(), buffers, is_prepared: false, stop }
    }

    /// Returns the size of the objects for these requests. A ranged read is from the middle of an object twice as large.
    pub fn object_bytes(operation: Operation, bytes: u64) -> u64 {
        if operation == Operation::Ranged { bytes.saturating_mul(2) } else { bytes }
    }

    /// Returns the requests and bytes of one trial, with those that write and delete its objects.
    pub fn usage(shape: &Shape) -> Usage {
        let count = shape.requests as u64;
        let object_bytes = Self::object_bytes(shape.operation, shape.bytes);
        let head = u64::from(Self::warms_up(shape));
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

    fn warms_up(shape: &Shape) -> bool {
        !shape.is_fresh && shape.concurrency == 1
    }

    fn spend(&self, usage: Usage) -> Result<(), TargetError> {
        let Some(budget) = &self.budget else { return Ok(()) };
        budget.spend(&self.objects.store.name, usage).map_err(TargetError::Failed)
    }

    /// Writes the objects that every trial reads, and reads one of them with a full check. Returns an error that
    /// explains wrong credentials, a missing bucket and the like. Later calls do nothing, because every trial checks the
    /// content that it has read.
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

    /// Finds out the size and the content of the only object to read.
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
        if self.shape.operation == Operation::Download {
            self.shape.bytes = described.bytes;
        }
        let request = Request::Read { key: key.clone(), range: self.range(), bytes: self.shape.bytes };
        let (mut buffer, mut number) = (Vec::new(), 1);
        loop {
            self.spend(Usage { reads: 1, bytes_read: self.shape.bytes, ..Usage::default() })?;
            let answer = send(&*store, &request, false, self.shape.limit, &mut buffer).await;
            match answer.complete() {
                Err(_) if number < ATTEMPTS && !matches!(answer.outcome, Outcome::Fatal { .. }) => {
                    self.pause(number).await?;
                }
                done => break done?,
            }
            number += 1;
        }
        let bytes = bytes::Bytes::from(buffer);
        let part = ascertain_transfer::PartBody { crc64: crc64(&bytes), bytes };
        self.content = Rc::new(Content { crc64: part.crc64, parts: vec![part] });
        self.shape.bytes = self.content.bytes();
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
                if self.stop.is_requested() {
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
        let whole = ascertain_transfer::PartBody { bytes: self.content.whole(), crc64: self.content.crc64 };
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
            while !self.stop.is_requested() {
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
        let gap = self.warm_up(&keys[0]).await?;
        let buffers = std::mem::take(&mut self.buffers);
        let sending = send_all(self.store(), requests, self.shape.clone(), buffers, self.stop.clone());
        let (mut load, buffers) =
            if writes { self.or_drained(sending).await? } else { self.or_stopped(sending).await? };
        self.buffers = buffers;
        if self.stop.is_requested() {
            // The session deletes all objects that may exist.
            return Err(TargetError::Interrupted);
        }
        load.gap = gap.map(|since| load.answers.first().map_or(Duration::ZERO, |(first, _)| first.began - since));
        let fatal_outcome = load.answers.iter().find_map(|(answer, _)| match &answer.outcome {
            Outcome::Fatal { why, .. } => Some(why.clone()),
            _ => None,
        });
        // The order of the answers is that of the requests.
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
        if let Some(why) = fatal_outcome {
            return Err(TargetError::Failed(why));
        }
        self.check(&load)?;
        Ok(load)
    }

    fn request(&self, key: &str) -> Request {
        match self.shape.operation {
            Operation::Upload => {
                Request::Write { key: key.into(), parts: self.content.parts.clone(), crc64: self.content.crc64 }
            }
            _ => Request::Read { key: key.into(), range: self.range(), bytes: self.shape.bytes },
        }
    }

    /// Opens the kept connections, so that no timed request opens one. With a single connection, also sends a small
    /// request over it and waits for the gap. So the idle time before the timed request is the same for all arms.
    async fn warm_up(&self, key: &str) -> Result<Option<Instant>, TargetError> {
        if self.shape.is_fresh {
            return Ok(None);
        }
        let store = self.store();
        self.or_stopped(store.connect(self.shape.concurrency)).await?;
        if !Self::warms_up(&self.shape) {
            return Ok(None);
        }
        // Errors will show with the timed request.
        let mut attempt = Attempt::default();
        let _ = self.or_stopped(tokio::time::timeout(self.shape.limit, store.head(key, &mut attempt))).await?;
        let since = Instant::now();
        self.or_stopped(sleep(self.shape.gap)).await?;
        Ok(Some(since))
    }

    /// Compares the last complete answer of each stream with the content. This takes place after the timed part.
    fn check(&self, load: &Load) -> Result<(), TargetError> {
        let all_complete = load.answers.iter().all(|(answer, _)| answer.outcome == Outcome::Complete);
        if self.shape.operation == Operation::Upload || !all_complete {
            return Ok(());
        }
        let expected = match (&self.shape.key, self.range()) {
            (None, Some(range)) => crc64(&self.content.whole()[range.start as usize..range.end as usize]),
            _ => self.content.crc64,
        };
        let is_wrong = |buffer: &&Vec<u8>| buffer.len() as u64 != self.shape.bytes || crc64(buffer) != expected;
        let used = self.buffers.iter().take(load.answers.len().min(self.shape.concurrency));
        match used.filter(is_wrong).count() {
            0 => Ok(()),
            _ => {
                let why = match &self.shape.key {
                    Some(key) => format!("{key} has changed while it was measured, or its bytes were damaged"),
                    None => "the bytes that were read differ from those that were written".into(),
                };
                Err(TargetError::WrongAnswer(why))
            }
        }
    }
}

impl Load {
    /// Returns an error if a request was not answered completely.
    pub fn complete(self) -> Result<Self, TargetError> {
        for (answer, _) in &self.answers {
            answer.complete()?;
        }
        Ok(self)
    }
}

impl Answer {
    fn complete(&self) -> Result<(), TargetError> {
        let why = match &self.outcome {
            Outcome::Complete => return Ok(()),
            Outcome::Short => "the answer ended early".to_string(),
            Outcome::Refused(status) => format!("the store refuses requests with status {status}"),
            Outcome::TimedOut => "the request timed out; raise `timeout_ms`".into(),
            Outcome::Broken(why) | Outcome::Fatal { why, .. } => why.clone(),
        };
        Err(TargetError::Failed(why))
    }
}

/// Sends the requests over `shape.concurrency` streams. In a closed loop, a stream sends its next request when the one
/// before has ended. In an open loop, requests are due at a fixed rate, and a free stream sends the next one when it is
/// due.
async fn send_all(
    store: Arc<dyn Store>,
    requests: Arc<[Request]>,
    shape: Shape,
    buffers: Vec<Vec<u8>>,
    stop: Stop,
) -> (Load, Vec<Vec<u8>>) {
    let next = Arc::new(AtomicUsize::new(0));
    let (start, cpu_before_ns) = (Instant::now(), thread_cpu_ns());
    let stream = |mut buffer: Vec<u8>| {
        let (store, requests, next) = (store.clone(), requests.clone(), next.clone());
        let (shape, stop) = (shape.clone(), stop.clone());
        async move {
            let mut answers = Vec::with_capacity(requests.len().div_ceil(shape.concurrency) + 1);
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(request) = requests.get(number).filter(|_| !stop.is_requested()) else {
                    break (answers, buffer);
                };
                let late = match shape.rate_per_s {
                    Some(rate) => wait_until_due(start + Duration::from_secs_f64(number as f64 / rate as f64)).await,
                    None => Duration::ZERO,
                };
                let answer = send(&*store, request, shape.is_fresh, shape.limit, &mut buffer).await;
                answers.push((number, (answer, late)));
            }
        }
    };
    let (mut answers, mut used) = (Vec::with_capacity(requests.len()), Vec::new());
    let mut buffers = buffers.into_iter();
    if shape.concurrency == 1 {
        let (of_stream, buffer) = stream(buffers.next().unwrap_or_default()).await;
        answers.extend(of_stream);
        used.push(buffer);
    } else {
        let mut streams = JoinSet::new();
        buffers.for_each(|buffer| _ = streams.spawn(stream(buffer)));
        while let Some(done) = streams.join_next().await {
            if let Ok((of_stream, buffer)) = done {
                answers.extend(of_stream);
                used.push(buffer);
            }
        }
    }
    let cpu_ns = thread_cpu_ns() - cpu_before_ns;
    answers.sort_by_key(|(number, _)| *number);
    let answers: Vec<(Answer, Duration)> = answers.into_iter().map(|(_, answer)| answer).collect();
    let ends = answers.iter().map(|(answer, _)| answer.began + answer.time);
    let took = ends.max().map_or(Duration::ZERO, |end| end.saturating_duration_since(start));
    (Load { answers, took, cpu_ns, gap: None }, used)
}

/// Waits until a request is due, and returns by how much it is late.
async fn wait_until_due(due: Instant) -> Duration {
    if let Some(left) = due.checked_duration_since(Instant::now()).and_then(|left| left.checked_sub(SPIN)) {
        sleep(left).await;
    }
    while Instant::now() < due {
        yield_now().await;
    }
    due.elapsed()
}

/// Returns whether a request that failed like this may succeed later.
fn is_transient(kind: Kind) -> bool {
    matches!(kind, Kind::Transient(_) | Kind::Unanswered)
}

fn fatal(failure: Failure) -> TargetError {
    TargetError::Failed(failure.to_string())
}

fn journal(error: std::io::Error) -> TargetError {
    TargetError::Failed(format!("the journal of objects could not be written: {error}"))
}
