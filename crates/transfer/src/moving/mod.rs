//! Moving: from a request to what came of it.

mod flow;
mod gentle;
mod get;
mod many;
mod pace;
mod patience;
mod put;
mod requests;
mod source;
mod stop;
mod stream;
mod unsized_get;

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

pub use many::{Done, Many, Outcome, Way};
pub use requests::{Requests, Retried, Spread};
pub use stop::Stop;

use crate::buffers::Buffers;
use crate::error::Error;
use crate::journal::{self, Begun, Journal, Side};
use crate::model::{self, Plan, Room};
use crate::store::{Attempt, Failure, Found, Kind, Limits, Meta, PutOptions, Store, Upload};
use gentle::{Gentle, slice_s};
pub(crate) use get::Spot;
pub(crate) use pace::Pace;
use patience::{Patience, Went};
use put::side_of;

/// How things are moved.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// All blocks under way together have at most these; each may lie in memory that is larger by an eighth, and 64 MiB
    /// are kept to be used again, as many by a store of files.
    pub memory_bytes: u64,
    /// At most so many requests at once for one file, and one where that is none.
    pub max_concurrency: usize,
    /// No faster than that.
    pub limit_bytes_per_s: Option<u64>,
    /// As fast as possible without adding more than that to the latency of the path.
    pub gentle: Option<Duration>,
    /// What was stored is read back and compared.
    pub verify: bool,
    /// What is there already is left alone.
    pub no_clobber: bool,
    /// What is there and the same is not moved again.
    pub skip_unchanged: bool,
    /// The media type; without, what the name's ending says.
    pub content_type: Option<String>,
    /// The folder of journals. Without one, an interrupted move starts again from the beginning.
    pub journals: Option<PathBuf>,
    /// Where uploads without a journal are noted while they go, so that they can be given up if we are killed. Where
    /// that can't be done they go without.
    pub notes: Option<PathBuf>,
    /// What becomes of a move that was broken off and has a journal.
    pub resume: Resume,
    /// How often anything may be tried again.
    pub retries: u64,
    /// What the first wait before trying again is about; the next ones are longer.
    pub back_off: Duration,
    /// A request that is silent for that long, and longer by its size, is given up.
    pub timeout: Duration,
    /// Where chance comes from.
    pub seed: u64,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            max_concurrency: 64,
            limit_bytes_per_s: None,
            gentle: None,
            verify: false,
            no_clobber: false,
            skip_unchanged: false,
            content_type: None,
            journals: None,
            notes: None,
            resume: Resume::default(),
            retries: 1000,
            back_off: Duration::from_millis(100),
            timeout: Duration::from_secs(60),
            seed: 0,
        }
    }
}

/// What becomes of a move that was broken off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resume {
    /// It is gone on with if both sides are the same as then, and else begun anew; [`Moved::begun_anew`] says why.
    #[default]
    IfSame,
    /// It is gone on with, or refused.
    Only,
    /// It is given up, and begun anew.
    Never,
}

/// What came of a move.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moved {
    /// The whole.
    pub bytes: u64,
    /// What of it was there from an earlier time.
    pub resumed_bytes: u64,
    /// How many requests carried the rest.
    pub blocks: u64,
    /// How long it took, with everything but reading it back.
    pub elapsed_s: f64,
    /// What was expected when enough had been seen; none where that never came.
    pub plan: Option<Plan>,
    /// The whole's CRC-64/NVME, of what was read; none of what was skipped.
    pub crc64: Option<u64>,
    /// Whether it was read back and found the same.
    pub verified: bool,
    /// The requests that carried it, as far as a store was asked for it.
    pub requests: Requests,
    /// Why nothing was moved, if nothing was.
    pub skipped: Option<Skipped>,
    /// Why an earlier move that was broken off was not gone on with.
    pub begun_anew: Option<String>,
}

/// Why something was left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// It is there, and must not be overwritten.
    Exists,
    /// It is there, and the same.
    Unchanged,
}

