//! Downloads: an object becomes a file, or is written to a stream. Ranges are fetched in parallel.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ascertain_sys::files::{self, Draft, Lasting};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use crate::BoxFuture;
use crate::buffers::{RangeWriter, TargetFile};
use crate::crc64::crc64;
use crate::error::{Error, Result};
use crate::journal::{Journal, JournalContents, JournalHeader, Part, PartList, Side, Temporary};
use crate::location::Location;
use crate::manager::{Resume, Settings, TransferManager};
use crate::model::{Planner, WHOLE_BYTES};
use crate::names::{beneath, shown};
use crate::part::{Fetcher, Sink};
use crate::plan::{Listing, PlannedFile};
use crate::pool::{Hedge, Permission, Wanted};
use crate::publisher::CompleteFile;
use crate::repair::ExpectedSums;
use crate::result::{RepairedRange, RequestStats, RequestSummary, TransferResult, TransferStatus};
use crate::scheduler::Scheduler;
use crate::source::Source;
use crate::store::{Failure, Kind, Limits, ObjectMeta, StoreLocation, check_room};
use crate::verify::DOWNLOAD_WORDS;

/// The limits on the parts of a download. Ranges may have any size and number.
pub(crate) const RANGES: Limits =
    Limits { min_part_bytes: 1, max_part_bytes: u64::MAX, max_parts: usize::MAX, max_put_bytes: 0 };

/// The download of one object: the object as its store describes it, and the result so far.
pub(crate) struct ObjectDownload<'a> {
    pub manager: &'a TransferManager,
    pub from: &'a Location,
    pub meta: ObjectMeta,
    latency_s: f64,
    /// `true` if `meta` is from a list, which contains no checksums.
    is_listed: bool,
    pub began: Instant,
    pub result: TransferResult,
}

