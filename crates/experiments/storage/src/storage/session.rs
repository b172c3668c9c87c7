//! The session: measures the arms, and deletes the objects that it has written.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ascertain_engine::experiment::{Arm, ArmId, Point, Sample, Samples, Session, Setup, Status, TargetError, Trial};
use ascertain_engine::finding::{FaultNoticed, FaultPlace, Remark};
use ascertain_experiments_networks::links::failed;
use ascertain_transfer::{Attempt, Environment};
use tokio::runtime::{Builder, Runtime};

use super::attempt::{Answer, Outcome, is_refused};
use super::budget::Budget;
use super::crossover::Crossover;
use super::faults::{self, CONTENT_BYTES, FaultProxy};
use super::levels::{self, budget, invalid, operation, range, scale, shape, store_names};
use super::limits::{LoadHistory, StreamHistory, alike};
use super::line;
use super::objects::{Contents, Incomplete, Objects};
use super::stores::TargetStore;
use super::streams::{Load, Shared};
use super::workload::{Shape, Workload};
use super::{
    ANSWERED, CLEANUP_FAILURES, CROSSOVER, ENCODED, FAULTS, FIRST_BYTE, GAP, INCOMPLETE, NOTICED, Operation, PHASE,
    REOPENED, REQUEST_CPU, REQUEST_RATE, THROUGHPUT, TIME, TOTAL_THROUGHPUT, WAIT,
};

pub struct StorageSession {
    arms: Vec<ArmState>,
    stores: Vec<StoreInUse>,
    contents: Contents,
    shared: Shared,
    /// The measurements of arms that differ only in the size and the number of streams.
    streams: BTreeMap<(String, Point), StreamHistory>,
    /// The measured rates of the client's line in bytes per second, by listener and direction.
    lines: BTreeMap<(String, bool), f64>,
    runtime: Runtime,
    setup: Setup,
    environment: Environment,
}

/// A store of the session.
struct StoreInUse {
    name: String,
    /// The operation and the scale of an emulated store. A store at an address is used for all operations and scales.
    point: (Option<Operation>, u64),
    objects: Rc<Objects>,
    /// `true` after the bucket was checked for a retention.
    is_checked: bool,
}

struct ArmState {
    arm: Arm,
    /// Indices of the arm's stores in [`StorageSession::stores`].
    stores: Vec<usize>,
    budgets: Vec<Option<Rc<Budget>>>,
    kind: ArmKind,
}

enum ArmKind {
    Requests {
        workload: Box<Workload>,
        incomplete: Incomplete,
        history: LoadHistory,
    },
    Crossover(Option<Box<Crossover>>),
    /// The findings of the fault check; empty before the check.
    Faults(Vec<FaultPlace>),
}