/// How far a move is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress<'a> {
    /// What is moved.
    pub name: &'a str,
    /// What is there.
    pub done_bytes: u64,
    /// Of how much; none while nobody knows.
    pub bytes: Option<u64>,
    /// Since it was begun.
    pub elapsed_s: f64,
    /// The latest plan; of many files that of the one that is named.
    pub plan: Option<&'a Plan>,
    /// Of many files: how many are done, and of how many. The bytes and the time are then those of all of them that are
    /// not left alone.
    pub files: Option<[u64; 2]>,
}

/// Who is told how far moves are.
pub trait Observer: Send + Sync {
    /// Called for each block that is done, and of many files for each that is.
    fn progress(&self, progress: &Progress<'_>);
}

/// Nobody.
impl Observer for () {
    fn progress(&self, _progress: &Progress<'_>) {}
}

/// An object, or the beginning of objects' names, in a store.
#[derive(Clone, Debug)]
pub struct Place {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The name, or what names begin with.
    pub name: String,
    /// As it is shown.
    pub shown: String,
}

impl Place {
    /// What is under a longer name, which begins with this one.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        let rest = name.strip_prefix(&self.name).unwrap_or(name);
        Self { store: Arc::clone(&self.store), name: name.into(), shown: format!("{}{rest}", self.shown) }
    }

    /// Refuses to move a file onto itself, by whatever name or link.
    ///
    /// # Errors
    /// [`Error::Request`], where the path leads to the file that this is.
    pub fn other_than(&self, path: &Path) -> Result<(), Error> {
        let identity = |path: &Path| fs::metadata(path).map(|there| (there.dev(), there.ino())).ok();
        let there = self.store.file(&self.name).and_then(|there| identity(&there));
        if there.is_none() || there != identity(path) {
            return Ok(());
        }
        Err(Error::Request(format!("{} and {} are the same file", path.display(), self.shown)))
    }
}

impl From<Found> for Place {
    fn from(Found { store, name, shown }: Found) -> Self {
        Self { store: store.into(), name, shown }
    }
}

/// Moves files, all under the same terms: they share memory, bandwidth and patience.
#[derive(Clone)]
pub struct Mover {
    terms: Terms,
    stop: Stop,
    observer: Arc<dyn Observer>,
    memory: Arc<Semaphore>,
    pace: Arc<Pace>,
    gentle: Option<Arc<tokio::sync::Mutex<Gentle>>>,
    began: Instant,
    patience: Arc<Patience>,
    buffers: Buffers,
}

impl fmt::Debug for Mover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mover").field("terms", &self.terms).finish_non_exhaustive()
    }
}

/// What memory is shared out in.
const UNIT_BYTES: u64 = 1 << 10;
/// No blocks are planned that take less.
const LEAST_MEMORY_BYTES: u64 = 64 << 10;
/// What takes its time, and is given up by itself where nothing moves, counts as so many bytes.
const MANY_BYTES: u64 = 1 << 40;
/// So long an upload is given up after the end was asked for.
const PARTING: Duration = Duration::from_secs(2);
/// A block takes no longer than that under a limit on bandwidth, where the store takes such small ones.
const LIMITED_BLOCK_S: f64 = 0.25;

impl Mover {
    /// Under these terms, until the token is used.
    #[must_use]
    pub fn new(mut terms: Terms, stop: Stop, observer: Box<dyn Observer>) -> Self {
        terms.max_concurrency = terms.max_concurrency.max(1);
        let units = terms.memory_bytes.div_ceil(UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS.min(1 << 30) as u64);
        let patience = Patience::new(terms.retries, terms.back_off, terms.timeout, terms.seed);
        let limit = terms.limit_bytes_per_s.map(|limit| limit as f64);
        let gentle = terms.gentle.map(|most_added| Gentle::new(most_added.as_secs_f64(), limit));
        let pace = match (&gentle, terms.gentle) {
            (Some(gentle), Some(most_added)) => Pace::new(Some(gentle.bytes_per_s), Some(slice_s(most_added))),
            _ => Pace::new(limit, None),
        };
        Self {
            stop,
            observer: observer.into(),
            memory: Arc::new(Semaphore::new(units as usize)),
            pace: Arc::new(pace),
            gentle: gentle.map(|gentle| Arc::new(tokio::sync::Mutex::new(gentle))),
            began: Instant::now(),
            patience: Arc::new(patience),
            buffers: Buffers::default(),
            terms,
        }
    }

