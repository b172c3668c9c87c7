//! Many files in one go. Nothing is ever removed: this is no synchronisation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::source::Source;
use super::{MANY_BYTES, Moved, Mover, Observer, Place, Progress, Skipped};
use crate::BoxFuture;
use crate::error::Error;
use crate::local::walk;
use crate::names::{Filter, beneath};
use crate::store::{Attempt, Kind};

/// Files of at least so many bytes go one after the other, each with many blocks at once; smaller ones together.
const LARGE_BYTES: u64 = 8 << 20;

/// What is to be moved of many files.
#[derive(Clone, Debug, Default)]
pub struct Many {
    /// Which of them, by their names relative to the folder or to what names begin with.
    pub filter: Filter,
    /// Says what would be moved, and moves nothing.
    pub dry_run: bool,
}

/// One file of many.
#[derive(Debug)]
pub struct Outcome {
    /// The file.
    pub path: PathBuf,
    /// The object.
    pub name: String,
    /// How many bytes were moved; of what was not, its size as it was listed.
    pub bytes: u64,
    /// What came of it.
    pub done: Done,
}

/// What came of one file.
#[derive(Debug)]
pub enum Done {
    /// It would have been moved, and was to be said only.
    Said,
    /// It was moved, or left alone; of what is said only, would have been.
    Moved(Box<Moved>),
    /// It was not; the others were tried nevertheless.
    Failed(Error),
}

impl From<Moved> for Done {
    fn from(moved: Moved) -> Self {
        Self::Moved(Box::new(moved))
    }
}

/// Which way files go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Into a store.
    Put,
    /// From a store.
    Get,
}

/// A file, an object, a size.
type Pair = (PathBuf, String, u64);

impl Mover {
    /// Puts files, and what is in folders, into a store. A place whose name is empty or ends with a slash gets objects
    /// named after the files; what is in a folder is named relative to that.
    ///
    /// # Errors
    /// When a source can't be found or listed, when two of them would be one object. What came of each file is its own.
    pub fn put_many<'a>(
        self: &'a Arc<Self>,
        from: &'a [PathBuf],
        to: &'a Place,
        many: &'a Many,
    ) -> BoxFuture<'a, Result<Vec<Outcome>, Error>> {
        Box::pin(async move {
            let mut named: BTreeMap<String, (PathBuf, u64)> = BTreeMap::new();
            let is_folder = to.name.is_empty() || to.name.ends_with('/');
            let prefix = if is_folder { to.name.clone() } else { format!("{}/", to.name) };
            for path in from {
                let metadata = fs::metadata(path).map_err(Error::file("can't read", path))?;
                let mut found: Vec<Pair> = Vec::new();
                if metadata.is_dir() {
                    let mut take = |name: &str, metadata: &fs::Metadata| {
                        if many.filter.takes(name) {
                            found.push((path.join(name), format!("{prefix}{name}"), metadata.len()));
                        }
                    };
                    let walked = walk(path, "", &mut take);
                    walked.map_err(|(path, source)| Error::File { what: "can't read", path, source })?;
                } else {
                    let name = path.file_name().and_then(|name| name.to_str());
                    let name = name.ok_or_else(|| Error::Request(format!("{}: no name for it", path.display())))?;
                    let object = if is_folder { format!("{prefix}{name}") } else { to.name.clone() };
                    if !metadata.is_file() {
                        // It is going to be a stream, whose length nobody knows.
                        self.first_bytes(&to.named(&object))?;
                    }
                    found.push((path.clone(), object, metadata.len()));
                }
                for (path, name, bytes) in found {
                    let object = to.named(&name);
                    object.other_than(&path)?;
                    self.has_memory_for(bytes, &object)?;
                    if let Some((other, _)) = named.insert(name.clone(), (path.clone(), bytes)) {
                        let (one, other, both) = (path.display(), other.display(), object.shown);
                        return Err(Error::Request(format!("{other} and {one} would both be {both}")));
                    }
                }
            }
            let pairs = named.into_iter().map(|(name, (path, bytes))| (path, name, bytes)).collect();
            Ok(self.carry_out(Way::Put, to, pairs, many.dry_run).await)
        })
    }

    /// Gets all objects whose names begin as the place's does into a folder, by the rest of their names.
    ///
    /// # Errors
    /// When they can't be listed, or the names of some can't be those of files below the folder: then nothing is moved.
    pub fn get_many<'a>(
        self: &'a Arc<Self>,
        from: &'a Place,
        folder: &'a Path,
        many: &'a Many,
    ) -> BoxFuture<'a, Result<Vec<Outcome>, Error>> {
        Box::pin(async move {
            self.has_memory(0, from)?;
            let request = || async {
                let mut seen = Attempt::default();
                (from.store.list(&from.name, &mut seen).await, seen)
            };
            // It is many requests, one behind the other, and nobody knows how many.
            let (found, _) = tokio::select! {
                asked = self.patience.ask(MANY_BYTES, Kind::Transient(None), request) => asked?,
                () = self.stop.asked() => return Err(Error::Stopped),
            };
            let mut pairs: Vec<Pair> = Vec::new();
            let mut taken = BTreeSet::new();
            for meta in found {
                let rest = meta.name.strip_prefix(&from.name).unwrap_or(&meta.name).trim_start_matches('/');
                // An empty object of that name stands for a folder in some tools.
                let is_marker = (rest.is_empty() || rest.ends_with('/')) && meta.bytes == 0;
                if !is_marker && many.filter.takes(rest) {
                    let path = beneath(folder, rest)?;
                    from.named(&meta.name).other_than(&path)?;
                    // As `dir/x` and `dir//x`, below `dir`.
                    if !taken.insert(path.clone()) {
                        return Err(Error::Request(format!("two objects would both be {}", path.display())));
                    }
                    pairs.push((path, meta.name, meta.bytes));
                }
            }
            Ok(self.carry_out(Way::Get, from, pairs, many.dry_run).await)
        })
    }

    /// What would come of a file, or a stream, of so many bytes, of what is said only.
    ///
    /// # Errors
    /// When either side can't be looked at.
    pub fn dry<'a>(
        &'a self,
        way: Way,
        path: &'a Path,
        place: &'a Place,
        bytes: u64,
    ) -> BoxFuture<'a, Result<Done, Error>> {
        Box::pin(async move {
            let skipped = self.would_skip(way, path, place).await?;
            let left_alone = |skipped| Moved { bytes, skipped: Some(skipped), ..Moved::default() };
            Ok(skipped.map(left_alone).map_or(Done::Said, Done::from))
        })
    }

    async fn would_skip(&self, way: Way, path: &Path, place: &Place) -> Result<Option<Skipped>, Error> {
        if !self.terms.no_clobber && !self.terms.skip_unchanged {
            return Ok(None);
        }
        match way {
            Way::Put => {
                let there = self.head(place).await?.0;
                if path.is_file() {
                    return self.is_skipped(&Source::open(path)?, there.as_ref()).await;
                }
                Ok((there.is_some() && self.terms.no_clobber).then_some(Skipped::Exists))
            }
            Way::Get => self.is_there(&self.existing(place).await?.0, path).await,
        }
    }

    async fn carry_out(self: &Arc<Self>, way: Way, place: &Place, pairs: Vec<Pair>, dry_run: bool) -> Vec<Outcome> {
        let overall = Arc::new(Overall::new(&pairs, Arc::clone(&self.observer)));
        let mover = Arc::new(Self { observer: Arc::clone(&overall) as Arc<dyn Observer>, ..(**self).clone() });
        let (large, small): (Vec<Pair>, Vec<Pair>) =
            pairs.into_iter().partition(|(.., bytes)| *bytes >= LARGE_BYTES && !dry_run);
        let mut outcomes = Vec::new();
        for (pairs, at_once) in [(large, 1), (small, self.terms.max_concurrency)] {
            let mut tasks = JoinSet::new();
            for pair in pairs {
                if tasks.len() >= at_once {
                    outcomes.extend(tasks.join_next().await.and_then(Result::ok));
                }
                let (mover, overall, place) = (Arc::clone(&mover), Arc::clone(&overall), place.clone());
                tasks.spawn(async move {
                    let (.., listed_bytes) = pair;
                    let outcome = mover.one(way, place, pair, dry_run).await;
                    overall.done(&outcome, listed_bytes);
                    outcome
                });
            }
            while let Some(joined) = tasks.join_next().await {
                outcomes.extend(joined.ok());
            }
        }
        outcomes.sort_by(|one: &Outcome, other| one.name.cmp(&other.name));
        outcomes
    }

    async fn one(&self, way: Way, place: Place, (path, name, bytes): Pair, dry_run: bool) -> Outcome {
        let place = place.named(&name);
        let done = match way {
            _ if dry_run => self.dry(way, &path, &place, bytes).await,
            Way::Put => self.put_file(&path, &place).await.map(Done::from),
            Way::Get => self.get_file(&place, &path).await.map(Done::from),
        };
        let done = done.unwrap_or_else(Done::Failed);
        // A pipe has none before it is read, and a file may grow.
        let bytes = if let Done::Moved(moved) = &done { moved.bytes } else { bytes };
        Outcome { path, name, bytes, done }
    }
}

