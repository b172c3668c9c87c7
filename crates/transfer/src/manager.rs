//! The state that all transfers of a command share: settings, memory, rate limit, retries and the stop token.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use ascertain_sys::interrupt::Stop;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::error::{Error, Result};
use crate::folder_journal::FolderJournal;
use crate::gentle::{CongestionControl, part_bytes, slice_s};
use crate::history::History;
use crate::location::Location;
use crate::model::{self, Constraints, Forecast, Planner};
use crate::names::content_type;
use crate::part::PartGate;
use crate::pool::FileRequests;
use crate::publisher::Publisher;
use crate::rate_limit::RateLimit;
use crate::result::Observer;
use crate::retry::{RetryPolicy, request};
use crate::store::{Attributes, Kind, Limits, ObjectMeta, PutOptions, Store, Upload};

/// Settings that all transfers of a [`TransferManager`] share.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Limit on the total size of the parts in flight. Each part may use up to an eighth more memory. In addition, up
    /// to 64 MiB of unused buffers are kept for reuse, and a store of local files keeps up to 64 MiB more. A part for
    /// which a stream waits may be requested a second time in excess of the limit.
    pub memory_bytes: u64,
    /// Maximum number of requests in flight for all files of a command, or for one file that is transferred alone; at
    /// least one.
    pub max_concurrency: usize,
    /// Minimum number of parts in flight, as long as there are enough parts and memory. The planner otherwise chooses
    /// the number between one and [`Self::max_concurrency`].
    pub min_concurrency: usize,
    /// Size in bytes of the parts of a file, within the limits of the store; `None` to let the planner choose it. Small
    /// files of a folder are not split.
    pub part_bytes: Option<u64>,
    /// Limit on the bandwidth of all transfers together, in bytes per second.
    pub limit_bytes_per_s: Option<u64>,
    /// Maximum latency that transfers may add to the network path; `None` for no limit. The transfers adapt their rate
    /// to this limit.
    pub gentle: Option<Duration>,
    /// `true` to read each stored object back and compare it with its source.
    pub verify: bool,
    /// `true` to skip every file whose target exists.
    pub no_clobber: bool,
    /// `true` to skip every file whose target has the same content.
    pub skip_unchanged: bool,
    /// `true` to report the planned transfers without carrying them out.
    pub dry_run: bool,
    /// The attributes of stored objects. By default, the extension of the name determines the media type.
    pub attributes: Attributes,
    /// `true` to keep the modification times of files: `put` records them with the objects, in
    /// [`Attributes::modified`], and `get` restores them. Otherwise, a downloaded file gets the time when the object
    /// was stored.
    pub preserve: bool,
    /// Folder of the journals. If it is `None`, an interrupted transfer starts again from the beginning.
    pub journals: Option<PathBuf>,
    /// Folder of the notes: short records of uploads that have no journal. If this process is killed, a later command
    /// can abort these uploads. If a note can't be written, its upload continues.
    pub notes: Option<PathBuf>,
    /// Treatment of an interrupted transfer that has a journal.
    pub resume: Resume,
    /// Maximum number of retries of one request; [`u64::MAX`] for no limit except [`Self::retry_for`]. A request whose
    /// bytes arrive corrupted is sent at most three times. A request that the store has answered with an error ten
    /// times, for all of [`Self::retry_for`], fails although other requests succeed.
    pub retries: u64,
    /// Time for which transient failures are retried while no request of the manager succeeds. The time starts again
    /// whenever a request succeeds. Times in which bytes of the failed request moved do not count. When the whole time
    /// has passed without a success, the manager sends no further requests, unless bytes of another request still move.
    pub retry_for: Duration,
    /// Average wait before the first retry of a request. The waits before later retries are longer.
    pub back_off: Duration,
    /// Time limit for each answer, counted from the latest progress of the request. Opening the connection may take 25 s
    /// more, and each 16 KiB of a part one second more. For a store in the cloud,
    /// [`Options::timeout`](crate::Options::timeout) limits the time without progress more strictly. For your own store,
    /// call [`Attempt::record_progress`](crate::Attempt::record_progress) while bytes move.
    pub timeout: Duration,
    /// Seed of the random numbers that vary the waits before retries.
    pub seed: u64,
}

