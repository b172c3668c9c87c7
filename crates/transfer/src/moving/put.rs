//! A file into a store.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::flow::{Flow, Work};
use super::patience::Went;
use super::requests::{Log, Requests};
use super::source::{self, Source};
use super::{Gate, Moved, Mover, Place, Resume, Skipped, forget};
use crate::BoxFuture;
use crate::crc64::crc64_of_blocks;
use crate::error::Error;
use crate::journal::{self, Begun, Journal, Part, Piece, Recorded, Side, end_of};
use crate::model::{self, Pilot, Room, Shape};
use crate::store::{Attempt, Block, Failure, Kind, Meta, PutOptions, Upload};

/// A file of so many bytes is not cut up, for begin and commit would cost more.
const SINGLE_BYTES: u64 = 512 << 10;
/// What is near answers sooner, even if it takes a new connection with keys, which is two round trips more.
const NEAR_S: f64 = 4.0 * model::NEAR_S;
/// How often an answer that was lost is looked up.
const LOOKS: u32 = 8;

/// What is compared, in words.
pub(super) const PUT: [&str; 3] = ["what was stored", "what was sent", "what was read back"];

/// Blocks are put together so many times faster than the slowest are sent, at least: a second attempt while the first
/// goes on would only be in its way.
const TOGETHER: u64 = 256;

/// What is sent: bytes that lie in a file, or in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub bytes: u64,
    pub crc64: u64,
}

