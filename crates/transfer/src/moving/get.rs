//! An object into a file, or a stream: ranges in parallel.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ascertain_sys::files::{self, Draft, Lasting};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::flow::{Flow, Work};
use super::patience::Went;
use super::put::{crc64_of, resumable, side_of, split};
use super::requests::Log;
use super::{Gate, Moved, Mover, Place, Resume, Skipped};
use crate::BoxFuture;
use crate::buffers::{Filling, Target};
use crate::crc64::{crc32c_of_blocks, crc64};
use crate::error::Error;
use crate::journal::{self, Begun, Journal, Part, Piece, Recorded, Side, Temporary, end_of};
use crate::local::check_room;
use crate::model::Pilot;
use crate::names::{beneath, shown};
use crate::store::{Attempt, Block, Failure, Kind, Limits, Meta, Reached};

/// What is compared, in words.
const GET: [&str; 3] = ["what the store has", "what came", "what was read again"];

/// Ranges that may be of any size, as many as there are.
fn ranges(limits: Limits) -> Limits {
    Limits { min_block_bytes: 1, max_block_bytes: u64::MAX, max_blocks: usize::MAX, ..limits }
}

impl Mover {
    /// Gets an object into a file, which has its name once it is whole, and not before. A symbolic link is followed, and a
    /// device or a pipe is written to as it is. A runtime of one thread waits for the disk with all that it does.
    ///
    /// # Errors
    /// When there is no such object, when it is the file itself or changes meanwhile, when the file can't be written,
    /// when what an earlier attempt left behind is of another object and was to be gone on with.
    pub fn get_file<'a>(&'a self, from: &'a Place, path: &'a Path) -> BoxFuture<'a, Result<Moved, Error>> {
        Box::pin(async move {
            from.other_than(path)?;
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                // What is missing of it is made once it is known that there is something to get.
                if !folder.exists() {
                    self.size(from).await?;
                    fs::create_dir_all(folder).map_err(Error::file("can't make", folder))?;
                }
            }
            match files::target(path).map_err(Error::file("can't write", path))? {
                files::Target::Direct(_) if self.terms.no_clobber => {
                    Ok(Moved { skipped: Some(Skipped::Exists), ..Moved::default() })
                }
                files::Target::Direct(mut file) => self.get_stream(from, &mut file).await,
                files::Target::File { path, .. } => self.get_at(from, &Spot::of(path)?).await,
            }
        })
    }

    /// Gets an object into a file below a folder, by a name that comes from elsewhere: no link there is followed.
    pub(super) async fn get_beneath(&self, from: &Place, root: &Root, name: &str) -> Result<Moved, Error> {
        let path = beneath(&root.path, name)?;
        from.other_than(&path)?;
        let within = Path::new(name).parent().unwrap_or(Path::new(""));
        let folder = files::make_folder_beneath(&root.folder, within).map_err(|error| {
            let place = root.path.join(within);
            let is_link = error.kind() == io::ErrorKind::NotADirectory || place.is_symlink();
            let error = if is_link { io::Error::other("a link or a file is in its place") } else { error };
            Error::file("can't make the folder", &place)(error)
        })?;
        let name = path.file_name().unwrap_or_default().to_os_string();
        self.get_at(from, &Spot { folder, name, path }).await
    }

    async fn get_at(&self, from: &Place, spot: &Spot) -> Result<Moved, Error> {
        match self.get_once(from, spot, self.terms.resume).await {
            Err(Error::CantResume { what }) if self.terms.resume == Resume::IfSame => {
                let moved = self.get_once(from, spot, Resume::Never).await?;
                Ok(Moved { begun_anew: Some(what), ..moved })
            }
            got => got,
        }
    }

    async fn get_once(&self, from: &Place, spot: &Spot, resume: Resume) -> Result<Moved, Error> {
        let began = Instant::now();
        self.has_memory(0, from)?;
        let (meta, latency_s) = match self.existing(from).await {
            Err(Error::Store(Failure { kind: Kind::Unsized, .. })) => return self.get_unsized(from, spot).await,
            existing => existing?,
        };
        let elapsed_s = || began.elapsed().as_secs_f64();
        if let Some(skipped) = self.is_there(&meta, &spot.path).await? {
            let skipped = Some(skipped);
            return Ok(Moved { bytes: meta.bytes, elapsed_s: elapsed_s(), skipped, ..Moved::default() });
        }
        let mut download = match self.open_get(from, &meta, spot, resume)? {
            Opened::Going(download) => download,
            Opened::Stored(crc64) => {
                let (bytes, elapsed_s) = (meta.bytes, elapsed_s());
                return Ok(Moved { bytes, resumed_bytes: bytes, crc64: Some(crc64), elapsed_s, ..Moved::default() });
            }
        };
        let (again, next) = (std::mem::take(&mut download.again), download.next);
        let resumed_bytes = download.get.parts.values().map(|(piece, _)| piece.bytes).sum();
        let pilot = self.pilot(from, &meta, meta.bytes - next.offset, latency_s);
        let least_s = self.least_s(meta.bytes - resumed_bytes);
        let mut flow =
            Flow { pilot, began, again, next, done_bytes: resumed_bytes, log: Log::default(), blocks: 0, least_s };
        let done = self.flow(&mut flow, &mut download.get, from, &meta).await;
        let done = match done {
            Ok(()) => {
                let (bytes, blocks, plan) = (meta.bytes, flow.blocks, flow.first());
                let (crc64, begun_anew) = (Some(crc64_of(&download.get.parts)), download.begun_anew.take());
                let mut moved = Moved { bytes, resumed_bytes, blocks, plan, crc64, begun_anew, ..Moved::default() };
                (moved.elapsed_s, moved.requests) = (elapsed_s(), flow.log.requests());
                let verified = match download.get.check_crc32c() {
                    Ok(()) => self.verify(from, &meta, &mut moved, GET).await,
                    differs => differs,
                };
                verified.map(|()| moved)
            }
            Err(error) => Err(error),
        };
        let Download { get, mut draft, .. } = *download;
        let done = match done {
            Ok(moved) => publish(draft, &spot.path, &meta, self.terms.no_clobber).map(|()| moved),
            Err(error) => {
                // If the object has changed, or arrived corrupted, nothing of this download can be used again.
                let is_changed = matches!(&error, Error::Store(Failure { kind: Kind::Changed | Kind::Missing, .. }));
                let is_useless = is_changed || matches!(error, Error::Corrupted { .. });
                if get.journal.is_none() || is_useless {
                    draft.keep(false);
                    get.journal.map_or(Ok(()), Journal::remove)?;
                }
                return Err(error);
            }
        };
        let moved = done?;
        get.journal.map_or(Ok(()), Journal::remove)?;
        Ok(moved)
    }

    /// How many bytes an object has; none if the store tells only at its end.
    ///
    /// # Errors
    /// When there is no such object, or it can't be read.
    pub fn size<'a>(&'a self, from: &'a Place) -> BoxFuture<'a, Result<Option<u64>, Error>> {
        Box::pin(async move {
            match self.existing(from).await {
                Err(Error::Store(Failure { kind: Kind::Unsized, .. })) => Ok(None),
                existing => Ok(Some(existing?.0.bytes)),
            }
        })
    }

    /// Gets an object into a stream: ranges in parallel, handed on in their order.
    ///
    /// # Errors
    /// As [`Mover::get_file`]; what was written is not taken back.
    pub fn get_stream<'a>(
        &'a self,
        from: &'a Place,
        out: &'a mut (dyn Write + Send),
    ) -> BoxFuture<'a, Result<Moved, Error>> {
        Box::pin(async move {
            let began = Instant::now();
            self.has_memory(0, from)?;
            let (meta, latency_s) = match self.existing(from).await {
                Err(Error::Store(Failure { kind: Kind::Unsized, .. })) => return self.stream_unsized(from, out).await,
                existing => existing?,
            };
            let sink = Sink::InOrder { out, next: 0, waiting: BTreeMap::new() };
            let mut get = Get::new(from, &meta, sink, self.gate());
            let pilot = self.pilot(from, &meta, meta.bytes, latency_s);
            let mut flow = Flow::from_start(pilot, began, self.least_s(meta.bytes));
            self.flow(&mut flow, &mut get, from, &meta).await?;
            let (bytes, blocks, plan) = (meta.bytes, flow.blocks, flow.first());
            let mut moved = Moved { bytes, blocks, plan, crc64: Some(crc64_of(&get.parts)), ..Moved::default() };
            (moved.elapsed_s, moved.requests) = (began.elapsed().as_secs_f64(), flow.log.requests());
            get.check_crc32c()?;
            self.verify(from, &meta, &mut moved, GET).await?;
            Ok(moved)
        })
    }

    /// The sum of what a store gives back that answers after so long.
    pub(super) async fn read_back(&self, from: &Place, meta: &Meta, latency_s: f64) -> Result<u64, Error> {
        // With room of its own: who has it read back may hold what room there is.
        let mut gate = self.gate();
        gate.memory = Arc::new(Semaphore::new(gate.units as usize));
        let mut get = Get::new(from, meta, Sink::Nowhere, gate);
        let mut flow = Flow::from_start(self.pilot(from, meta, meta.bytes, latency_s), Instant::now(), 0.0);
        // It is not told of: the same bytes would be counted twice.
        self.gently(from, flow.run(&mut get, &self.stop, &(), (&from.name, meta.bytes))).await?;
        Ok(crc64_of(&get.parts))
    }

    pub(super) async fn existing(&self, from: &Place) -> Result<(Meta, f64), Error> {
        // Who may not read can't get: here that is said, and not taken for nothing.
        match self.ask_head(from).await? {
            (Some(meta), latency_s) => Ok((meta, latency_s)),
            (None, _) => {
                let what = match &from.store {
                    store if store.file(&from.name).is_some() => "file",
                    // HTTP, which has no buckets.
                    store if store.limits().max_put_bytes == 0 => "address at this server",
                    _ => "object, or no such bucket",
                };
                let said = format!("{}: there is no such {what}", from.shown);
                Err(Failure { kind: Kind::Missing, said }.into())
            }
        }
    }

    fn pilot(&self, from: &Place, meta: &Meta, bytes: u64, latency_s: f64) -> Pilot {
        let mut room = self.room(ranges(from.store.limits()));
        if from.store.in_order(meta) {
            room.max_concurrency = 1;
        }
        Pilot::new(bytes, room, Some(latency_s), self.terms.seed)
    }

    async fn flow(&self, flow: &mut Flow, get: &mut Get<'_>, from: &Place, meta: &Meta) -> Result<(), Error> {
        self.gently(from, flow.run(get, &self.stop, &*self.observer, (&from.name, meta.bytes))).await
    }

    pub(super) async fn is_there(&self, meta: &Meta, path: &Path) -> Result<Option<Skipped>, Error> {
        let Ok(there) = fs::symlink_metadata(path) else { return Ok(None) };
        if self.terms.no_clobber {
            return Ok(Some(Skipped::Exists));
        }
        if there.is_symlink() {
            // It is going to be replaced.
            return Ok(None);
        }
        if !there.is_file() {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "it is a folder or a device, and no file");
            return Err(Error::file("can't write", path)(error));
        }
        if !self.terms.skip_unchanged || there.len() != meta.bytes {
            return Ok(None);
        }
        let is_same = match meta.crc64 {
            Some(crc64) => super::source::Source::open(path)?.sum().await? == crc64,
            // A file that was got has the object's time.
            None => meta.modified.is_some() && there.modified().ok() == meta.modified,
        };
        Ok(is_same.then_some(Skipped::Unchanged))
    }

    fn open_get(&self, from: &Place, meta: &Meta, spot: &Spot, resume: Resume) -> Result<Opened, Error> {
        let path = &spot.path;
        let cant_write = |error| Error::file("can't write", path)(error);
        let source = side_of(from, Some(meta));
        let destination = side_of_file(path);
        // Of an object that nothing identifies nobody can say that it is still the same.
        let is_fresh = resume == Resume::Never || source.version.is_none();
        let mut opened = match &self.terms.journals {
            Some(folder) => Some(Journal::open(folder, &source.place, &destination.place, is_fresh)?),
            None => None,
        };
        if let Some((journal, recorded)) = opened.as_mut().filter(|_| is_fresh) {
            // Nobody goes on with the file: it is removed.
            std::mem::take(recorded).begun.iter().for_each(|begun| drop(spot.reopen(begun)));
            journal.clear()?;
        }
        let (mut journal, Recorded { begun, mut pieces }) = match opened {
            Some((journal, recorded)) => (Some(journal), recorded),
            None => (None, Recorded::default()),
        };
        let (mut found, mut begun_anew) = (None, None);
        if let Some(begun) = &begun {
            let (done, again) = split(pieces.clone());
            let is_whole = again.is_empty() && end_of(&pieces).offset == meta.bytes;
            // Until it is known that both sides are the same, the file is left as it is.
            found = spot.reopen(begun).ok();
            found.iter_mut().for_each(|draft| draft.keep(true));
            if begun.source == source && begun.destination != destination && is_whole && found.is_none() {
                let crc64 = crc64_of(&done);
                if sum(path, meta.bytes)? == Some(crc64) {
                    journal.map_or(Ok(()), Journal::remove)?;
                    return Ok(Opened::Stored(crc64));
                }
            }
            resumable(begun, &source, &destination)?;
            if found.is_none() {
                begun_anew = Some(format!("what was there of {} is gone", destination.place));
                pieces.clear();
                journal.as_mut().map_or(Ok(()), Journal::clear)?;
            }
        }
        let is_new = found.is_none();
        let mut draft = match found {
            Some(draft) => draft,
            None => Draft::create_in(&spot.folder, &spot.name).map_err(cant_write)?,
        };
        let there_bytes = draft.file().metadata().map_or(0, |there| there.blocks() * 512);
        check_room(path, there_bytes, meta.bytes).map_err(cant_write)?;
        // What a power failure took out of the file is got again.
        for (piece, part) in pieces.values_mut() {
            let is_there = |part: &Part| piece_sum(draft.file(), *piece).is_ok_and(|sum| sum == part.crc64);
            if !part.as_ref().is_some_and(is_there) {
                *part = None;
            }
        }
        draft.file().set_len(meta.bytes).map_err(cant_write)?;
        if let Some(journal) = journal.as_mut().filter(|_| is_new) {
            let (name, files::Identity { device, inode }) = draft.identity().map_err(cant_write)?;
            journal.begin(Begun {
                version: journal::VERSION,
                source,
                destination,
                upload: String::new(),
                reached: Reached::default(),
                temporary: Some(Temporary { name, device, inode }),
            })?;
            draft.keep(true);
        }
        let next = end_of(&pieces);
        let (parts, again) = split(pieces);
        let file = draft.file().try_clone().map_err(cant_write)?;
        let sink = Sink::File(Arc::new(Target::new(file, path.clone())));
        let get = Get { journal, parts, ..Get::new(from, meta, sink, self.gate()) };
        Ok(Opened::Going(Box::new(Download { get, again, next, draft, begun_anew })))
    }
}

