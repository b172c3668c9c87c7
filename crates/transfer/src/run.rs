//! Carries out a request: opens the source and the store, and transfers the files side by side.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ascertain_sys::files::{self, WriteTarget};
use ascertain_sys::interrupt::Stop;
use ascertain_sys::standard;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;

use crate::download::{RANGES, Root};
use crate::error::{Error, Result};
use crate::folder_journal::{FolderHeader, FolderJournal};
use crate::history::History;
use crate::location::{Location, local_path};
use crate::manager::{Settings, TransferManager};
use crate::names::{Filter, shown};
use crate::pages::LaterFiles;
use crate::plan::{Listing, PlannedFile, Selection, list_sources};
use crate::result::{Observer, TransferResult, TransferStatus};
use crate::source::Source;
use crate::store::Options;

/// The argument `-`, which means standard input as a source, and standard output as a destination.
pub const STANDARD: &str = "-";

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Transfers files from this machine into a store.
    #[default]
    Put,
    /// Transfers objects from a store to this machine.
    Get,
}

/// A request to transfer files to or from a store.
#[derive(Clone, Debug, Default)]
pub struct TransferRequest {
    /// The direction of the transfers.
    pub direction: Direction,
    /// The paths of files and folders for `put`, or `-` for standard input. For `get`, the address of an object or
    /// prefix.
    pub sources: Vec<OsString>,
    /// The address of an object or prefix for `put`. For `get`, the path of a file or folder, or `-` for standard
    /// output.
    pub destination: OsString,
    /// Selects the files of a folder, or the objects of a prefix, that are transferred.
    pub selection: Selection,
    /// The settings of the transfers.
    pub settings: Settings,
    /// The settings, in addition to the address, to reach the store, such as the region.
    pub store: Options,
}

impl TransferRequest {
    /// Makes a [`TransferResult`] from an error of [`run`], for a request that names a single file. Returns `None` if
    /// the request does not name a single file, or if its addresses are not valid.
    #[must_use]
    pub fn failed_file(&self, error: Error) -> Option<TransferResult> {
        let [source] = &*self.sources else { return None };
        let is_put = self.direction == Direction::Put;
        let address = if is_put { &self.destination } else { source };
        let anonymous = Options { endpoint_url: self.store.endpoint_url.clone(), ..Options::default() };
        // Without credentials, the address is still valid.
        let without_credentials = |_| Location::open(address, &Options { anonymous: true, ..anonymous });
        let mut object = Location::open(address, &self.store).or_else(without_credentials).ok()?;
        let path = match is_put {
            true => PathBuf::from(source),
            false => target_path(&object, Path::new(local_path(self.destination.to_str()?).ok()?)),
        };
        if is_put && object.is_prefix() && source != STANDARD && !path.is_dir() {
            object = object.named(&format!("{}{}", object.name, path.file_name()?.to_str()?));
        }
        let is_single = !object.is_prefix() && !matches!(error, Error::Request(_));
        is_single.then(|| TransferResult::new(&path, &object, 0, TransferStatus::Failed(error)))
    }
}

/// Transfers the files of a request, and returns a result for each. If one of several files fails, the other files are
/// still transferred.
/// # Errors
/// Fails if the request is invalid, if the source or the destination can't be opened, or if none of the named files can
/// be read. If the request names a single file, also fails if that file can't be transferred.
pub fn run(request: &TransferRequest, observer: Box<dyn Observer>, stop: Stop) -> Result<Vec<TransferResult>> {
    let Settings { min_concurrency, max_concurrency, .. } = request.settings;
    if min_concurrency > max_concurrency.max(1) {
        return Err(Error::Request(format!(
            "the minimum number of connections, {min_concurrency}, is above the maximum, {max_concurrency}; lower the \
             minimum, or raise the maximum"
        )));
    }
    raise_file_limit();
    let manager = TransferManager::new(request.settings.clone(), stop, observer);
    let store = Options { max_connections: Some(request.settings.max_concurrency.max(1)), ..request.store.clone() };
    let request = TransferRequest { store, ..request.clone() };
    on_runtime(async move {
        match request.direction {
            Direction::Put => put(&request, &manager).await,
            Direction::Get => get(&request, &manager).await,
        }
    })
}

