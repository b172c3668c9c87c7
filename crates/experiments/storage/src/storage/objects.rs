//! The objects that a session writes to a store. Each key is in the journal before its object is sent, and only such
//! keys are deleted.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use ascertain_transfer::{Attempt, Environment, Failure, Kind, PartBody, Store, crc64, crc64_of_blocks};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::runtime::Builder;

use super::journal::{self, Journal, JournalStore, LeftJournal, Remaining};
use super::stores::TargetStore;

/// The number of attempts to delete an object.
const ATTEMPTS: u32 = 3;

/// The keys of a session in one store.
pub struct Objects {
    pub store: Arc<TargetStore>,
    /// The random part of all keys.
    run: String,
    state: RefCell<State>,
}

struct State {
    /// `None` for our own store, which ends with this process.
    journal: Option<Journal>,
    count: u64,
    /// The objects that may exist, each with its version if it is known.
    existing: Remaining,
}

/// The bytes of objects of one size.
#[derive(Clone)]
pub struct Content {
    pub parts: Vec<PartBody>,
    pub crc64: u64,
}

impl Content {
    /// Creates random bytes. `part_bytes` is the size of the parts in which they are uploaded; 0 for one request.
    pub fn new(bytes: u64, part_bytes: u64, seed: u64) -> Self {
        let mut whole = vec![0; bytes as usize];
        Xoshiro256PlusPlus::seed_from_u64(seed ^ bytes).fill(&mut whole[..]);
        let whole = bytes::Bytes::from(whole);
        let step = if part_bytes == 0 { whole.len().max(1) } else { part_bytes as usize };
        let mut parts: Vec<PartBody> = (0..whole.len().div_ceil(step))
            .map(|index| whole.slice(index * step..whole.len().min((index + 1) * step)))
            .map(|bytes| PartBody { crc64: crc64(&bytes), bytes })
            .collect();
        if parts.is_empty() {
            parts.push(PartBody { crc64: crc64(&[]), bytes: whole });
        }
        let crc64 = crc64_of_blocks(parts.iter().map(|part| (part.bytes.len() as u64, part.crc64)));
        Self { parts, crc64 }
    }

    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes.len() as u64).sum()
    }

    /// Returns the bytes of the whole object. Copies them only if there are several parts.
    pub fn whole(&self) -> bytes::Bytes {
        match &self.parts[..] {
            [part] => part.bytes.clone(),
            parts => parts.iter().flat_map(|part| part.bytes.iter().copied()).collect::<Vec<u8>>().into(),
        }
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

    /// Returns new keys, which are in the journal now. If `are_spread`, each key has a prefix of its own, so that a
    /// store that divides its keys by their beginnings spreads them.
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

    /// Returns a new key, and the key that differs from it by the lowest bit of the last byte. Both are in the journal
    /// now, and no other object has either of them.
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

    /// Records that a write was refused, so that the object does not exist.
    pub fn not_written(&self, key: &str) {
        self.removed(key);
    }

    /// Deletes an object that this session has written. If `is_whole`, its write was answered, so nothing but the object
    /// can exist. Otherwise the store may still carry out the write, so the key stays in the journal, and
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

    /// Deletes all objects that may exist, and then the journal. Returns a message for each object that could not be
    /// deleted; the journal then stays.
    pub async fn remove_all(&self) -> Vec<String> {
        let keys: Vec<String> = self.state.borrow().existing.keys().cloned().collect();
        let mut failures = Vec::new();
        for key in keys {
            match self.remove(&key, false).await {
                Ok(()) => self.removed(&key),
                Err(failure) => failures
                    .push(format!("{key} in {} was not deleted: {failure}; run `ascertain clean`", self.store.name)),
            }
        }
        if failures.is_empty() {
            let journal = self.state.borrow_mut().journal.take();
            let finished = journal.map_or(Ok(()), Journal::finish);
            failures.extend(finished.err().map(|error| format!("the journal of {}: {error}", self.store.name)));
        }
        failures
    }
}

/// Returns the key whose last byte differs by its lowest bit. The last byte must be ASCII.
pub fn flipped(key: &str) -> String {
    let mut flipped = key.to_string();
    if let Some(last) = flipped.pop() {
        flipped.extend(u8::try_from(last).map(|last| char::from(last ^ 1)));
    }
    flipped
}

/// Deletes an object by its key: its version, or everything with exactly this key.
async fn remove(store: &dyn Store, key: &str, version: Option<&str>, is_whole: bool) -> Result<(), Failure> {
    let mut failed = None;
    for _ in 0..ATTEMPTS {
        let mut attempt = Attempt::default();
        let removed = match version {
            Some(version) => store.remove_version(key, version, &mut attempt).await,
            None if is_whole => store.remove(key, &mut attempt).await,
            None => store.purge(key, &mut attempt).await,
        };
        match removed {
            Err(failure) if matches!(failure.kind, Kind::Transient(_) | Kind::Unanswered) => failed = Some(failure),
            removed => return removed,
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Deletes the objects in the journals of runs that have ended. Returns a message for the user for each journal, and for
/// each object that could not be deleted.
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
    let mut messages = Vec::new();
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
        for (key, version) in &remaining {
            match remove(&*store.store, key, version.as_deref(), false).await {
                Ok(()) => _ = journal.gone(key),
                Err(failure) => messages.push(Err(format!("{key} in {address}: {failure}"))),
            }
        }
    }
    let removed = count - messages.len();
    if messages.is_empty()
        && let Err(error) = journal.finish()
    {
        messages.push(Err(format!("the journal of {address}: {error}")));
    }
    if removed > 0 || count == 0 {
        messages.push(Ok(format!("removed {removed} of {count} objects of an interrupted run in {address}")));
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