/// A folder that names from elsewhere are below.
#[derive(Debug)]
pub(super) struct Root {
    folder: OwnedFd,
    path: PathBuf,
}

impl Root {
    /// The folder at a path that the user named, which is made if it is missing.
    pub fn make(path: &Path) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(Error::file("can't make", path))?;
        let folder = files::open_folder(path).map_err(Error::file("can't open", path))?;
        Ok(Self { folder, path: path.to_path_buf() })
    }
}

/// Where a file is made: an open folder and a name there. The path says the same, and is not followed.
#[derive(Debug)]
pub(crate) struct Spot {
    pub folder: OwnedFd,
    pub name: OsString,
    pub path: PathBuf,
}

impl Spot {
    /// The spot of a path without a symbolic link in its last part.
    pub fn of(path: PathBuf) -> Result<Self, Error> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = files::open_folder(folder).map_err(Error::file("can't open", folder))?;
        Ok(Self { folder, name: path.file_name().unwrap_or_default().to_os_string(), path })
    }

    /// The file of a download that was begun here, if it is still that file. It is removed when it is dropped.
    pub fn reopen(&self, begun: &Begun) -> io::Result<Draft> {
        let Temporary { name, device, inode } = begun.temporary.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let identity = files::Identity { device: *device, inode: *inode };
        Draft::reopen_in(&self.folder, &self.name, name, identity)
    }
}

