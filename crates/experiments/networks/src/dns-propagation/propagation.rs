//! Computes when each server had a change, from queries and their answers.
//!
//! Each answer gives a bound on the time at which a replica received the change. An old answer shows that the replica
//! did not have the change when the query was sent. A new answer shows that the replica had the change when the answer
//! arrived. The answers of one replica are called a strand. They give two bounds: the time at which the query of the
//! last old answer was sent, and the time at which the first new answer arrived.

use std::collections::{BTreeMap, BTreeSet};

use ascertain_netlab::dns::{AnswerState, Probe};

/// Number of consecutive answers that suffice to find a given replica, one of the machines behind a server's address.
/// If eight replicas answer at random, this many answers miss the replica in only 1 % of cases.
const MISSES_NONE: usize = 35;

/// Bounds of the time at which a replica or server received the change, in ns after the call that requested the change.
/// The time is after `low_ns`, and at `high_ns` at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub low_ns: u64,
    /// The upper bound; `None` if the change has not arrived.
    pub high_ns: Option<u64>,
}

impl Moment {
    /// Returns the middle of the bounds; `None` if the change has not arrived.
    pub fn estimate_ns(self) -> Option<u64> {
        self.high_ns.map(|high_ns| self.low_ns + high_ns.saturating_sub(self.low_ns) / 2)
    }

    fn until_ns(self) -> u64 {
        self.high_ns.unwrap_or(u64::MAX)
    }

    /// Returns whether the bounds of two replicas overlap. Both may then have received the change at the same time. If
    /// neither replica gave an old answer after the call, their bounds always overlap, because both may have received
    /// the change before the call.
    fn may_equal(self, other: Self) -> bool {
        let begins_before_end = |one: Self, other: Self| one.low_ns < other.until_ns().max(1);
        begins_before_end(self, other) && begins_before_end(other, self)
    }

    /// Returns the probability that the change had arrived at `time_ns`, if all times within the bounds are equally
    /// likely.
    pub fn share_at(self, time_ns: u64) -> f64 {
        match self.high_ns {
            Some(high_ns) if time_ns >= high_ns => 1.0,
            Some(high_ns) if time_ns > self.low_ns => (time_ns - self.low_ns) as f64 / (high_ns - self.low_ns) as f64,
            _ => 0.0,
        }
    }
}

/// One of the machines that answer at a server's address.
#[derive(Clone, Debug, PartialEq)]
pub struct Replica {
    pub had: Moment,
    /// Share of the server's answers that are from this replica.
    pub share: f64,
    /// The identity (NSID) that the replica reports, as an index; `None` if it reports none.
    pub nsid: Option<usize>,
}

/// The observations of one address of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// The replicas in the order in which they received the change. Their number is the smallest that explains all
    /// answers. Empty if the server did not answer.
    pub replicas: Vec<Replica>,
    /// The moment of each query in ns, and whether its answer was new. This list is empty unless new and old answers
    /// alternated at the same port with the same identity. Such answers come from at least two replicas.
    pub mixed: Vec<(u64, bool)>,
    /// Number of source ports that got an answer.
    pub ports: usize,
    pub asked: u64,
    pub lost: u64,
    /// Number of answers that did not show whether the replica had the change.
    pub failed: u64,
}

impl Server {
    /// Returns the probability that the queries from the server's `ports` miss a replica, one of the machines behind
    /// its address. Assumes that there is one replica more than was found, and that routers choose among all replicas
    /// evenly.
    pub fn misses(&self) -> f64 {
        let count = self.replicas.len() as f64 + 1.0;
        (count * (1.0 - 1.0 / count).powi(self.ports as i32)).min(1.0)
    }
}

/// Bounds of three moments: when the first new answers appeared, when half of the answers were new, and when all
/// answers were new. An answer is new if the replica that gave it had the change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    pub first: Moment,
    pub half: Moment,
    pub all: Moment,
}

/// The part of an answer that shows whether the replica had the change, and which replica it was.
#[derive(Clone, Copy, Debug)]
struct Reading {
    sent_ns: u64,
    received_ns: u64,
    is_new: bool,
    serial: Option<u32>,
    nsid: Option<usize>,
    flow: usize,
}

/// Computes the observations of each of `count` servers, for a change that was requested at `call_ns`. Several
/// machines (replicas) may answer at the address of a server. The answers before the call show which ones there are.
pub fn servers(probes: &[Probe], count: usize, call_ns: u64) -> Vec<Server> {
    (0..count).map(|server| of_server(probes.iter().filter(|probe| probe.server == server), call_ns)).collect()
}

