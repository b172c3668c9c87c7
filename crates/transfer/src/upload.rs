//! Uploads: a file becomes an object, by one request or in parts. The commit makes the object visible under its name.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};

use crate::BoxFuture;
use crate::error::{Error, Result};
use crate::journal::{Journal, JournalContents, JournalHeader, PartList, Side};
use crate::location::Location;
use crate::manager::{Resume, Settings, TransferManager};
use crate::model::{self, Planner, Shape, WHOLE_BYTES};
use crate::part::{PartGate, Sender};
use crate::plan::Listing;
use crate::pool::Wanted;
use crate::result::{RequestStats, RequestSummary, RetryCounts, TransferResult, TransferStatus};
use crate::retry::request;
use crate::scheduler::Scheduler;
use crate::source::{Source, open_endless};
use crate::store::{Attributes, Failure, Kind, ObjectMeta, PartBody, Upload};
use crate::verify::UPLOAD_WORDS;

/// Largest size in bytes of a file that is sent with one request. For such a file, starting and committing an upload in
/// parts would take more time than parallel parts would save. If a store accepts only larger parts, larger files are
/// also sent with one request.
const SINGLE_BYTES: u64 = 512 << 10;
/// Time in seconds after which connections for parts are opened ahead, if the first answer has not arrived yet. A store
/// that answers sooner is low-latency, and needs no such connections. The value is four times [`model::NEAR_S`],
/// because the first request may also open a TLS connection, which takes two more round trips.
const NEAR_S: f64 = 4.0 * model::NEAR_S;

/// Assumed speed at which a store assembles parts, as a multiple of the lowest accepted speed of a connection. It
/// determines the timeout of the commit. If the timeout were too short, a second commit would be sent during the first
/// commit, and delay it.
const ASSEMBLY_SPEED: u64 = 256;

/// The expected size and checksum of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    pub bytes: u64,
    pub crc64: u64,
}

/// The upload of one object: its destination, the object that it replaces, and the result so far.
pub(crate) struct ObjectUpload<'a> {
    pub manager: &'a TransferManager,
    pub to: &'a Location,
    pub gate: PartGate,
    /// The object that had this name before the upload, as the store described it.
    pub before: Listing,
    latency_s: f64,
    /// The modification time of the file; `None` for a stream.
    modified: Option<SystemTime>,
    pub began: Instant,
    pub result: TransferResult,
}

