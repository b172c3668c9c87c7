//! Many files in one go. Nothing is ever removed: this is no synchronisation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::get::Root;
use super::source::Source;
use super::{MANY_BYTES, Moved, Mover, Observer, Place, Progress, Skipped};
use crate::BoxFuture;
use crate::error::{Error, LeftOut};
use crate::local::{Entry, Links, Walk};
use crate::names::{Filter, beneath};
use crate::store::{Attempt, Failure, Kind, Meta};

/// Files of at least so many bytes go one after the other, each with many blocks at once; smaller ones together.
const LARGE_BYTES: u64 = 8 << 20;

/// What is to be moved of many files.
#[derive(Clone, Debug, Default)]
pub struct Many {
    /// Which of them, by their names relative to the folder or to what names begin with.
    pub filter: Filter,
    /// Says what would be moved, and moves nothing.
    pub dry_run: bool,
    /// What becomes of symbolic links in a folder of this machine.
    pub links: Links,
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

/// A file and an object, one of which becomes the other.
struct Pair {
    path: PathBuf,
    /// The object's name.
    name: String,
    /// The file's name below the folder that objects are got into.
    below: String,
    bytes: u64,
    /// Why it is not moved, if that is known already.
    failed: Option<Error>,
}

/// A name, and its size or why it is left out.
type Listed = (String, Result<u64, (PathBuf, LeftOut)>);

impl Pair {
    fn new(path: PathBuf, name: String, bytes: u64) -> Self {
        Self { path, name, below: String::new(), bytes, failed: None }
    }

