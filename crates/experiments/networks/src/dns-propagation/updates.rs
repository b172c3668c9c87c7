//! Changes a zone, and queries its servers until all of them have the change.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, ArmId, Point, Sample, Samples, Session, Setup, Status, TargetError, Trial};
use ascertain_engine::finding::{Dissent, Remark};
use ascertain_engine::run::Now;
use ascertain_netlab::dns::{
    Answer, AnswerState, Probe, ProbeLog, Prober, Question, RData, RecordType, Rhythm, ServerState, probe,
};
use ascertain_netlab::now_ns;
use ascertain_sys::interrupt::Stop;

use super::propagation::{Moment, Server, servers, share_at, steps, times};
use super::providers::{Failure, Note, Record};
use super::remarks::{self, ObservedChange};
use super::test_zone::{ChangedBy, TestZone, WatchedRecord};
use super::{
    ALL, BY_TCP, DONE, DONE_BEFORE, FIRST, HALF, HELD, INTERVAL, LATE, LOST, REPLICA, REPLICA_SHARE, REPLICAS, SERVER,
    SHARE, SPREAD, STRANGE, UNSURE, rhythm,
};
use crate::links::{facts, failed, wait, watched};

/// Interval in nanoseconds between two messages to the user about the servers that have the change.
const SAY_NS: u64 = 200_000_000;
/// Shortest time to wait for an answer to a query.
const LEAST_PATIENCE: Duration = Duration::from_millis(500);
/// Longest time to wait for an answer to a query, for a server that is queried rarely.
const MOST_PATIENCE: Duration = Duration::from_secs(2);
/// Time for which servers are queried before anything is changed. It is long enough to notice a rate limit.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// Limit for slowing down. If a server has a rate limit, the interval between two queries to it is doubled only while
/// the interval is shorter than this.
const MOST_INTERVAL: Duration = Duration::from_secs(60);

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Ok(Box::new(Updates::open(arms, setup)?))
}

pub struct Updates {
    arms: Vec<UpdateArm>,
    stop: Stop,
}

/// The state of an arm: its zone, and the observations so far.
struct UpdateArm {
    zone: TestZone,
    rhythm: Rhythm,
    /// For each server, the factor by which its query interval is longer than usual. It is above 1 for servers with a
    /// rate limit.
    slowed: Vec<u64>,
    limit: Duration,
    /// Shortest time to wait for an answer to a query. Tests change it.
    least_patience: Duration,
    /// Time for which servers that are not simulated are queried before anything is changed.
    first_look: Duration,
    /// The end of the wait for the first change by another program; `None` before the wait and after it. The user
    /// expects a result within `limit_s`. The wait therefore includes the first queries, which test how often the
    /// servers may be queried.
    watch_end_ns: Option<u64>,
    now: Now,
    /// The changes that have been observed so far.
    changes: Vec<ObservedChange>,
}

/// A function that returns whether an answer has the expected change.
type IsNew = Box<dyn Fn(&Answer) -> bool + Send>;

/// The change that all servers must have, and the question that shows whether they have it.
struct Wanted {
    question: Question,
    is_new: IsNew,
    /// The record to add; `None` if another program makes the change.
    record: Option<Record>,
}

/// The queries and answers about one change.
pub struct Observation {
    pub log: ProbeLog,
    /// The time at which the provider was called. If another program makes the change, this is the time at which the
    /// queries began.
    pub call_ns: u64,
    /// The time at which the provider reported the change as done; `None` if another program made the change.
    pub done_ns: Option<u64>,
}

impl Updates {
    pub fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let open = |arm: &Arm| UpdateArm::new(arm, TestZone::open(arm, setup)?, setup.now.clone());
        Ok(Self { arms: arms.iter().map(open).collect::<Result<_, _>>()?, stop: setup.stop.clone() })
    }
}

impl UpdateArm {
    fn new(arm: &Arm, zone: TestZone, now: Now) -> Result<Self, TargetError> {
        let (flows, interval) = rhythm(arm)?;
        let rhythm = Rhythm { servers: zone.servers.len(), flows, interval };
        let (slowed, limit) = (vec![1; rhythm.servers], Duration::from_secs(arm.integer("limit_s")?));
        let (least_patience, first_look) = (LEAST_PATIENCE, FIRST_LOOK);
        let (watch_end_ns, changes) = (None, Vec::new());
        Ok(Self { zone, rhythm, slowed, limit, least_patience, first_look, watch_end_ns, now, changes })
    }