/// Raises the limit on open files to the highest limit that this process may have. A command with 256 connections can
/// have more files and sockets open than the usual limit of 1024.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Without a higher limit, most commands still succeed.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Runs a future to its end on a new runtime. The future runs on a thread of the runtime. On the calling thread, each
/// step of the future would need a switch between threads.
pub(crate) fn on_runtime<T: Send + 'static>(work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Request(format!("could not start the async runtime: {error}")))?;
    let joined = runtime.block_on(runtime.spawn(work));
    let result = joined.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => Err(Error::Request(error.to_string())),
    });
    // A thread may be blocked in a read of standard input, which can't be interrupted. So the runtime does not wait for
    // it.
    runtime.shutdown_background();
    result
}

async fn put(request: &TransferRequest, manager: &TransferManager) -> Result<Vec<TransferResult>> {
    let TransferRequest { sources, selection, settings, .. } = request;
    match &**sources {
        _ if request.destination == STANDARD => return Err(not_standard("the target of `put`")),
        [source] if source == STANDARD => return put_standard_input(request, manager).await,
        sources if sources.iter().any(|source| source == STANDARD) => {
            return Err(not_standard("one of several sources"));
        }
        _ => {}
    }
    // The sources are listed before the store is opened. The user should first learn of a missing file, then of missing
    // credentials.
    let mut files = list_sources(sources, selection);
    let is_unreadable = |file: &PlannedFile| file.is_named && file.problem.is_some();
    if files.iter().all(is_unreadable)
        && let Some(problem) = files.first_mut().and_then(|file| file.problem.take())
    {
        return Err(problem);
    }
    let to = match open_target(request) {
        Ok(to) => to,
        Err(error) => {
            let mut named = files.into_iter().filter(|file| file.is_named);
            return Err(named.find_map(|file| file.problem).unwrap_or(error));
        }
    };
    manager.open_history(Direction::Put, &to);
    match (&**sources, &*files) {
        ([], _) => return Err(Error::Request("there are no files to transfer".into())),
        ([_], [file]) if file.is_named => {
            check_filter(selection, &file.path.to_string_lossy())?;
            if !settings.dry_run && !to.is_prefix() {
                return Ok(vec![manager.recorded(put_file(manager, &file.path, to).await?)]);
            }
        }
        ([_, _, ..], _) if !to.is_prefix() => {
            return Err(Error::Request(format!(
                "{}: to transfer several files, end the address with a slash",
                to.address
            )));
        }
        _ => {}
    }
    manager.put_listed(sources, files, &to).await
}

async fn put_standard_input(request: &TransferRequest, manager: &TransferManager) -> Result<Vec<TransferResult>> {
    check_filter(&request.selection, STANDARD)?;
    if standard::input_was_closed() {
        return Err(Error::Request("standard input is closed".into()));
    }
    let to = open_target(request)?;
    check_has_name(&to)?;
    let result = match request.settings.dry_run {
        true => manager.preview(Direction::Put, Path::new(STANDARD), &to, (0, &Listing::Unknown)).await?,
        false => manager.put_stream(&mut tokio::io::stdin(), &to).await?,
    };
    Ok(vec![result])
}

async fn put_file(manager: &TransferManager, path: &Path, to: Location) -> Result<TransferResult> {
    // If the target is a local device or pipe, the bytes are written directly to it.
    let device =
        to.store.local_path(&to.name).filter(|path| matches!(files::write_target(path), Ok(WriteTarget::Direct(_))));
    let Some(device) = device else { return manager.put_file(path, &to).await };
    to.check_differs_from(path)?;
    let result = manager.get_file(&Location::file(path), &device).await?;
    Ok(TransferResult { path: path.to_path_buf(), address: to.address, ..result })
}

/// Returns the path of the file that the object `from` becomes, if the destination is `target`.
fn target_path(from: &Location, target: &Path) -> PathBuf {
    if target != Path::new(STANDARD) && (target.is_dir() || target.as_os_str().as_encoded_bytes().ends_with(b"/")) {
        let file = from.store.local_path(&from.name);
        let last = from.name.rsplit('/').next().unwrap_or_default();
        return target.join(file.as_deref().and_then(Path::file_name).unwrap_or(OsStr::new(last)));
    }
    target.to_path_buf()
}

/// Opens the store that files are sent to.
fn open_target(request: &TransferRequest) -> Result<Location> {
    let to = Location::open(&request.destination, &request.store)?;
    if to.is_read_only() {
        return Err(Error::Request(format!("{}: can't upload to an HTTP address, which is read-only", to.address)));
    }
    to.store.check_attributes(&request.settings.attributes, &to.address)?;
    Ok(to)
}