impl Mover {
    /// Puts a file into a store. What has no length that is known, a pipe or a file of `/proc`, goes as a stream does.
    ///
    /// # Errors
    /// When the file is the object itself, when it can't be read or changes meanwhile, when the store refuses it, when
    /// what an earlier attempt left behind is of another file. What was sent of it is remembered if there is a folder
    /// of journals, and given up if not.
    pub fn put_file<'a>(&'a self, path: &'a Path, to: &'a Place) -> BoxFuture<'a, Result<Moved, Error>> {
        Box::pin(async move {
            let began = Instant::now();
            to.other_than(path)?;
            if let Some(mut stream) = self.or_stopped(source::endless(path)).await?? {
                return self.put_stream(&mut stream, to).await;
            }
            let source = Source::open(path)?;
            self.has_memory_for(source.bytes, to)?;
            let (before, latency_s) = tokio::select! {
                asked = self.head(to) => asked?,
                never = self.connect(&source, to) => match never {},
            };
            if let Some(skipped) = self.is_skipped(&source, before.as_ref()).await? {
                let elapsed_s = began.elapsed().as_secs_f64();
                return Ok(Moved { bytes: source.bytes, elapsed_s, skipped: Some(skipped), ..Moved::default() });
            }
            let limits = to.store.limits();
            let single_bytes =
                SINGLE_BYTES.min(self.terms.memory_bytes).max(limits.min_block_bytes).min(limits.max_put_bytes);
            let (mut moved, meta) = if source.bytes <= single_bytes {
                let permit = self.gate_to(&*to.store).pass(source.bytes).await?;
                let block = source.clone().block(0, source.bytes, &self.buffers).await?;
                source.check()?;
                let sum = Sum { bytes: source.bytes, crc64: block.crc64 };
                let (meta, requests) = self.gently(to, self.put_block(to, block, before.as_ref())).await?;
                drop(permit);
                (Moved { bytes: sum.bytes, blocks: 1, crc64: Some(sum.crc64), requests, ..Moved::default() }, meta)
            } else {
                let put = |resume| self.put_blocks(&source, to, before.as_ref(), (began, latency_s), resume);
                match put(self.terms.resume).await {
                    Err(Error::CantResume { what }) if self.terms.resume == Resume::IfSame => {
                        let (moved, meta) = put(Resume::Never).await?;
                        (Moved { begun_anew: Some(what), ..moved }, meta)
                    }
                    put => put?,
                }
            };
            moved.elapsed_s = began.elapsed().as_secs_f64();
            self.verify(to, &meta, &mut moved, PUT).await?;
            Ok(moved)
        })
    }

    /// Makes the connections that blocks are going to need while a store that is far away is asked what it has. Who
    /// waits for its answer to know whether anything is moved needs none.
    async fn connect(&self, source: &Source, to: &Place) -> Infallible {
        if !self.terms.no_clobber && !self.terms.skip_unchanged && source.bytes > SINGLE_BYTES {
            tokio::time::sleep(Duration::from_secs_f64(NEAR_S)).await;
            let room = self.room(to.store.limits());
            let Shape { block_bytes, concurrency } = room.fitting(SINGLE_BYTES / 8, room.max_concurrency);
            let blocks = source.bytes / block_bytes;
            // One is made for the question.
            to.store.connect(concurrency.min(blocks as usize).saturating_sub(1)).await;
        }
        std::future::pending().await
    }

    /// Puts an object by one request.
    pub(super) async fn put_block(
        &self,
        to: &Place,
        block: Block,
        before: Option<&Meta>,
    ) -> Result<(Meta, Requests), Error> {
        let options = self.put_options(&to.name);
        let sum = Sum { bytes: block.bytes.len() as u64, crc64: block.crc64 };
        let gate = self.gate_to(&*to.store);
        let request = || async {
            let mut seen = gate.attempt();
            (to.store.put(&to.name, block.clone(), &options, &mut seen).await, seen)
        };
        let (meta, log) =
            self.settle(to, sum, (before, false), || gate.ask(sum.bytes, Kind::Unanswered, request)).await?;
        Ok((meta, log.requests()))
    }

    /// Carries out what makes an object. Where the answer is lost, or may have been by one who did not live to hear it,
    /// what is there is looked at before anything is repeated.
    async fn settle<F>(
        &self,
        to: &Place,
        sum: Sum,
        (before, mut was_lost): (Option<&Meta>, bool),
        mut carry_out: impl FnMut() -> F,
    ) -> Result<(Meta, Log), Error>
    where
        F: Future<Output = Result<(Meta, Went), Failure>>,
    {
        let mut log = Log::default();
        for look in 1.. {
            let failure = tokio::select! {
                made = carry_out() => match made {
                    Ok((meta, went)) => {
                        log.add(went.phases, went.retried);
                        return Ok((meta, log));
                    }
                    Err(failure) => failure,
                },
                () = self.stop.asked() => return Err(Error::Stopped),
            };
            // After a lost answer, "no such upload" and "it is there" are what a success that was not heard of leaves.
            let is_echo = was_lost && matches!(failure.kind, Kind::Missing | Kind::Changed);
            if failure.kind != Kind::Unanswered && !is_echo {
                return Err(failure.into());
            }
            match self.look_up(to, sum, before, &failure).await? {
                Some(meta) => return Ok((meta, log)),
                None if look >= LOOKS => {
                    let said = format!("{} ({LOOKS} answers in a row were lost, and nothing was stored)", failure.said);
                    return Err(Failure { said, ..failure }.into());
                }
                None if is_echo || !self.patience.may_retry() => return Err(failure.into()),
                None => {
                    was_lost = true;
                    log.lost();
                }
            }
            tokio::select! {
                () = self.patience.wait(look) => {}
                () = self.stop.asked() => return Err(Error::Stopped),
            }
        }
        unreachable!("looks end")
    }

    /// What is there now, if it is what was sent.
    async fn look_up(
        &self,
        to: &Place,
        sum: Sum,
        before: Option<&Meta>,
        lost: &Failure,
    ) -> Result<Option<Meta>, Error> {
        let (there, latency_s) = match self.ask_head(to).await {
            Err(Error::Store(Failure { kind: Kind::Denied, .. })) => {
                let said = format!("{}: whether it was stored may not be looked up with these credentials", lost.said);
                return Err(Failure { said, ..lost.clone() }.into());
            }
            asked => asked?,
        };
        let Some(there) = there.filter(|there| there.bytes == sum.bytes) else { return Ok(None) };
        if let Some(crc64) = there.crc64 {
            return Ok((crc64 == sum.crc64).then_some(there));
        }
        // To send it again settles that, unless the upload has gone: the same bytes may have the same ETag as before.
        let is_as_before = before.is_some_and(|before| before.etag.is_some() && before.etag == there.etag);
        if is_as_before && lost.kind == Kind::Unanswered {
            return Ok(None);
        }
        let read = self.read_back(to, &there, latency_s).await?;
        Ok((read == sum.crc64).then_some(there))
    }

    pub(super) async fn is_skipped(&self, source: &Source, there: Option<&Meta>) -> Result<Option<Skipped>, Error> {
        let Some(there) = there else { return Ok(None) };
        if self.terms.no_clobber {
            return Ok(Some(Skipped::Exists));
        }
        if !self.terms.skip_unchanged || there.bytes != source.bytes {
            return Ok(None);
        }
        let is_same = match there.crc64 {
            Some(crc64) => source.sum().await? == crc64,
            // What was written after the file was is taken for the file.
            None => there.modified.zip(source.modified).is_some_and(|(there, here)| there >= here),
        };
        Ok(is_same.then_some(Skipped::Unchanged))
    }

    async fn put_blocks(
        &self,
        source: &Source,
        to: &Place,
        before: Option<&Meta>,
        (began, latency_s): (Instant, f64),
        resume: Resume,
    ) -> Result<(Moved, Meta), Error> {
        let options = self.put_options(&to.name);
        let begin = Instant::now();
        let (mut work, again, next, is_resumed) = match self.open_put(source, to, before, (&options, resume)).await? {
            Opened::Going { put, again, next, is_resumed } => (*put, again, next, is_resumed),
            Opened::Stored(meta, crc64) => {
                let (bytes, resumed_bytes, crc64) = (source.bytes, source.bytes, Some(crc64));
                return Ok((Moved { bytes, resumed_bytes, crc64, ..Moved::default() }, meta));
            }
        };
        let resumed_bytes: u64 = work.parts.values().map(|(piece, _)| piece.bytes).sum();
        let room = self.room(to.store.limits());
        let used = next.index;
        let mut limits = room.limits;
        limits.max_blocks = limits.max_blocks.saturating_sub(used).max(1);
        let mut pilot =
            Pilot::new(source.bytes - next.offset, Room { limits, ..room }, Some(latency_s), self.terms.seed);
        // Where nothing has to be begun, to commit still is a request.
        pilot.fixed(2.0 * begin.elapsed().as_secs_f64().max(latency_s));
        let least_s = self.least_s(source.bytes - resumed_bytes);
        let mut flow =
            Flow { pilot, began, again, next, done_bytes: resumed_bytes, log: Log::default(), blocks: 0, least_s };
        let moving = flow.run(&mut work, &self.stop, &*self.observer, (&to.name, source.bytes));
        let done = self.gently(to, moving).await;
        let done = match done.and_then(|()| source.check()) {
            Ok(()) => {
                let sum = Sum { bytes: source.bytes, crc64: crc64_of(&work.parts) };
                let meta = self.commit(to, &work.upload, &work.parts, sum, (before, used > 0)).await;
                meta.map(|meta| (meta, sum.crc64))
            }
            Err(error) => Err(error),
        };
        let Put { upload, journal, note, .. } = work;
        match done {
            Ok((meta, crc64)) => {
                forget(note);
                journal.map_or(Ok(()), Journal::remove)?;
                let plan = flow.first();
                let (bytes, blocks, requests) = (source.bytes, flow.blocks, flow.log.requests());
                let crc64 = Some(crc64);
                Ok((Moved { bytes, resumed_bytes, blocks, plan, crc64, requests, ..Moved::default() }, meta))
            }
            Err(Error::Store(Failure { kind: Kind::Missing, said })) if is_resumed => {
                Err(Error::CantResume { what: format!("{said}: the store may have given up what was begun") })
            }
            Err(error) => {
                // If the file has changed, nothing of this upload can be used again.
                let is_useless = matches!(error, Error::SourceChanged { .. });
                if journal.is_none() || is_useless {
                    self.give_up(to, &upload, note).await;
                    journal.map_or(Ok(()), Journal::remove)?;
                }
                Err(error)
            }
        }
    }

    /// The upload that is gone on with, or a new one; the pieces to send again; and where the next one begins.
    async fn open_put(
        &self,
        source: &Source,
        to: &Place,
        before: Option<&Meta>,
        (options, resume): (&PutOptions, Resume),
    ) -> Result<Opened, Error> {
        let place = to.clone();
        let destination = side_of(to, before);
        let from = source.side();
        let mut opened = match &self.terms.journals {
            Some(folder) => Some(Journal::open(folder, &from.place, &to.shown, resume == Resume::Never)?),
            None => None,
        };
        let named = |id: String| Upload { name: to.name.clone(), id };
        if resume == Resume::Never
            && let Some((journal, recorded)) = &mut opened
        {
            if let Some(begun) = std::mem::take(recorded).begun {
                let _ = self.abort(to, &named(begun.upload)).await;
            }
            journal.clear()?;
        }
        let put = |upload, (journal, note), parts| Put {
            source: source.clone(),
            place,
            upload,
            journal,
            note,
            parts,
            gate: self.gate_to(&*to.store),
        };
        if let Some((journal, Recorded { begun: Some(begun), pieces })) = opened {
            let next = end_of(&pieces);
            let (done, again) = split(pieces);
            // What looks like somebody else's object may be ours, if only the answer to the commit was lost.
            if begun.source == from && begun.destination != destination && again.is_empty() && next.offset == from.bytes
            {
                let sum = Sum { bytes: from.bytes, crc64: crc64_of(&done) };
                let lost = Failure { kind: Kind::Unanswered, said: format!("{}: an answer was lost", to.shown) };
                if let Some(meta) = self.look_up(to, sum, None, &lost).await? {
                    journal.remove()?;
                    return Ok(Opened::Stored(meta, sum.crc64));
                }
            }
            resumable(&begun, &from, &destination)?;
            let put = Box::new(put(named(begun.upload), (Some(journal), None), done));
            return Ok(Opened::Going { put, again, next, is_resumed: true });
        }
        let upload = self.begin(to, options).await?;
        let mut journal = opened.map(|(journal, _)| journal);
        let note = match &mut journal {
            Some(journal) => {
                let (id, reached) = (upload.id.clone(), to.store.reached());
                let (source, temporary) = (from, None);
                let begun = Begun { version: journal::VERSION, source, destination, upload: id, reached, temporary };
                if let Err(error) = journal.begin(begun) {
                    // Nobody would remember it.
                    let _ = self.abort(to, &upload).await;
                    return Err(error);
                }
                None
            }
            None => self.note(from, to, before, &upload),
        };
        let (again, next) = (VecDeque::new(), Piece { index: 0, offset: 0, bytes: 0 });
        let put = Box::new(put(upload, (journal, note), BTreeMap::new()));
        Ok(Opened::Going { put, again, next, is_resumed: false })
    }

    pub(super) async fn begin(&self, to: &Place, options: &PutOptions) -> Result<Upload, Error> {
        let request = || async {
            let mut seen = Attempt::default();
            (to.store.begin(&to.name, options, &mut seen).await, seen)
        };
        Ok(self.ask(Kind::Transient(None), request).await?.0)
    }

    /// Makes the object of its parts. What was there before, and whether this may have been asked for already, decide
    /// what a refusal means.
    pub(super) async fn commit(
        &self,
        to: &Place,
        upload: &Upload,
        parts: &BTreeMap<usize, (Piece, Part)>,
        sum: Sum,
        before: (Option<&Meta>, bool),
    ) -> Result<Meta, Error> {
        let options = self.put_options(&to.name);
        let tokens: Vec<String> = parts.values().map(|(_, part)| part.token.clone()).collect();
        let request = || async {
            let mut seen = Attempt::default();
            (to.store.commit(upload, &tokens, sum.crc64, &options, &mut seen).await, seen)
        };
        let bytes = sum.bytes / TOGETHER;
        Ok(self.settle(to, sum, before, || self.patience.ask(bytes, Kind::Unanswered, request)).await?.0)
    }

    /// Compares what is stored with what was sent: what the store says of it, and, if asked, what it gives back.
    pub(super) async fn verify(
        &self,
        to: &Place,
        meta: &Meta,
        moved: &mut Moved,
        [stored, ours, again]: [&str; 3],
    ) -> Result<(), Error> {
        let Some(crc64) = moved.crc64 else { return Ok(()) };
        let differs = |said: u64, how: &str| Error::Corrupted {
            what: format!("{}: {how} has the CRC-64 {said:016x}, and {ours} {crc64:016x}", to.shown),
        };
        if let Some(said) = meta.crc64.filter(|said| *said != crc64) {
            return Err(differs(said, stored));
        }
        if self.terms.verify {
            let (there, latency_s) = self.head(to).await?;
            let there = there.unwrap_or_else(|| meta.clone());
            if there.bytes != moved.bytes {
                let what = format!("{}: {again} has {} bytes, and {ours} {}", to.shown, there.bytes, moved.bytes);
                return Err(Error::Corrupted { what });
            }
            let read = self.read_back(to, &there, latency_s).await?;
            if read != crc64 {
                return Err(differs(read, again));
            }
            moved.verified = true;
        }
        Ok(())
    }
}