/// Gives the file its time and its name.
pub(super) fn publish(draft: Draft, path: &Path, meta: &Meta, no_clobber: bool) -> Result<(), Error> {
    let last = || {
        if let Some(modified) = meta.modified {
            draft.file().set_modified(modified)?;
        }
        match no_clobber {
            true => draft.publish_new(Lasting::ThroughCrash),
            false => draft.publish(Lasting::ThroughCrash),
        }
    };
    last().map(drop).map_err(Error::file("can't write", path))
}

impl Flow {
    fn from_start(pilot: Pilot, began: Instant, least_s: f64) -> Self {
        let next = Piece { index: 0, offset: 0, bytes: 0 };
        Self { pilot, began, again: VecDeque::new(), next, done_bytes: 0, log: Log::default(), blocks: 0, least_s }
    }
}

/// How a get begins.
enum Opened {
    /// With pieces to get again, and where the next one begins.
    Going(Box<Download>),
    /// It has its name already, by somebody who did not live to say so.
    Stored(u64),
}

/// A file that is not whole yet.
struct Download {
    get: Get<'static>,
    again: VecDeque<Piece>,
    next: Piece,
    draft: Draft,
    /// Why nothing of an earlier attempt is used.
    begun_anew: Option<String>,
}

fn side_of_file(path: &Path) -> Side {
    let metadata = fs::metadata(path).ok();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    let place = shown(&folder.join(path.file_name().unwrap_or_default()));
    let modified = metadata.as_ref().and_then(|there| there.modified().ok());
    let version = modified.map(|modified| format!("{modified:?}"));
    Side { place, version, bytes: metadata.map_or(0, |there| there.len()) }
}

