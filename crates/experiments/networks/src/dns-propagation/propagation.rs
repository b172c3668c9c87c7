//! From questions and their answers to when which server had what is new.
//!
//! An answer tells of a moment between when its question was sent and when it arrived: the old one that what is new
//! was not there when the question was sent, the new one that it was there when the answer arrived. What one replica
//! said is a strand: its moment lies behind its last old answer's sending, and not behind its first new answer's
//! arrival.

use std::collections::{BTreeMap, BTreeSet};

use ascertain_netlab::dns::{Asked, Says};

/// So many answers in a row by chance do not miss one of eight replicas, but in one of a hundred cases.
const MISSES_NONE: usize = 35;

/// What is known of a moment, in nanoseconds since the call: it is behind `low_ns`, and not behind `high_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub low_ns: u64,
    /// None where it has not come.
    pub high_ns: Option<u64>,
}

impl Moment {
    /// In the middle; none where it has not come.
    pub fn estimate_ns(self) -> Option<u64> {
        self.high_ns.map(|high_ns| self.low_ns + high_ns.saturating_sub(self.low_ns) / 2)
    }

    fn until_ns(self) -> u64 {
        self.high_ns.unwrap_or(u64::MAX)
    }

    /// Whether both may have been at the same moment. Both may have been before the call if nothing is known that is
    /// later than the call.
    fn may_equal(self, other: Self) -> bool {
        let begins_before_end = |one: Self, other: Self| one.low_ns < other.until_ns().max(1);
        begins_before_end(self, other) && begins_before_end(other, self)
    }

    /// How likely it has come by then, if it may be anywhere in what is known of it.
    pub fn share_at(self, time_ns: u64) -> f64 {
        match self.high_ns {
            Some(high_ns) if time_ns >= high_ns => 1.0,
            Some(high_ns) if time_ns > self.low_ns => (time_ns - self.low_ns) as f64 / (high_ns - self.low_ns) as f64,
            _ => 0.0,
        }
    }
}

/// One of those that answer at an address.
#[derive(Clone, Debug, PartialEq)]
pub struct Replica {
    pub had: Moment,
    /// Its part of the address's questions.
    pub share: f64,
    /// Who it says it is, an index.
    pub nsid: Option<usize>,
}

/// What was seen of one address.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// The fewest that explain the answers, by when they had it. None where nobody answered.
    pub replicas: Vec<Replica>,
    /// Where answers went back and forth, of what looked like one replica otherwise, so that they are two at least:
    /// when each of the server's answers was asked for, in that order, and whether it was new. Else nothing.
    pub mixed: Vec<(u64, bool)>,
    /// From so many ports it answered something.
    pub ports: usize,
    pub asked: u64,
    pub lost: u64,
    /// Answers that said neither that it is there nor that it is not.
    pub failed: u64,
}

impl Server {
    /// The chance that so many ports miss one of so many replicas, if there is one more than was seen, and routers lead
    /// to all of them alike.
    pub fn misses(&self) -> f64 {
        let count = self.replicas.len() as f64 + 1.0;
        (count * (1.0 - 1.0 / count).powi(self.ports as i32)).min(1.0)
    }
}

/// When a part of the answers was new.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    pub first: Moment,
    pub half: Moment,
    pub all: Moment,
}

/// What an answer tells.
#[derive(Clone, Copy, Debug)]
struct Told {
    sent_ns: u64,
    received_ns: u64,
    is_new: bool,
    serial: Option<u32>,
    nsid: Option<usize>,
    flow: usize,
}

/// What each server's answers tell of a change that was called for at this moment. Answers to what was asked before it
/// tell who there is.
pub fn servers(asked: &[Asked], count: usize, call_ns: u64) -> Vec<Server> {
    (0..count).map(|server| of_server(asked.iter().filter(|asked| asked.server == server), call_ns)).collect()
}

