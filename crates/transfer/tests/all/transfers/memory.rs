//! A store in memory. A script determines which requests fail, hang, lose their answer or change bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use ascertain_transfer::{
    Attempt, Failure, Kind, Limits, Location, ObjectMeta, PartBody, PutOptions, RangeWriter, Store, Upload, crc64,
};
use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

/// Interval between two records of the progress of a request.
const PROGRESS: Duration = Duration::from_secs(5);

/// A request as the script and the log describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    Head,
    /// A request for a range that starts at this byte.
    Get(u64),
    Put,
    Begin,
    /// A request that sends the part with this index.
    Part(usize),
    Commit,
    Abort,
    List,
}

/// A fault that the script causes for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request fails without being carried out.
    Fails(Kind),
    /// The request is carried out, but the answer is lost.
    Loses(Kind),
    /// The request never gets an answer.
    Hangs,
    /// The request is carried out, but one byte is changed.
    Changes,
    /// The request takes longer by this time, in which its bytes move.
    Delays(Duration),
    /// The bytes of the request move for this time. Then its answer is lost without being carried out.
    Vanishes(Duration),
}

/// Returns the fault for the n-th request of a kind, where n starts at 0.
pub type Script = Box<dyn FnMut(Call, usize) -> Option<Fault> + Send>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub bytes: Bytes,
    pub version: u64,
    pub content_type: Option<String>,
}

/// A simulated network path to the store. Bytes are sent one after the other, and the answer then takes a round trip.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub bytes_per_s: f64,
    pub round_trip: Duration,
}

pub struct State {
    pub objects: BTreeMap<String, Object>,
    pub uploads: BTreeMap<String, BTreeMap<usize, Bytes>>,
    pub calls: Vec<Call>,
    times: HashMap<Call, usize>,
    /// Total size in bytes of the parts in flight: now, and the maximum so far.
    pub under_way: (u64, u64),
    pub sent_bytes: u64,
    /// Number of connections that were opened in advance.
    pub connected: usize,
    /// The prefixes that were listed.
    pub listed: Vec<String>,
    version: u64,
    /// The time when the path will have carried all bytes that were sent.
    free: Option<Instant>,
}

#[derive(Clone)]
pub struct Memory {
    pub state: Arc<Mutex<State>>,
    /// The script. It has a lock of its own, because it may access the store.
    pub script: Arc<Mutex<Script>>,
    pub limits: Limits,
    pub knows_crc64: bool,
    /// The sizes and checksums of the parts of each object's upload; empty if the store does not keep them.
    pub part_sums: Vec<(u64, u64)>,
    /// `true` if objects have an ETag, which changes when they change.
    pub identifies: bool,
    /// `true` if the store reports when each object was stored. Only objects with an ETag have this time.
    pub has_dates: bool,
    pub has_stable_tokens: bool,
    /// Number of objects on one page of a list.
    pub page_objects: usize,
    /// Names of objects that the store can't read: it answers every GET request with status 503.
    pub unreadable: BTreeSet<String>,
    /// The path to the store; `None` for answers without delay.
    pub path: Option<Path>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memory")
    }
}

/// Limits that permit parts of any size.
pub const ANY: Limits =
    Limits { min_part_bytes: 1, max_part_bytes: 1 << 40, max_parts: 50_000, max_put_bytes: 1 << 40 };