/// Default of [`Settings::retry_for`]. Restarts of a store, a gateway or a network connection usually take less than
/// two minutes. A wrong address is reported after this time, so it must not be much longer.
const RETRY_FOR: Duration = Duration::from_secs(120);

impl Default for Settings {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            max_concurrency: 64,
            min_concurrency: 1,
            part_bytes: None,
            limit_bytes_per_s: None,
            gentle: None,
            verify: false,
            no_clobber: false,
            skip_unchanged: false,
            dry_run: false,
            attributes: Attributes::default(),
            preserve: false,
            journals: None,
            notes: None,
            resume: Resume::default(),
            retries: u64::MAX,
            retry_for: RETRY_FOR,
            back_off: Duration::from_millis(100),
            timeout: Duration::from_secs(60),
            seed: 0,
        }
    }
}

impl Settings {
    /// Returns the modification time that a downloaded file gets.
    pub(crate) fn file_time(&self, meta: &ObjectMeta) -> Option<SystemTime> {
        meta.file_modified.filter(|_| self.preserve).or(meta.modified)
    }
}

/// The treatment of an earlier, interrupted attempt at the same transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resume {
    /// Resumes the attempt if the source and the destination are unchanged. Otherwise starts again, and reports the
    /// reason in [`TransferResult::restart_reason`](crate::TransferResult::restart_reason).
    #[default]
    IfSame,
    /// Resumes the attempt if the source and the destination are unchanged. Otherwise fails. If a file of a folder has
    /// changed after it was complete, only this file fails. If the journal of a folder is damaged, the command fails.
    Only,
    /// Discards the attempt, and starts again from the beginning.
    Never,
}

/// Transfers files under common settings. All transfers of a manager share memory, bandwidth and retries.
#[derive(Clone)]
pub struct TransferManager {
    pub(crate) settings: Settings,
    pub(crate) stop: Stop,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) gate: PartGate,
    pub(crate) gentle: Option<Arc<Mutex<CongestionControl>>>,
    pub(crate) began: Instant,
    pub(crate) publisher: Arc<Publisher>,
    /// The journal of the command, if it has several files.
    pub(crate) folder_journal: Arc<FolderJournal>,
    /// The history of the store, if the command has one.
    pub(crate) history: Arc<OnceLock<History>>,
    /// The requests of the file that this clone of the manager transfers, if the file is one of several.
    pub(crate) permits: Option<Arc<FileRequests>>,
}

impl fmt::Debug for TransferManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransferManager").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Lowest accepted memory limit in bytes. A lower limit is an error, even if every part would fit into it.
const MIN_MEMORY_BYTES: u64 = 64 << 10;
/// Maximum time that aborting an upload may take after a stop was requested.
const ABORT_LIMIT: Duration = Duration::from_secs(2);
/// Maximum duration of a part in seconds under a bandwidth limit. It does not apply to a store that accepts only larger
/// parts.
const LIMITED_PART_S: f64 = 0.25;
/// Maximum number of parts in flight under a bandwidth limit. A limited part may occupy its connection for a long time.
/// So if the command has at least two connections, one of them is left free for requests without a part.
const LIMITED_CONCURRENCY: usize = 4;
/// Interval between two checks whether a stop was requested.
const STOP_CHECK: Duration = Duration::from_millis(20);

impl TransferManager {
    /// Creates a manager. The manager's transfers end when `stop` is requested.
    #[must_use]
    pub fn new(mut settings: Settings, stop: Stop, observer: Box<dyn Observer>) -> Self {
        settings.max_concurrency = settings.max_concurrency.max(1);
        let observer: Arc<dyn Observer> = observer.into();
        let limit = settings.limit_bytes_per_s.map(|limit| limit as f64);
        let gentle = settings.gentle.map(|most_added| CongestionControl::new(most_added.as_secs_f64(), limit));
        let rate_limit = match (&gentle, settings.gentle) {
            (Some(gentle), Some(most_added)) => RateLimit::new(Some(gentle.bytes_per_s), Some(slice_s(most_added))),
            _ => RateLimit::new(limit, None),
        };
        let retry = RetryPolicy::new(&settings, Arc::clone(&observer));
        Self {
            stop,
            observer,
            gate: PartGate::new(settings.memory_bytes, rate_limit, retry),
            gentle: gentle.map(|gentle| Arc::new(Mutex::new(gentle))),
            began: Instant::now(),
            publisher: Arc::default(),
            folder_journal: Arc::default(),
            history: Arc::default(),
            permits: None,
            settings,
        }
    }