impl TransferManager {
    /// Stores a file. A file of unknown length, such as a pipe or a file of `/proc`, is sent as a stream. If
    /// [`Settings::journals`](crate::Settings::journals) is set, an interrupted upload can be resumed; if not, its
    /// parts are removed.
    ///
    /// # Errors
    /// Fails if the file is the object itself, if it can't be read, or if it changes during the transfer. Also fails if
    /// the store refuses the object, or if an earlier attempt can't be resumed although the settings require it.
    pub fn put_file<'a>(&'a self, path: &'a Path, to: &'a Location) -> BoxFuture<'a, Result<TransferResult>> {
        self.put_planned(path, to, &Listing::Unknown)
    }

    /// Stores a file like [`Self::put_file`]. `listing` is the information about the object `to` from a list of the
    /// store.
    pub(crate) fn put_planned<'a>(
        &'a self,
        path: &'a Path,
        to: &'a Location,
        listing: &'a Listing,
    ) -> BoxFuture<'a, Result<TransferResult>> {
        Box::pin(async move {
            let began = Instant::now();
            to.check_differs_from(path)?;
            self.check_attributes(to)?;
            if let Some(mut stream) = self.or_stopped(open_endless(path)).await?? {
                let result = self.put_stream(&mut stream, to).await?;
                return Ok(TransferResult { path: path.into(), ..result });
            }
            let source = Source::open(path)?;
            self.check_memory_for(source.bytes, to)?;
            let is_single = source.bytes <= self.single_bytes(to);
            let head = match self.known_target(&source, to, listing, is_single) {
                Some(listing) => (listing, 0.0),
                None => tokio::select! {
                    head = self.head(to) => described(head?),
                    never = self.connect_ahead(source.bytes, to) => match never {},
                },
            };
            let mut upload = ObjectUpload::new(self, path, to, head, began);
            (upload.result.bytes, upload.modified) = (source.bytes, source.modified);
            if let Some(status) = self.reason_to_skip_put(&source, upload.before.meta()).await? {
                return Ok(upload.skip(status));
            }
            let put = match is_single {
                true => upload.put_whole(&source).await.map(|meta| (meta, Journal::default())),
                false => upload.put_parts(&source).await,
            };
            match put {
                // The store creates the object only if it does not exist.
                Err(Error::Store(Failure { kind: Kind::Changed, .. })) if self.settings.no_clobber => {
                    Ok(upload.skip(TransferStatus::Exists))
                }
                put => {
                    let (meta, journal) = put?;
                    upload.finish(&meta, journal).await
                }
            }
        })
    }

    /// Returns the largest size in bytes of a file that is sent with one request.
    fn single_bytes(&self, to: &Location) -> u64 {
        let limits = to.store.limits();
        let bytes = if self.permits.as_ref().is_some_and(|permits| permits.pool().sends_whole()) {
            WHOLE_BYTES
        } else {
            SINGLE_BYTES.max(limits.min_part_bytes)
        };
        // A single request must not exceed the limits on memory and bandwidth. It may only do so if the store accepts
        // no smaller parts.
        let limited_bytes = self.max_limited_bytes().filter(|_| !self.gate_to(&*to.store).in_slices);
        let most = self.settings.memory_bytes.min(limited_bytes.unwrap_or(u64::MAX)).max(limits.min_part_bytes);
        bytes.min(most).min(limits.max_put_bytes)
    }

    /// Returns `listing`, which describes the object that a file replaces, if the upload needs no more information.
    /// Returns `None` if the store must be asked.
    ///
    /// A list has no checksums. An object of the same size that is not older than the file counts as a copy of the file.
    /// The checksum decides only if the object is older, or with [`Settings::verify`].
    fn known_target(&self, source: &Source, to: &Location, listing: &Listing, is_single: bool) -> Option<Listing> {
        let Settings { no_clobber, skip_unchanged, verify, .. } = self.settings;
        let is_enough = match listing {
            Listing::There(_) if no_clobber => true,
            Listing::There(there) if skip_unchanged && there.bytes == source.bytes => {
                !verify && there.modified.zip(source.modified).is_some_and(|(there, here)| there >= here)
            }
            _ if !is_single => false,
            Listing::There(_) => true,
            Listing::Missing => true,
            Listing::Unknown => !skip_unchanged && (!no_clobber || to.store.refuses_to_replace()),
        };
        is_enough.then(|| listing.clone())
    }

    /// Returns the description of the object that a planned upload would replace. Sends a request if `listing` does not
    /// contain enough to decide whether the file is skipped.
    pub(crate) async fn planned_target(
        &self,
        source: &Source,
        to: &Location,
        listing: &Listing,
    ) -> Result<Option<ObjectMeta>> {
        match self.known_target(source, to, listing, true) {
            Some(Listing::Missing) => Ok(None),
            Some(Listing::There(there)) => Ok(Some(there)),
            _ => Ok(self.head(to).await?.0),
        }
    }

    /// Opens the connections for the parts while the first request, which describes the object, waits for its answer.
    /// Starts after a short wait, because a low-latency store needs no such connections. Opens none if the answer may
    /// show that nothing has to be sent.
    async fn connect_ahead(&self, bytes: u64, to: &Location) -> Infallible {
        if !self.settings.no_clobber && !self.settings.skip_unchanged && bytes > SINGLE_BYTES {
            sleep(Duration::from_secs_f64(NEAR_S)).await;
            let constraints = self.constraints(to.store.limits());
            let Shape { part_bytes, concurrency } = constraints.fitting(SINGLE_BYTES / 8, constraints.max_concurrency);
            let parts = bytes / part_bytes;
            // One connection is open already, because the first request uses it.
            to.store.connect(concurrency.min(parts as usize).saturating_sub(1)).await;
        }
        std::future::pending().await
    }

    /// Returns the reason to skip the upload of `source`; `None` if it must be sent. `there` describes the object that
    /// has the name already.
    pub(crate) async fn reason_to_skip_put(
        &self,
        source: &Source,
        there: Option<&ObjectMeta>,
    ) -> Result<Option<TransferStatus>> {
        let Some(there) = there else { return Ok(None) };
        if self.settings.no_clobber {
            return Ok(Some(TransferStatus::Exists));
        }
        if !self.settings.skip_unchanged || there.bytes != source.bytes {
            return Ok(None);
        }
        let is_same = match self.or_stopped(source.equals(there)).await?? {
            Some(is_same) => is_same,
            // If the store has no checksum, an object that is not older than the file counts as a copy of the file.
            None => there.modified.zip(source.modified).is_some_and(|(there, here)| there >= here),
        };
        Ok(is_same.then_some(TransferStatus::Unchanged))
    }

    /// Checks whether the request with the failure `lost` was carried out although its answer was lost. Returns the
    /// object if it has the expected content. `before` describes the object that had the name earlier.
    async fn find_committed(
        &self,
        to: &Location,
        content: Content,
        before: &Listing,
        lost: &Failure,
    ) -> Result<Option<ObjectMeta>> {
        let (there, latency_s) = match self.head_strict(to).await {
            Err(Error::Store(Failure { kind: Kind::Denied, .. })) => {
                let unknown = "these credentials do not permit checking whether the object was stored";
                return Err(Failure::new(lost.kind, format!("{}: {unknown}", lost.message)).into());
            }
            head => head?,
        };
        let Some(there) = there.filter(|there| there.bytes == content.bytes) else { return Ok(None) };
        // If the object may have had the same bytes before the upload, its checksum does not show whether the request
        // was carried out. A request also sets attributes, so the caller repeats it, unless the upload no longer
        // exists.
        let may_be_as_before = match before {
            Listing::Unknown => true,
            Listing::Missing => false,
            Listing::There(before) => {
                before.etag.is_some() && (&before.etag, before.modified) == (&there.etag, there.modified)
            }
        };
        if may_be_as_before && lost.kind == Kind::Unanswered {
            return Ok(None);
        }
        if let Some(crc64) = there.crc64 {
            return Ok((crc64 == content.crc64).then_some(there));
        }
        // The upload that calls this function may hold the only request that the planner permits. So reading the object
        // back does not wait for the planner.
        let read = Self { permits: None, ..self.clone() }.read_back(to, &there, latency_s).await?;
        Ok((read == content.crc64).then_some(there))
    }
}