    /// How often anything was tried again so far.
    #[must_use]
    pub fn retried(&self) -> u64 {
        self.patience.retried()
    }

    /// What blocks of one file must fit into.
    fn room(&self, limits: Limits) -> Room {
        let mut room =
            Room { limits, memory_bytes: self.terms.memory_bytes, max_concurrency: self.terms.max_concurrency };
        if let Some(most) = self.most_at_once() {
            let most = most.max(limits.min_block_bytes).max(1);
            room.limits.max_block_bytes = limits.max_block_bytes.min(most);
            room.max_concurrency = room.max_concurrency.min(4);
        }
        room
    }

    /// A block goes as fast as its connection does, whatever the limit is: so they are small, and few. Where a store
    /// takes no such small ones, each goes slice by slice.
    fn most_at_once(&self) -> Option<u64> {
        let limited = self.terms.limit_bytes_per_s.map(|limit| limit as f64 * LIMITED_BLOCK_S);
        let gentle = self.terms.gentle.map(gentle::block_bytes);
        limited.into_iter().chain(gentle).min_by(f64::total_cmp).map(|most| most as u64)
    }

    /// The limit on bandwidth lets so many bytes take no less.
    fn least_s(&self, bytes: u64) -> f64 {
        self.terms.limit_bytes_per_s.map_or(0.0, |limit| bytes as f64 / limit as f64)
    }

    /// Refuses to begin where memory has no room for a block.
    fn has_memory(&self, least_block_bytes: u64, place: &Place) -> Result<(), Error> {
        let least_bytes = least_block_bytes.max(LEAST_MEMORY_BYTES);
        if self.terms.memory_bytes >= least_bytes {
            return Ok(());
        }
        let least = match least_bytes.div_ceil(1 << 10) {
            kib if kib < 1 << 10 => format!("{kib}KiB"),
            kib => format!("{}MiB", kib.div_ceil(1 << 10)),
        };
        Err(Error::Request(format!("{}: that takes --memory {least} at least, for one block", place.shown)))
    }

    /// The same for a file that is put.
    fn has_memory_for(&self, bytes: u64, to: &Place) -> Result<(), Error> {
        let limits = to.store.limits();
        let block_bytes = limits.min_block_bytes.max(bytes.div_ceil(limits.max_blocks.max(1) as u64));
        self.has_memory(block_bytes.min(bytes), to)
    }

    fn gate(&self) -> Gate {
        Gate {
            memory: Arc::clone(&self.memory),
            units: self.terms.memory_bytes.div_ceil(UNIT_BYTES).clamp(1, 1 << 30) as u32,
            pace: Arc::clone(&self.pace),
            in_slices: false,
            patience: Arc::clone(&self.patience),
            buffers: self.buffers.clone(),
        }
    }

    /// For what is put into a store.
    fn gate_to(&self, store: &dyn Store) -> Gate {
        let is_too_large = |most| store.limits().min_block_bytes > most;
        // A block at a time is too much to be gentle.
        let is_too_much = self.gentle.is_some() || self.most_at_once().is_some_and(is_too_large);
        Gate { in_slices: is_too_much && store.keeps_pace(), ..self.gate() }
    }

    /// What there is under a name, and how long it took to ask. Who may write but not read is told of nothing.
    async fn head(&self, place: &Place) -> Result<(Option<Meta>, f64), Error> {
        let began = Instant::now();
        match self.ask_head(place).await {
            Err(Error::Store(failure)) if failure.kind == Kind::Denied && !self.terms.no_clobber => {
                Ok((None, began.elapsed().as_secs_f64()))
            }
            asked => asked,
        }
    }