/// The sum of a file of so many bytes.
fn sum(path: &Path, bytes: u64) -> Result<Option<u64>, Error> {
    let cant = |error| Error::file("can't read", path)(error);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cant(error)),
    };
    if file.metadata().map_err(cant)?.len() != bytes {
        return Ok(None);
    }
    piece_sum(&file, Piece { index: 0, offset: 0, bytes }).map(Some).map_err(cant)
}

fn piece_sum(file: &File, piece: Piece) -> io::Result<u64> {
    const STEP_BYTES: u64 = 1 << 20;
    let (mut sums, mut buffer) = (Vec::new(), vec![0; STEP_BYTES.min(piece.bytes) as usize]);
    let end = piece.offset + piece.bytes;
    for offset in (piece.offset..end).step_by(STEP_BYTES as usize) {
        let bytes = STEP_BYTES.min(end - offset);
        let part = &mut buffer[..bytes as usize];
        file.read_exact_at(part, offset)?;
        sums.push((bytes, crc64(part)));
    }
    Ok(crate::crc64::crc64_of_blocks(sums))
}

/// Where ranges go.
enum Sink<'a> {
    File(Arc<Target>),
    InOrder {
        out: &'a mut (dyn Write + Send),
        next: usize,
        /// What came before its turn, which keeps its room.
        waiting: BTreeMap<usize, Kept>,
    },
    Nowhere,
}