impl TransferManager {
    /// Writes an object to a file. The file gets its name when it is complete. Symbolic links are followed; devices and
    /// pipes are written to directly. In a runtime with a single thread, all transfers wait while the disk is busy.
    ///
    /// # Errors
    /// Fails if the object does not exist or changes during the transfer. Fails if a local store keeps the object in
    /// the file `path` itself. Also fails if the file can't be written, or if an earlier attempt can't be resumed
    /// although the settings require it.
    pub fn get_file<'a>(&'a self, from: &'a Location, path: &'a Path) -> BoxFuture<'a, Result<TransferResult>> {
        Box::pin(async move {
            from.check_differs_from(path)?;
            // The object is looked up first: nothing is created on the disk if the object does not exist.
            let download = ObjectDownload::new(self, from, path).await?;
            let folder = files::parent(path);
            if !folder.exists() {
                fs::create_dir_all(folder).map_err(Error::file("can't create", folder))?;
            }
            match files::write_target(path).map_err(Error::file("can't write", path))? {
                files::WriteTarget::Direct(_) if self.settings.no_clobber => {
                    Ok(TransferResult::new(path, from, 0, TransferStatus::Exists))
                }
                files::WriteTarget::Direct(mut file) => download.write_to(&mut file).await,
                files::WriteTarget::File { path, .. } => download.write_file(&TargetPath::new(path)?).await,
            }
        })
    }

    /// Writes an object to a planned file below the folder `root`. The store chooses the name, so it must not lead out
    /// of the folder. Links below the folder are therefore not followed.
    pub(crate) async fn get_beneath(&self, from: &Location, root: &Root, file: &PlannedFile) -> Result<TransferResult> {
        let name = &file.relative;
        let path = beneath(&root.path, name)?;
        from.check_differs_from(&path)?;
        let whole_bytes = WHOLE_BYTES.min(self.max_limited_bytes().unwrap_or(u64::MAX));
        let download = match &file.listing {
            Listing::There(listed) if listed.bytes <= whole_bytes && self.is_listed_enough(listed, &path) => {
                ObjectDownload::listed(self, from, &path, listed.clone())
            }
            _ => Box::pin(ObjectDownload::new(self, from, &path)).await?,
        };
        let within = Path::new(name).parent().unwrap_or(Path::new(""));
        let make_folder = || match within.as_os_str().is_empty() {
            true => Ok(Arc::clone(&root.folder)),
            false => files::make_folder_beneath(&*root.folder, within).map(Arc::new),
        };
        let folder = make_folder().map_err(|error| {
            let place = root.path.join(within);
            let is_link = error.kind() == io::ErrorKind::NotADirectory || place.is_symlink();
            let error = if is_link { io::Error::other("a link or a file has this name") } else { error };
            Error::file("can't create the folder", &place)(error)
        })?;
        let name = path.file_name().unwrap_or_default().to_os_string();
        let (target, is_listed) = (TargetPath { folder, name, path }, download.is_listed);
        match download.write_file(&target).await {
            // The object was replaced after it was listed. The list may be old by now.
            Err(Error::Store(Failure { kind: Kind::Changed, .. })) if is_listed => {
                let download = Box::pin(ObjectDownload::new(self, from, &target.path)).await?;
                Box::pin(download.write_file(&target)).await
            }
            result => result,
        }
    }

    /// Writes an object to a stream. Ranges are fetched in parallel and delivered in order.
    ///
    /// # Errors
    /// Returns the errors of [`Self::get_file`]. After an error, the stream may already have received some bytes.
    pub fn get_stream<'a>(
        &'a self,
        from: &'a Location,
        out: &'a mut (dyn Write + Send),
    ) -> BoxFuture<'a, Result<TransferResult>> {
        Box::pin(async move { ObjectDownload::new(self, from, Path::new("-")).await?.write_to(out).await })
    }

    /// Returns the size of an object in bytes. `None` if the store reports it only at the end of the object's bytes.
    ///
    /// # Errors
    /// Fails if the object does not exist or can't be read.
    pub async fn size(&self, from: &Location) -> Result<Option<u64>> {
        let (meta, _) = self.find(from).await?;
        Ok(meta.size())
    }

    /// Returns the description of an object, and the latency of its store in seconds. Fails if the object does not
    /// exist.
    pub(crate) async fn find(&self, from: &Location) -> Result<(ObjectMeta, f64)> {
        let (meta, latency_s) = match self.head_strict(from).await {
            Err(Error::Store(Failure { kind: Kind::Unsized, .. })) => {
                return Ok((ObjectMeta::without_size(&from.name), 0.0));
            }
            head => head?,
        };
        let missing = || {
            let what = match &from.store {
                store if store.local_path(&from.name).is_some() => "file",
                // A read-only store is an HTTP server, which has no buckets.
                _ if from.is_read_only() => "address at this server",
                _ => "object, or no such bucket",
            };
            Failure::new(Kind::Missing, format!("{}: there is no such {what}", from.address))
        };
        Ok((meta.ok_or_else(missing)?, latency_s))
    }

    pub(crate) fn download_planner(&self, from: &Location, meta: &ObjectMeta, bytes: u64, latency_s: f64) -> Planner {
        let mut constraints = self.constraints(RANGES);
        if from.store.is_sequential(meta) {
            constraints.max_concurrency = 1;
        }
        Planner::new(bytes, constraints, Some(latency_s))
    }

    /// Returns whether a list describes an object well enough to download it. If not, another request must get a
    /// property that lists lack. If the time of the file at `path` differs, or with [`Settings::verify`], this is the
    /// checksum, which shows whether the content is the same. The answer to a download usually contains the
    /// modification time of the original file. An empty object is not downloaded, so its time needs a request.
    pub(crate) fn is_listed_enough(&self, listed: &ObjectMeta, path: &Path) -> bool {
        if self.settings.preserve && listed.bytes == 0 {
            return false;
        }
        if !self.settings.skip_unchanged || self.settings.no_clobber {
            return true;
        }
        let there = fs::symlink_metadata(path).ok();
        let is_copy = |modified| !self.settings.verify && modified == listed.modified;
        there.is_none_or(|there| there.len() != listed.bytes || is_copy(there.modified().ok()))
    }

    /// Returns the reason to skip a download to the file `path`; `None` if the object must be fetched.
    pub(crate) async fn reason_to_skip_get(&self, meta: &ObjectMeta, path: &Path) -> Result<Option<TransferStatus>> {
        let skips = self.settings.no_clobber || self.settings.skip_unchanged;
        let Some(there) = skips.then(|| fs::symlink_metadata(path).ok()).flatten() else { return Ok(None) };
        if self.settings.no_clobber {
            return Ok(Some(TransferStatus::Exists));
        }
        if there.is_symlink() {
            // `path` is a symbolic link, which the download replaces by a file.
            return Ok(None);
        }
        if !there.is_file() {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "it is a folder or a device, not a regular file");
            return Err(Error::file("can't write", path)(error));
        }
        if there.len() != meta.bytes {
            return Ok(None);
        }
        let is_same = match self.or_stopped(Source::open(path)?.equals(meta)).await?? {
            Some(is_same) => is_same,
            // Each downloaded file gets a modification time from the object, so equal times mean equal content.
            None => {
                let modified = self.settings.file_time(meta);
                modified.is_some() && there.modified().ok() == modified
            }
        };
        Ok(is_same.then_some(TransferStatus::Unchanged))
    }
}