async fn get(request: &TransferRequest, manager: &TransferManager) -> Result<Vec<TransferResult>> {
    let TransferRequest { destination, selection, settings, .. } = request;
    let [source] = &*request.sources else { return Err(Error::Request("`get` needs exactly one address".into())) };
    if source == STANDARD {
        return Err(not_standard("the source of `get`"));
    }
    let from = Location::open(source, &request.store)?;
    if from.is_read_only() && from.is_prefix() {
        return Err(Error::Request(format!("{}: HTTP has no folders; give the address of a file", from.address)));
    }
    manager.open_history(Direction::Get, &from);
    let (from, only) = manager.resolve_pattern(from).await?;
    let selection = &selection.with_only(only);
    if !from.is_prefix() {
        check_filter(selection, &from.address)?;
    }
    let target = match destination.to_str() {
        Some(text) => Path::new(local_path(text)?),
        None => Path::new(destination),
    };
    if from.is_prefix() && destination != STANDARD {
        return manager.get_many(&from, target, selection).await;
    }
    if destination == STANDARD {
        check_has_name(&from)?;
        if standard::output_was_closed() {
            return Err(Error::Request("standard output is closed".into()));
        }
    }
    let path = target_path(&from, target);
    let result = if settings.dry_run {
        from.check_differs_from(&path)?;
        let bytes = manager.size(&from).await?.unwrap_or(0);
        manager.preview(Direction::Get, &path, &from, (bytes, &Listing::Unknown)).await?
    } else if destination == STANDARD {
        manager.get_stream(&from, &mut io::stdout()).await?
    } else {
        manager.recorded(manager.get_file(&from, &path).await?)
    };
    Ok(vec![result])
}

impl TransferManager {
    /// Opens the history of the store, for the first forecast of the command and for its record.
    fn open_history(&self, direction: Direction, location: &Location) {
        if let Some(history) = History::open(&self.settings, direction, location) {
            self.history.get_or_init(|| history);
        }
    }

    /// Records the transfer of a single file in the history, and returns its result.
    fn recorded(&self, result: TransferResult) -> TransferResult {
        if let Some(history) = self.history.get() {
            history.record(std::slice::from_ref(&result), result.elapsed_s);
        }
        result
    }

    /// Stores files, and the files in folders. If `to` is a prefix (empty, or with a slash at its end), objects are
    /// named after the files. Files in a folder keep their path relative to the folder. If a file can't be sent, the
    /// other files are still sent.
    ///
    /// # Errors
    /// Fails if two files would become the same object, or if a file would overwrite itself. Also fails if the memory
    /// limit has no room for a part. If a single file fails, its result contains the error.
    pub async fn put_many(
        &self,
        from: &[PathBuf],
        to: &Location,
        selection: &Selection,
    ) -> Result<Vec<TransferResult>> {
        self.put_listed(from, list_sources(from, selection), to).await
    }

    /// Stores the files that were found at the sources `from`.
    async fn put_listed<P: AsRef<Path>>(
        &self,
        from: &[P],
        files: Vec<PlannedFile>,
        to: &Location,
    ) -> Result<Vec<TransferResult>> {
        let mut files = self.plan_put(files, to)?;
        let sources = from.iter().map(|path| absolute(path.as_ref())).collect();
        let journal = self.open_journal(to, FolderHeader::new(Direction::Put, sources, to.address.clone(), &files))?;
        self.list_targets(&mut files, to, journal.has_complete_files()).await?;
        Ok(self.transfer_all(Direction::Put, to, (files, None), None, journal).await)
    }