fn of_server<'a>(asked: impl Iterator<Item = &'a Asked>, call_ns: u64) -> Server {
    let mut told = Vec::new();
    let mut server = Server { replicas: Vec::new(), mixed: Vec::new(), ports: 0, asked: 0, lost: 0, failed: 0 };
    for asked in asked {
        server.asked += 1;
        let Some(answer) = asked.answer else {
            server.lost += 1;
            continue;
        };
        let is_new = match answer.says {
            Says::New => true,
            Says::Old => false,
            _ => {
                server.failed += 1;
                continue;
            }
        };
        let (sent_ns, received_ns, serial, nsid) = (asked.sent_ns, answer.received_ns, answer.serial, answer.nsid);
        told.push(Told { sent_ns, received_ns, is_new, serial, nsid, flow: asked.flow });
    }
    let all = told.len() as f64;
    server.ports = told.iter().map(|told| told.flow).collect::<BTreeSet<_>>().len();
    let mut of_all: Vec<(u64, bool)> = told.iter().map(|told| (told.sent_ns, told.is_new)).collect();
    of_all.sort_unstable();
    for (nsid, strand) in strands(told, |told| told.nsid) {
        // Several may have one name: by where the questions came from they are still told apart.
        let is_whole = nsid.is_some() && is_one(&strand);
        let mut of_name = Vec::new();
        for strand in strands(strand, |told| if is_whole { 0 } else { told.flow }).into_values() {
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

fn strands<K: Ord>(told: Vec<Told>, key: impl Fn(&Told) -> K) -> BTreeMap<K, Vec<Told>> {
    let mut strands: BTreeMap<K, Vec<Told>> = BTreeMap::new();
    for told in told {
        strands.entry(key(&told)).or_default().push(told);
    }
    strands
}

/// Whether one replica may have said all that: nothing that was there is gone in what was asked for later, and no
/// serial number is smaller (RFC 1982).
fn is_one(strand: &[Told]) -> bool {
    let had = moment(strand, 0);
    had.low_ns < had.until_ns() && keeps_its_serial(strand)
}

fn keeps_its_serial(strand: &[Told]) -> bool {
    let by = |time: fn(&Told) -> u64| {
        let mut serials: Vec<(u64, u32)> = strand.iter().filter_map(|told| Some((time(told), told.serial?))).collect();
        serials.sort_unstable();
        serials
    };
    let is_older = |serial: u32, than: u32| serial.wrapping_sub(than) >= 1 << 31;
    let mut arrived = by(|told| told.received_ns).into_iter().peekable();
    let mut newest: Option<u32> = None;
    by(|told| told.sent_ns).into_iter().all(|(sent_ns, serial)| {
        while let Some((_, before)) = arrived.next_if(|(received_ns, _)| *received_ns <= sent_ns) {
            newest = newest.filter(|newest| is_older(before, *newest)).or(Some(before));
        }
        newest.is_none_or(|newest| !is_older(serial, newest))
    })
}

fn moment(strand: &[Told], call_ns: u64) -> Moment {
    let low_ns = strand.iter().filter(|told| !told.is_new).map(|told| told.sent_ns).max().unwrap_or(0);
    let high_ns = strand.iter().filter(|told| told.is_new).map(|told| told.received_ns).min();
    since(call_ns, low_ns, high_ns)
}

fn since(call_ns: u64, low_ns: u64, high_ns: Option<u64>) -> Moment {
    Moment { low_ns: low_ns.saturating_sub(call_ns), high_ns: high_ns.map(|high_ns| high_ns.saturating_sub(call_ns)) }
}

/// What two replicas had, at least, that share questions by chance: the first of them, and the last.
fn first_and_last(mut strand: Vec<Told>, call_ns: u64) -> [Moment; 2] {
    strand.sort_unstable_by_key(|told| told.sent_ns);
    let first_new = strand.iter().position(|told| told.is_new).unwrap_or(0);
    let last_old = strand.iter().rposition(|told| !told.is_new).unwrap_or(0);
    let before_ns = first_new.checked_sub(MISSES_NONE).map_or(0, |index| strand[index].sent_ns);
    let first_ns = strand.iter().filter(|told| told.is_new).map(|told| told.received_ns).min();
    let last_ns = strand.get(last_old + MISSES_NONE).map(|told| told.received_ns);
    [since(call_ns, before_ns, first_ns), since(call_ns, strand[last_old].sent_ns, last_ns)]
}

/// Replicas of one name, or without one, that may have had it at the same moment are one. Strands that lost what was
/// said around that moment fit many, and might join what is apart: they are counted with those that they fit, and
/// change nothing there.
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

/// Joins those that have a moment in common, so that the fewest are left.
fn with_common_moments(mut strands: Vec<Replica>) -> Vec<Replica> {
    strands.sort_unstable_by_key(|strand| (strand.had.until_ns(), strand.had.low_ns));
    let mut replicas: Vec<Replica> = Vec::new();
    for strand in strands {
        match replicas.last_mut() {
            // Those before end no later: what begins before the last one ends has its end in common with it.
            Some(one) if strand.had.may_equal(one.had) => {
                one.had.low_ns = one.had.low_ns.max(strand.had.low_ns);
                one.share += strand.share;
            }
            _ => replicas.push(strand),
        }
    }
    replicas
}

/// When the first, half and all of the answers of these servers were new, each server as much as the other; none where
/// one does not answer.
pub fn times<'a>(servers: impl IntoIterator<Item = &'a Server>) -> Option<Times> {
    let mut moments = Vec::new();
    for server in servers {
        if server.replicas.is_empty() {
            return None;
        }
        moments.extend(server.replicas.iter().map(|replica| (replica.had, replica.share)));
    }
    let whole: f64 = moments.iter().map(|(_, share)| share).sum();
    // Of what is so far at an end, and of what has surely begun: the moment lies between.
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

/// The most steps of a curve.
const MOST_STEPS: u64 = 500;

/// The ends of steps from the call until `end_ns` after it: as fine as a server is asked, `gap_ns`, or two, four, …
/// times that where it would be too many. Trials with longer steps look at some of the times of those with shorter
/// ones.
pub fn steps(gap_ns: u64, end_ns: u64) -> impl Iterator<Item = u64> {
    let mut step_ns = gap_ns.max(1);
    while end_ns / step_ns > MOST_STEPS {
        step_ns *= 2;
    }
    (1..=end_ns / step_ns).map(move |number| number * step_ns)
}

/// The share of new answers to what a server is asked so long after the call: of each replica's part as likely as the
/// replica has it by then. Where answers go back and forth, that of those within an interval around it, if there are
/// any.
pub fn share_at(server: &Server, time_ns: u64, call_ns: u64, interval_ns: u64) -> Option<f64> {
    if server.mixed.is_empty() {
        return Some(server.replicas.iter().map(|replica| replica.share * replica.had.share_at(time_ns)).sum());
    }
    let at = |ns: u64| server.mixed.partition_point(|(sent_ns, _)| *sent_ns < ns);
    let middle_ns = call_ns + time_ns;
    let told = &server.mixed[at(middle_ns.saturating_sub(interval_ns / 2))..at(middle_ns + interval_ns / 2)];
    let new = told.iter().filter(|(_, is_new)| *is_new).count();
    (!told.is_empty()).then(|| new as f64 / told.len() as f64)
}

#[cfg(test)]
#[path = "simulated.rs"]
mod simulated;