impl Memory {
    pub fn new(limits: Limits) -> Self {
        let state = State {
            objects: BTreeMap::new(),
            uploads: BTreeMap::new(),
            calls: Vec::new(),
            times: HashMap::new(),
            under_way: (0, 0),
            sent_bytes: 0,
            connected: 0,
            listed: Vec::new(),
            version: 0,
            free: None,
        };
        let script: Script = Box::new(|_, _| None);
        let (state, script) = (Arc::new(Mutex::new(state)), Arc::new(Mutex::new(script)));
        Self {
            state,
            script,
            limits,
            knows_crc64: true,
            part_sums: Vec::new(),
            identifies: true,
            has_dates: true,
            has_stable_tokens: true,
            page_objects: usize::MAX,
            unreadable: BTreeSet::new(),
            path: None,
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn script(&self, script: impl FnMut(Call, usize) -> Option<Fault> + Send + 'static) {
        *self.script.lock().unwrap() = Box::new(script);
    }

    pub fn place(&self, name: &str) -> Location {
        Location { store: Arc::new(self.clone()), name: name.into(), address: format!("memory://{name}") }
    }

    pub fn insert(&self, name: &str, bytes: &[u8]) {
        let mut state = self.lock();
        state.version += 1;
        let version = state.version;
        let object = Object { bytes: Bytes::copy_from_slice(bytes), version, content_type: None };
        state.objects.insert(name.into(), object);
    }

    pub fn bytes(&self, name: &str) -> Option<Bytes> {
        self.lock().objects.get(name).map(|object| object.bytes.clone())
    }

    pub fn count(&self, is_meant: impl Fn(&Call) -> bool) -> usize {
        self.lock().calls.iter().filter(|call| is_meant(call)).count()
    }

    /// Clears the log of requests.
    pub fn forget(&self) {
        let mut state = self.lock();
        state.calls.clear();
        state.times.clear();
    }

    /// Returns how long new bytes have to wait until the path has carried those before them.
    pub fn queue(&self) -> Duration {
        self.lock().free.map_or(Duration::ZERO, |free| free.saturating_duration_since(Instant::now()))
    }

    /// Waits until the path has carried `bytes` more bytes, and then for the time `delay`. The bytes of all requests
    /// move at the same time.
    async fn carry(&self, bytes: u64, delay: Duration, seen: &Attempt) {
        let round_trip = self.path.map_or(Duration::ZERO, |path| path.round_trip);
        let takes = self.path.map_or(Duration::ZERO, |path| Duration::from_secs_f64(bytes as f64 / path.bytes_per_s));
        if round_trip + takes + delay == Duration::ZERO {
            return;
        }
        let gone = {
            let mut state = self.lock();
            let now = Instant::now();
            let gone = state.free.map_or(now, |free| free.max(now)) + takes;
            state.free = Some(gone);
            gone
        };
        let end = gone + round_trip + delay;
        while Instant::now() < end {
            sleep_until(end.min(Instant::now() + PROGRESS)).await;
            seen.record_progress();
        }
    }

    fn meta(&self, name: &str, object: &Object) -> ObjectMeta {
        ObjectMeta {
            name: name.into(),
            bytes: object.bytes.len() as u64,
            etag: self.identifies.then(|| object.version.to_string()),
            modified: (self.identifies && self.has_dates)
                .then(|| SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000 + object.version)),
            crc64: self.knows_crc64.then(|| crc64(&object.bytes)),
            ..ObjectMeta::default()
        }
    }

    /// Carries out a request with `bytes` bytes, or causes the fault that the script returns.
    async fn perform<T>(
        &self,
        (call, bytes): (Call, u64),
        seen: &mut Attempt,
        work: impl FnOnce(&Self, &mut State, bool) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let times = {
            let mut state = self.lock();
            state.calls.push(call);
            let times = state.times.entry(call).or_default();
            *times += 1;
            *times - 1
        };
        let fault = (self.script.lock().unwrap())(call, times);
        let failed = |kind| Err(Failure::new(kind, format!("{call:?} failed as the script says")));
        if fault == Some(Fault::Hangs) {
            std::future::pending::<()>().await;
        }
        // Gives other tasks the chance to run.
        tokio::task::yield_now().await;
        let delay = match fault {
            Some(Fault::Delays(delay) | Fault::Vanishes(delay)) => delay,
            _ => Duration::ZERO,
        };
        self.carry(bytes, delay, seen).await;
        if let Some(Fault::Fails(kind)) = fault {
            if matches!(kind, Kind::Transient(Some(_))) {
                seen.status = Some(503);
            }
            return failed(kind);
        }
        if let Some(Fault::Vanishes(_)) = fault {
            return failed(Kind::Unanswered);
        }
        let done = work(self, &mut self.lock(), fault == Some(Fault::Changes));
        if let Some(Fault::Loses(kind)) = fault { failed(kind) } else { done }
    }
}

fn failure<T>(kind: Kind, message: &str) -> Result<T, Failure> {
    Err(Failure::new(kind, message))
}

fn changed(bytes: Bytes, is_changed: bool) -> Bytes {
    if !is_changed || bytes.is_empty() {
        return bytes;
    }
    let mut bytes = bytes.to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bytes.into()
}

impl State {
    fn carries(&mut self, bytes: u64) {
        self.under_way.0 += bytes;
        self.under_way.1 = self.under_way.1.max(self.under_way.0);
    }