impl<'a> ObjectDownload<'a> {
    /// Looks up the object, and creates the state of its download.
    async fn new(manager: &'a TransferManager, from: &'a Location, path: &Path) -> Result<Self> {
        let began = Instant::now();
        manager.check_memory(0, from)?;
        manager.permits.iter().for_each(|permits| permits.leave_place());
        let (meta, latency_s) = manager.find(from).await?;
        let mut result = TransferResult::new(path, from, meta.size().unwrap_or(0), TransferStatus::Transferred);
        result.etag = meta.etag.clone();
        Ok(Self { manager, from, meta, latency_s, is_listed: false, began, result })
    }

    /// Creates the state of the download of an object that a list describes.
    fn listed(manager: &'a TransferManager, from: &'a Location, path: &Path, meta: ObjectMeta) -> Self {
        let mut result = TransferResult::new(path, from, meta.bytes, TransferStatus::Transferred);
        result.etag = meta.etag.clone();
        Self { manager, from, meta, latency_s: 0.0, is_listed: true, began: Instant::now(), result }
    }

    async fn write_file(mut self, target: &TargetPath) -> Result<TransferResult> {
        if let Some(status) = self.manager.reason_to_skip_get(&self.meta, &target.path).await? {
            return Ok(TransferResult { status, elapsed_s: self.began.elapsed().as_secs_f64(), ..self.result });
        }
        if self.meta.size().is_none() {
            return Box::pin(self.write_unsized_file(target)).await;
        }
        if self.is_listed {
            return self.write_whole(target).await;
        }
        let resume = self.manager.settings.resume;
        match Box::pin(self.try_parts(target, resume)).await {
            Err(Error::CantResume(reason)) if resume == Resume::IfSame => {
                self.result.restart_reason = Some(reason);
                Box::pin(self.try_parts(target, Resume::Never)).await?;
            }
            done => done?,
        }
        self.record(fs::symlink_metadata(&self.result.path).ok().as_ref(), None);
        Ok(self.result)
    }

    /// Fetches a whole object to a file with one request, or continues with a file that an earlier attempt has fetched.
    async fn write_whole(mut self, target: &TargetPath) -> Result<TransferResult> {
        let (manager, cant_write) = (self.manager, |error| Error::file("can't write", &target.path)(error));
        let draft = match self.reopen_fetched(target).await? {
            Some(draft) => draft,
            None => self.fetch_whole(target).await?,
        };
        self.result.elapsed_s = self.began.elapsed().as_secs_f64();
        Box::pin(manager.verify(self.from, &self.meta, &mut self.result, DOWNLOAD_WORDS)).await?;
        set_modified(&draft, &self.meta, &manager.settings).map_err(cant_write)?;
        let there = draft.file().metadata().ok();
        self.record(there.as_ref(), Some(&draft));
        let is_at_end = manager.permits.as_ref().is_none_or(|permits| permits.pool().is_at_end());
        let device = there.map_or(0, |there| there.dev());
        let file = CompleteFile { draft, device, began: self.began, is_new: manager.settings.no_clobber };
        let published = manager.publisher.publish(file, is_at_end).await;
        self.check_published(published.map_err(cant_write))?;
        Ok(self.result)
    }

    /// Records the complete file, which has the metadata `there`, in the journal of the command. `draft` is the file if
    /// it still has its temporary name.
    fn record(&self, there: Option<&Metadata>, draft: Option<&Draft>) {
        let (manager, name) = (self.manager, &self.from.name);
        let attributes = manager.attributes_fingerprint(name);
        manager.folder_journal.record_download(name, &self.result, attributes, there, draft);
    }

    /// Checks the result of giving the file its name. If another process has created a file with this name, and
    /// [`Settings::no_clobber`] is set, marks the download as skipped instead of returning the error.
    pub fn check_published(&mut self, published: Result<()>) -> Result<()> {
        match published {
            Err(Error::File { source, .. })
                if self.manager.settings.no_clobber && source.kind() == io::ErrorKind::AlreadyExists =>
            {
                self.result.status = TransferStatus::Exists;
                Ok(())
            }
            published => published,
        }
    }