/// How far all of many files are, told as one.
struct Overall {
    observer: Arc<dyn Observer>,
    began: Instant,
    files: u64,
    state: Mutex<State>,
}

struct State {
    done_files: u64,
    /// Of files that are done.
    done_bytes: u64,
    /// Of all that are not left alone.
    bytes: u64,
    /// What is there of those that are under way.
    under_way: BTreeMap<String, u64>,
}

impl Overall {
    fn new(pairs: &[Pair], observer: Arc<dyn Observer>) -> Self {
        let bytes = pairs.iter().map(|(.., bytes)| bytes).sum();
        let state = State { done_files: 0, done_bytes: 0, bytes, under_way: BTreeMap::new() };
        Self { observer, began: Instant::now(), files: pairs.len() as u64, state: Mutex::new(state) }
    }

    /// Counts a file that is done. What was left alone, or failed, has no share in what is moved.
    fn done(&self, Outcome { name, bytes, done, .. }: &Outcome, listed_bytes: u64) {
        self.tell(name, None, |state| {
            state.under_way.remove(name);
            state.done_files += 1;
            let moved_bytes = match done {
                Done::Moved(moved) if moved.skipped.is_none() => *bytes,
                _ => 0,
            };
            state.done_bytes += moved_bytes;
            state.bytes = (state.bytes + moved_bytes).saturating_sub(listed_bytes);
        });
    }

    fn tell(&self, name: &str, plan: Option<&crate::model::Plan>, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        self.observer.progress(&Progress {
            name,
            done_bytes: state.done_bytes + state.under_way.values().sum::<u64>(),
            bytes: Some(state.bytes),
            elapsed_s: self.began.elapsed().as_secs_f64(),
            plan,
            files: Some([state.done_files, self.files]),
        });
    }
}

impl Observer for Overall {
    fn progress(&self, progress: &Progress<'_>) {
        self.tell(progress.name, progress.plan, |state| {
            state.under_way.insert(progress.name.into(), progress.done_bytes);
        });
    }
}