impl StorageSession {
    /// Opens the stores of the arms. Sends no request. `surroundings` are the folder for the journals of written
    /// objects, and the environment variables with credentials.
    pub fn open(arms: &[Arm], setup: &Setup, surroundings: (&Path, &Environment)) -> Result<Self, TargetError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let contents = Contents::new(arms.iter().map(levels::largest_object_bytes).max().unwrap_or(0), setup.seed);
        let (arms_open, stores, streams, lines) = (Vec::new(), Vec::new(), BTreeMap::new(), BTreeMap::new());
        let (setup, environment, shared) = (setup.clone(), surroundings.1.clone(), Shared::new(setup.stop.clone()));
        let mut session =
            Self { arms: arms_open, stores, contents, shared, streams, lines, runtime, setup, environment };
        for arm in arms {
            levels::check(arm).map_err(invalid)?;
            let names = store_names(arm);
            let stores =
                names.iter().map(|name| session.store(name, arm, surroundings)).collect::<Result<Vec<_>, _>>()?;
            let budgets = names.iter().map(|name| Ok(budget(arm, name)?.map(|(budget, _)| Rc::new(budget))));
            let budgets = budgets.collect::<Result<Vec<_>, String>>().map_err(invalid)?;
            let kind = match &*arm.variant {
                CROSSOVER => ArmKind::Crossover(None),
                FAULTS => ArmKind::Faults(Vec::new()),
                _ => {
                    let shape = shape(arm, levels::size(arm));
                    let content = shape.content(&session.contents);
                    let objects = session.stores[stores[0]].objects.clone();
                    let workload = Workload::new(objects, shape, content, budgets[0].clone(), session.shared.clone());
                    let (workload, history) = (Box::new(workload), LoadHistory::default());
                    ArmKind::Requests { workload, incomplete: Incomplete::default(), history }
                }
            };
            session.arms.push(ArmState { arm: arm.clone(), stores, budgets, kind });
        }
        Ok(session)
    }

    /// Returns the index of a store, which arms share.
    fn store(&mut self, name: &str, arm: &Arm, surroundings: (&Path, &Environment)) -> Result<usize, TargetError> {
        let (journals, environment) = surroundings;
        let point = match super::is_address(name) {
            true => (None, 1),
            false => (Some(operation(arm)), scale(arm)),
        };
        let is_same = |store: &StoreInUse| store.name == name && store.point == point;
        if let Some(index) = self.stores.iter().position(is_same) {
            return Ok(index);
        }
        let store = Arc::new(TargetStore::open(name, operation(arm), (point.1, self.setup.seed), environment)?);
        let objects = Objects::new(store, journals).map_err(|error| {
            TargetError::Failed(format!("could not create a journal of objects in {}: {error}", journals.display()))
        })?;
        let objects = Rc::new(objects);
        self.stores.push(StoreInUse { name: name.into(), point, objects, is_checked: false });
        Ok(self.stores.len() - 1)
    }

    /// Checks, before the first write, that objects can be deleted again and that no proxy is in between.
    fn check_store(&mut self, index: usize, is_read_only: bool) -> Result<(), TargetError> {
        let StoreInUse { name, objects, is_checked, .. } = &mut self.stores[index];
        let store = objects.store.clone();
        if *is_checked || store.is_emulated() {
            return Ok(());
        }
        if let Some(proxy) = store.store.proxy().map_err(failed)? {
            return Err(TargetError::Failed(format!(
                "{name}: the environment sets the proxy {proxy}, so the times would be the proxy's times; unset the \
                 proxy, or add the host to NO_PROXY"
            )));
        }
        if is_read_only {
            return Ok(());
        }
        if !store.is_writable() {
            return Err(TargetError::Failed(format!("{name} can only be read; name an object with `key`")));
        }
        let retention = self.runtime.block_on(store.store.retention(&mut Attempt::default())).map_err(failed)?;
        if let Some(rule) = retention {
            return Err(TargetError::Failed(format!(
                "{name} has {rule}, so objects could not be deleted; use another bucket"
            )));
        }
        *is_checked = true;
        Ok(())
    }

    /// Returns whether two stores of a pair lead to the same bucket: an object in the first one exists in the second.
    fn is_same_store(&self, first: usize, second: usize) -> bool {
        let [one, other] = [first, second].map(|index| &self.stores[index]);
        if first == second {
            return true;
        }
        if !super::is_address(&one.name) || !super::is_address(&other.name) {
            return false;
        }
        let probe = async {
            let [key] = &one.objects.keys(1, false).ok()?[..] else { return None };
            let store = one.objects.store.store.clone();
            let (body, mut attempt) = (self.contents.get(0, 0).whole.clone(), Attempt::default());
            let put = store.put(key, body, &Default::default(), &mut attempt).await;
            if put.as_ref().is_err_and(|failure| is_refused(failure.kind)) {
                one.objects.not_written(key);
                return None;
            }
            one.objects.written(key, attempt.version).ok()?;
            let seen = other.objects.store.store.clone().head(key, &mut Attempt::default()).await;
            let removed = one.objects.remove(key, put.is_ok()).await;
            (put.is_ok() && removed.is_ok()).then_some(matches!(seen, Ok(Some(_))))
        };
        self.runtime.block_on(probe).unwrap_or(false)
    }

    fn crossover(&self, arm: ArmId) -> Result<Crossover, TargetError> {
        let state = &self.arms[arm];
        let is_same = self.is_same_store(state.stores[0], state.stores[1]);
        let mut names = store_names(&state.arm);
        if names[0] == names[1] {
            names[1] += " (again)";
        }
        let [smallest, largest] = range(&state.arm);
        let [first, second] = names.try_into().map_err(|_| TargetError::Failed("`pair` needs two stores".into()))?;
        let goal = levels::goal_bytes_per_s(&state.arm);
        Crossover::new([first, second], [smallest, largest], is_same, goal, scale(&state.arm))
    }

    fn measure_arm(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let Self { arms, stores, contents, shared, streams, runtime, environment, .. } = self;
        let ArmState { arm, stores: used, budgets, kind } = &mut arms[arm];
        match kind {
            ArmKind::Requests { workload, incomplete, history } => {
                let load = runtime.block_on(workload.run())?;
                push(&load, &workload.shape, out);
                incomplete.add(&load);
                history.add(&load, &workload.shape);
                let of_arm = (levels::size(arm), workload.shape.concurrency as u64, scale(arm));
                streams.entry(alike(arm)).or_default().add(of_arm, history);
                Ok(())
            }
            ArmKind::Crossover(None) => Err(TargetError::Failed("the stores were not opened".into())),
            ArmKind::Crossover(Some(crossover)) => {
                let make = |store: usize, bytes: u64| {
                    let shape = Shape { concurrency: 1, requests: 1, rate_per_s: None, ..shape(arm, bytes) };
                    let (objects, content) = (stores[used[store]].objects.clone(), shape.content(contents));
                    Ok(Workload::new(objects, shape, content, budgets[store].clone(), shared.clone()))
                };
                crossover.measure(runtime, trial.seed, make, out)
            }
            ArmKind::Faults(places) => {
                let objects = &stores[used[0]].objects;
                if let Some(budget) = &budgets[0] {
                    budget.spend(&objects.store.name, FaultProxy::usage()).map_err(TargetError::Failed)?;
                }
                // The proxy runs on the runtime of the session, and ends with this value.
                let _entered = runtime.enter();
                let start = |target| FaultProxy::start(target).map(|proxy| (proxy.address, proxy));
                let (through, proxy) = objects.store.through(environment, start).map_err(TargetError::Failed)?;
                let content = contents.get(CONTENT_BYTES, 0);
                let checked = faults::check(objects, &*through.store, &proxy, (levels::checksum(arm), &content));
                *places = runtime.block_on(checked)?;
                for FaultPlace { place, noticed } in places {
                    let value = f64::from(u8::from(*noticed != FaultNoticed::Unnoticed));
                    let key = place.clone().into();
                    out.push_sample(Sample { metric: NOTICED, key, offset_ns: 0, value, status: Status::Ok });
                }
                Ok(())
            }
        }
    }

    /// Sets the time after which requests of a variant with a single store count as timed out.
    #[cfg(test)]
    pub fn set_limit(&mut self, limit: Duration) {
        for arm in &mut self.arms {
            if let ArmKind::Requests { workload, .. } = &mut arm.kind {
                workload.shape.limit = limit;
            }
        }
    }

    /// Returns the rate of the client's line for an arm, as measured or as given.
    fn line_bytes_per_s(&self, arm: &Arm) -> Option<f64> {
        let measured = levels::listener(arm).and_then(|line| self.lines.get(&line).copied());
        measured.or_else(|| levels::line_bytes_per_s(arm))
    }

    /// Measures the client's line, if the arm names a listener and no earlier arm has named it.
    fn measure_line(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let line = levels::listener(&self.arms[arm].arm).filter(|line| !self.lines.contains_key(line));
        let Some((listener, is_upload)) = line else { return Ok(()) };
        let token = line::token().map_err(invalid)?;
        let rate = line::rate_bytes_per_s(&listener, &token, is_upload, &self.setup.stop)?;
        self.lines.insert((listener, is_upload), rate);
        Ok(())
    }

    /// Returns the findings about an arm so far.
    pub fn remarks(&self, arm: ArmId) -> Vec<Remark> {
        let ArmState { arm, kind, .. } = &self.arms[arm];
        match kind {
            ArmKind::Requests { incomplete, history, .. } => {
                let line = self.line_bytes_per_s(arm);
                let limits = history.remark(line);
                // One of the arms that differ only by the number of streams has the finding about all of them.
                let streams = |arm: &Arm| arm.integer("concurrency").unwrap_or(1);
                let is_alike = |other: &&ArmState| {
                    alike(&other.arm) == alike(arm) && levels::size(&other.arm) == levels::size(arm)
                };
                let others = self.arms.iter().filter(is_alike);
                let has_most = others.map(|other| streams(&other.arm)).max() == Some(streams(arm));
                let of_arm = self.streams.get(&alike(arm)).filter(|_| has_most);
                let scaling = of_arm.and_then(|of_arm| of_arm.remark(levels::size(arm), line));
                [incomplete.remark(), limits, scaling].into_iter().flatten().collect()
            }
            ArmKind::Crossover(crossover) => crossover.iter().map(|crossover| crossover.remark()).collect(),
            ArmKind::Faults(places) if places.is_empty() => Vec::new(),
            ArmKind::Faults(places) => {
                vec![Remark::Faults { checksum: levels::text(arm, "checksum"), places: places.clone() }]
            }
        }
    }
}

