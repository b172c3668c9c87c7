//! The main loop of a file's transfer. It decides when the next part starts, and adapts the number of connections.

use std::collections::VecDeque;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::journal::{Journal, Part, PartList};
use crate::manager::TransferManager;
use crate::model::{Forecast, Planner, Ticket};
use crate::part::PartWork;
use crate::result::{Observer, Progress, RequestStats, RequestSummary, TransferResult};

/// The state of the transfer of one file.
#[derive(Debug)]
pub(crate) struct Scheduler<'a> {
    manager: &'a TransferManager,
    planner: Planner,
    /// Start of the transfer. The planner's times are seconds from this moment.
    began: Instant,
    bytes: u64,
    pub parts: PartList,
    pub journal: Journal,
    /// Parts that an earlier attempt started but did not complete.
    pending: VecDeque<Part>,
    resumed_bytes: u64,
    done_bytes: u64,
    /// Number of transferred bytes when the first forecast was made.
    probed_bytes: Option<u64>,
    requests: Vec<RequestStats>,
}

impl<'a> Scheduler<'a> {
    /// Creates the state for transferring the rest of a file of `bytes` bytes. `parts` and `journal` record the parts
    /// of an earlier, interrupted attempt, if there was one.
    pub fn new(
        manager: &'a TransferManager,
        planner: Planner,
        began: Instant,
        bytes: u64,
        parts: PartList,
        journal: Journal,
    ) -> Self {
        let (pending, resumed_bytes) = (parts.pending(), parts.done_bytes());
        Self {
            manager,
            planner,
            began,
            bytes,
            parts,
            journal,
            pending,
            resumed_bytes,
            done_bytes: resumed_bytes,
            probed_bytes: None,
            requests: Vec::new(),
        }
    }

    /// Transfers the rest of the file. The observer receives `name` as the name of the transferred object.
    pub async fn run(&mut self, work: &mut dyn PartWork, observer: &dyn Observer, name: &str) -> Result<()> {
        let mut tasks = JoinSet::new();
        loop {
            while let Some((part, ticket)) = self.next_part() {
                self.journal.start_part(part)?;
                self.parts.start(part);
                let transfer = work.start(part);
                tasks.spawn(async move { (part, ticket, transfer.await) });
            }
            let Some(joined) = self.manager.or_stopped(tasks.join_next()).await? else { return Ok(()) };
            let (part, ticket, done) = joined.map_err(|error| Error::Request(error.to_string()))?;
            let (receipt, stats, held) = done?;
            self.journal.complete_part(part.index, &receipt)?;
            self.parts.complete(part.index, receipt);
            work.deliver(part.index, held)?;
            self.planner.complete(&ticket, self.now_s(), stats.first_try);
            self.requests.push(stats);
            if stats.retries.slow_down > 0 {
                self.planner.slow_down(&ticket);
            }
            self.done_bytes += part.bytes;
            let forecast = self.planner.forecast().map(|forecast| self.limited(forecast));
            if forecast.is_some() {
                self.probed_bytes.get_or_insert(self.done_bytes);
            }
            observer.progress(&Progress {
                name,
                done_bytes: self.done_bytes,
                bytes: Some(self.bytes),
                elapsed_s: self.now_s(),
                forecast: forecast.as_ref(),
                files: None,
            });
        }
    }

    /// Copies the statistics of the transfer to its result.
    pub fn report(&self, result: &mut TransferResult) {
        result.resumed_bytes = self.resumed_bytes;
        result.probed_bytes = self.probed_bytes.unwrap_or(0);
        result.parts = self.requests.len() as u64;
        result.crc64 = Some(self.parts.crc64());
        result.requests = RequestSummary::new(&self.requests);
        result.forecast = self.planner.first_forecast().map(|forecast| self.limited(forecast));
    }

    /// Adapts a forecast to the bandwidth limit, which determines the earliest start of the last part. The last part
    /// and the commit take additional time. The new upper bound is at least the new expected duration, plus the length
    /// of the old interval.
    fn limited(&self, forecast: &Forecast) -> Forecast {
        let min_s = self.manager.min_s(self.bytes - self.resumed_bytes);
        if min_s == 0.0 {
            return *forecast;
        }
        let Forecast { shape, link, .. } = forecast;
        let last_s = link.fixed_s + link.latency_s + shape.part_bytes as f64 / link.bytes_per_s;
        let expected_s = forecast.expected_s.max(min_s + last_s);
        let high_s = forecast.high_s.max(expected_s + forecast.high_s - forecast.low_s);
        Forecast { expected_s, low_s: forecast.low_s.max(min_s), high_s, ..*forecast }
    }

    fn next_part(&mut self) -> Option<(Part, Ticket)> {
        let now_s = self.now_s();
        if let Some(part) = self.pending.front() {
            let ticket = self.planner.repeat_part(part.bytes, now_s)?;
            return self.pending.pop_front().map(|part| (part, ticket));
        }
        let ticket = self.planner.next_part(now_s)?;
        Some((Part { bytes: ticket.bytes, ..self.parts.next() }, ticket))
    }

    fn now_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }
}