    /// Returns the longest time for the queries before the change. The wait for the last answers has the same limit. If
    /// another program makes the change, this limit is a quarter of the user's time limit. If this program makes the
    /// change, there is no limit.
    fn most_beside(&self) -> Duration {
        if self.zone.is_watched() { self.limit / 4 } else { Duration::MAX }
    }

    /// If another program makes the change, returns the time at which the queries for it end. If this program makes the
    /// change, returns a time that is never reached.
    fn last_question_ns(&self, start_ns: u64) -> u64 {
        if !self.zone.is_watched() {
            return u64::MAX;
        }
        let end_ns = self.watch_end_ns.unwrap_or(start_ns + self.limit.as_nanos() as u64);
        let last_ns = end_ns.saturating_sub(self.patience().as_nanos() as u64);
        last_ns.max(start_ns + self.most_beside().as_nanos() as u64)
    }

    /// Opens one socket for each source port. Each change uses new ports, because routers may send packets from new
    /// ports to replicas that were not found before.
    fn sockets(&self) -> Result<Vec<UdpSocket>, TargetError> {
        (0..self.rhythm.flows).map(|_| self.zone.socket()).collect()
    }

    /// Returns the interval between the queries from each port to the server that is queried least often.
    fn interval(&self) -> Duration {
        self.rhythm.interval * self.slowed.iter().max().map_or(1, |times| *times as u32)
    }