impl Session for StorageSession {
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let is_read_only =
            matches!(&self.arms[arm].kind, ArmKind::Requests { workload, .. } if workload.shape.key.is_some());
        for index in self.arms[arm].stores.clone() {
            self.check_store(index, is_read_only)?;
        }
        self.measure_line(arm)?;
        if matches!(self.arms[arm].kind, ArmKind::Crossover(None)) {
            let crossover = self.crossover(arm)?;
            self.arms[arm].kind = ArmKind::Crossover(Some(Box::new(crossover)));
        }
        match &mut self.arms[arm].kind {
            ArmKind::Requests { workload, .. } => self.runtime.block_on(workload.prepare()),
            ArmKind::Crossover(_) | ArmKind::Faults(_) => Ok(()),
        }
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        let ArmState { arm, kind, .. } = &self.arms[arm];
        let closed = || Point::default().with("loop", "closed: a request waits for the previous request of its stream");
        Ok(match kind {
            ArmKind::Requests { workload, .. } => {
                let point = match workload.shape.rate_per_s {
                    Some(_) => Point::default().with("loop", "open: times count from when a request was due"),
                    None => closed(),
                };
                let point = if scale(arm) > 1 { point.with("sent_bytes", workload.shape.bytes) } else { point };
                match self.line_bytes_per_s(arm) {
                    Some(line) => point.with("line_bytes_per_s", line as u64),
                    None => point,
                }
            }
            ArmKind::Crossover(_) => closed(),
            ArmKind::Faults(_) => Point::default(),
        })
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let measured = self.measure_arm(arm, trial, out);
        // The findings so far also help after an error, such as a budget that is used up.
        self.remarks(arm).into_iter().for_each(|remark| self.setup.now.remark(remark));
        measured
    }
}