/// What of a side identifies it.
pub(super) fn side_of(place: &Place, meta: Option<&Meta>) -> Side {
    let modified = |meta: &Meta| meta.modified.map(|modified| format!("{modified:?}"));
    Side {
        place: place.shown.clone(),
        version: meta.and_then(|meta| meta.etag.clone().or_else(|| modified(meta))),
        bytes: meta.map_or(0, |meta| meta.bytes),
    }
}

/// Neither side may have changed.
pub(super) fn resumable(begun: &Begun, source: &Side, destination: &Side) -> Result<(), Error> {
    let changed = [(&begun.source, source), (&begun.destination, destination)];
    match changed.into_iter().find(|(was, is)| was != is) {
        Some((_, is)) => {
            let what = format!("{} has changed since an earlier attempt was broken off", is.place);
            Err(Error::CantResume { what })
        }
        None => Ok(()),
    }
}

/// Those that are done, and those that are not.
pub(super) fn split(
    pieces: BTreeMap<usize, (Piece, Option<Part>)>,
) -> (BTreeMap<usize, (Piece, Part)>, VecDeque<Piece>) {
    let (mut done, mut again) = (BTreeMap::new(), VecDeque::new());
    for (index, (piece, part)) in pieces {
        match part {
            Some(part) => drop(done.insert(index, (piece, part))),
            None => again.push_back(piece),
        }
    }
    (done, again)
}

