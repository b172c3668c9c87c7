//! The streams that send the requests of a trial, and the parts of a session that all of them share.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ascertain_engine::experiment::TargetError;
use ascertain_netlab::timer::Timer;
use ascertain_sys::clock::thread_cpu_ns;
use ascertain_sys::interrupt::Stop;
use ascertain_transfer::Store;
use tokio::task::JoinSet;

use super::attempt::{Answer, Outcome, Request, send};
use super::workload::Shape;

/// The parts of a session that all workloads share.
#[derive(Clone)]
pub struct Shared {
    pub stop: Stop,
    pub buffers: Rc<RefCell<Buffers>>,
    /// Wakes requests when they are due; `None` until the first open loop.
    timer: Rc<OnceCell<Arc<Timer>>>,
}

impl Shared {
    pub fn new(stop: Stop) -> Self {
        Self { stop, buffers: Rc::default(), timer: Rc::default() }
    }

    pub fn timer(&self) -> Result<Arc<Timer>, TargetError> {
        if self.timer.get().is_none() {
            let timer = Timer::new().map_err(|error| TargetError::Failed(error.to_string()))?;
            let _ = self.timer.set(Arc::new(timer));
        }
        Ok(self.timer.get().cloned().unwrap_or_else(|| unreachable!("the timer was set")))
    }
}

/// Buffers for answers. All workloads use the same buffers, so that large objects do not multiply the memory.
#[derive(Default)]
pub struct Buffers(Vec<Vec<u8>>);

impl Buffers {
    /// Takes `count` buffers, the largest ones first, and enlarges them to `bytes` bytes.
    pub fn take(&mut self, count: usize, bytes: usize) -> Vec<Vec<u8>> {
        let mut taken = self.0.split_off(self.0.len().saturating_sub(count));
        taken.resize_with(count, Vec::new);
        for buffer in &mut taken {
            buffer.clear();
            buffer.reserve_exact(bytes);
        }
        taken
    }

    pub fn give_back(&mut self, buffers: impl IntoIterator<Item = Vec<u8>>) {
        self.0.extend(buffers);
        self.0.sort_by_key(Vec::capacity);
    }
}

/// The results of all requests of a trial.
pub struct Load {
    /// Each answer, with the time from the moment when the request was due until it began. The time is zero in a closed
    /// loop.
    pub answers: Vec<(Answer, Duration)>,
    /// Time from the first request to the end of the last request.
    pub took: Duration,
    /// CPU time of the client, in nanoseconds.
    pub cpu_ns: u64,
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
    pub fn complete(&self) -> Result<(), TargetError> {
        let why = match &self.outcome {
            Outcome::Complete => return Ok(()),
            Outcome::Short => "the answer ended early".to_string(),
            Outcome::Refused { status, code } => {
                let code = code.as_ref().map_or(String::new(), |code| format!(" ({code})"));
                format!("the store refuses requests with status {status}{code}")
            }
            Outcome::TimedOut => "the request timed out; raise `timeout_ms`".into(),
            Outcome::Broken(why) | Outcome::Fatal { why, .. } => why.clone(),
        };
        Err(TargetError::Failed(why))
    }
}

/// The schedule of an open loop.
#[derive(Clone)]
pub struct Pace {
    pub rate_per_s: u64,
    pub timer: Arc<Timer>,
}

/// The last answer of a stream, for a check of its content.
pub struct LastAnswer {
    pub bytes: Vec<u8>,
    pub is_complete: bool,
}

/// Sends the requests over `shape.concurrency` streams. In a closed loop, a stream sends its next request when its
/// previous request has ended. In an open loop, requests are due at a fixed rate, and a free stream sends the next
/// request when it is due. Also returns the last answer of each stream.
pub async fn send_all(
    store: Arc<dyn Store>,
    requests: Arc<[Request]>,
    shape: Shape,
    (buffers, pace): (Vec<Vec<u8>>, Option<Pace>),
    stop: Stop,
) -> (Load, Vec<LastAnswer>) {
    let next = Arc::new(AtomicUsize::new(0));
    let (start, cpu_before_ns) = (Instant::now(), thread_cpu_ns());
    let stream = |bytes: Vec<u8>| {
        let (store, requests, next) = (store.clone(), requests.clone(), next.clone());
        let (limit, is_fresh, pace, stop) = (shape.limit, shape.is_fresh, pace.clone(), stop.clone());
        let mut answers = Vec::with_capacity(requests.len().div_ceil(shape.concurrency) + 1);
        async move {
            let mut last = LastAnswer { bytes, is_complete: false };
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(request) = requests.get(number).filter(|_| !stop.is_requested()) else {
                    break (answers, last);
                };
                let mut due = None;
                if let Some(Pace { rate_per_s, timer }) = &pace {
                    let at = start + Duration::from_secs_f64(number as f64 / *rate_per_s as f64);
                    timer.clone().wait_until(at).await;
                    due = Some(at);
                }
                let answer = send(&*store, request, is_fresh, limit, &mut last.bytes).await;
                last.is_complete = answer.outcome == Outcome::Complete;
                let late = due.map_or(Duration::ZERO, |due| answer.began.saturating_duration_since(due));
                answers.push((number, (answer, late)));
            }
        }
    };
    let (mut answers, mut last) = (Vec::with_capacity(requests.len()), Vec::new());
    let mut buffers = buffers.into_iter();
    if shape.concurrency == 1 {
        let (of_stream, of_last) = stream(buffers.next().unwrap_or_default()).await;
        answers.extend(of_stream);
        last.push(of_last);
    } else {
        let mut streams = JoinSet::new();
        buffers.for_each(|buffer| _ = streams.spawn(stream(buffer)));
        while let Some(done) = streams.join_next().await {
            if let Ok((of_stream, of_last)) = done {
                answers.extend(of_stream);
                last.push(of_last);
            }
        }
    }
    let cpu_ns = thread_cpu_ns() - cpu_before_ns;
    answers.sort_by_key(|(number, _)| *number);
    let answers: Vec<(Answer, Duration)> = answers.into_iter().map(|(_, answer)| answer).collect();
    let ends = answers.iter().map(|(answer, _)| answer.began + answer.time);
    let took = ends.max().map_or(Duration::ZERO, |end| end.saturating_duration_since(start));
    (Load { answers, took, cpu_ns }, last)
}