impl Drop for StorageSession {
    /// Deletes the objects in stores at an address. The emulated stores end with this session.
    fn drop(&mut self) {
        for store in &self.stores {
            let objects = &store.objects;
            if objects.store.is_emulated() {
                continue;
            }
            let failures = self.runtime.block_on(objects.remove_all());
            CLEANUP_FAILURES.lock().unwrap_or_else(PoisonError::into_inner).extend(failures);
        }
    }
}

/// Adds the samples of all requests of a trial.
fn push(load: &Load, shape: &Shape, out: &mut Samples) {
    let ns = |time: Duration| time.as_nanos() as f64;
    let is_read = shape.operation != Operation::Upload;
    let mut answered_bytes = 0;
    let [mut complete, mut encoded, mut reopened] = [0_u64; 3];
    for (answer, late) in &load.answers {
        let is_complete = answer.outcome == Outcome::Complete;
        let status = if is_complete { Status::Ok } else { Status::Censored };
        let time = answer.time + *late;
        out.push_with(TIME, ns(time), status);
        // The body of a refusal has a first byte, too, but it is not a byte of the object.
        let has_head = matches!(answer.outcome, Outcome::Complete | Outcome::Short);
        match answer.phases.until_first_byte().filter(|_| has_head) {
            Some(first_byte) if is_read => out.push(FIRST_BYTE, ns(first_byte + *late)),
            None if is_read && !is_complete => out.push_with(FIRST_BYTE, ns(time), Status::Censored),
            _ => {}
        }
        let throughput = if is_complete { answer.bytes as f64 / time.as_secs_f64() } else { 0.0 };
        out.push(THROUGHPUT, throughput);
        if is_complete {
            out.push(ANSWERED, ns(time));
            answered_bytes += answer.bytes;
        }
        complete += u64::from(is_complete);
        encoded += u64::from(answer.is_encoded);
        reopened += u64::from(answer.is_fresh);
        if let Some(gap) = answer.gap {
            out.push(GAP, ns(gap));
        }
        if has_head {
            push_phases(answer, out);
        }
    }
    let (count, took_s) = (load.answers.len().max(1) as f64, load.took.as_secs_f64().max(1e-9));
    out.push(INCOMPLETE, 1.0 - complete as f64 / count);
    out.push(TOTAL_THROUGHPUT, answered_bytes as f64 / took_s);
    out.push(REQUEST_RATE, complete as f64 / took_s);
    out.push(REQUEST_CPU, load.cpu_ns as f64 / count);
    out.push(ENCODED, encoded as f64 / count);
    if !shape.is_fresh {
        out.push(REOPENED, reopened as f64 / count);
    }
}

