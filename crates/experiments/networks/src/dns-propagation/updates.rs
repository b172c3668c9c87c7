//! A change, and its servers asked until all of them have it.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, ArmId, Point, Sample, Samples, Session, Setup, Status, TargetError, Trial};
use ascertain_engine::finding::{Dissent, Remark};
use ascertain_engine::run::Now;
use ascertain_netlab::dns::{Answer, Asked, Probing, Question, RData, RecordType, Rhythm, Says, Standing, probe};
use ascertain_netlab::now_ns;
use ascertain_sys::interrupt::Stop;

use super::places::{ChangedBy, Place, Watched};
use super::propagation::{Moment, Server, servers, share_at, steps, times};
use super::providers::{Failure, Note, Record};
use super::remarks::{self, Change};
use super::{
    ALL, BY_TCP, DONE, DONE_BEFORE, FIRST, HALF, HELD, INTERVAL, LATE, LOST, REPLICA, REPLICA_SHARE, REPLICAS, SERVER,
    SHARE, SPREAD, STRANGE, UNSURE, rhythm,
};
use crate::links::{facts, failed, wait, watched};

/// How often it is said how it stands.
const SAY_NS: u64 = 200_000_000;
/// The shortest time to wait for an answer, and the longest for a server that is queried rarely.
const LEAST_PATIENCE: Duration = Duration::from_millis(500);
const MOST_PATIENCE: Duration = Duration::from_secs(2);
/// Time for which a server is queried before anything is changed: long enough to notice a limit on its answers.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// Who does not answer as often as this has something else.
const MOST_INTERVAL: Duration = Duration::from_secs(60);

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Ok(Box::new(Updates::open(arms, setup)?))
}

pub struct Updates {
    targets: Vec<Target>,
    stop: Stop,
}

struct Target {
    place: Place,
    rhythm: Rhythm,
    /// Of each server: in one of how many rounds it is asked, for it has a limit.
    slowed: Vec<u64>,
    limit: Duration,
    /// The shortest time to wait for an answer.
    least_patience: Duration,
    /// The time for which servers that are not simulated are queried before anything is changed.
    first_look: Duration,
    /// The end of the first wait for a change of somebody else. It is set when the first look begins, because the user
    /// wants to hear by `limit_s`.
    watch_end_ns: Option<u64>,
    now: Now,
    /// What was seen so far.
    changes: Vec<Change>,
}

/// Whether an answer says what is waited for.
type IsNew = Box<dyn Fn(&Answer) -> bool + Send>;

/// What is asked for, and how it comes to be there.
struct Wanted {
    question: Question,
    is_new: IsNew,
    /// What we do for it.
    record: Option<Record>,
}

/// What was seen of one change.
pub struct Seen {
    pub asked: Vec<Asked>,
    pub call_ns: u64,
    /// When who changed it said so, if that is us.
    pub done_ns: Option<u64>,
    pub strange: u64,
    /// Who servers say they are.
    pub nsids: Vec<Vec<u8>>,
}

impl Updates {
    pub fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let target = |arm: &Arm| Target::new(arm, Place::of(arm, setup)?, setup.now.clone());
        Ok(Self { targets: arms.iter().map(target).collect::<Result<_, _>>()?, stop: setup.stop.clone() })
    }
}

impl Target {
    fn new(arm: &Arm, place: Place, now: Now) -> Result<Self, TargetError> {
        let (flows, interval) = rhythm(arm)?;
        let rhythm = Rhythm { servers: place.servers.len(), flows, interval };
        let (slowed, limit) = (vec![1; rhythm.servers], Duration::from_secs(arm.integer("limit_s")?));
        let (least_patience, first_look) = (LEAST_PATIENCE, FIRST_LOOK);
        let (watch_end_ns, changes) = (None, Vec::new());
        Ok(Self { place, rhythm, slowed, limit, least_patience, first_look, watch_end_ns, now, changes })
    }

    /// The longest time for the first look, and for the last answers. When somebody else makes the change, both are part
    /// of the time limit.
    fn most_beside(&self) -> Duration {
        if self.place.is_watched() { self.limit / 4 } else { Duration::MAX }
    }

    /// The time after which a wait for a change of somebody else sends no more questions.
    fn last_question_ns(&self, start_ns: u64) -> u64 {
        if !self.place.is_watched() {
            return u64::MAX;
        }
        let end_ns = self.watch_end_ns.unwrap_or(start_ns + self.limit.as_nanos() as u64);
        let last_ns = end_ns.saturating_sub(self.patience().as_nanos() as u64);
        last_ns.max(start_ns + self.most_beside().as_nanos() as u64)
    }