    fn insert(
        &mut self,
        store: &Memory,
        name: &str,
        bytes: Bytes,
        options: &PutOptions,
    ) -> Result<ObjectMeta, Failure> {
        if options.no_clobber && self.objects.contains_key(name) {
            return failure(Kind::Changed, "it is there");
        }
        self.version += 1;
        let object = Object { bytes, version: self.version, content_type: options.attributes.content_type.clone() };
        let meta = store.meta(name, &object);
        self.objects.insert(name.into(), object);
        Ok(meta)
    }
}

#[async_trait]
impl Store for Memory {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn has_stable_tokens(&self) -> bool {
        self.has_stable_tokens
    }

    async fn connect(&self, connections: usize) {
        self.lock().connected += connections;
    }

    async fn head(&self, name: &str, seen: &mut Attempt) -> Result<Option<ObjectMeta>, Failure> {
        let head =
            |store: &Self, state: &mut State, _| Ok(state.objects.get(name).map(|object| store.meta(name, object)));
        self.perform((Call::Head, 0), seen, head).await
    }

    async fn get_range(
        &self,
        of: &ObjectMeta,
        mut into: RangeWriter,
        seen: &mut Attempt,
    ) -> Result<RangeWriter, Failure> {
        let range = into.range();
        if self.unreadable.contains(&of.name) {
            self.lock().calls.push(Call::Get(range.start));
            seen.status = Some(503);
            return failure(Kind::Transient(None), "it can't be read now");
        }
        let get = |_: &Self, state: &mut State, is_changed| match state.objects.get(&of.name) {
            Some(object) if of.etag.as_ref().is_none_or(|etag| *etag == object.version.to_string()) => {
                let part = object.bytes.slice(range.start as usize..range.end as usize);
                let bytes = changed(part, is_changed);
                into.add(&bytes).map(|()| into)
            }
            Some(_) => failure(Kind::Changed, "it has changed"),
            None => failure(Kind::Missing, "it is gone"),
        };
        let bytes = range.end - range.start;
        self.lock().carries(bytes);
        let done = self.perform((Call::Get(range.start), bytes), seen, get).await;
        self.lock().under_way.0 -= bytes;
        done
    }

    async fn get_whole(
        &self,
        of: &ObjectMeta,
        into: RangeWriter,
        seen: &mut Attempt,
    ) -> Result<(RangeWriter, ObjectMeta), Failure> {
        let into = self.get_range(of, into, seen).await?;
        let meta = self.lock().objects.get(&of.name).map(|object| self.meta(&of.name, object));
        Ok((into, meta.filter(|meta| meta.etag == of.etag).unwrap_or(of.clone())))
    }

    async fn part_sums(&self, _of: &ObjectMeta, _seen: &mut Attempt) -> Result<Vec<(u64, u64)>, Failure> {
        Ok(self.part_sums.clone())
    }

    async fn put(
        &self,
        name: &str,
        body: PartBody,
        options: &PutOptions,
        seen: &mut Attempt,
    ) -> Result<ObjectMeta, Failure> {
        let bytes = body.bytes.len() as u64;
        let put = |store: &Self, state: &mut State, is_changed| {
            state.sent_bytes += bytes;
            state.insert(store, name, changed(body.bytes, is_changed), options)
        };
        self.perform((Call::Put, bytes), seen, put).await
    }