impl<'a> ObjectUpload<'a> {
    /// Creates the state of an upload, from the description of the existing object and the latency of the store.
    pub fn new(
        manager: &'a TransferManager,
        path: &Path,
        to: &'a Location,
        (before, latency_s): (Listing, f64),
        began: Instant,
    ) -> Self {
        let result = TransferResult::new(path, to, 0, TransferStatus::Transferred);
        Self { manager, to, gate: manager.gate_to(&*to.store), before, latency_s, modified: None, began, result }
    }

    /// Returns the result of an upload that is skipped.
    pub fn skip(self, status: TransferStatus) -> TransferResult {
        TransferResult { status, elapsed_s: self.began.elapsed().as_secs_f64(), ..self.result }
    }

    /// Verifies the object in the store, and returns the result of the upload. Removes the journal, unless the
    /// verification is interrupted: the same command then verifies the object without sending it again.
    ///
    /// With [`Settings::no_clobber`] or [`Settings::skip_unchanged`], the journal is removed before the verification.
    /// Otherwise the journal would stay forever after an interruption, because the same command then skips the object.
    pub async fn finish(mut self, meta: &ObjectMeta, mut journal: Journal) -> Result<TransferResult> {
        if self.manager.settings.no_clobber || self.manager.settings.skip_unchanged {
            std::mem::take(&mut journal).remove()?;
        }
        self.result.elapsed_s = self.began.elapsed().as_secs_f64();
        self.result.etag = meta.etag.clone();
        let verified = self.manager.verify(self.to, meta, &mut self.result, UPLOAD_WORDS).await;
        if matches!(verified, Ok(()) | Err(Error::Corrupted(_))) {
            journal.remove()?;
        }
        verified.map(|()| self.result)
    }