    /// New ones for each change: from other ports routers may lead to other replicas.
    fn sockets(&self) -> Result<Vec<UdpSocket>, TargetError> {
        (0..self.rhythm.flows).map(|_| self.place.socket()).collect()
    }

    /// How often each server is asked from each port, the slowest one.
    fn interval(&self) -> Duration {
        self.rhythm.interval * self.slowed.iter().max().map_or(1, |times| *times as u32)
    }

    fn names(&self) -> Vec<String> {
        self.place.servers.iter().map(|(name, _)| name.clone()).collect()
    }

    /// For how long an answer is waited for.
    fn patience(&self) -> Duration {
        (10 * self.interval()).min(MOST_PATIENCE).max(self.least_patience).min(self.most_beside())
    }

    fn wanted(&self, number: u64) -> Result<Wanted, TargetError> {
        let (name, kind, record, is_new): (_, _, _, IsNew) = match &self.place.changed_by {
            ChangedBy::Us(_) => {
                let (zone, text) = (self.place.zone.clone(), format!("_ascertain-{number:016x}"));
                let name = zone.prepend_label(text.as_bytes()).map_err(failed)?;
                let value = RData::try_from_str(RecordType::TXT, &text).map_err(failed)?;
                let record = Record { zone, name: name.clone(), text };
                (name, RecordType::TXT, Some(record), Box::new(move |answer| answer.values.contains(&value)))
            }
            ChangedBy::Others(Watched { name, kind, expected }) => {
                let expected = expected.clone();
                // A text may be in several parts, and is written without quotes here; a name is whole without its dot.
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

    fn probing(&self, question: Question, is_new: IsNew) -> Probing {
        let addresses = self.place.servers.iter().map(|(_, address)| *address).collect();
        // Nobody is to guess its numbers: they are not the run's own seed's.
        let mut probing = Probing::new(addresses, self.rhythm.flows, question, is_new, self.patience(), rand::random());
        self.slowed.iter().enumerate().for_each(|(server, times)| probing.slow(server, *times));
        probing
    }

    /// Asks for a while, to see who answers, and less often who has a limit.
    fn pace(&mut self, stop: &Stop) -> Result<(), TargetError> {
        self.watch_end_ns = Some(now_ns() + self.limit.as_nanos() as u64);
        loop {
            let Wanted { question, is_new, .. } = self.wanted(u64::MAX)?;
            let mut probing = self.probing(question, is_new);
            let a_while = if self.place.link.is_none() { self.first_look } else { Duration::ZERO };
            let a_while = (2 * self.interval()).max(a_while).min(self.most_beside());
            let end_ns = now_ns() + a_while.as_nanos() as u64;
            let is_over = |_: &Probing, now_ns| now_ns > end_ns || stop.is_asked();
            probe(&mut probing, self.rhythm, &self.sockets()?, is_over).map_err(failed)?;
            if stop.is_asked() {
                return Err(TargetError::Interrupted);
            }
            if !self.slow_down(probing.asked()) {
                return self.check(&probing);
            }
        }
    }

    /// Whether somebody has a limit, and is asked half as often from now on.
    fn slow_down(&mut self, asked: &[Asked]) -> bool {
        let mut is_any = false;
        for (server, times) in self.slowed.iter_mut().enumerate() {
            if is_limited(asked, server) && self.rhythm.interval * (*times as u32) < MOST_INTERVAL {
                (*times, is_any) = (2 * *times, true);
            }
        }
        is_any
    }

    /// Sees to it that what is wanted comes to be, asks until it is everywhere, and takes it away again.
    fn observe(&self, number: u64, stop: &Stop) -> Result<Seen, TargetError> {
        let Wanted { question, is_new, record } = self.wanted(number)?;
        let sockets = self.sockets()?;
        let mut probing = self.probing(question, is_new);
        let (call_ns, is_failed) = (AtomicU64::new(u64::MAX), AtomicBool::new(false));
        let mut said_ns = now_ns();
        let last_question_ns = self.last_question_ns(said_ns);
        let is_over = |probing: &Probing, now_ns: u64| {
            if record.is_none() && now_ns > said_ns + SAY_NS {
                self.say(probing, now_ns.saturating_sub(call_ns.load(Ordering::Relaxed)));
                said_ns = now_ns;
            }
            let is_learned = self.is_learned(probing, now_ns, call_ns.load(Ordering::Relaxed));
            is_learned || now_ns > last_question_ns || is_failed.load(Ordering::Relaxed) || stop.is_asked()
        };
        let by_us = match (&self.place.changed_by, &record) {
            (ChangedBy::Us(provider), Some(record)) => Some((provider, record)),
            _ => None,
        };
        let noted = by_us.and_then(|(provider, record)| Some((provider.address()?, record)));
        let note = noted.map(|(address, record)| Note::new(&self.place.notes, &address, record));
        let note = note.transpose().map_err(failed)?;
        let mut may_be_there = false;
        let (asked, done_ns) = thread::scope(|scope| {
            let asking = scope.spawn(|| probe(&mut probing, self.rhythm, &sockets, is_over));
            let Some((provider, record)) = by_us else {
                call_ns.store(now_ns(), Ordering::Relaxed);
                return (asking.join(), Ok(None));
            };
            // Each server is asked from each port before.
            let changed = wait(self.interval(), stop).and_then(|()| {
                let changed = provider.add(record, &|| call_ns.store(now_ns(), Ordering::Relaxed), stop);
                may_be_there = changed.as_ref().err().is_none_or(|failure| !failure.is_sure);
                let failed = |failure: Failure| match stop.is_asked() {
                    true => TargetError::Interrupted,
                    false => TargetError::Failed(failure.why),
                };
                changed.map_err(failed).map(|()| Some(now_ns()))
            });
            is_failed.store(changed.is_err(), Ordering::Relaxed);
            (asking.join(), changed)
        });
        // It is gone whatever became of it.
        let removed = match by_us.filter(|_| may_be_there) {
            Some((provider, record)) => provider.remove(record).map_err(|failure| (&record.name, failure.why)),
            None => Ok(()),
        };
        if removed.is_ok() {
            note.map(Note::done).transpose().map_err(failed)?;
        }
        let removed = removed.map_err(|(name, why)| format!("{name} is still there (`ascertain clean`): {why}"));
        let whole = done_ns.and_then(|done_ns| {
            asked.map_err(|_| failed("asking ended by a mistake of ours"))?.map_err(failed)?;
            Ok(done_ns)
        });
        // What is left behind matters more than what went wrong before.
        let done_ns = whole.map_err(|first| match &removed {
            Err(left) => failed(format!("{left}; before that: {first}")),
            Ok(()) => first,
        })?;
        removed.map_err(failed)?;
        let call_ns = call_ns.into_inner();
        if stop.is_asked() {
            return Err(TargetError::Interrupted);
        }
        self.check(&probing)?;
        if by_us.is_none() && probing.is_new_since_ns().is_none() {
            self.say(&probing, self.limit.as_nanos() as u64);
            let alias = probing.alias().map(|alias| format!(": the name is another name of {alias}"));
            let (behind, alias) = (self.behind(probing.asked()), alias.unwrap_or_default());
            return Err(failed(format!("after {:?} {behind} still not as expected{alias}", self.limit)));
        }
        let (strange, nsids) = (probing.strange(), probing.nsids().to_vec());
        Ok(Seen { asked: probing.into_asked(), call_ns, done_ns, strange, nsids })
    }

    /// Whether it is everywhere since so long that what was asked before is answered, if it is not lost; or too late.
    fn is_learned(&self, probing: &Probing, now_ns: u64, call_ns: u64) -> bool {
        let after = |from_ns: u64, time: Duration| now_ns > from_ns.saturating_add(time.as_nanos() as u64);
        let is_settled = |since_ns: u64| after(since_ns.max(call_ns), 2 * self.interval());
        let is_new = call_ns < u64::MAX && probing.is_new_since_ns().is_some_and(is_settled);
        is_new || after(call_ns, self.limit)
    }

    /// Says how many have what somebody else changed, and what the others answer.
    fn say(&self, probing: &Probing, waited_ns: u64) {
        let start_ns = now_ns().saturating_sub(waited_ns);
        let dissent = |(Standing { other, .. }, (server, _)): (Standing, &(String, _))| Dissent {
            server: server.clone(),
            for_ns: waited_ns
                - other.as_ref().map_or(0, |(_, since_ns)| since_ns.saturating_sub(start_ns)).min(waited_ns),
            says: other.map(|(words, _)| words.to_string()),
        };
        let standing = probing.standing().into_iter().zip(&self.place.servers);
        let others: Vec<Dissent> = standing.filter(|(standing, _)| !standing.is_new).map(dissent).collect();
        let all = self.rhythm.servers;
        let after_ns = probing.is_new_since_ns().map_or(waited_ns, |since_ns| since_ns.saturating_sub(start_ns));
        self.now.remark(Remark::Agreement { agree: all - others.len(), all, after_ns, others });
    }

    /// Who said last that it does not have it, and how many do.
    fn behind(&self, asked: &[Asked]) -> String {
        let is_behind = |number: &usize| {
            let of_server = asked.iter().rev().filter(|asked| asked.server == *number);
            of_server.filter_map(|asked| asked.answer).next().is_none_or(|answer| answer.says != Says::New)
        };
        let behind: Vec<&str> =
            (0..self.rhythm.servers).filter(is_behind).map(|number| self.place.servers[number].0.as_str()).collect();
        match behind[..] {
            [] => "some replicas are".into(),
            [one] => format!("{one} is"),
            _ => format!("{} are", behind.join(", ")),
        }
    }

    /// Whether these are servers of the zone that tell something. Who waits for what others change also waits for
    /// servers that do not answer yet; but for resolvers nobody waits: they may say so, and the servers not.
    fn check(&self, probing: &Probing) -> Result<(), TargetError> {
        for (number, (name, address)) in self.place.servers.iter().enumerate() {
            let of_server = probing.asked().iter().filter(|asked| asked.server == number);
            let says: Vec<Says> = of_server.filter_map(|asked| Some(asked.answer?.says)).collect();
            let tells = says.iter().find(|says| [Says::New, Says::Old].contains(says));
            let why = match tells.or(says.first()) {
                Some(Says::New | Says::Old) => continue,
                says if self.place.is_watched() && says != Some(&Says::Remembers) => continue,
                None if probing.strange() == 0 => "does not answer".to_string(),
                None => "does not answer; messages came that were no answers to what was asked".into(),
                Some(Says::Remembers) => "asks others and remembers what they said: it is no server of the zone".into(),
                Some(Says::NotItsZone) => "does not have the zone".into(),
                Some(Says::Truncated) => {
                    "has no room for its answer in a datagram, and does not give it by a connection, either".into()
                }
                Some(Says::Failed(code)) => format!("answers {}", code.to_str()),
            };
            // One that was told by its address has no other name.
            let at = Some(address.to_string()).filter(|at| at != name).map_or(String::new(), |at| format!(" ({at})"));
            return Err(failed(format!("{name}{at} {why}")));
        }
        Ok(())
    }

    /// What is to be said beside them.
    fn samples(&mut self, seen: &Seen, out: &mut Samples) -> Result<Vec<Remark>, TargetError> {
        let Seen { asked, call_ns, .. } = seen;
        let of_servers = servers(asked, self.rhythm.servers, *call_ns);
        let of_all = times(&of_servers).ok_or_else(|| failed("no server answers"))?;
        let limit_ns = self.limit.as_nanos() as u64;
        let mut push = |metric, key: &str, moment: Moment| {
            let (value_ns, status) = match moment.estimate_ns() {
                Some(value_ns) => (value_ns, Status::Ok),
                None => (limit_ns, Status::Censored),
            };
            out.push_sample(sample(metric, key, 0, value_ns as f64, status));
            (value_ns as f64, status)
        };
        let (all_ns, status) = push(ALL, "", of_all.all);
        if let (ChangedBy::Others(_), Status::Ok) = (&self.place.changed_by, status) {
            let (all, others) = (self.rhythm.servers, Vec::new());
            let after_ns = if of_all.all.low_ns == 0 { 0 } else { all_ns as u64 };
            self.now.remark(Remark::Agreement { agree: all, all, after_ns, others });
        }
        push(HALF, "", of_all.half);
        push(FIRST, "", of_all.first);
        let mut ends_ns = Vec::new();
        for ((name, _), server) in self.place.servers.iter().zip(&of_servers) {
            let of_server = times([server]).ok_or_else(|| failed(format!("{name} does not answer")))?;
            ends_ns.push(push(SERVER, name, of_server.all).0);
        }
        let Moment { low_ns, high_ns } = of_all.all;
        let done_ns = seen.done_ns.map(|done_ns| done_ns.saturating_sub(*call_ns));
        let change = Change::new(&of_servers, done_ns).ok_or_else(|| failed("no server answers"))?;
        // Of replicas that were not seen nobody knows when they have it.
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
        self.push_by_server(seen, &of_servers, out);
        let lost: u64 = of_servers.iter().map(|server| server.lost).sum();
        out.push(LOST, lost as f64 / asked.len() as f64);
        out.push(STRANGE, seen.strange as f64);
        out.push(INTERVAL, self.interval().as_nanos() as f64);
        out.push(BY_TCP, asked.iter().filter(|asked| asked.is_by_tcp).count() as f64 / asked.len() as f64);
        // What is said is how this change was asked for.
        let remarks = self.remarks();
        self.slow_down(asked);
        Ok(remarks)
    }

    /// Of all changes so far.
    fn remarks(&self) -> Vec<Remark> {
        let (names, changes) = (self.names(), &self.changes);
        // What is simulated is what somebody asked for.
        let of_others = || {
            let told = self.place.told().and_then(|told| remarks::held(&names, told, changes));
            [remarks::done(changes), told, self.limited(), self.place.no_address()]
        };
        let of_others = self.place.link.is_none().then(of_others).into_iter().flatten().flatten();
        of_others.chain(remarks::few_ports(&names, changes)).collect()
    }

    /// Who is asked less often than others.
    fn limited(&self) -> Option<Remark> {
        let interval_ns = self.rhythm.interval.as_nanos() as u64;
        let slowed = self.names().into_iter().zip(&self.slowed).filter(|(_, times)| **times > 1);
        let servers: Vec<(String, u64)> = slowed.map(|(name, times)| (name, interval_ns * times)).collect();
        (!servers.is_empty()).then_some(Remark::Limited { servers, interval_ns })
    }

    /// Curves are as fine as a server is asked: each of its ports has its turn in an interval.
    fn push_by_server(&self, seen: &Seen, of_servers: &[Server], out: &mut Samples) {
        let end_ns = seen.asked.last().map_or(0, |last| last.sent_ns.saturating_sub(seen.call_ns));
        for (number, (name, _)) in self.place.servers.iter().enumerate() {
            let server = &of_servers[number];
            let interval_ns = self.rhythm.interval.as_nanos() as u64 * self.slowed[number];
            out.push_sample(sample(REPLICAS, name, 0, server.replicas.len() as f64, Status::Ok));
            let times = || steps(interval_ns / self.rhythm.flows as u64, end_ns);
            let shares = times().filter_map(|at_ns| Some((at_ns, share_at(server, at_ns, seen.call_ns, interval_ns)?)));
            shares.for_each(|(at_ns, share)| out.push_sample(sample(SHARE, name, at_ns, share, Status::Ok)));
            // What goes back and forth is of nobody who could be named.
            let told_apart = if server.mixed.is_empty() { &server.replicas[..] } else { &[] };
            for (replica, key) in told_apart.iter().zip(keys(name, server, &seen.nsids)) {
                let (value_ns, status) = match replica.had.estimate_ns() {
                    Some(value_ns) => (value_ns, Status::Ok),
                    None => (self.limit.as_nanos() as u64, Status::Censored),
                };
                out.push_sample(sample(REPLICA, &key, 0, value_ns as f64, status));
                let shares = times().map(|at_ns| (at_ns, replica.had.share_at(at_ns)));
                shares
                    .for_each(|(at_ns, share)| out.push_sample(sample(REPLICA_SHARE, &key, at_ns, share, Status::Ok)));
            }
        }
    }
}

/// Whether a server has a limit: it leaves some questions without an answer, and answers others in part, so that who is
/// not an impostor comes by TCP.
fn is_limited(asked: &[Asked], server: usize) -> bool {
    let of_server = asked.iter().filter(|asked| asked.server == server && !asked.is_by_tcp);
    let (answers, asked) = (of_server.clone().filter_map(|asked| asked.answer), of_server.count());
    let (truncated, whole): (Vec<_>, Vec<_>) = answers.partition(|answer| answer.says == Says::Truncated);
    let lost = asked - truncated.len() - whole.len();
    // A long answer is never whole, and a few of them may be lost.
    !truncated.is_empty() && (!whole.is_empty() || 4 * lost >= truncated.len())
}

/// What a server's replicas are called: by who they say they are, or by the order in which they had the change, which
/// is also said of those that say the same.
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

/// A name as text, or where it is none in hexadecimal digits.
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
    /// Whether somebody answers, and how often.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        self.targets[arm].pace(&self.stop)
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        self.targets[arm].place.link.as_deref().map_or_else(|| Ok(Point::default()), facts)
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &mut self.targets[arm];
        let link = target.place.link.clone();
        watched(link.as_deref(), LATE, out, |out| {
            // A zone may remember what it was asked for: no two changes of it, of whichever arms, are about one record.
            let seen = target.observe(rand::random(), &self.stop)?;
            target.watch_end_ns = None;
            target.samples(&seen, out)?.into_iter().for_each(|remark| target.now.remark(remark));
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