/// What came of a range, which has room as long as it is kept.
pub(super) struct Kept {
    block: Block,
    crc32c: Option<u32>,
    _room: OwnedSemaphorePermit,
}

/// A download, and what of it is there.
struct Get<'a> {
    from: Place,
    meta: Arc<Meta>,
    sink: Sink<'a>,
    journal: Option<Journal>,
    parts: BTreeMap<usize, (Piece, Part)>,
    gate: Gate,
}

impl<'a> Get<'a> {
    fn new(from: &Place, meta: &Meta, sink: Sink<'a>, gate: Gate) -> Self {
        let (from, meta) = (from.clone(), Arc::new(meta.clone()));
        Self { from, meta, sink, journal: None, parts: BTreeMap::new(), gate }
    }

    /// Compares what came with what the store says of it where it knows CRC-32C.
    fn check_crc32c(&self) -> Result<(), Error> {
        let sums = self.parts.values().map(|(piece, part)| part.crc32c.map(|crc32c| (piece.bytes, crc32c)));
        // An older journal has none.
        let (Some(said), Some(sums)) = (self.meta.crc32c, sums.collect::<Option<Vec<_>>>()) else { return Ok(()) };
        let came = crc32c_of_blocks(sums);
        if came == said {
            return Ok(());
        }
        let ([store, ours, _], shown) = (GET, &self.from.shown);
        Err(Error::Corrupted { what: format!("{shown}: {store} has the CRC-32C {said:08x}, and {ours} {came:08x}") })
    }
}