/// The sum of the whole.
pub(super) fn crc64_of(parts: &BTreeMap<usize, (Piece, Part)>) -> u64 {
    crc64_of_blocks(parts.values().map(|(piece, part)| (piece.bytes, part.crc64)))
}

/// How a put in blocks begins.
enum Opened {
    /// With an upload, pieces to send again, where the next one begins, and whether an earlier attempt has begun it.
    Going { put: Box<Put>, again: VecDeque<Piece>, next: Piece, is_resumed: bool },
    /// It was stored, by somebody who did not live to hear of it.
    Stored(Meta, u64),
}

/// An upload, and what of it is there.
struct Put {
    source: Source,
    place: Place,
    upload: Upload,
    journal: Option<Journal>,
    /// Where there is no journal.
    note: Option<Journal>,
    parts: BTreeMap<usize, (Piece, Part)>,
    gate: Gate,
}

impl Work for Put {
    type Done = Part;

    fn start(
        &mut self,
        piece: Piece,
    ) -> Result<impl Future<Output = Result<(Part, Went), Error>> + Send + 'static, Error> {
        if let Some(journal) = &mut self.journal {
            journal.cut(piece)?;
        }
        let (source, store, gate) = (self.source.clone(), Arc::clone(&self.place.store), self.gate.clone());
        let upload = self.upload.clone();
        Ok(async move {
            let _room = gate.pass(piece.bytes).await?;
            let block = source.block(piece.offset, piece.bytes, &gate.buffers).await?;
            let request = || async {
                let mut seen = gate.attempt();
                (store.put_block(&upload, piece.index, block.clone(), &mut seen).await, seen)
            };
            // The same block again is the same block.
            let (token, went) = gate.ask(piece.bytes, Kind::Transient(None), request).await?;
            Ok((Part { token, crc64: block.crc64, crc32c: None }, went))
        })
    }

    fn finish(&mut self, piece: Piece, part: Part) -> Result<(), Error> {
        if let Some(journal) = &mut self.journal {
            journal.done(piece.index, &part)?;
        }
        self.parts.insert(piece.index, (piece, part));
        Ok(())
    }
}