    /// Returns the number of retries of all requests so far.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.gate.retry.retries()
    }

    /// Returns the constraints on the parts of one file: the store's `limits`, the memory limit and the bandwidth
    /// limit.
    pub(crate) fn constraints(&self, limits: Limits) -> Constraints {
        let Settings { memory_bytes, min_concurrency, max_concurrency, limit_bytes_per_s, .. } = self.settings;
        let mut constraints = Constraints { limits, memory_bytes, min_concurrency, max_concurrency, limit_bytes_per_s };
        if let Some(part_bytes) = self.settings.part_bytes {
            let part_bytes = part_bytes.min(memory_bytes).clamp(limits.min_part_bytes, limits.max_part_bytes);
            (constraints.limits.min_part_bytes, constraints.limits.max_part_bytes) = (part_bytes, part_bytes);
        }
        if let Some(most) = self.max_limited_bytes() {
            let most = most.max(limits.min_part_bytes).max(1);
            constraints.limits.max_part_bytes = constraints.limits.max_part_bytes.min(most);
            constraints.limits.min_part_bytes = constraints.limits.min_part_bytes.min(most);
            constraints.max_concurrency = max_concurrency.saturating_sub(1).clamp(1, LIMITED_CONCURRENCY);
        }
        constraints
    }

    /// Returns the largest size of a part in bytes if the bandwidth is limited or the transfers are gentle; otherwise
    /// `None`. Parts must then be small, because the rate limit delays only the start of a part. If a store accepts
    /// only larger parts, each part is sent in slices.
    pub(crate) fn max_limited_bytes(&self) -> Option<u64> {
        let limited = self.settings.limit_bytes_per_s.map(|limit| limit as f64 * LIMITED_PART_S);
        let gentle = self.settings.gentle.map(part_bytes);
        limited.into_iter().chain(gentle).min_by(f64::total_cmp).map(|most| most as u64)
    }

    /// Returns the requests of the file that is transferred. The file uses the pool of the command, or a new pool if it
    /// is transferred alone. `planner` creates the planner of a new pool. `done_bytes` were transferred by an earlier
    /// attempt, so the planner is only for the remaining bytes.
    pub(crate) fn permits(
        &self,
        done_bytes: u64,
        began: Instant,
        planner: impl FnOnce() -> Planner,
    ) -> Arc<FileRequests> {
        match &self.permits {
            Some(permits) => {
                permits.skip(done_bytes);
                Arc::clone(permits)
            }
            None => {
                let planner = planner();
                let earlier = self.earlier_forecast(planner.left(), 1);
                Arc::new(FileRequests::alone(planner, began, earlier))
            }
        }
    }

    /// Returns the forecast for `files` files with `bytes` bytes that is based on earlier commands.
    pub(crate) fn earlier_forecast(&self, bytes: u64, files: u64) -> Option<Forecast> {
        self.history.get()?.forecast(bytes, files)
    }

    /// Checks that the memory limit has room for a part of `part_bytes` bytes. The error names `object`.
    pub(crate) fn check_memory(&self, part_bytes: u64, object: &Location) -> Result<()> {
        let least_bytes = part_bytes.max(MIN_MEMORY_BYTES);
        if self.settings.memory_bytes >= least_bytes {
            return Ok(());
        }
        Err(Error::TooLittleMemory { address: object.address.clone(), least_bytes })
    }

    /// Checks that the memory limit has room for the smallest part in which `to` accepts a file of `bytes` bytes.
    pub(crate) fn check_memory_for(&self, bytes: u64, to: &Location) -> Result<()> {
        let limits = to.store.limits();
        let part_bytes = limits.min_part_bytes.max(bytes.div_ceil(limits.max_parts.max(1) as u64));
        self.check_memory(part_bytes.min(bytes), to)
    }

    /// Returns the limits that all parts share (memory, rate and retries) for parts that are sent to `store`.
    pub(crate) fn gate_to(&self, store: &dyn Store) -> PartGate {
        let is_too_large = |most| store.limits().min_part_bytes > most;
        // Whole parts at full speed would delay other traffic too much, so parts are sent slice by slice.
        let needs_slices = self.gentle.is_some() || self.max_limited_bytes().is_some_and(is_too_large);
        let mut gate = self.gate.clone();
        gate.in_slices = needs_slices && store.keeps_pace();
        gate
    }

    /// Describes an object, and measures the store's latency in seconds. The description is `None` if there is no
    /// object, or if the credentials do not permit reading it.
    pub(crate) async fn head(&self, object: &Location) -> Result<(Option<ObjectMeta>, f64)> {
        let began = Instant::now();
        match self.head_strict(object).await {
            Err(Error::Store(failure)) if failure.kind == Kind::Denied && !self.settings.no_clobber => {
                Ok((None, began.elapsed().as_secs_f64()))
            }
            head => head,
        }
    }

    /// Describes an object like [`Self::head`], but fails if the credentials do not permit reading it.
    pub(crate) async fn head_strict(&self, object: &Location) -> Result<(Option<ObjectMeta>, f64)> {
        let began = Instant::now();
        let request = request!(attempt = self.gate, object.store.head(&object.name, &mut attempt));
        let (meta, stats) = self.or_stopped(self.gate.retry.run(0, Kind::Transient(None), request)).await??;
        let connecting_s = stats.first_try.flatten();
        let answer_s = began.elapsed().as_secs_f64() - connecting_s.unwrap_or(0.0);
        Ok((meta, model::latency_s(answer_s, connecting_s)))
    }

    /// Aborts an upload. Does nothing if the upload no longer exists. After a stop was requested, gives up after
    /// [`ABORT_LIMIT`]. The same limit applies if the command has already failed because no request has succeeded for
    /// too long.
    pub(crate) async fn abort(&self, to: &Location, upload: &Upload) -> Result<()> {
        let request = request!(attempt = self.gate, to.store.abort(upload, &mut attempt));
        let stopped = async {
            if !self.gate.retry.has_given_up() {
                self.stopped().await;
            }
            sleep(ABORT_LIMIT).await;
        };
        tokio::select! {
            aborted = self.gate.retry.run(0, Kind::Fatal, request) => match aborted {
                Err(failure) if failure.kind != Kind::Missing => Err(failure.into()),
                _ => Ok(()),
            },
            () = stopped => Err(Error::Stopped),
        }
    }

    /// Returns the options for storing the object `name`. `modified` is the modification time of the file that becomes
    /// the object; `None` for a stream.
    pub(crate) fn put_options(&self, name: &str, modified: Option<SystemTime>) -> PutOptions {
        let mut attributes = self.settings.attributes.clone();
        attributes.content_type = attributes.content_type.or_else(|| content_type(name).map(String::from));
        attributes.modified = attributes.modified.or(modified.filter(|_| self.settings.preserve));
        PutOptions { attributes, no_clobber: self.settings.no_clobber }
    }

    /// Returns a fingerprint of the attributes that the settings give to an object or its file. The fingerprint depends
    /// on whether the modification time is kept, but not on the time itself.
    pub(crate) fn attributes_fingerprint(&self, object: &str) -> u64 {
        self.put_options(object, Some(SystemTime::UNIX_EPOCH)).attributes.fingerprint()
    }

    /// Checks that the store can keep the attributes of objects that the settings require.
    pub(crate) fn check_attributes(&self, to: &Location) -> Result<()> {
        to.store.check_attributes(&self.settings.attributes, &to.address)
    }

    /// Runs a future, and cancels it when a stop is requested.
    pub(crate) async fn or_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.stopped() => Err(Error::Stopped),
            done = work => Ok(done),
        }
    }

    /// Waits until a stop is requested.
    pub(crate) async fn stopped(&self) {
        while !self.stop.is_requested() {
            sleep(STOP_CHECK).await;
        }
    }
}