fn push_phases(answer: &Answer, out: &mut Samples) {
    if let Some(wait) = answer.phases.wait {
        out.push(WAIT, wait.as_nanos() as f64);
    }
    for (name, time) in answer.phases.named() {
        if let Some(time) = time {
            let value = time.as_nanos() as f64;
            out.push_sample(Sample { metric: PHASE, key: name.into(), offset_ns: 0, value, status: Status::Ok });
        }
    }
}

impl Incomplete {
    /// Adds the answers of a trial.
    fn add(&mut self, load: &Load) {
        for (answer, _) in &load.answers {
            self.requests += 1;
            match &answer.outcome {
                Outcome::Complete | Outcome::Fatal { .. } => {}
                Outcome::Short => self.short += 1,
                Outcome::Refused { status, .. } => *self.refused.entry(*status).or_default() += 1,
                Outcome::TimedOut => self.timed_out += 1,
                Outcome::Broken(_) => self.broken += 1,
            }
        }
    }

    /// Returns a remark if any request so far was not answered completely.
    fn remark(&self) -> Option<Remark> {
        let Self { requests, refused, timed_out, broken, short } = self;
        let is_any = !refused.is_empty() || *timed_out + *broken + *short > 0;
        is_any.then(|| Remark::Incomplete {
            requests: *requests,
            refused: refused.iter().map(|(status, count)| (*status, *count)).collect(),
            timed_out: *timed_out,
            broken: *broken,
            short: *short,
        })
    }
}