    /// Sends a whole file with a single request.
    async fn put_whole(&mut self, source: &Source) -> Result<ObjectMeta> {
        let manager = self.manager;
        let permission = match &manager.permits {
            Some(permits) => Some(manager.or_stopped(Arc::clone(permits).permit(Wanted::whole(source.bytes))).await?),
            None => None,
        };
        let memory = manager.or_stopped(self.gate.admit(source.bytes)).await??;
        let body = source.read(0, source.bytes, &manager.gate.buffers).await?;
        source.check()?;
        let (meta, stats) = self.put_single(body).await?;
        drop(memory);
        permission.into_iter().for_each(|permission| permission.complete(&stats));
        Ok(meta)
    }

    /// Stores the object with a single request, whose body is the whole object.
    pub async fn put_single(&mut self, body: PartBody) -> Result<(ObjectMeta, RequestStats)> {
        let (manager, to, gate) = (self.manager, self.to, &self.gate);
        let options = manager.put_options(&to.name, self.modified);
        let content = Content { bytes: body.bytes.len() as u64, crc64: body.crc64 };
        let request = request!(attempt = gate, to.store.put(&to.name, body.clone(), &options, &mut attempt));
        let put = || gate.retry.run(gate.timeout_bytes(content.bytes), Kind::Unanswered, &request);
        let mut requests = Vec::new();
        let meta = manager.gently(to, self.commit_with_recovery(content, false, &mut requests, put)).await?;
        (self.result.bytes, self.result.parts, self.result.crc64) = (content.bytes, 1, Some(content.crc64));
        self.result.requests = RequestSummary::new(&requests);
        let answered = requests.last().copied().unwrap_or_default();
        Ok((meta, if requests.len() == 1 { answered } else { RequestStats { first_try: None, ..answered } }))
    }

    /// Sends a file in parts. Resumes an earlier attempt if possible and permitted.
    async fn put_parts(&mut self, source: &Source) -> Result<(ObjectMeta, Journal)> {
        let resume = self.manager.settings.resume;
        match self.try_parts(source, resume).await {
            Err(Error::CantResume(reason)) if resume == Resume::IfSame => {
                self.result.restart_reason = Some(reason);
                self.try_parts(source, Resume::Never).await
            }
            put => put,
        }
    }

    async fn try_parts(&mut self, source: &Source, resume: Resume) -> Result<(ObjectMeta, Journal)> {
        let (manager, to, start) = (self.manager, self.to, Instant::now());
        let (from, destination) = (source.side(), Side::of_object(to, self.before.meta()));
        let is_fresh = resume == Resume::Never;
        let (mut journal, JournalContents { mut header, mut parts }) =
            Journal::open(manager.settings.journals.as_deref(), &from.address, &to.address, is_fresh)?;
        let named = |id: String| Upload { name: to.name.clone(), id };
        if is_fresh {
            if let Some(header) = header.take()
                && manager.abort(to, &named(header.upload.clone())).await.is_err()
            {
                // With the note, a later command can abort the upload.
                let Settings { notes, journals, .. } = &manager.settings;
                drop(Journal::note(notes.as_deref().or(journals.as_deref()), header));
            }
            journal.clear()?;
            parts = Default::default();
        }
        if let Some(header) = &header {
            if header.source == from && header.destination != destination && parts.is_complete(from.bytes) {
                // If only the answer to the commit was lost, the object has changed because of our own commit.
                let content = Content { bytes: from.bytes, crc64: parts.crc64() };
                let lost = Failure::new(Kind::Unanswered, format!("{}: an answer was lost", to.address));
                if let Some(meta) = manager.find_committed(to, content, &Listing::Missing, &lost).await? {
                    (self.result.resumed_bytes, self.result.crc64) = (from.bytes, Some(content.crc64));
                    return Ok((meta, journal));
                }
            }
            header.check_unchanged(&from, &destination)?;
            header.check_attributes(&manager.put_options(&to.name, self.modified).attributes)?;
        }
        let is_resumed = header.is_some();
        let upload = match header {
            Some(header) => named(header.upload),
            None => self.start(&mut journal, from, destination).await?,
        };
        let used = parts.next().index;
        let (limits, started_bytes) = (to.store.limits(), parts.next().offset);
        let permits = manager.permits(started_bytes, self.began, || {
            let mut constraints = manager.constraints(limits);
            constraints.limits.max_parts = limits.max_parts.saturating_sub(used).max(1);
            let rest_bytes = source.bytes - started_bytes;
            let mut planner = Planner::new(rest_bytes, constraints, Some(self.latency_s));
            // The commit is assumed to take as long as the start of the upload. A resumed upload was started earlier,
            // so its commit is assumed to take the latency.
            planner.set_fixed_s(2.0 * start.elapsed().as_secs_f64().max(self.latency_s));
            planner
        });
        let mut scheduler = Scheduler::new(manager, permits, limits, source.bytes, parts, journal);
        let (source, store, gate) = (source.clone(), Arc::clone(&to.store), self.gate.clone());
        let mut sender = Sender { source: source.clone(), store, upload: upload.clone(), gate };
        let sent = manager.gently(to, scheduler.run(&mut sender, &*manager.observer, &to.name)).await;
        let committed = match sent.and_then(|()| source.check()) {
            Ok(()) => self.commit(&upload, &scheduler.parts, used > 0).await,
            Err(error) => Err(error),
        };
        scheduler.report(&mut self.result);
        let journal = scheduler.journal;
        match committed {
            // A note is only needed while the upload exists.
            Ok(meta) if !journal.is_resumable() => journal.remove().map(|()| (meta, Journal::default())),
            Ok(meta) => Ok((meta, journal)),
            Err(Error::Store(Failure { kind: Kind::Missing, message, .. })) if is_resumed => {
                Err(Error::CantResume(format!("{message}: the store may have removed the upload")))
            }
            Err(error) => {
                // If the file has changed, or another process has created the object, the parts are useless.
                let exists =
                    matches!(error, Error::Store(Failure { kind: Kind::Changed, .. })) && manager.settings.no_clobber;
                if !journal.is_resumable() || exists || matches!(error, Error::SourceChanged { .. }) {
                    self.discard(&upload, journal).await?;
                }
                Err(error)
            }
        }
    }