    /// What is in a folder: a file, or what is left out, which is no object.
    fn of(Entry { path, of, .. }: Entry, name: String) -> Self {
        let (bytes, failed) = match of {
            Ok(metadata) => (metadata.len(), None),
            Err(why) => (0, Some(Error::LeftOut { path: path.clone(), why })),
        };
        Self { bytes, failed, ..Self::new(path, name, 0) }
    }
}

impl Mover {
    /// Puts files, and what is in folders, into a store. A place whose name is empty or ends with a slash gets objects
    /// named after the files; what is in a folder is named relative to that. What can't be moved keeps nothing else from
    /// being moved.
    ///
    /// # Errors
    /// When two sources would be one object, a file would be put onto itself, or memory has no room for a block. What
    /// came of each file is its own.
    pub fn put_many<'a>(
        self: &'a Arc<Self>,
        from: &'a [PathBuf],
        to: &'a Place,
        many: &'a Many,
    ) -> BoxFuture<'a, Result<Vec<Outcome>, Error>> {
        Box::pin(async move {
            let (mut pairs, mut named) = (Vec::new(), BTreeMap::new());
            for path in from {
                for pair in self.pairs_to_put(path, to, many)? {
                    if pair.failed.is_none() {
                        let object = to.named(&pair.name);
                        if let Some(other) = named.insert(pair.name.clone(), pair.path.clone()) {
                            let (one, other, both) = (pair.path.display(), other.display(), object.shown);
                            return Err(Error::Request(format!("{other} and {one} would both be {both}")));
                        }
                        object.other_than(&pair.path)?;
                        self.has_memory_for(pair.bytes, &object)?;
                    }
                    pairs.push(pair);
                }
            }
            Ok(self.carry_out(Way::Put, to, pairs, (many.dry_run, None)).await)
        })
    }

    /// What a source that the user named becomes.
    fn pairs_to_put(&self, path: &Path, to: &Place, many: &Many) -> Result<Vec<Pair>, Error> {
        let is_folder = to.name.is_empty() || to.name.ends_with('/');
        let prefix = if is_folder { to.name.clone() } else { format!("{}/", to.name) };
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => {
                let name = format!("{prefix}{}", path.file_name().unwrap_or_default().to_string_lossy());
                let failed = Some(Error::file("can't read", path)(error));
                return Ok(vec![Pair { failed, ..Pair::new(path.to_path_buf(), name, 0) }]);
            }
        };
        if metadata.is_dir() {
            let mut found = Vec::new();
            let walk = Walk { filter: Some(&many.filter), links: many.links };
            walk.go(path, "", &mut |entry| {
                let name = format!("{prefix}{}", entry.name);
                found.push(Pair::of(entry, name));
            });
            return Ok(found);
        }
        let object = match path.file_name().and_then(|name| name.to_str()) {
            _ if !is_folder => to.name.clone(),
            Some(name) => format!("{prefix}{name}"),
            None => {
                let name = format!("{prefix}{}", path.file_name().unwrap_or_default().to_string_lossy());
                let entry = Entry { name: String::new(), path: path.to_path_buf(), of: Err(LeftOut::NotUnicode) };
                return Ok(vec![Pair::of(entry, name)]);
            }
        };
        if !metadata.is_file() {
            // It is going to be a stream, whose length nobody knows.
            self.first_bytes(&to.named(&object))?;
        }
        Ok(vec![Pair::new(path.to_path_buf(), object, metadata.len())])
    }

    /// Gets all objects whose names begin as the place's does into a folder, by the rest of their names. One whose name
    /// can't be that of a file below the folder keeps no other from being got.
    ///
    /// # Errors
    /// When they can't be listed, the folder can't be made, or a file would be got onto itself. What came of each file
    /// is its own.
    pub fn get_many<'a>(
        self: &'a Arc<Self>,
        from: &'a Place,
        folder: &'a Path,
        many: &'a Many,
    ) -> BoxFuture<'a, Result<Vec<Outcome>, Error>> {
        Box::pin(async move {
            self.has_memory(0, from)?;
            let mut pairs: Vec<Pair> = Vec::new();
            for (name, listed) in self.listed(from, many).await? {
                let rest = name.strip_prefix(&from.name).unwrap_or(&name).trim_start_matches('/').to_string();
                pairs.push(match listed {
                    Ok(bytes) => match beneath(folder, &rest) {
                        Ok(path) => Pair { below: rest, ..Pair::new(path, name, bytes) },
                        Err(error) => Pair { failed: Some(error), ..Pair::new(folder.to_path_buf(), name, bytes) },
                    },
                    Err((path, why)) => {
                        let failed = Some(Error::LeftOut { path, why });
                        Pair { failed, ..Pair::new(folder.join(&rest), name, 0) }
                    }
                });
            }
            let mut taken = BTreeSet::new();
            for pair in pairs.iter_mut().filter(|pair| pair.failed.is_none()) {
                from.named(&pair.name).other_than(&pair.path)?;
                // As `dir/x` and `dir//x`, below `dir`.
                if !taken.insert(pair.path.clone()) {
                    pair.failed = Some(Error::Request(format!("another object is {} already", pair.path.display())));
                }
            }
            let is_to_be_made = !many.dry_run && pairs.iter().any(|pair| pair.failed.is_none());
            let root = if is_to_be_made { Some(Arc::new(Root::make(folder)?)) } else { None };
            Ok(self.carry_out(Way::Get, from, pairs, (many.dry_run, root)).await)
        })
    }

    /// The names that begin as the place's does and are meant, each with its size, or with the path of what is left out
    /// and the reason.
    async fn listed(&self, from: &Place, many: &Many) -> Result<Vec<Listed>, Error> {
        if let Some(folder) = from.store.file(from.name.trim_end_matches('/')) {
            let mut listed = Vec::new();
            let walk = Walk { filter: Some(&many.filter), links: many.links };
            walk.go(&folder, "", &mut |Entry { name, path, of }| {
                let of = of.map(|metadata| metadata.len()).map_err(|why| (path, why));
                listed.push((format!("{}{name}", from.name), of));
            });
            return Ok(listed);
        }
        let request = || async {
            let mut seen = Attempt::default();
            (from.store.list(&from.name, &mut seen).await, seen)
        };
        // It is many requests, one behind the other, and nobody knows how many.
        let (found, _) = tokio::select! {
            asked = self.patience.ask(MANY_BYTES, Kind::Transient(None), request) => asked?,
            () = self.stop.asked() => return Err(Error::Stopped),
        };
        let is_meant = |meta: &Meta| {
            let rest = meta.name.strip_prefix(&from.name).unwrap_or(&meta.name).trim_start_matches('/');
            // An empty object of that name stands for a folder in some tools.
            let is_marker = (rest.is_empty() || rest.ends_with('/')) && meta.bytes == 0;
            !is_marker && many.filter.takes(rest)
        };
        Ok(found.into_iter().filter(is_meant).map(|meta| (meta.name, Ok(meta.bytes))).collect())
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
            Way::Get => {
                let meta = match self.existing(place).await {
                    Err(Error::Store(Failure { kind: Kind::Unsized, .. })) => Meta::unsized_of(&place.name),
                    existing => existing?.0,
                };
                self.is_there(&meta, path).await
            }
        }
    }

    async fn carry_out(
        self: &Arc<Self>,
        way: Way,
        place: &Place,
        pairs: Vec<Pair>,
        (dry_run, root): (bool, Option<Arc<Root>>),
    ) -> Vec<Outcome> {
        let (pairs, refused): (Vec<Pair>, Vec<Pair>) = pairs.into_iter().partition(|pair| pair.failed.is_none());
        let overall = Arc::new(Overall::new(&pairs, Arc::clone(&self.observer)));
        let mover = Arc::new(Self { observer: Arc::clone(&overall) as Arc<dyn Observer>, ..(**self).clone() });
        let (large, small): (Vec<Pair>, Vec<Pair>) =
            pairs.into_iter().partition(|pair| pair.bytes >= LARGE_BYTES && !dry_run);
        let failed = refused.into_iter().filter_map(|Pair { path, name, bytes, failed, .. }| {
            Some(Outcome { path, name, bytes, done: Done::Failed(failed?) })
        });
        let mut outcomes: Vec<Outcome> = failed.collect();
        for (pairs, at_once) in [(large, 1), (small, self.terms.max_concurrency)] {
            let mut tasks = JoinSet::new();
            for pair in pairs {
                if tasks.len() >= at_once {
                    outcomes.extend(tasks.join_next().await.and_then(Result::ok));
                }
                let (mover, overall, place) = (Arc::clone(&mover), Arc::clone(&overall), place.clone());
                let root = root.clone();
                tasks.spawn(async move {
                    let listed_bytes = pair.bytes;
                    let outcome = mover.one(way, place, pair, (dry_run, root.as_deref())).await;
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

    async fn one(&self, way: Way, place: Place, pair: Pair, (dry_run, root): (bool, Option<&Root>)) -> Outcome {
        let Pair { path, name, below, bytes, .. } = pair;
        let place = place.named(&name);
        let done = match (way, root) {
            _ if dry_run => self.dry(way, &path, &place, bytes).await,
            (Way::Get, Some(root)) => self.get_beneath(&place, root, &below).await.map(Done::from),
            (Way::Get, None) => self.get_file(&place, &path).await.map(Done::from),
            (Way::Put, _) => self.put_file(&path, &place).await.map(Done::from),
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
        let bytes = pairs.iter().map(|pair| pair.bytes).sum();
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