    /// Returns the file that an earlier attempt has fetched completely, but that still has its temporary name. Returns
    /// `None` if there is no such file. Also returns `None` if a loss of power has left the file incomplete. Removes a
    /// file that can't be used.
    ///
    /// With [`Settings::preserve`], the file is always fetched again, because only the answer to a download contains
    /// the time that the file must get.
    async fn reopen_fetched(&mut self, target: &TargetPath) -> Result<Option<Draft>> {
        let (manager, bytes) = (self.manager, self.meta.bytes);
        let temporary = manager.folder_journal.temporary(&self.meta.name);
        let reopened = temporary.and_then(|temporary| target.reopen_temporary(temporary).ok());
        let attributes = manager.attributes_fingerprint(&self.meta.name);
        let fetched = manager.folder_journal.fetched(&self.meta, attributes).filter(|_| !manager.settings.preserve);
        let (Some(draft), Some(fetched)) = (reopened, fetched) else { return Ok(None) };
        // The bytes are read from the disk, so the rate limit does not apply.
        let _memory = manager.or_stopped(manager.gate.allocate(bytes)).await??;
        let is_long = draft.file().metadata().is_ok_and(|there| there.len() != bytes);
        let read = manager.gate.buffers.read(draft.file(), 0, bytes);
        if is_long || !read.is_ok_and(|body| Some(body.crc64) == fetched.crc64) {
            return Ok(None);
        }
        (self.result.resumed_bytes, self.result.crc64) = (bytes, fetched.crc64);
        Ok(Some(draft))
    }

    async fn fetch_whole(&mut self, target: &TargetPath) -> Result<Draft> {
        let (manager, bytes) = (self.manager, self.meta.bytes);
        let permission = match &manager.permits {
            Some(permits) => Some(manager.or_stopped(Arc::clone(permits).permit(Wanted::whole(bytes))).await?),
            None => None,
        };
        let mut requests = Vec::new();
        let draft = if bytes > 0 {
            // A boxed future needs its memory only while it runs.
            let fetched = Box::pin(self.fetch_once(target, permission.as_ref(), &mut requests)).await?;
            let (draft, first_difference) = fetched;
            match first_difference {
                None => draft,
                Some(_) => {
                    let first = self.result.crc64;
                    // The permission counts the time since the first request, so the second one would seem late.
                    let (draft, difference) = Box::pin(self.fetch_once(target, None, &mut requests)).await?;
                    if let Some(difference) = difference {
                        let bytes = if self.result.crc64 == first { "the same bytes" } else { "different bytes" };
                        let message =
                            format!("{}: {difference}; the object arrived twice, with {bytes}", self.from.address);
                        return Err(Error::Corrupted(message));
                    }
                    self.result.repaired.push(RepairedRange { offset: 0, bytes });
                    draft
                }
            }
        } else {
            self.result.crc64 = Some(crc64(&[]));
            target.new_draft()?
        };
        let mut stats = requests.last().copied().unwrap_or_default();
        if requests.len() > 1 {
            // The time since the permission is not the duration of one request.
            stats.first_try = None;
        }
        permission.into_iter().for_each(|permission| permission.complete(&stats));
        (self.result.parts, self.result.requests) = (requests.len() as u64, RequestSummary::new(&requests));
        Ok(draft)
    }