fn of_server<'a>(probes: impl Iterator<Item = &'a Probe>, call_ns: u64) -> Server {
    let mut readings = Vec::new();
    let mut server = Server { replicas: Vec::new(), mixed: Vec::new(), ports: 0, asked: 0, lost: 0, failed: 0 };
    for probe in probes {
        server.asked += 1;
        let Some(answer) = probe.answer else {
            server.lost += 1;
            continue;
        };
        let is_new = match answer.state {
            AnswerState::New => true,
            AnswerState::Old => false,
            _ => {
                server.failed += 1;
                continue;
            }
        };
        let (sent_ns, received_ns, serial, nsid) = (probe.sent_ns, answer.received_ns, answer.serial, answer.nsid);
        readings.push(Reading { sent_ns, received_ns, is_new, serial, nsid, flow: probe.flow });
    }
    let all = readings.len() as f64;
    server.ports = readings.iter().map(|reading| reading.flow).collect::<BTreeSet<_>>().len();
    let mut of_all: Vec<(u64, bool)> = readings.iter().map(|reading| (reading.sent_ns, reading.is_new)).collect();
    of_all.sort_unstable();
    for (nsid, strand) in strands(readings, |reading| reading.nsid) {
        // Several replicas may report the same identity. If one replica can't have given all answers of this identity,
        // they are also separated by port.
        let is_whole = nsid.is_some() && is_one(&strand);
        let mut of_name = Vec::new();
        for strand in strands(strand, |reading| if is_whole { 0 } else { reading.flow }).into_values() {
            let share = strand.len() as f64 / all;
            if is_one(&strand) {
                of_name.push(Replica { had: moment(&strand, call_ns), share, nsid });
                continue;
            }
            server.mixed.clone_from(&of_all);
            let both = first_and_last(strand, call_ns).map(|had| Replica { had, share: share / 2.0, nsid });
            of_name.extend(both);
        }
        server.replicas.extend(fewest(of_name));
    }
    server.replicas.sort_unstable_by_key(|replica| (replica.had.until_ns(), replica.had.low_ns));
    server
}

fn strands<K: Ord>(readings: Vec<Reading>, key: impl Fn(&Reading) -> K) -> BTreeMap<K, Vec<Reading>> {
    let mut strands: BTreeMap<K, Vec<Reading>> = BTreeMap::new();
    for reading in readings {
        strands.entry(key(&reading)).or_default().push(reading);
    }
    strands
}

/// Returns whether a single replica (machine behind a server's address) can have given all these answers. This is
/// possible if the change does not disappear later and no serial number decreases (RFC 1982).
fn is_one(strand: &[Reading]) -> bool {
    let had = moment(strand, 0);
    had.low_ns < had.until_ns() && keeps_its_serial(strand)
}

fn keeps_its_serial(strand: &[Reading]) -> bool {
    let by = |time: fn(&Reading) -> u64| {
        let mut serials: Vec<(u64, u32)> =
            strand.iter().filter_map(|reading| Some((time(reading), reading.serial?))).collect();
        serials.sort_unstable();
        serials
    };
    let is_older = |serial: u32, than: u32| serial.wrapping_sub(than) >= 1 << 31;
    let mut arrived = by(|reading| reading.received_ns).into_iter().peekable();
    let mut newest: Option<u32> = None;
    by(|reading| reading.sent_ns).into_iter().all(|(sent_ns, serial)| {
        while let Some((_, before)) = arrived.next_if(|(received_ns, _)| *received_ns <= sent_ns) {
            newest = newest.filter(|newest| is_older(before, *newest)).or(Some(before));
        }
        newest.is_none_or(|newest| !is_older(serial, newest))
    })
}

fn moment(strand: &[Reading], call_ns: u64) -> Moment {
    let low_ns = strand.iter().filter(|reading| !reading.is_new).map(|reading| reading.sent_ns).max().unwrap_or(0);
    let high_ns = strand.iter().filter(|reading| reading.is_new).map(|reading| reading.received_ns).min();
    since(call_ns, low_ns, high_ns)
}

fn since(call_ns: u64, low_ns: u64, high_ns: Option<u64>) -> Moment {
    Moment { low_ns: low_ns.saturating_sub(call_ns), high_ns: high_ns.map(|high_ns| high_ns.saturating_sub(call_ns)) }
}

/// Returns the times at which the first and the last replica (machine behind a server's address) received the change.
/// Used if at least two replicas answer at random. Their answers then cannot be told apart.
fn first_and_last(mut strand: Vec<Reading>, call_ns: u64) -> [Moment; 2] {
    strand.sort_unstable_by_key(|reading| reading.sent_ns);
    let first_new = strand.iter().position(|reading| reading.is_new).unwrap_or(0);
    let last_old = strand.iter().rposition(|reading| !reading.is_new).unwrap_or(0);
    let before_ns = first_new.checked_sub(MISSES_NONE).map_or(0, |index| strand[index].sent_ns);
    let first_ns = strand.iter().filter(|reading| reading.is_new).map(|reading| reading.received_ns).min();
    let last_ns = strand.get(last_old + MISSES_NONE).map(|reading| reading.received_ns);
    [since(call_ns, before_ns, first_ns), since(call_ns, strand[last_old].sent_ns, last_ns)]
}

