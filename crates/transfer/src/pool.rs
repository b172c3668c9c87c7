//! The requests in flight of a command. All its transfers share one planner, which decides when the next request may
//! start, and how many bytes it carries.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use crate::model::{Forecast, Planner, RAMP_S, Ticket, TransferPlan};
use crate::result::RequestStats;

/// Shortest time between two checks whether a request is late. [`MAX_LATE_CHECK`] is the longest time.
const LATE_CHECK: Duration = Duration::from_millis(50);
const MAX_LATE_CHECK: Duration = Duration::from_secs(1);

/// Maximum number of downloads that wait for their first request. Preparing many files at once would delay the answers
/// to the requests of the other files.
const PLACES: usize = 8;

/// The planner of a command, and the queue of the transfers that wait for their next request.
#[derive(Debug)]
pub(crate) struct Pool {
    planner: Mutex<Planner>,
    /// The forecast that is based on earlier commands. It is used until the planner makes a forecast.
    earlier: OnceLock<Forecast>,
    /// Start of the command. The planner's times are seconds from this moment.
    began: Instant,
    /// The lock of the transfer whose request is next. tokio hands it over in the order of the calls.
    turn: tokio::sync::Mutex<()>,
    /// Wakes the transfer that holds `turn`, because the planner may permit its request now.
    changed: Notify,
    /// Limits the number of files that wait for their first request. Each of these files has a permit.
    places: Arc<Semaphore>,
}

/// The requests of one file.
#[derive(Debug)]
pub(crate) struct FileRequests {
    pool: Arc<Pool>,
    /// Number of the file's bytes for which no request has been permitted yet. `None` after the request for the last
    /// part was permitted.
    left: Mutex<Option<u64>>,
    /// The place among the files that wait for their first request; `None` after that request was permitted.
    place: Mutex<Option<OwnedSemaphorePermit>>,
}

/// The permission to send one request. If it is dropped before [`Permission::complete`], the request counts as failed.
#[derive(Debug)]
pub(crate) struct Permission {
    pool: Arc<Pool>,
    ticket: Ticket,
    is_complete: bool,
}

/// The condition for requesting a part a second time while its first request is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hedge {
    /// The part must not be requested twice.
    Never,
    /// The part may be requested again at the end of the command.
    AtEnd,
    /// The part may be requested again now, because all other parts wait for it.
    Now,
}

/// A request that a transfer wants to send next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wanted {
    /// The next part of a file that has `file_bytes` bytes left. The planner chooses its size: at least `least_bytes`,
    /// unless the file has fewer left.
    Part { file_bytes: u64, least_bytes: u64 },
    /// A part that an earlier attempt started, with its size in bytes.
    Again(u64),
}

impl Wanted {
    /// Returns the request for a whole file of `bytes` bytes.
    pub fn whole(bytes: u64) -> Self {
        Self::Part { file_bytes: bytes, least_bytes: bytes }
    }
}

impl Pool {
    pub fn new(planner: Planner, began: Instant, earlier: Option<Forecast>) -> Arc<Self> {
        let (turn, changed) = Default::default();
        let (places, earlier) = (Arc::new(Semaphore::new(PLACES)), earlier.map(OnceLock::from).unwrap_or_default());
        Arc::new(Self { planner: Mutex::new(planner), earlier, began, turn, changed, places })
    }

    /// Returns the requests of a file, of which `bytes` bytes must be transferred. The planner already counts these
    /// bytes.
    pub fn file(self: &Arc<Self>, bytes: u64) -> FileRequests {
        FileRequests { pool: Arc::clone(self), left: Mutex::new(Some(bytes)), place: Mutex::default() }
    }

    /// Waits until few files wait for their first request, then returns the requests of the next file. The planner
    /// already counts the file's bytes.
    pub async fn next_file(self: &Arc<Self>, bytes: u64) -> FileRequests {
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        FileRequests { pool: Arc::clone(self), left: Mutex::new(Some(bytes)), place: Mutex::new(place) }
    }

    /// Returns the requests of an additional file, and adds its bytes to the bytes that the planner counts.
    pub fn added_file(self: &Arc<Self>, bytes: u64) -> FileRequests {
        self.planner().add(bytes, 1);
        self.file(bytes)
    }

