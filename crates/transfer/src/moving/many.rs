//! Many files in one go. Nothing is ever removed: this is no synchronisation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::JoinSet;

use super::{MANY_BYTES, Moved, Mover, Place};
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
    /// Its size, as it was listed.
    pub bytes: u64,
    /// What came of it.
    pub done: Done,
}

/// What came of one file.
#[derive(Debug)]
pub enum Done {
    /// It was to be said only.
    Said,
    /// It was moved, or left alone.
    Moved(Box<Moved>),
    /// It was not; the others were tried nevertheless.
    Failed(Error),
}

#[derive(Clone, Copy)]
enum Way {
    Put,
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
    pub async fn put_many(self: &Arc<Self>, from: &[PathBuf], to: &Place, many: &Many) -> Result<Vec<Outcome>, Error> {
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
    }

    /// Gets all objects whose names begin as the place's does into a folder, by the rest of their names.
    ///
    /// # Errors
    /// When they can't be listed, or the names of some can't be those of files below the folder: then nothing is moved.
    pub async fn get_many(self: &Arc<Self>, from: &Place, folder: &Path, many: &Many) -> Result<Vec<Outcome>, Error> {
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
    }

    async fn carry_out(self: &Arc<Self>, way: Way, place: &Place, pairs: Vec<Pair>, dry_run: bool) -> Vec<Outcome> {
        if dry_run {
            let said = |(path, name, bytes)| Outcome { path, name, bytes, done: Done::Said };
            return pairs.into_iter().map(said).collect();
        }
        let (large, small): (Vec<Pair>, Vec<Pair>) = pairs.into_iter().partition(|(.., bytes)| *bytes >= LARGE_BYTES);
        let mut outcomes = Vec::new();
        for (pairs, at_once) in [(large, 1), (small, self.terms.max_concurrency)] {
            let mut tasks = JoinSet::new();
            for pair in pairs {
                if tasks.len() >= at_once {
                    outcomes.extend(tasks.join_next().await.and_then(Result::ok));
                }
                let (mover, place) = (Arc::clone(self), place.clone());
                tasks.spawn(async move { mover.one(way, place, pair).await });
            }
            while let Some(joined) = tasks.join_next().await {
                outcomes.extend(joined.ok());
            }
        }
        outcomes.sort_by(|one: &Outcome, other| one.name.cmp(&other.name));
        outcomes
    }

    async fn one(&self, way: Way, place: Place, (path, name, bytes): Pair) -> Outcome {
        let place = place.named(&name);
        let moved = match way {
            Way::Put => self.put_file(&path, &place).await,
            Way::Get => self.get_file(&place, &path).await,
        };
        let done = moved.map_or_else(Done::Failed, |moved| Done::Moved(Box::new(moved)));
        Outcome { path, name, bytes, done }
    }
}