    /// Writes all objects whose names start with `from.name` to files below a folder. The rest of the object's name is
    /// the path of the file. If an object's name can't be a path, the other objects are still fetched.
    ///
    /// The first objects are fetched while the store is still being listed, as soon as at least as many are known as
    /// there are connections. If a later page of the list can't be read, the objects on the earlier pages are fetched.
    /// An additional result, for `from` and `folder`, then contains [`Error::IncompleteList`].
    ///
    /// # Errors
    /// Fails if the first objects can't be listed, if the folder can't be created, or if a file would overwrite itself.
    /// If a single object fails, its result contains the error.
    pub async fn get_many(&self, from: &Location, folder: &Path, selection: &Selection) -> Result<Vec<TransferResult>> {
        self.check_memory(0, from)?;
        let (mut pages, mut is_listed) = (self.plan_get(from, folder, selection), false);
        // A file is split only if there are fewer files than connections. So if there are as many files, the first of
        // them can be fetched while the rest is listed. A dry run has nothing to do meanwhile.
        let enough = if self.settings.dry_run { usize::MAX } else { self.constraints(RANGES).max_concurrency };
        let (mut files, mut known) = (Vec::new(), 0);
        while !is_listed && known < enough {
            let page = pages.next().await?;
            known += page.files.iter().filter(|file| file.problem.is_none()).count();
            files.extend(page.files);
            is_listed = page.is_last;
        }
        let is_needed = !self.settings.dry_run && files.iter().any(|file| file.problem.is_none());
        let root = if is_needed { Some(Arc::new(Root::make(folder)?)) } else { None };
        let sources = vec![from.address.clone()];
        let header = FolderHeader::new(Direction::Get, sources, absolute(folder), &files);
        let later = (!is_listed).then(|| LaterFiles { pages, header: header.clone() });
        let journal = self.open_journal(from, header)?;
        Ok(self.transfer_all(Direction::Get, from, (files, later), root, journal).await)
    }

    /// Opens the journal of a command with several files. A dry run and a single file have no such journal. A store of
    /// local files has none either. Resuming would compare the versions in the journal with a list of the store, but
    /// local files are not listed.
    fn open_journal(&self, location: &Location, header: FolderHeader) -> Result<FolderJournal> {
        let is_local = location.store.local_path(&location.name).is_some();
        if self.settings.dry_run || is_local || header.files < 2 {
            return Ok(FolderJournal::default());
        }
        FolderJournal::open(&self.settings, header)
    }

    /// Returns the expected outcome of the transfer of a file or stream of `bytes` bytes, without transferring it (a
    /// dry run). `listing` is the information about the object from a list of the store.
    ///
    /// # Errors
    /// Fails if the source or the existing target can't be read.
    pub(crate) async fn preview(
        &self,
        direction: Direction,
        path: &Path,
        object: &Location,
        (bytes, listing): (u64, &Listing),
    ) -> Result<TransferResult> {
        let skips = self.settings.no_clobber || self.settings.skip_unchanged;
        let status = match direction {
            _ if !skips => None,
            Direction::Put if path.is_file() => {
                let source = Source::open(path)?;
                let there = self.planned_target(&source, object, listing).await?;
                self.reason_to_skip_put(&source, there.as_ref()).await?
            }
            Direction::Put => {
                let (there, _) = self.head(object).await?;
                (there.is_some() && self.settings.no_clobber).then_some(TransferStatus::Exists)
            }
            Direction::Get => {
                let meta = match listing {
                    Listing::There(listed) if self.is_listed_enough(listed, path) => listed.clone(),
                    _ => self.find(object).await?.0,
                };
                self.reason_to_skip_get(&meta, path).await?
            }
        };
        Ok(TransferResult::new(path, object, bytes, status.unwrap_or(TransferStatus::Planned)))
    }
}

/// Returns the absolute path of a file or folder, without links. With absolute paths, the journal of a command is also
/// found if the command is repeated in another working directory.
fn absolute(path: &Path) -> String {
    shown(&path.canonicalize().unwrap_or_else(|_| path.to_path_buf()))
}

/// Returns an error if the request has patterns for names although `source` is a single file.
fn check_filter(Selection { filter, .. }: &Selection, source: &str) -> Result<()> {
    if *filter == Filter::default() {
        return Ok(());
    }
    Err(Error::Request(format!("{source}: patterns apply only to folders, but this is a single file; leave them out")))
}

/// Returns an error if the target of a stream is a prefix. A stream becomes a single object, which needs its own name.
fn check_has_name(object: &Location) -> Result<()> {
    match object.is_prefix() {
        true => Err(Error::Request(format!("{}: a stream is one object; give its name", object.address))),
        false => Ok(()),
    }
}

fn not_standard(place: &str) -> Error {
    Error::Request(format!("`{STANDARD}` cannot be {place}; for a file of that name, write `./{STANDARD}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_on_open_files_is_raised() {
        let limit = getrlimit(Resource::Nofile);
        let lower = limit.current.or(limit.maximum).map(|current| current - 1);
        setrlimit(Resource::Nofile, Rlimit { current: lower, ..limit }).unwrap();
        raise_file_limit();
        assert_eq!(getrlimit(Resource::Nofile).current, limit.maximum);
    }
}