impl Work for Get<'_> {
    type Done = Kept;

    fn start(
        &mut self,
        piece: Piece,
    ) -> Result<impl Future<Output = Result<(Kept, Went), Error>> + Send + 'static, Error> {
        if let Some(journal) = &mut self.journal {
            journal.cut(piece)?;
        }
        let (store, meta, gate) = (Arc::clone(&self.from.store), Arc::clone(&self.meta), self.gate.clone());
        let is_kept = matches!(self.sink, Sink::InOrder { .. });
        let target = if let Sink::File(target) = &self.sink { Some(Arc::clone(target)) } else { None };
        Ok(async move {
            let room = gate.pass(piece.bytes).await?;
            let range = piece.offset..piece.offset + piece.bytes;
            let request = || async {
                let mut seen = Attempt::default();
                let into = match &target {
                    Some(target) => Filling::in_file(target, range.clone()),
                    None if is_kept => Filling::in_memory(&gate.buffers, range.clone()),
                    None => Filling::nowhere(range.clone()),
                };
                let got = store.get_into(&meta, into.with_crc32c(meta.crc32c.is_some()), &mut seen).await;
                // A store that gives less than it was asked for has not given that.
                (got.and_then(Filling::whole), seen)
            };
            let asked = gate.patience.ask(piece.bytes, Kind::Transient(None), request).await;
            let of_file = |failure| match &target {
                Some(target) => target.error(failure),
                None => failure.into(),
            };
            let (got, went) = asked.map_err(of_file)?;
            Ok((Kept { crc32c: got.crc32c(), block: got.done(), _room: room }, went))
        })
    }

    fn finish(&mut self, piece: Piece, kept: Kept) -> Result<(), Error> {
        let part = Part { token: String::new(), crc64: kept.block.crc64, crc32c: kept.crc32c };
        if let Some(journal) = &mut self.journal {
            journal.done(piece.index, &part)?;
        }
        self.parts.insert(piece.index, (piece, part));
        if let Sink::InOrder { out, next, waiting } = &mut self.sink {
            waiting.insert(piece.index, kept);
            while let Some(kept) = waiting.remove(next) {
                out.write_all(&kept.block.bytes).map_err(Error::file("can't write", Path::new("the output")))?;
                *next += 1;
            }
            if waiting.is_empty() {
                out.flush().map_err(Error::file("can't write", Path::new("the output")))?;
            }
        }
        Ok(())
    }
}