    /// Adds the bytes and the number of files that were listed while others were transferred.
    pub fn add_files(&self, bytes: u64, files: usize) {
        self.planner().add(bytes, files);
    }

    /// Records that all files have been listed. `earlier` is the forecast for all of them that is based on earlier
    /// commands.
    pub fn end_list(&self, earlier: Option<Forecast>) {
        self.planner().end_list();
        earlier.map(|earlier| self.earlier.get_or_init(|| earlier));
    }

    /// Returns whether files of up to [`WHOLE_BYTES`](crate::model::WHOLE_BYTES) are not split.
    pub fn sends_whole(&self) -> bool {
        self.planner().sends_whole()
    }

    /// Returns whether all requests have been sent and answered.
    pub fn is_at_end(&self) -> bool {
        self.planner().is_at_end()
    }

    /// Returns the latest plan, and the latest forecast of the duration of the command.
    pub fn outlook(&self) -> (Option<TransferPlan>, Option<Forecast>) {
        let plan = self.planner().plan();
        (plan, plan.and_then(|plan| plan.forecast).or(self.earlier.get().copied()))
    }

    fn try_permit(self: &Arc<Self>, wanted: Wanted) -> Option<Permission> {
        let (now_s, mut planner) = (self.now_s(), self.planner());
        let ticket = match wanted {
            Wanted::Part { file_bytes, least_bytes } => planner.next_part_of(file_bytes, least_bytes, now_s),
            Wanted::Again(bytes) => planner.repeat_part(bytes, now_s),
        };
        ticket.map(|ticket| Permission { pool: Arc::clone(self), ticket, is_complete: false })
    }

    fn now_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn planner(&self) -> MutexGuard<'_, Planner> {
        self.planner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileRequests {
    /// Returns the requests of a file that is transferred alone.
    pub fn alone(planner: Planner, began: Instant, earlier: Option<Forecast>) -> Self {
        let bytes = planner.left();
        Pool::new(planner, began, earlier).file(bytes)
    }

    /// Returns the pool that permits these requests.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Waits until the planner permits the next request. The files that wait are served in the order of their calls.
    pub async fn permit(self: Arc<Self>, wanted: Wanted) -> Permission {
        let _turn = self.pool.turn.lock().await;
        if let Wanted::Part { file_bytes, .. } = wanted {
            self.recount(file_bytes);
        }
        loop {
            if let Some(permission) = self.pool.try_permit(wanted) {
                self.leave_place();
                if let Wanted::Part { file_bytes, .. } = wanted {
                    let left = file_bytes - permission.bytes();
                    *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(left).filter(|left| *left > 0);
                }
                return permission;
            }
            // At the start, the planner may permit more requests only because time has passed.
            let _ = timeout(Duration::from_secs_f64(RAMP_S / 2.0), self.pool.changed.notified()).await;
        }
    }

    /// Corrects the plan if `bytes` bytes of the file are left. The file may have another size than in the list, or its
    /// transfer may have started again.
    fn recount(&self, bytes: u64) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        match left.replace(bytes) {
            Some(counted) if counted == bytes => {}
            Some(counted) if counted > bytes => self.pool.planner().leave_out(counted - bytes, 0),
            Some(counted) => self.pool.planner().add(bytes - counted, 0),
            None => self.pool.planner().add(bytes, 1),
        }
    }