/// Joins strands that may be from the same replica, because their bounds overlap. A strand is a list of answers of one
/// replica; all strands here have the same identity. If answers were lost at the time of the change, a strand has wide
/// bounds, which may overlap with those of several replicas. Such a strand is joined to the first of these replicas,
/// whose bounds do not change.
fn fewest(strands: Vec<Replica>) -> Vec<Replica> {
    let width_ns = |strand: &Replica| strand.had.until_ns().saturating_sub(strand.had.low_ns);
    let mut widths_ns: Vec<u64> = strands.iter().map(width_ns).collect();
    widths_ns.sort_unstable();
    let usual_ns = widths_ns.get(widths_ns.len() / 4).map_or(0, |width_ns| width_ns.saturating_add(width_ns / 2));
    let (sure, unsure): (Vec<_>, Vec<_>) = strands.into_iter().partition(|strand| width_ns(strand) <= usual_ns);
    let mut replicas = with_common_moments(sure);
    let mut others = Vec::new();
    for strand in unsure {
        match replicas.iter_mut().find(|one| one.had.may_equal(strand.had)) {
            Some(one) => one.share += strand.share,
            None => others.push(strand),
        }
    }
    replicas.extend(with_common_moments(others));
    replicas
}

/// Joins strands whose bounds overlap, so that as few replicas as possible remain. A strand is a list of answers of one
/// replica.
fn with_common_moments(mut strands: Vec<Replica>) -> Vec<Replica> {
    strands.sort_unstable_by_key(|strand| (strand.had.until_ns(), strand.had.low_ns));
    let mut replicas: Vec<Replica> = Vec::new();
    for strand in strands {
        match replicas.last_mut() {
            // The strands are sorted by their upper bounds. So a strand overlaps the last replica if the strand's
            // bounds begin before that replica's bounds end.
            Some(one) if strand.had.may_equal(one.had) => {
                one.had.low_ns = one.had.low_ns.max(strand.had.low_ns);
                one.share += strand.share;
            }
            _ => replicas.push(strand),
        }
    }
    replicas
}

/// Returns three moments: when the servers' first new answers appeared, when half of their answers were new, and when
/// all of them were new. All servers have the same weight. Returns `None` if a server does not answer.
pub fn times<'a>(servers: impl IntoIterator<Item = &'a Server>) -> Option<Times> {
    let mut moments = Vec::new();
    for server in servers {
        if server.replicas.is_empty() {
            return None;
        }
        moments.extend(server.replicas.iter().map(|replica| (replica.had, replica.share)));
    }
    let whole: f64 = moments.iter().map(|(_, share)| share).sum();
    // Both bounds of the time at which a share of the answers is new. One follows from the replicas' lower bounds, the
    // other from their upper bounds.
    let at = |part: f64| {
        let bound = |of: fn(Moment) -> u64| {
            let mut bounds: Vec<(u64, f64)> = moments.iter().map(|(moment, share)| (of(*moment), *share)).collect();
            bounds.sort_unstable_by_key(|(bound, _)| *bound);
            let mut sum = 0.0;
            let reaches = bounds.iter().find(|(_, share)| {
                sum += share;
                sum >= part * whole - 1e-9
            });
            reaches.or(bounds.last()).map_or(u64::MAX, |(bound, _)| *bound)
        };
        let high_ns = bound(Moment::until_ns);
        Moment { low_ns: bound(|moment| moment.low_ns), high_ns: (high_ns < u64::MAX).then_some(high_ns) }
    };
    Some(Times { first: at(0.0), half: at(0.5), all: at(1.0) })
}

/// Largest number of steps of a curve, which shows the share of new answers over time.
const MOST_STEPS: u64 = 500;

/// Returns the times at which the steps of a curve end, up to `end_ns` after the call. The length of a step is
/// `gap_ns`, doubled until there are at most `MOST_STEPS` steps. The steps of a longer trial are therefore as long as
/// the steps of a shorter trial, or twice as long, or four times, and so on. Each step of the longer trial ends
/// together with a step of the shorter trial, so that trials can be compared.
pub fn steps(gap_ns: u64, end_ns: u64) -> impl Iterator<Item = u64> {
    let mut step_ns = gap_ns.max(1);
    while end_ns / step_ns > MOST_STEPS {
        step_ns *= 2;
    }
    (1..=end_ns / step_ns).map(move |number| number * step_ns)
}

/// Returns the share of a server's answers that were new at `time_ns` after the call. Each replica contributes its
/// share of the answers, multiplied by the probability that it has the change. If new and old answers alternate, counts
/// the answers in an interval of length `interval_ns` around that time instead. Returns `None` if this interval has no
/// answers.
pub fn share_at(server: &Server, time_ns: u64, call_ns: u64, interval_ns: u64) -> Option<f64> {
    if server.mixed.is_empty() {
        return Some(server.replicas.iter().map(|replica| replica.share * replica.had.share_at(time_ns)).sum());
    }
    let at = |ns: u64| server.mixed.partition_point(|(sent_ns, _)| *sent_ns < ns);
    let middle_ns = call_ns + time_ns;
    let within = &server.mixed[at(middle_ns.saturating_sub(interval_ns / 2))..at(middle_ns + interval_ns / 2)];
    let new = within.iter().filter(|(_, is_new)| *is_new).count();
    (!within.is_empty()).then(|| new as f64 / within.len() as f64)
}

#[cfg(test)]
#[path = "simulated.rs"]
mod simulated;