    /// Fetches a whole object with one request to a file that still has its temporary name, and adds the statistics to
    /// `requests`. If there is a `permission`, the object is requested twice if the first request is late. If the
    /// checksum of the bytes differs from the checksum of the object, also returns a description of the difference.
    async fn fetch_once(
        &mut self,
        target: &TargetPath,
        permission: Option<&Permission>,
        requests: &mut Vec<RequestStats>,
    ) -> Result<(Draft, Option<String>)> {
        let (manager, from, bytes) = (self.manager, self.from, self.meta.bytes);
        let _memory = manager.or_stopped(manager.gate.admit(bytes)).await??;
        // If the object is requested twice at the same time, each request writes to its own file.
        let fetch = || async {
            let draft = target.new_draft()?;
            let file = draft.file().try_clone().map_err(Error::file("can't write", &target.path))?;
            let file = Arc::new(TargetFile::new(file, target.path.clone()));
            let request = |mut attempt| async {
                let into = RangeWriter::in_file(&file, 0..bytes);
                let fetched = from.store.get_whole(&self.meta, into, &mut attempt).await;
                (fetched.and_then(|(into, meta)| Ok((into.whole()?, meta))), attempt)
            };
            let fetched = manager.gate.retry.run(bytes, Kind::Transient(None), request).await;
            fetched.map(|fetched| (draft, fetched)).map_err(|failure| file.error(failure))
        };
        // The futures are large, so they are moved in boxes.
        let fetched = Box::pin(async {
            let condition = || if manager.gate.retry.is_refused() { Hedge::Never } else { Hedge::AtEnd };
            let first = Box::pin(fetch());
            match permission {
                Some(permission) => permission.hedge(condition, first, async { Box::pin(fetch()).await }).await,
                None => first.await.map(|fetched| (fetched, false)),
            }
        });
        let fetched = manager.or_stopped(manager.gently(from, fetched)).await??;
        let ((draft, ((sums, meta), stats)), is_hedged) = fetched;
        let mut stats = if is_hedged { stats.hedged() } else { stats };
        let [stored, came, _] = DOWNLOAD_WORDS;
        let difference = ExpectedSums::stored(&meta).difference(sums.crc64(), sums.crc32c(), stored, came);
        stats.retries.corrupted += u64::from(difference.is_some());
        requests.push(stats);
        (self.result.crc64, self.meta) = (Some(sums.crc64()), meta);
        Ok((draft, difference))
    }

    async fn write_to(mut self, out: &mut (dyn Write + Send)) -> Result<TransferResult> {
        if self.meta.size().is_none() {
            return self.write_unsized_to(out).await;
        }
        let sink = Sink::InOrder { out, next: Arc::default(), waiting: Default::default() };
        let mut scheduler = self.scheduler(PartList::default(), Journal::default());
        self.fetch(sink, &mut scheduler).await?;
        Ok(self.result)
    }

