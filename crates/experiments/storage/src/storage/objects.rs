//! The objects that a session writes to a store. Each key is in the journal before its object is sent, and only such
//! keys are deleted.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ascertain_transfer::{Attempt, Environment, Failure, Kind, PartBody, Store, crc64, crc64_of_blocks};
use bytes::Bytes;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::runtime::Builder;
use tokio::time::timeout_at;

use super::journal::{self, Journal, JournalStore, LeftJournal, Remaining};
use super::stores::TargetStore;

/// The number of attempts to delete an object.
const ATTEMPTS: u32 = 3;
/// A clean-up ends after this time during which no object was deleted, and no deletion was refused permanently.
const UNREACHABLE: Duration = Duration::from_secs(30);

/// The keys of a session in one store.
pub struct Objects {
    pub store: Arc<TargetStore>,
    /// The random part of all keys.
    run: String,
    state: RefCell<State>,
}

struct State {
    /// The journal; `None` for an emulated store, which ends with this process.
    journal: Option<Journal>,
    count: u64,
    /// The objects that may exist, each with its version if it is known.
    existing: Remaining,
}

/// The bytes of objects of one size.
#[derive(Clone, Debug)]
pub struct Content {
    pub whole: PartBody,
    /// The parts in which the object is uploaded; a single one is the whole object.
    pub parts: Vec<PartBody>,
}

impl Content {
    /// Divides the bytes of an object into parts. `part_bytes` is the size of the parts; 0 for one request.
    pub fn new(bytes: Bytes, part_bytes: u64) -> Self {
        let body = |bytes: Bytes| PartBody { crc64: crc64(&bytes), bytes };
        if part_bytes == 0 || part_bytes >= bytes.len() as u64 {
            let whole = body(bytes);
            return Self { parts: vec![whole.clone()], whole };
        }
        let step = part_bytes as usize;
        let parts: Vec<PartBody> = (0..bytes.len().div_ceil(step))
            .map(|index| body(bytes.slice(index * step..bytes.len().min((index + 1) * step))))
            .collect();
        let crc64 = crc64_of_blocks(parts.iter().map(|part| (part.bytes.len() as u64, part.crc64)));
        Self { whole: PartBody { bytes, crc64 }, parts }
    }

    pub fn bytes(&self) -> u64 {
        self.whole.bytes.len() as u64
    }
}

/// The contents of objects by size and part size. The objects are the beginnings of the same random bytes, so that
/// large objects do not multiply the memory.
pub struct Contents {
    random: Bytes,
    made: RefCell<BTreeMap<(u64, u64), Rc<Content>>>,
}

impl Contents {
    /// Creates random bytes for objects of up to `largest` bytes.
    pub fn new(largest: u64, seed: u64) -> Self {
        let mut random = vec![0; largest as usize];
        Xoshiro256PlusPlus::seed_from_u64(seed).fill(&mut random[..]);
        Self { random: random.into(), made: RefCell::default() }
    }

    /// Returns the content of `bytes` bytes.
    pub fn get(&self, bytes: u64, part_bytes: u64) -> Rc<Content> {
        let make = || Rc::new(Content::new(self.random.slice(..bytes as usize), part_bytes));
        self.made.borrow_mut().entry((bytes, part_bytes)).or_insert_with(make).clone()
    }
}

impl Objects {
    /// Creates a journal in `folder` for objects under a random prefix.
    pub fn new(store: Arc<TargetStore>, folder: &Path) -> io::Result<Self> {
        let run = format!("ascertain-{:016x}", rand::random::<u64>());
        let journal = if store.is_emulated() || !store.is_writable() {
            None
        } else {
            let of = JournalStore { address: store.name.clone(), base: store.base() };
            Some(Journal::create(folder, &run, &of)?)
        };
        let state = RefCell::new(State { journal, count: 0, existing: Remaining::new() });
        Ok(Self { store, run, state })
    }

    /// Returns new keys, after writing them to the journal. If `are_spread`, each key has its own prefix, so a store
    /// that distributes keys by their beginnings spreads them over its servers.
    pub fn keys(&self, count: u64, are_spread: bool) -> io::Result<Vec<String>> {
        let state = &mut *self.state.borrow_mut();
        let (first, prefix, run) = (state.count, &self.store.prefix, &self.run);
        let key = |number: u64| match are_spread {
            true => {
                let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
                format!("{prefix}{hash:04x}-{run}/{number:08}")
            }
            false => format!("{prefix}{run}/{number:08}"),
        };
        let keys: Vec<String> = (first..first + count).map(key).collect();
        if let Some(journal) = &mut state.journal {
            journal.put(&keys)?;
        }
        state.count += count;
        state.existing.extend(keys.iter().map(|key| (key.clone(), None)));
        Ok(keys)
    }