    async fn start_upload(&self, _name: &str, _options: &PutOptions, seen: &mut Attempt) -> Result<Upload, Failure> {
        let begin = |_: &Self, state: &mut State, _| {
            state.version += 1;
            let upload = Upload { name: _name.into(), id: state.version.to_string() };
            state.uploads.insert(upload.id.clone(), BTreeMap::new());
            Ok(upload)
        };
        self.perform((Call::Begin, 0), seen, begin).await
    }

    async fn put_part(
        &self,
        upload: &Upload,
        index: usize,
        body: PartBody,
        seen: &mut Attempt,
    ) -> Result<String, Failure> {
        let bytes = body.bytes.len() as u64;
        self.lock().carries(bytes);
        let put = |_: &Self, state: &mut State, is_changed| {
            state.sent_bytes += bytes;
            assert_eq!(crc64(&body.bytes), body.crc64);
            let Some(blocks) = state.uploads.get_mut(&upload.id) else {
                return failure(Kind::Missing, "no such upload");
            };
            blocks.insert(index, changed(body.bytes, is_changed));
            Ok(format!("token-{index}"))
        };
        let done = self.perform((Call::Part(index), bytes), seen, put).await;
        self.lock().under_way.0 -= bytes;
        done
    }

    async fn commit(
        &self,
        upload: &Upload,
        blocks: &[String],
        _crc64: u64,
        options: &PutOptions,
        seen: &mut Attempt,
    ) -> Result<ObjectMeta, Failure> {
        let commit = |store: &Self, state: &mut State, is_changed| {
            let Some(parts) = state.uploads.get(&upload.id) else {
                return failure(Kind::Missing, "no such upload");
            };
            let mut whole = Vec::new();
            let mut last = None;
            for token in blocks {
                let index: usize = token.strip_prefix("token-").unwrap().parse().unwrap();
                assert!(last.replace(index).is_none_or(|last| last < index), "S3 wants them in order");
                whole.extend_from_slice(&parts[&index]);
            }
            let meta = state.insert(store, &upload.name, changed(whole.into(), is_changed), options)?;
            state.uploads.remove(&upload.id);
            Ok(meta)
        };
        self.perform((Call::Commit, 0), seen, commit).await
    }

    async fn abort(&self, upload: &Upload, seen: &mut Attempt) -> Result<(), Failure> {
        let abort = |_: &Self, state: &mut State, _| {
            state.uploads.remove(&upload.id);
            Ok(())
        };
        self.perform((Call::Abort, 0), seen, abort).await
    }

    async fn list(&self, prefix: &str, seen: &mut Attempt) -> Result<Vec<ObjectMeta>, Failure> {
        Memory { page_objects: usize::MAX, ..self.clone() }.list_page(prefix, None, seen).await.map(|(page, _)| page)
    }

    /// The token of a page is the name of the last object on the page before it.
    async fn list_page(
        &self,
        prefix: &str,
        page: Option<&str>,
        seen: &mut Attempt,
    ) -> Result<(Vec<ObjectMeta>, Option<String>), Failure> {
        let list = |store: &Self, state: &mut State, _| {
            state.listed.push(prefix.into());
            let is_on_page = |name: &str| name.starts_with(prefix) && page.is_none_or(|page| name > page);
            let mut named = state.objects.iter().filter(|(name, _)| is_on_page(name));
            let page: Vec<_> =
                named.by_ref().take(store.page_objects).map(|(name, object)| store.meta(name, object)).collect();
            let next = named.next().and(page.last()).map(|meta| meta.name.clone());
            let without_sums = page.into_iter().map(|meta| ObjectMeta { crc64: None, ..meta });
            Ok((without_sums.collect(), next))
        };
        self.perform((Call::List, 0), seen, list).await
    }
}