    fn names(&self) -> Vec<String> {
        self.zone.servers.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the time limit for an answer.
    fn patience(&self) -> Duration {
        (10 * self.interval()).min(MOST_PATIENCE).max(self.least_patience).min(self.most_beside())
    }

    fn wanted(&self, number: u64) -> Result<Wanted, TargetError> {
        let (name, kind, record, is_new): (_, _, _, IsNew) = match &self.zone.changed_by {
            ChangedBy::Us(_) => {
                let (zone, text) = (self.zone.zone.clone(), format!("_ascertain-{number:016x}"));
                let name = zone.prepend_label(text.as_bytes()).map_err(failed)?;
                let value = RData::try_from_str(RecordType::TXT, &text).map_err(failed)?;
                let record = Record { zone, name: name.clone(), text };
                (name, RecordType::TXT, Some(record), Box::new(move |answer| answer.values.contains(&value)))
            }
            ChangedBy::Others(WatchedRecord { name, kind, expected }) => {
                let expected = expected.clone();
                // The user gives texts without quotes, also if the record has several parts, and names without the
                // final dot.
                let values = [expected.clone(), format!("{expected}.")].map(|text| RData::try_from_str(*kind, &text));
                let is_text = *kind == RecordType::TXT;
                let is_it = move |said: &RData| {
                    let is_value = !is_text && values.iter().flatten().any(|value| said == value);
                    is_value || said.to_string() == expected
                };
                (name.clone(), *kind, None, Box::new(move |answer| answer.values.iter().any(&is_it)))
            }
        };
        Ok(Wanted { question: Question::new(name, kind).map_err(failed)?, is_new, record })
    }

    fn prober(&self, question: Question, is_new: IsNew) -> Prober {
        let addresses = self.zone.servers.iter().map(|(_, address)| *address).collect();
        // Uses a random seed, so that other hosts cannot guess the ids of queries.
        let mut prober = Prober::new(addresses, self.rhythm.flows, question, is_new, self.patience(), rand::random());
        self.slowed.iter().enumerate().for_each(|(server, times)| prober.slow(server, *times));
        prober
    }

    /// Queries the servers for a while to find those that do not answer and those with a rate limit. Then queries the
    /// servers with a rate limit less often.
    fn pace(&mut self, stop: &Stop) -> Result<(), TargetError> {
        self.watch_end_ns = Some(now_ns() + self.limit.as_nanos() as u64);
        loop {
            let Wanted { question, is_new, .. } = self.wanted(u64::MAX)?;
            let mut prober = self.prober(question, is_new);
            let a_while = if self.zone.link.is_none() { self.first_look } else { Duration::ZERO };
            let a_while = (2 * self.interval()).max(a_while).min(self.most_beside());
            let end_ns = now_ns() + a_while.as_nanos() as u64;
            let is_over = |_: &Prober, now_ns| now_ns > end_ns || stop.is_requested();
            probe(&mut prober, self.rhythm, &self.sockets()?, is_over).map_err(failed)?;
            if stop.is_requested() {
                return Err(TargetError::Interrupted);
            }
            if !self.slow_down(&prober.log.probes) {
                return self.check(&prober);
            }
        }
    }

    /// Halves the query rate for each server that shows a rate limit. Returns whether any server did.
    fn slow_down(&mut self, probes: &[Probe]) -> bool {
        let mut is_any = false;
        for (server, times) in self.slowed.iter_mut().enumerate() {
            if is_limited(probes, server) && self.rhythm.interval * (*times as u32) < MOST_INTERVAL {
                (*times, is_any) = (2 * *times, true);
            }
        }
        is_any
    }

    /// Queries the servers until all of them have the change. If this program makes the change, this function adds the
    /// record when the queries have started, and removes the record at the end.
    fn observe(&self, number: u64, stop: &Stop) -> Result<Observation, TargetError> {
        let Wanted { question, is_new, record } = self.wanted(number)?;
        let sockets = self.sockets()?;
        let mut prober = self.prober(question, is_new);
        let (call_ns, is_failed) = (AtomicU64::new(u64::MAX), AtomicBool::new(false));
        let mut said_ns = now_ns();
        let last_question_ns = self.last_question_ns(said_ns);
        let is_over = |prober: &Prober, now_ns: u64| {
            if record.is_none() && now_ns > said_ns + SAY_NS {
                self.say(prober, now_ns.saturating_sub(call_ns.load(Ordering::Relaxed)));
                said_ns = now_ns;
            }
            let is_learned = self.is_learned(prober, now_ns, call_ns.load(Ordering::Relaxed));
            is_learned || now_ns > last_question_ns || is_failed.load(Ordering::Relaxed) || stop.is_requested()
        };
        let by_us = match (&self.zone.changed_by, &record) {
            (ChangedBy::Us(provider), Some(record)) => Some((provider, record)),
            _ => None,
        };
        let noted = by_us.and_then(|(provider, record)| Some((provider.address()?, record)));
        let note = noted.map(|(address, record)| Note::new(&self.zone.notes, &address, record));
        let note = note.transpose().map_err(failed)?;
        let mut may_be_there = false;
        let (asked, done_ns) = thread::scope(|scope| {
            let asking = scope.spawn(|| probe(&mut prober, self.rhythm, &sockets, is_over));
            let Some((provider, record)) = by_us else {
                call_ns.store(now_ns(), Ordering::Relaxed);
                return (asking.join(), Ok(None));
            };
            // Each port must have queried each server before the change.
            let changed = wait(self.interval(), stop).and_then(|()| {
                let changed = provider.add(record, &|| call_ns.store(now_ns(), Ordering::Relaxed), stop);
                may_be_there = changed.as_ref().err().is_none_or(|failure| !failure.is_sure);
                let failed = |failure: Failure| match stop.is_requested() {
                    true => TargetError::Interrupted,
                    false => TargetError::Failed(failure.why),
                };
                changed.map_err(failed).map(|()| Some(now_ns()))
            });
            is_failed.store(changed.is_err(), Ordering::Relaxed);
            (asking.join(), changed)
        });
        // The record is removed even if the measurement failed.
        let removed = match by_us.filter(|_| may_be_there) {
            Some((provider, record)) => provider.remove(record).map_err(|failure| (&record.name, failure.why)),
            None => Ok(()),
        };
        if removed.is_ok() {
            note.map(Note::done).transpose().map_err(failed)?;
        }
        let removed = removed.map_err(|(name, why)| {
            format!("could not remove the record {name}; remove it with `ascertain clean`: {why}")
        });
        let whole = done_ns.and_then(|done_ns| {
            asked.map_err(|_| failed("the prober panicked because of a bug"))?.map_err(failed)?;
            Ok(done_ns)
        });
        // An error about a record that could not be removed is more important than the first error, so it is reported
        // first.
        let done_ns = whole.map_err(|first| match &removed {
            Err(left) => failed(format!("{left}; before that: {first}")),
            Ok(()) => first,
        })?;
        removed.map_err(failed)?;
        let call_ns = call_ns.into_inner();
        if stop.is_requested() {
            return Err(TargetError::Interrupted);
        }
        self.check(&prober)?;
        if by_us.is_none() && prober.is_new_since_ns().is_none() {
            self.say(&prober, self.limit.as_nanos() as u64);
            let alias = prober.log.alias.as_ref().map(|alias| format!(": the name is an alias of {alias}"));
            let (behind, alias) = (self.behind(&prober.log.probes), alias.unwrap_or_default());
            return Err(failed(format!("after {:?} {behind} still not as expected{alias}", self.limit)));
        }
        Ok(Observation { log: prober.log, call_ns, done_ns })
    }

    /// Returns whether the queries may end: if the time limit has passed, or if all servers have had the change for so
    /// long that earlier queries are answered or lost.
    fn is_learned(&self, prober: &Prober, now_ns: u64, call_ns: u64) -> bool {
        let after = |from_ns: u64, time: Duration| now_ns > from_ns.saturating_add(time.as_nanos() as u64);
        let is_settled = |since_ns: u64| after(since_ns.max(call_ns), 2 * self.interval());
        let is_new = call_ns < u64::MAX && prober.is_new_since_ns().is_some_and(is_settled);
        is_new || after(call_ns, self.limit)
    }

    /// Reports how many servers have the change of another program, and what the other servers answer.
    fn say(&self, prober: &Prober, waited_ns: u64) {
        let start_ns = now_ns().saturating_sub(waited_ns);
        let dissent = |(ServerState { other, .. }, (server, _)): (ServerState, &(String, _))| Dissent {
            server: server.clone(),
            for_ns: waited_ns
                - other.as_ref().map_or(0, |(_, since_ns)| since_ns.saturating_sub(start_ns)).min(waited_ns),
            says: other.map(|(words, _)| words.to_string()),
        };
        let standing = prober.standing().into_iter().zip(&self.zone.servers);
        let others: Vec<Dissent> = standing.filter(|(standing, _)| !standing.is_new).map(dissent).collect();
        let all = self.rhythm.servers;
        let after_ns = prober.is_new_since_ns().map_or(waited_ns, |since_ns| since_ns.saturating_sub(start_ns));
        self.now.remark(Remark::Agreement { agree: all - others.len(), all, after_ns, others });
    }

    /// Returns the servers whose last answer was not new, as the subject and verb of an error, such as "a, b are".
    fn behind(&self, probes: &[Probe]) -> String {
        let is_behind = |number: &usize| {
            let of_server = probes.iter().rev().filter(|probe| probe.server == *number);
            of_server.filter_map(|probe| probe.answer).next().is_none_or(|answer| answer.state != AnswerState::New)
        };
        let behind: Vec<&str> =
            (0..self.rhythm.servers).filter(is_behind).map(|number| self.zone.servers[number].0.as_str()).collect();
        match behind[..] {
            [] => "some replicas are".into(),
            [one] => format!("{one} is"),
            _ => format!("{} are", behind.join(", ")),
        }
    }

    /// Checks that the servers are those of the zone and that they answer. If another program makes the change, servers
    /// may start to answer later. A resolver is always refused, because it may have the change before the zone's
    /// servers do.
    fn check(&self, prober: &Prober) -> Result<(), TargetError> {
        for (number, (name, address)) in self.zone.servers.iter().enumerate() {
            let of_server = prober.log.probes.iter().filter(|probe| probe.server == number);
            let states: Vec<AnswerState> = of_server.filter_map(|probe| Some(probe.answer?.state)).collect();
            let known = states.iter().find(|state| [AnswerState::New, AnswerState::Old].contains(state));
            let why = match known.or(states.first()) {
                Some(AnswerState::New | AnswerState::Old) => continue,
                state if self.zone.is_watched() && state != Some(&AnswerState::Remembers) => continue,
                None if prober.log.strange == 0 => "does not answer".to_string(),
                None => "does not answer; messages arrived, but none of them answers a query".into(),
                Some(AnswerState::Remembers) => "is a resolver with a cache, and not a server of the zone".into(),
                Some(AnswerState::NotItsZone) => "is not authoritative for the zone".into(),
                Some(AnswerState::Truncated) => "truncates its answer over UDP, and does not send it over TCP".into(),
                Some(AnswerState::Failed(code)) => format!("answers {}", code.to_str()),
            };
            // If the server was given by its address, the name is already the address.
            let at = Some(address.to_string()).filter(|at| at != name).map_or(String::new(), |at| format!(" ({at})"));
            return Err(failed(format!("{name}{at} {why}")));
        }
        Ok(())
    }

    /// Adds the values of all metrics, and returns the remarks.
    fn samples(&mut self, observation: &Observation, out: &mut Samples) -> Result<Vec<Remark>, TargetError> {
        let Observation { log, call_ns, done_ns } = observation;
        let of_servers = servers(&log.probes, self.rhythm.servers, *call_ns);
        let of_all = times(&of_servers).ok_or_else(|| failed("no server answers"))?;
        let limit_ns = self.limit.as_nanos() as u64;
        let mut push = |metric, key: &str, moment: Moment| {
            let (value_ns, status) = self.estimate(moment);
            out.push_sample(sample(metric, key, 0, value_ns, status));
            (value_ns, status)
        };
        let (all_ns, status) = push(ALL, "", of_all.all);
        if let (ChangedBy::Others(_), Status::Ok) = (&self.zone.changed_by, status) {
            let (all, others) = (self.rhythm.servers, Vec::new());
            let after_ns = if of_all.all.low_ns == 0 { 0 } else { all_ns as u64 };
            self.now.remark(Remark::Agreement { agree: all, all, after_ns, others });
        }
        push(HALF, "", of_all.half);
        push(FIRST, "", of_all.first);
        let mut ends_ns = Vec::new();
        for ((name, _), server) in self.zone.servers.iter().zip(&of_servers) {
            let of_server = times([server]).ok_or_else(|| failed(format!("{name} does not answer")))?;
            ends_ns.push(push(SERVER, name, of_server.all).0);
        }
        let Moment { low_ns, high_ns } = of_all.all;
        let done_ns = done_ns.map(|done_ns| done_ns.saturating_sub(*call_ns));
        let change = ObservedChange::new(&of_servers, done_ns).ok_or_else(|| failed("no server answers"))?;
        // A replica that was missed may have had the change at any time, so the true width of the bounds may be larger.
        let how_sure = if change.may_miss() { Status::Censored } else { status };
        out.push_with(UNSURE, high_ns.unwrap_or(limit_ns).saturating_sub(low_ns) as f64, how_sure);
        self.changes.push(change);
        if let Some(done_ns) = done_ns {
            out.push(DONE, done_ns as f64);
            out.push_with(DONE_BEFORE, all_ns - done_ns as f64, status);
        }
        ends_ns.sort_unstable_by(f64::total_cmp);
        if let [first_ns, second_ns, ..] = ends_ns[..] {
            out.push_with(SPREAD, ends_ns[ends_ns.len() - 1] - first_ns, status);
            out.push_with(HELD, second_ns - first_ns, status);
        }
        self.push_by_server(observation, &of_servers, out);
        let lost: u64 = of_servers.iter().map(|server| server.lost).sum();
        let share = |count: f64| count / log.probes.len() as f64;
        out.push(LOST, share(lost as f64));
        out.push(STRANGE, log.strange as f64);
        out.push(INTERVAL, self.interval().as_nanos() as f64);
        out.push(BY_TCP, share(log.probes.iter().filter(|probe| probe.is_by_tcp).count() as f64));
        // The remarks must describe this change, so they are computed before a server is slowed down.
        let remarks = self.remarks();
        self.slow_down(&log.probes);
        Ok(remarks)
    }

    /// Returns the estimate of a time, or the time limit if the change has not arrived.
    fn estimate(&self, moment: Moment) -> (f64, Status) {
        match moment.estimate_ns() {
            Some(value_ns) => (value_ns as f64, Status::Ok),
            None => (self.limit.as_nanos() as f64, Status::Censored),
        }
    }

    /// Returns the remarks about all changes that were observed so far.
    fn remarks(&self) -> Vec<Remark> {
        let (names, changes) = (self.names(), &self.changes);
        // These remarks are left out for simulated zones, whose behaviour the user chose.
        let of_others = || {
            let held = self.zone.primary().and_then(|primary| remarks::held(&names, primary, changes));
            [remarks::done(changes), held, self.limited(), self.zone.no_address()]
        };
        let of_others = self.zone.link.is_none().then(of_others).into_iter().flatten().flatten();
        of_others.chain(remarks::few_ports(&names, changes)).collect()
    }

    /// Returns a remark about the servers whose queries were slowed, if there are any.
    fn limited(&self) -> Option<Remark> {
        let interval_ns = self.rhythm.interval.as_nanos() as u64;
        let slowed = self.names().into_iter().zip(&self.slowed).filter(|(_, times)| **times > 1);
        let servers: Vec<(String, u64)> = slowed.map(|(name, times)| (name, interval_ns * times)).collect();
        (!servers.is_empty()).then_some(Remark::Limited { servers, interval_ns })
    }

    /// Adds the values of each server's metrics. The queries of all ports are spread evenly over an interval, so the
    /// curves have one step for each query.
    fn push_by_server(&self, observation: &Observation, of_servers: &[Server], out: &mut Samples) {
        let Observation { log, call_ns, .. } = observation;
        let end_ns = log.probes.last().map_or(0, |last| last.sent_ns.saturating_sub(*call_ns));
        for (number, (name, _)) in self.zone.servers.iter().enumerate() {
            let server = &of_servers[number];
            let interval_ns = self.rhythm.interval.as_nanos() as u64 * self.slowed[number];
            out.push_sample(sample(REPLICAS, name, 0, server.replicas.len() as f64, Status::Ok));
            let times = || steps(interval_ns / self.rhythm.flows as u64, end_ns);
            let shares = times().filter_map(|at_ns| Some((at_ns, share_at(server, at_ns, *call_ns, interval_ns)?)));
            shares.for_each(|(at_ns, share)| out.push_sample(sample(SHARE, name, at_ns, share, Status::Ok)));
            // If new and old answers alternate, the answers cannot be assigned to replicas.
            let told_apart = if server.mixed.is_empty() { &server.replicas[..] } else { &[] };
            for (replica, key) in told_apart.iter().zip(keys(name, server, &log.nsids)) {
                let (value_ns, status) = self.estimate(replica.had);
                out.push_sample(sample(REPLICA, &key, 0, value_ns, status));
                let shares = times().map(|at_ns| (at_ns, replica.had.share_at(at_ns)));
                shares
                    .for_each(|(at_ns, share)| out.push_sample(sample(REPLICA_SHARE, &key, at_ns, share, Status::Ok)));
            }
        }
    }
}

/// Returns whether a server limits the rate of its answers. Such a server leaves some queries unanswered, and truncates
/// other answers so that genuine clients repeat the query over TCP.
fn is_limited(probes: &[Probe], server: usize) -> bool {
    let of_server = probes.iter().filter(|probe| probe.server == server && !probe.is_by_tcp);
    let (answers, count) = (of_server.clone().filter_map(|probe| probe.answer), of_server.count());
    let (truncated, whole): (Vec<_>, Vec<_>) = answers.partition(|answer| answer.state == AnswerState::Truncated);
    let lost = count - truncated.len() - whole.len();
    // A server whose answer never fits into a datagram has no rate limit, even if a few answers are lost.
    !truncated.is_empty() && (!whole.is_empty() || 4 * lost >= truncated.len())
}

/// Returns a name for each of a server's replicas, the machines behind its address. A name contains the identity that
/// the replica reports. If the replica reports none, the name contains its place in the order in which the replicas
/// received the change. The place also distinguishes replicas with the same identity.
fn keys(server: &str, of_server: &Server, nsids: &[Vec<u8>]) -> Vec<String> {
    let mut called: Vec<String> = Vec::new();
    let mut count: BTreeMap<Option<usize>, u64> = BTreeMap::new();
    for replica in &of_server.replicas {
        let number = count.entry(replica.nsid).or_default();
        *number += 1;
        let name = replica.nsid.and_then(|nsid| nsids.get(nsid)).map(|nsid| readable(nsid));
        called.push(match (name, *number) {
            (None, number) => format!("{server}#{number}"),
            (Some(name), 1) => format!("{server}#{name}"),
            (Some(name), number) => format!("{server}#{name}#{number}"),
        });
    }
    called
}

/// Returns an identity as text if it is printable, otherwise as hexadecimal digits.
fn readable(nsid: &[u8]) -> String {
    match std::str::from_utf8(nsid) {
        Ok(text) if text.chars().all(|letter| letter.is_ascii_graphic()) => text.into(),
        _ => nsid.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

fn sample(metric: usize, key: &str, offset_ns: u64, value: f64, status: Status) -> Sample {
    Sample { metric, key: key.to_string().into(), offset_ns, value, status }
}

impl Session for Updates {
    /// Checks that the servers answer, and tests how often they may be queried.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        self.arms[arm].pace(&self.stop)
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        facts(self.arms[arm].zone.link.as_deref())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let arm = &mut self.arms[arm];
        let link = arm.zone.link.clone();
        watched(link.as_deref(), LATE, out, |out| {
            // Each change uses another record, in all arms: a server may cache the answer that a record does not exist.
            let observation = arm.observe(rand::random(), &self.stop)?;
            arm.watch_end_ns = None;
            arm.samples(&observation, out)?.into_iter().for_each(|remark| arm.now.remark(remark));
            Ok(())
        })
    }
}

#[cfg(test)]
#[path = "at_providers.rs"]
mod at_providers;
#[cfg(test)]
#[path = "real.rs"]
mod real;
#[cfg(test)]
#[path = "tests.rs"]
mod tests;