    /// Assembles the object from its parts. `was_sent` is `true` if an earlier process may have sent the commit.
    pub async fn commit(&self, upload: &Upload, parts: &PartList, was_sent: bool) -> Result<ObjectMeta> {
        let (to, retry) = (self.to, &self.gate.retry);
        let (options, tokens) = (self.manager.put_options(&to.name, self.modified), parts.tokens());
        let content = Content { bytes: parts.done_bytes(), crc64: parts.crc64() };
        let request =
            request!(attempt = self.gate, to.store.commit(upload, &tokens, content.crc64, &options, &mut attempt));
        let commit = || retry.run(content.bytes / ASSEMBLY_SPEED, Kind::Unanswered, &request);
        self.commit_with_recovery(content, was_sent, &mut Vec::new(), commit).await
    }

    /// Calls `send`, which sends the request that creates an object. If an answer was lost, first checks whether the
    /// object exists. `was_lost` is `true` if an earlier process may have lost an answer.
    pub async fn commit_with_recovery<F>(
        &self,
        content: Content,
        mut was_lost: bool,
        requests: &mut Vec<RequestStats>,
        mut send: impl FnMut() -> F,
    ) -> Result<ObjectMeta>
    where
        F: Future<Output = Result<(ObjectMeta, RequestStats), Failure>>,
    {
        let (settings, mut failing_since) = (&self.manager.settings, None::<Instant>);
        for number in 1.. {
            let began = Instant::now();
            let failure = match self.manager.or_stopped(send()).await? {
                Ok((meta, stats)) => {
                    requests.push(stats);
                    return Ok(meta);
                }
                Err(failure) => failure,
            };
            // If the answer to an earlier request was lost, that request may have succeeded. This request then fails,
            // because the upload no longer exists, or because the object exists already.
            let is_echo = was_lost && matches!(failure.kind, Kind::Missing | Kind::Changed);
            if failure.kind != Kind::Unanswered && !is_echo {
                return Err(failure.into());
            }
            // The store may answer other requests, which show that nothing was stored. So the time begins with the
            // first lost answer, and not with the latest success. Times in which bytes moved do not count.
            let moving = failure.moved.map_or(Duration::ZERO, |moved| moved.saturating_duration_since(began));
            let failing_since = *failing_since.insert(failing_since.map_or_else(Instant::now, |since| since + moving));
            let before = match &self.before {
                // After a second request, the object is almost certainly the new one. A request that must not replace
                // an object can only have created a new one. Without retries, the object is assumed to be the new one.
                Listing::Unknown if number > 1 || settings.no_clobber || settings.retries == 0 => &Listing::Missing,
                before => before,
            };
            match self.manager.find_committed(self.to, content, before, &failure).await? {
                Some(meta) => return Ok(meta),
                None if is_echo => return Err(failure.into()),
                None if !self.gate.retry.permits(number, failing_since) => {
                    let lost = if number == 1 { "the answer was" } else { &format!("{number} answers in a row were") };
                    let message = format!("{} ({lost} lost, and nothing was stored)", failure.message);
                    return Err(Failure::new(failure.kind, message).into());
                }
                None => {
                    was_lost = true;
                    let retries = RetryCounts { broken: 1, ..RetryCounts::default() };
                    requests.push(RequestStats { retries, ..RequestStats::default() });
                }
            }
            self.manager.or_stopped(sleep(self.gate.retry.back_off(number))).await?;
        }
        unreachable!("a request is given up after a limited time")
    }