    /// Returns two new keys that differ only in the lowest bit of the last byte, after writing both to the journal. No
    /// other object has either key.
    pub fn flippable(&self) -> io::Result<[String; 2]> {
        {
            let state = &mut *self.state.borrow_mut();
            // A key ends with a digit. The flipped digit of an even number is that of the next number.
            state.count = state.count.next_multiple_of(2);
        }
        let mut keys = self.keys(2, false)?.into_iter();
        let key = keys.next().unwrap_or_default();
        let flipped = flipped(&key);
        match keys.next() {
            Some(next) if next == flipped => Ok([key, flipped]),
            _ => Err(io::Error::other(format!("the key {flipped} is not in the journal"))),
        }
    }

    /// Returns a key that is never written. A request for it warms up a connection, and leaves all objects cold.
    pub fn unwritten_key(&self) -> String {
        format!("{}{}/unwritten", self.store.prefix, self.run)
    }

    /// Records the version of an object that was written.
    pub fn written(&self, key: &str, version: Option<String>) -> io::Result<()> {
        let Some(version) = version else { return Ok(()) };
        let state = &mut *self.state.borrow_mut();
        if let Some(journal) = &mut state.journal {
            journal.done(key, &version)?;
        }
        state.existing.insert(key.into(), Some(version));
        Ok(())
    }

    /// Records that an object does not exist, because its write was refused.
    pub fn not_written(&self, key: &str) {
        self.removed(key);
    }

    /// Deletes an object that this session has written. If `is_whole`, the store answered the write, so no unfinished
    /// upload can exist. Otherwise the store may still carry out the write, so the key stays in the journal, and
    /// [`Self::remove_all`] deletes it once more.
    pub async fn remove(&self, key: &str, is_whole: bool) -> Result<(), Failure> {
        let Some(version) = self.state.borrow().existing.get(key).cloned() else { return Ok(()) };
        remove(&*self.store.store, key, version.as_deref(), is_whole).await?;
        if is_whole {
            self.removed(key);
        }
        Ok(())
    }

    fn removed(&self, key: &str) {
        let state = &mut *self.state.borrow_mut();
        state.existing.remove(key);
        // If this line is lost, the next clean-up deletes the key once more, which does no harm.
        let _ = state.journal.as_mut().map(|journal| journal.gone(key));
    }

    /// Deletes all objects that may exist, and then the journal. Returns messages about objects that could not be
    /// deleted; the journal then stays.
    pub async fn remove_all(&self) -> Vec<String> {
        let remaining = self.state.borrow().existing.clone();
        let store = &*self.store.store;
        let mut failures = remove_each(store, &remaining, UNREACHABLE, |key| self.removed(key)).await;
        if failures.is_empty() {
            let journal = self.state.borrow_mut().journal.take();
            let finished = journal.map_or(Ok(()), Journal::finish);
            failures.extend(finished.err().map(|error| format!("the journal could not be removed: {error}")));
        }
        failures.into_iter().map(|why| format!("{}: {why}; run `ascertain clean`", self.store.name)).collect()
    }
}

/// Deletes everything with these keys, and calls `removed` with each deleted key. Ends early if the store has neither
/// carried out nor refused any request for the time `limit`. Returns messages about the keys that may still exist.
pub async fn remove_each(
    store: &dyn Store,
    remaining: &Remaining,
    limit: Duration,
    mut removed: impl FnMut(&str),
) -> Vec<String> {
    let (mut failures, mut answered) = (Vec::new(), Instant::now());
    for (number, (key, version)) in remaining.iter().enumerate() {
        match timeout_at((answered + limit).into(), remove(store, key, version.as_deref(), false)).await {
            Ok(Ok(())) => removed(key),
            // The other keys may be deletable.
            Ok(Err(failure)) if !is_transient(failure.kind) => {
                failures.push(format!("{key} was not deleted: {failure}"))
            }
            Ok(Err(_)) if answered.elapsed() < limit => {
                failures.push(format!("{key} was not deleted, because the store refused all requests for now"));
                continue;
            }
            _ => {
                let left = remaining.len() - number;
                failures.push(format!("{left} objects were not deleted, because the store does not answer"));
                break;
            }
        }
        answered = Instant::now();
    }
    failures
}