    /// Fetches an object to a file, in parts. Continues an earlier, interrupted attempt if `resume` permits this and
    /// its incomplete file is still usable.
    async fn try_parts(&mut self, target: &TargetPath, resume: Resume) -> Result<()> {
        let (manager, path, bytes) = (self.manager, &target.path, self.meta.bytes);
        let cant_write = |error| Error::file("can't write", path)(error);
        let (source, destination) = (Side::of_object(self.from, Some(&self.meta)), Side::of_file(path));
        // If the store has no tags, a change of the object since the earlier attempt can't be detected.
        let is_fresh = resume == Resume::Never || source.version.is_none();
        let (mut journal, JournalContents { mut header, mut parts }) =
            Journal::open(manager.settings.journals.as_deref(), &source.address, &destination.address, is_fresh)?;
        if is_fresh {
            // `reopen` returns a draft of the incomplete file. Dropping the draft removes the file.
            header.take().iter().for_each(|header| drop(target.reopen(header)));
            journal.clear()?;
            parts = PartList::default();
        }
        let mut draft = None;
        if let Some(header) = &header {
            draft = target.reopen(header).ok();
            // The incomplete file is kept if a check below fails, for example because the object has changed.
            draft.iter_mut().for_each(|draft: &mut Draft| draft.keep(true));
            if header.source == source && header.destination != destination && parts.is_complete(bytes) {
                // The earlier process may have been killed after it had named the complete file, before it removed the
                // journal.
                let is_published = match Source::open(path) {
                    Ok(file) if draft.is_none() && file.bytes == bytes => {
                        manager.or_stopped(file.crc64()).await?? == parts.crc64()
                    }
                    _ => false,
                };
                if is_published {
                    (self.result.resumed_bytes, self.result.crc64) = (bytes, Some(parts.crc64()));
                    self.result.elapsed_s = self.began.elapsed().as_secs_f64();
                    return journal.remove();
                }
            }
            header.check_unchanged(&source, &destination)?;
            if draft.is_none() {
                self.result.restart_reason = Some(format!("the incomplete file of {} is gone", destination.address));
                parts = PartList::default();
                journal.clear()?;
            }
        }
        let is_new = draft.is_none();
        let mut draft = match draft {
            Some(draft) => draft,
            None => Draft::create_in(Arc::clone(&target.folder), &target.name).map_err(cant_write)?,
        };
        let there_bytes = draft.file().metadata().map_or(0, |there| there.blocks() * 512);
        check_room(path, there_bytes, bytes).map_err(cant_write)?;
        // A power failure may have destroyed parts of the incomplete file. These are fetched again.
        let file = draft.file().try_clone().map_err(cant_write)?;
        let (buffers, stop) = (manager.gate.buffers.clone(), manager.stop.clone());
        let recheck = spawn_blocking(move || {
            let read = |part: Part| buffers.read(&file, part.offset, part.bytes);
            let is_right = |part, crc64| read(part).is_ok_and(|body| body.crc64 == crc64);
            parts.recheck(|part, receipt| stop.is_requested() || is_right(part, receipt.crc64));
            parts
        });
        let parts = recheck.await.map_err(|error| Error::Request(error.to_string()))?;
        if manager.stop.is_requested() {
            return Err(Error::Stopped);
        }
        draft.file().set_len(bytes).map_err(cant_write)?;
        if journal.is_resumable() && is_new {
            let (name, files::Identity { device, inode }) = draft.identity().map_err(cant_write)?;
            let mut header = JournalHeader::new(source, destination, String::new(), StoreLocation::default());
            header.temporary = Some(Temporary { name, device, inode });
            journal.start(header)?;
            draft.keep(true);
        }
        let file = draft.file().try_clone().map_err(cant_write)?;
        let sink = Sink::File(Arc::new(TargetFile::new(file, path.clone())));
        let mut scheduler = self.scheduler(parts, journal);
        let fetched = self.fetch(sink, &mut scheduler).await;
        let journal = scheduler.journal;
        if let Err(error) = fetched {
            // If the object has changed, or its bytes arrived corrupted, the parts that were fetched are useless.
            let is_changed = matches!(&error, Error::Store(Failure { kind: Kind::Changed | Kind::Missing, .. }));
            if !journal.is_resumable() || is_changed || matches!(error, Error::Corrupted(..)) {
                draft.keep(false);
                journal.remove()?;
            }
            return Err(error);
        }
        let (name, files::Identity { device, inode }) = draft.identity().map_err(cant_write)?;
        let published = publish(draft, path, &self.meta, &manager.settings);
        self.check_published(published)?;
        if !self.result.is_transferred() {
            // Another file has the name now, so the download is useless. Dropping the reopened draft removes its file.
            drop(target.reopen_temporary(&Temporary { name, device, inode }));
        }
        journal.remove()
    }

    fn scheduler(&self, parts: PartList, journal: Journal) -> Scheduler<'a> {
        let (manager, bytes) = (self.manager, self.meta.bytes);
        let started_bytes = parts.next().offset;
        let permits = manager.permits(started_bytes, self.began, || {
            manager.download_planner(self.from, &self.meta, bytes - started_bytes, self.latency_s)
        });
        Scheduler::new(manager, permits, RANGES, bytes, parts, journal)
    }

    /// Fetches the missing parts into `sink`, and verifies the checksum of the whole file. Repairs a file in which some
    /// bytes are wrong.
    async fn fetch(&mut self, sink: Sink<'_>, scheduler: &mut Scheduler<'_>) -> Result<()> {
        let (manager, from) = (self.manager, self.from);
        let target = if let Sink::File(target) = &sink { Some(Arc::clone(target)) } else { None };
        let mut fetcher = Fetcher::new(from, &self.meta, sink, manager.gate.clone());
        manager.gently(from, scheduler.run(&mut fetcher, &*manager.observer, &from.name)).await?;
        scheduler.report(&mut self.result);
        self.result.elapsed_s = self.began.elapsed().as_secs_f64();
        let ([stored, came, again], parts) = (DOWNLOAD_WORDS, &scheduler.parts);
        let expected = ExpectedSums::stored(&self.meta);
        if let Some(difference) = expected.difference(parts.crc64(), parts.crc32c(), stored, came) {
            let message = format!("{}: {difference}", from.address);
            // Bytes that were written to a stream can't be replaced.
            let Some(target) = &target else { return Err(Error::Corrupted(message)) };
            let repair = self.repair(target, scheduler, expected).await?;
            if !repair.is_right {
                return Err(Error::Corrupted(format!("{message}; {}", repair.finding())));
            }
            self.result.repaired = repair.replaced;
            self.result.elapsed_s = self.began.elapsed().as_secs_f64();
        }
        let Some(target) = target.filter(|_| manager.settings.verify) else {
            return manager.verify(from, &self.meta, &mut self.result, DOWNLOAD_WORDS).await;
        };
        let expected = manager.read_again(from, &self.meta, self.result.bytes, DOWNLOAD_WORDS).await?;
        if let Some(difference) = expected.difference(scheduler.parts.crc64(), None, again, came) {
            let repair = self.repair(&target, scheduler, expected).await?;
            // If the third download of the ranges has the same bytes as the first one, the second one was damaged.
            if !repair.is_right && !repair.replaced.is_empty() {
                return Err(Error::Corrupted(format!("{}: {difference}; {}", from.address, repair.finding())));
            }
            self.result.repaired.extend(repair.replaced);
        }
        self.result.verified = true;
        Ok(())
    }
}

