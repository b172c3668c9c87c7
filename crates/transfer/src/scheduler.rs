//! The main loop of a file's transfer: waits for the permission for each part, and transfers the parts side by side.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::BoxFuture;
use crate::error::{Error, Result};
use crate::journal::{Journal, Part, PartList};
use crate::manager::TransferManager;
use crate::part::PartWork;
use crate::pool::{FileRequests, Hedge, Permission, Wanted};
use crate::result::{Observer, Progress, RequestStats, RequestSummary, TransferResult};
use crate::store::Limits;

/// The state of the transfer of one file.
#[derive(Debug)]
pub(crate) struct Scheduler<'a> {
    manager: &'a TransferManager,
    permits: Arc<FileRequests>,
    /// The limits on the file's parts.
    limits: Limits,
    bytes: u64,
    pub parts: PartList,
    pub journal: Journal,
    /// Parts that an earlier attempt started but did not complete.
    pending: VecDeque<Part>,
    resumed_bytes: u64,
    done_bytes: u64,
    /// Number of transferred bytes when the first plan was made.
    probed_bytes: Option<u64>,
    requests: Vec<RequestStats>,
}

impl<'a> Scheduler<'a> {
    /// Creates the state for transferring the rest of a file of `bytes` bytes. `parts` and `journal` record the parts
    /// of an earlier, interrupted attempt, if there was one.
    pub fn new(
        manager: &'a TransferManager,
        permits: Arc<FileRequests>,
        limits: Limits,
        bytes: u64,
        parts: PartList,
        journal: Journal,
    ) -> Self {
        let (pending, resumed_bytes) = (parts.pending(), parts.done_bytes());
        Self {
            manager,
            permits,
            limits,
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
        // The wait for the next permission goes on while other parts end, so that the file keeps its turn.
        let mut permit: Option<BoxFuture<'static, Permission>> = None;
        if self.permits.pool().outlook().1.is_some() {
            self.report_progress(observer, name);
        }
        loop {
            if permit.is_none() {
                permit = self.wanted().map(|wanted| Box::pin(Arc::clone(&self.permits).permit(wanted)) as _);
            }
            if permit.is_none() && tasks.is_empty() {
                return Ok(());
            }
            let permitted = async {
                match &mut permit {
                    Some(permit) => permit.await,
                    None => pending().await,
                }
            };
            let (part, permission, done) = tokio::select! {
                biased;
                () = self.manager.stopped() => return Err(Error::Stopped),
                Some(joined) = tasks.join_next() => joined.map_err(|error| Error::Request(error.to_string()))?,
                permission = permitted => {
                    permit = None;
                    let part = self.next_part(permission.bytes());
                    self.journal.start_part(part)?;
                    self.parts.start(part);
                    let (first, second) = (work.start(part, false), work.start(part, true));
                    let (retry, condition) = (Arc::clone(&self.manager.gate.retry), work.hedge(part));
                    tasks.spawn(async move {
                        let condition = || if retry.is_refused() { Hedge::Never } else { condition() };
                        let done = permission.hedge(condition, first, second).await;
                        (part, permission, done)
                    });
                    continue;
                }
            };
            let ((receipt, stats, held), is_hedged) = done?;
            let stats = if is_hedged { stats.hedged() } else { stats };
            work.deliver(part, held)?;
            self.journal.complete_part(part.index, &receipt)?;
            self.parts.complete(part.index, receipt);
            Permission::complete(permission, &stats);
            self.requests.push(stats);
            self.done_bytes += part.bytes;
            self.report_progress(observer, name);
            if work.is_complete() {
                return Ok(());
            }
        }
    }

    /// Creates a scheduler with the same limits, for those parts in `parts` that have no receipt.
    pub fn again(&self, parts: PartList) -> Self {
        let permits = Arc::clone(&self.permits);
        Self::new(self.manager, permits, self.limits, self.bytes, parts, Journal::default())
    }

    /// Adds the requests of another transfer of the same file to the statistics.
    pub fn add_requests(&mut self, other: Self) {
        self.requests.extend(other.requests);
    }

    fn report_progress(&mut self, observer: &dyn Observer, name: &str) {
        let (plan, forecast) = self.permits.pool().outlook();
        if plan.is_some() {
            self.probed_bytes.get_or_insert(self.done_bytes);
        }
        observer.progress(&Progress {
            name,
            done_bytes: self.done_bytes,
            bytes: Some(self.bytes),
            elapsed_s: self.permits.now_s(),
            shape: plan.map(|plan| plan.shape),
            forecast,
            files: None,
        });
    }

    /// Copies the statistics of the transfer to its result.
    pub fn report(&self, result: &mut TransferResult) {
        result.resumed_bytes = self.resumed_bytes;
        result.probed_bytes = self.probed_bytes.unwrap_or(0);
        result.parts = self.requests.len() as u64;
        result.crc64 = Some(self.parts.crc64());
        result.requests = RequestSummary::new(&self.requests);
        result.plan = self.permits.first_plan();
    }

    /// Returns the request that the file needs next; `None` if all its parts were started.
    fn wanted(&self) -> Option<Wanted> {
        if let Some(part) = self.pending.front() {
            return Some(Wanted::Again(part.bytes));
        }
        let Part { index, offset, .. } = self.parts.next();
        let file_bytes = self.bytes - offset;
        let least_bytes = self.limits.least_part_bytes(file_bytes, self.limits.max_parts.saturating_sub(index));
        (file_bytes > 0).then_some(Wanted::Part { file_bytes, least_bytes })
    }

    /// Returns the part for which `bytes` bytes were permitted.
    fn next_part(&mut self, bytes: u64) -> Part {
        self.pending.pop_front().unwrap_or_else(|| Part { bytes, ..self.parts.next() })
    }
}