    /// Lets another file take the place of this file among the files that wait for their first request.
    pub fn leave_place(&self) {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Removes bytes of the file from the plan, because an earlier attempt has already transferred them.
    pub fn skip(&self, bytes: u64) {
        if let Some(left) = &mut *self.left.lock().unwrap_or_else(PoisonError::into_inner) {
            let bytes = bytes.min(*left);
            *left -= bytes;
            self.pool.planner().leave_out(bytes, 0);
        }
    }

    /// Returns the first plan, with the first forecast.
    pub fn first_plan(&self) -> Option<TransferPlan> {
        self.pool.planner().first_plan()
    }

    /// Returns the time in seconds since the start of the command.
    pub fn now_s(&self) -> f64 {
        self.pool.now_s()
    }
}

impl Drop for FileRequests {
    /// Removes the rest of the file from the plan, if the file was skipped or failed.
    fn drop(&mut self) {
        if let Some(left) = *self.left.get_mut().unwrap_or_else(PoisonError::into_inner) {
            self.pool.planner().leave_out(left, 1);
            self.pool.changed.notify_one();
        }
    }
}

impl Permission {
    /// Sends a request, and sends it a second time if it is late. Returns the first answer, and drops the other
    /// request. Fails if both requests fail.
    ///
    /// A single slow connection or disk of the store would otherwise delay the end of the whole command. `condition` is
    /// evaluated repeatedly, because it changes while the request is in flight.
    pub async fn hedge<T, E>(
        &self,
        condition: impl Fn() -> Hedge,
        first: impl Future<Output = Result<T, E>>,
        second: impl Future<Output = Result<T, E>>,
    ) -> Result<(T, bool), E> {
        let (mut first, second) = (pin!(first), pin!(second));
        let _second_permission = tokio::select! {
            biased;
            answer = &mut first => return answer.map(|answer| (answer, false)),
            permission = self.late(condition) => permission,
        };
        let mut second = second;
        tokio::select! {
            answer = &mut first => match answer {
                Ok(answer) => Ok((answer, true)),
                Err(_) => second.await.map(|answer| (answer, true)),
            },
            answer = &mut second => match answer {
                Ok(answer) => Ok((answer, true)),
                Err(_) => first.await.map(|answer| (answer, true)),
            },
        }
    }

    /// Waits until the planner and `condition` permit a second request, because the first request is late.
    async fn late(&self, condition: impl Fn() -> Hedge) -> Self {
        let began = tokio::time::Instant::now();
        loop {
            // The pauses grow with the age of the request, so that a slow one is checked a few times only.
            sleep(began.elapsed().div_f64(4.0).clamp(LATE_CHECK, MAX_LATE_CHECK)).await;
            let condition = condition();
            if condition == Hedge::Never {
                continue;
            }
            let (now_s, mut planner) = (self.pool.now_s(), self.pool.planner());
            if let Some(ticket) = planner.repeat_late(&self.ticket, now_s, condition == Hedge::Now) {
                return Self { pool: Arc::clone(&self.pool), ticket, is_complete: false };
            }
        }
    }

    /// Returns the size of the request in bytes.
    pub fn bytes(&self) -> u64 {
        self.ticket.bytes
    }

    /// Records that the request succeeded.
    pub fn complete(mut self, stats: &RequestStats) {
        let (now_s, mut planner) = (self.pool.now_s(), self.pool.planner());
        planner.complete(&self.ticket, now_s, stats.first_try);
        if stats.retries.slow_down > 0 || stats.retries.silent > 0 {
            planner.slow_down(&self.ticket);
        }
        drop(planner);
        self.is_complete = true;
    }
}

impl Drop for Permission {
    fn drop(&mut self) {
        if !self.is_complete {
            let now_s = self.pool.now_s();
            self.pool.planner().give_up(&self.ticket, now_s);
        }
        self.pool.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Constraints;
    use crate::store::Limits;

    /// One file has become shorter since it was listed, one longer, and the transfer of one starts again.
    #[tokio::test]
    async fn the_plan_follows_the_actual_sizes_of_files() {
        let limits = Limits { min_part_bytes: 1, max_part_bytes: 1 << 40, max_parts: 1000, max_put_bytes: 1 << 40 };
        let constraints = Constraints {
            limits,
            memory_bytes: 1 << 30,
            min_concurrency: 8,
            max_concurrency: 8,
            limit_bytes_per_s: None,
        };
        let pool = Pool::new(Planner::for_files(350, 4, constraints), Instant::now(), None);
        let [shorter, longer, again, last] = [100, 100, 100, 50].map(|bytes| Arc::new(pool.file(bytes)));
        let permit = async |file: &Arc<FileRequests>, bytes| {
            drop(Arc::clone(file).permit(Wanted::whole(bytes)).await);
            pool.planner().left()
        };
        assert_eq!(permit(&shorter, 40).await, 250);
        assert_eq!(permit(&longer, 130).await, 150);
        assert_eq!([permit(&again, 100).await, permit(&again, 100).await], [50, 50]);
        assert_eq!(permit(&last, 50).await, 0);
        drop([shorter, longer, again, last]);
        assert!(pool.is_at_end());
    }
}