/// Sets the modification time of the complete file `draft`, then gives the file its final name. With
/// [`Settings::no_clobber`], fails if this name already exists.
pub(crate) fn publish(draft: Draft, path: &Path, meta: &ObjectMeta, settings: &Settings) -> Result<()> {
    let publish = || {
        set_modified(&draft, meta, settings)?;
        match settings.no_clobber {
            true => draft.publish_new(Lasting::ThroughCrash),
            false => draft.publish(Lasting::ThroughCrash),
        }
    };
    publish().map(drop).map_err(Error::file("can't write", path))
}

/// Gives a file the modification time of the object.
fn set_modified(draft: &Draft, meta: &ObjectMeta, settings: &Settings) -> io::Result<()> {
    settings.file_time(meta).map_or(Ok(()), |modified| draft.file().set_modified(modified))
}

/// The target folder of a download. The store chooses the names of the files below it, and no name may lead out of it.
#[derive(Debug)]
pub(crate) struct Root {
    folder: Arc<OwnedFd>,
    pub path: PathBuf,
}

impl Root {
    /// Opens the folder at `path`. Creates the folder if it is missing. Follows links, because the user named this
    /// path.
    pub fn make(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).map_err(Error::file("can't create", path))?;
        let folder = files::open_folder(path).map_err(Error::file("can't open", path))?;
        Ok(Self { folder: Arc::new(folder), path: path.to_path_buf() })
    }
}

/// The target of a new file: an open folder, and a name in this folder. The field `path` is used only in messages.
#[derive(Debug)]
pub(crate) struct TargetPath {
    pub folder: Arc<OwnedFd>,
    pub name: OsString,
    pub path: PathBuf,
}

impl TargetPath {
    /// Opens the folder that contains `path`. The last component of `path` must not be a symbolic link.
    pub fn new(path: PathBuf) -> Result<Self> {
        let folder = files::parent(&path);
        let folder = files::open_folder(folder).map_err(Error::file("can't open", folder))?;
        Ok(Self { folder: Arc::new(folder), name: path.file_name().unwrap_or_default().to_os_string(), path })
    }

    /// Creates an empty file with a temporary name.
    fn new_draft(&self) -> Result<Draft> {
        Draft::create_in(Arc::clone(&self.folder), &self.name).map_err(Error::file("can't write", &self.path))
    }

    /// Opens the incomplete file of an interrupted download, if it is still the file that `header` describes. If the
    /// returned draft is dropped, the file is removed.
    pub fn reopen(&self, header: &JournalHeader) -> io::Result<Draft> {
        self.reopen_temporary(header.temporary.as_ref().ok_or(io::ErrorKind::NotFound)?)
    }

    /// Opens the file of an interrupted download, if it is still the same file. If the returned draft is dropped, the
    /// file is removed.
    pub fn reopen_temporary(&self, temporary: &Temporary) -> io::Result<Draft> {
        let Temporary { name, device, inode } = temporary;
        let identity = files::Identity { device: *device, inode: *inode };
        Draft::reopen_in(&self.folder, &self.name, name, identity)
    }
}

impl Side {
    /// Returns the path, size and version of a local file, as the source or the destination of a transfer.
    pub fn of_file(path: &Path) -> Self {
        let metadata = fs::metadata(path).ok();
        let folder = files::parent(path);
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
        let address = shown(&folder.join(path.file_name().unwrap_or_default()));
        let modified = metadata.as_ref().and_then(|there| there.modified().ok());
        let version = modified.map(|modified| format!("{modified:?}"));
        Self { address, version, bytes: metadata.map_or(0, |there| there.len()) }
    }
}