    /// The same for who must be able to read.
    async fn ask_head(&self, place: &Place) -> Result<(Option<Meta>, f64), Error> {
        let began = Instant::now();
        let request = || async {
            let mut seen = Attempt::default();
            (place.store.head(&place.name, &mut seen).await, seen)
        };
        let (meta, went) = self.ask(Kind::Transient(None), request).await?;
        let connecting_s = went.straight.flatten();
        let answer_s = began.elapsed().as_secs_f64() - connecting_s.unwrap_or(0.0);
        Ok((meta, model::latency_s(answer_s, connecting_s)))
    }

    /// A request without a block.
    async fn ask<T, F>(&self, silent: Kind, request: impl FnMut() -> F) -> Result<(T, Went), Error>
    where
        F: Future<Output = (Result<T, Failure>, Attempt)>,
    {
        tokio::select! {
            asked = self.patience.ask(0, silent, request) => Ok(asked?),
            () = self.stop.asked() => Err(Error::Stopped),
        }
    }

    /// Gives an upload up, if it is still there. Who has asked for the end does not wait for it as long as others.
    pub(crate) async fn abort(&self, place: &Place, upload: &Upload) -> Result<(), Error> {
        let request = || async {
            let mut seen = Attempt::default();
            (place.store.abort(upload, &mut seen).await, seen)
        };
        let stopped = async {
            self.stop.asked().await;
            tokio::time::sleep(PARTING).await;
        };
        tokio::select! {
            asked = self.patience.ask(0, Kind::Fatal, request) => match asked {
                Err(failure) if failure.kind != Kind::Missing => Err(failure.into()),
                _ => Ok(()),
            },
            () = stopped => Err(Error::Stopped),
        }
    }

    /// Notes an upload that nobody can go on with.
    fn note(&self, source: Side, to: &Place, before: Option<&Meta>, upload: &Upload) -> Option<Journal> {
        let folder = self.terms.notes.as_ref()?;
        let (destination, id, reached) = (side_of(to, before), upload.id.clone(), to.store.reached());
        let begun = Begun { version: journal::VERSION, source, destination, upload: id, reached, temporary: None };
        Journal::note(folder, begun).ok()
    }

    /// Gives up what nobody can go on with. Where that fails its note is kept, for whoever tries again.
    async fn give_up(&self, to: &Place, upload: &Upload, note: Option<Journal>) {
        if self.abort(to, upload).await.is_ok() {
            forget(note);
        }
    }

    fn put_options(&self, name: &str) -> PutOptions {
        let by_name = || crate::names::content_type(name).map(String::from);
        PutOptions { content_type: self.terms.content_type.clone().or_else(by_name), no_clobber: self.terms.no_clobber }
    }
}

/// There is nothing left to be given up; a note that can't be removed says no more than that it is.
fn forget(note: Option<Journal>) {
    let _ = note.map(Journal::remove);
}

/// What a block passes before it is sent.
#[derive(Clone, Debug)]
struct Gate {
    memory: Arc<Semaphore>,
    units: u32,
    pace: Arc<Pace>,
    /// Whether the limit is kept while a block is sent, and not before.
    in_slices: bool,
    patience: Arc<Patience>,
    buffers: Buffers,
}

impl Gate {
    /// Waits for room and for the limit on bandwidth.
    async fn pass(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Error> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).clamp(1, self.units);
        let room = Arc::clone(&self.memory).acquire_many_owned(units).await;
        if !self.in_slices {
            self.pace.wait(bytes).await;
        }
        room.map_err(|error| Error::Request(error.to_string()))
    }

    /// For a request that carries a block.
    fn attempt(&self) -> Attempt {
        Attempt { pace: self.in_slices.then(|| Arc::clone(&self.pace)), ..Attempt::default() }
    }

    /// Asks with patience for a block of so many bytes.
    async fn ask<T, F>(&self, bytes: u64, silent: Kind, request: impl FnMut() -> F) -> Result<(T, Went), Failure>
    where
        F: Future<Output = (Result<T, Failure>, Attempt)>,
    {
        // What waits for its turn is given up by itself where nothing moves.
        let bytes = if self.in_slices { MANY_BYTES } else { bytes };
        self.patience.ask(bytes, silent, request).await
    }
}