/// Returns whether a request with this kind of failure may succeed later.
pub fn is_transient(kind: Kind) -> bool {
    matches!(kind, Kind::Transient(_) | Kind::Unanswered)
}

/// Returns the key whose last byte differs by its lowest bit. The last byte must be ASCII.
pub fn flipped(key: &str) -> String {
    let mut flipped = key.to_string();
    if let Some(last) = flipped.pop() {
        flipped.extend(u8::try_from(last).map(|last| char::from(last ^ 1)));
    }
    flipped
}

/// Deletes an object by its key: its version, or everything with exactly this key. `is_whole` means that no unfinished
/// upload can exist.
async fn remove(store: &dyn Store, key: &str, version: Option<&str>, is_whole: bool) -> Result<(), Failure> {
    let mut number = 1;
    loop {
        let mut attempt = Attempt::default();
        let removed = match version {
            Some(version) => store.remove_version(key, version, &mut attempt).await,
            None if is_whole => store.remove(key, &mut attempt).await,
            None => store.purge(key, &mut attempt).await,
        };
        match removed {
            Err(failure) if is_transient(failure.kind) && number < ATTEMPTS => number += 1,
            // The bucket keeps versions after all: the answer names the delete marker. The marker goes, too.
            Ok(()) if version.is_none() && is_whole && attempt.version.is_some() => {
                return store.purge(key, &mut attempt).await;
            }
            removed => return removed,
        }
    }
}

/// Deletes the objects in the journals of runs that have ended. Returns a message for the user for each journal, and
/// for each object that could not be deleted.
///
/// # Errors
/// Returns the reason if the folder cannot be read.
pub fn clean(folder: &Path, environment: &Environment) -> Result<Vec<Result<String, String>>, String> {
    let journals = journal::journals(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    if journals.is_empty() {
        return Ok(Vec::new());
    }
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let mut messages = Vec::new();
    for path in journals {
        let about = |why: String| format!("{}: {why}", path.display());
        match journal::reopen(&path) {
            Ok(LeftJournal::Empty) => {}
            Ok(LeftJournal::InUse) => {
                messages.push(Ok(about("not removed, because a run still uses its objects".into())));
            }
            Ok(LeftJournal::Ended(journal, store, remaining)) => {
                messages.extend(runtime.block_on(clean_one(journal, &store, remaining, environment)));
            }
            Err(error) => messages.push(Err(about(error.to_string()))),
        }
    }
    Ok(messages)
}

async fn clean_one(
    mut journal: Journal,
    JournalStore { address, base }: &JournalStore,
    remaining: Remaining,
    environment: &Environment,
) -> Vec<Result<String, String>> {
    let (mut messages, mut gone) = (Vec::new(), 0);
    let count = remaining.len();
    if count > 0 {
        let store = match TargetStore::at_address(address, environment) {
            Ok(store) => store,
            Err(why) => return vec![Err(format!("objects in {address}: {why}"))],
        };
        if store.base() != *base {
            return vec![Err(format!(
                "objects in {address}: the run wrote them to {base}, but the environment leads to {}; set the endpoint \
                 and the account as for the run",
                store.base()
            ))];
        }
        let mut removed = |key: &str| {
            gone += 1;
            let _ = journal.gone(key);
        };
        let failures = remove_each(&*store.store, &remaining, UNREACHABLE, &mut removed).await;
        messages.extend(failures.into_iter().map(|why| Err(format!("{address}: {why}"))));
    }
    if messages.is_empty()
        && let Err(error) = journal.finish()
    {
        messages.push(Err(format!("the journal of {address}: {error}")));
    }
    if gone > 0 || count == 0 {
        messages.push(Ok(format!("removed {gone} of {count} objects of an interrupted run in {address}")));
    }
    messages
}

/// Counts the results that were not complete, by what happened.
#[derive(Clone, Debug, Default)]
pub struct Incomplete {
    pub requests: u64,
    pub refused: BTreeMap<u16, u64>,
    pub timed_out: u64,
    pub broken: u64,
    pub short: u64,
}