    /// Starts an upload in parts, and records it with its source and destination in the journal. If there is no journal
    /// file, records it in a note, so that a later command can abort it.
    pub async fn start(&self, journal: &mut Journal, source: Side, destination: Side) -> Result<Upload> {
        let (manager, to) = (self.manager, self.to);
        let options = manager.put_options(&to.name, self.modified);
        let request = request!(attempt = self.gate, to.store.start_upload(&to.name, &options, &mut attempt));
        let (upload, _) = manager.or_stopped(self.gate.retry.run(0, Kind::Transient(None), request)).await??;
        let mut header = JournalHeader::new(source, destination, upload.id.clone(), to.store.location());
        header.attributes = Some(options.attributes.fingerprint());
        if !journal.is_resumable() {
            *journal = Journal::note(manager.settings.notes.as_deref(), header);
        } else if let Err(error) = journal.start(header) {
            // The upload could not be recorded, so no later command could abort it.
            let _ = manager.abort(to, &upload).await;
            return Err(error);
        }
        Ok(upload)
    }

    /// Aborts an upload that can't be resumed, and removes its journal or note. If the abort fails, keeps the journal
    /// or note, so that a later command can abort the upload.
    pub async fn discard(&self, upload: &Upload, journal: Journal) -> Result<()> {
        if self.manager.abort(self.to, upload).await.is_ok() { journal.remove() } else { Ok(()) }
    }
}

/// Converts the description of an object to a [`Listing`]. Does not change the latency that comes with it.
pub(crate) fn described((meta, latency_s): (Option<ObjectMeta>, f64)) -> (Listing, f64) {
    (meta.map_or(Listing::Missing, Listing::There), latency_s)
}

impl Side {
    /// Returns the address, size and version of an object, as the source or the destination of a transfer.
    pub fn of_object(object: &Location, meta: Option<&ObjectMeta>) -> Self {
        let modified = |meta: &ObjectMeta| meta.modified.map(|modified| format!("{modified:?}"));
        Self {
            address: object.address.clone(),
            version: meta.and_then(|meta| meta.etag.clone().or_else(|| modified(meta))),
            bytes: meta.map_or(0, |meta| meta.bytes),
        }
    }
}

impl JournalHeader {
    /// Returns an error if the source or the destination has changed since the interrupted attempt.
    pub fn check_unchanged(&self, source: &Side, destination: &Side) -> Result<()> {
        let sides = [(&self.source, source), (&self.destination, destination)];
        let Some((_, now)) = sides.into_iter().find(|(before, now)| before != now) else { return Ok(()) };
        let reason = format!("{} has changed since an earlier attempt was interrupted", now.address);
        Err(Error::CantResume(reason))
    }

    /// Returns an error if the object would get other attributes than those with which the interrupted upload was
    /// started.
    pub fn check_attributes(&self, attributes: &Attributes) -> Result<()> {
        if self.attributes.is_none_or(|started| started == attributes.fingerprint()) {
            return Ok(());
        }
        let reason = format!("an earlier attempt to upload to {} had other metadata", self.destination.address);
        Err(Error::CantResume(reason))
    }
}
