//! Remarks about a session. Each remark is computed from all changes that the session has measured.

use ascertain_engine::finding::Remark;
use ascertain_stats::quantile_ranks;

use super::propagation::{Moment, Server, times};

/// Highest acceptable probability that a replica (one of a server's machines) was missed. If the probability is higher,
/// the session makes a remark.
pub const MUCH_MISSED: f64 = 0.01;
/// Range in ns of delays that suggest that a server holds a NOTIFY back for about one second.
const HELD_NS: std::ops::Range<f64> = 0.7e9..1.3e9;
/// Error probability on each side of the confidence interval of a median.
const ERROR_OF_END: f64 = 0.025;

/// The observations of one change at each server.
pub struct ObservedChange {
    servers: Vec<Server>,
    /// Bounds of the time at which the last server received the change.
    all: Moment,
    /// The time at which the provider reported the change as done, in ns; `None` if the provider did not report it.
    done_ns: Option<u64>,
}

impl ObservedChange {
    /// Creates the change from the observations of each server. Returns `None` if a server does not answer.
    pub fn new(servers: &[Server], done_ns: Option<u64>) -> Option<Self> {
        // Drops the single answers, which are not needed for remarks.
        let servers = servers.iter().map(|server| Server { mixed: Vec::new(), ..server.clone() });
        let servers: Vec<Server> = servers.collect();
        Some(Self { all: times(&servers)?.all, servers, done_ns })
    }

    /// Returns whether replicas, the machines behind a server's address, may have been missed. A missed replica may
    /// have received the change later than all observed replicas.
    pub fn may_miss(&self) -> bool {
        self.servers.iter().any(|server| server.misses() > MUCH_MISSED)
    }
}

/// The median of times, and its interval. With enough changes, the interval is the confidence interval from the sorted
/// times. With fewer changes, it covers the bounds of all times. A change that has not arrived counts as later than all
/// others.
struct Median {
    estimate_ns: f64,
    low_ns: f64,
    high_ns: f64,
}

fn median(moments: impl Iterator<Item = [f64; 3]>) -> Median {
    let moments: Vec<[f64; 3]> = moments.collect();
    let [lows, estimates, highs] = [0, 1, 2].map(|part| {
        let mut values: Vec<f64> = moments.iter().map(|moment| moment[part]).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    });
    let ranks = quantile_ranks(moments.len() as u64, 0.5, ERROR_OF_END, ERROR_OF_END).ok();
    let at = |values: &[f64], rank: Option<u64>, otherwise: usize| {
        let index = rank.map_or(otherwise, |rank| rank as usize);
        values.get(index).copied().unwrap_or(f64::INFINITY)
    };
    let last = moments.len().saturating_sub(1);
    Median {
        estimate_ns: at(&estimates, None, last / 2),
        low_ns: at(&lows, ranks.as_ref().and_then(|ranks| ranks.low), 0),
        high_ns: at(&highs, ranks.as_ref().and_then(|ranks| ranks.high), last),
    }
}

/// Returns the lower bound, the middle and the upper bound of a time; infinity if the change has not arrived.
fn known(moment: Moment) -> [f64; 3] {
    let or_never = |ns: Option<u64>| ns.map_or(f64::INFINITY, |ns| ns as f64);
    [moment.low_ns as f64, or_never(moment.estimate_ns()), or_never(moment.high_ns)]
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Returns a remark about the time between two events: the provider reports a change as done, and the last server has
/// the change. Returns `None` if the provider did not report every change as done.
pub fn done(changes: &[ObservedChange]) -> Option<Remark> {
    let before = |change: &ObservedChange| {
        let done_ns = change.done_ns? as f64;
        Some(known(change.all).map(|ns| ns - done_ns))
    };
    let known: Option<Vec<[f64; 3]>> = changes.iter().map(before).collect();
    let Median { estimate_ns, low_ns, high_ns } = median(known?.into_iter());
    let before_ns = finite(estimate_ns).unwrap_or(low_ns);
    Some(Remark::Done { changes: changes.len() as u64, before_ns, low_ns, high_ns: finite(high_ns) })
}

/// Returns a remark if the server with the index `primary` always had a change about a second before all other servers.
/// Such a server holds changes back. Otherwise returns `None`.
pub fn held(names: &[String], primary: usize, changes: &[ObservedChange]) -> Option<Remark> {
    let before = |change: &ObservedChange| {
        let at_ns = |server: &Server| times([server])?.all.estimate_ns().map(|ns| ns as f64);
        let others = change.servers.iter().enumerate().filter(|(number, _)| *number != primary);
        let next_ns = others.filter_map(|(_, server)| at_ns(server)).min_by(f64::total_cmp)?;
        Some(next_ns - at_ns(&change.servers[primary])?).filter(|held_ns| HELD_NS.contains(held_ns))
    };
    let mut held_ns: Vec<f64> = changes.iter().map(before).collect::<Option<_>>()?;
    held_ns.sort_unstable_by(f64::total_cmp);
    let held_ns = *held_ns.get(held_ns.len().saturating_sub(1) / 2)?;
    Some(Remark::Held { server: names[primary].clone(), held_ns })
}

/// Returns a remark about the server whose answers to the last change most likely missed a replica, one of the machines
/// behind its address. Returns `None` if a miss is unlikely for every server.
pub fn few_ports(names: &[String], changes: &[ObservedChange]) -> Option<Remark> {
    let of_last = changes.last()?.servers.iter().zip(names);
    let (of_server, server) = of_last.max_by(|(a, _), (b, _)| a.misses().total_cmp(&b.misses()))?;
    let (replicas, ports, chance) = (of_server.replicas.len() as u64, of_server.ports as u64, of_server.misses());
    (chance > MUCH_MISSED).then(|| Remark::FewPorts { server: server.clone(), replicas, ports, chance })
}

#[cfg(test)]
mod tests {
    use super::super::propagation::Replica;
    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns a change that was reported as done at `done_ms`. It reached each server between the two times in
    /// `servers`, in ms.
    fn change(servers: &[(u64, u64)], done_ms: u64) -> ObservedChange {
        let had = |(low_ms, high_ms): &(u64, u64)| Moment { low_ns: low_ms * MS, high_ns: Some(high_ms * MS) };
        let replica = |ends| Replica { had: had(ends), share: 1.0, nsid: None };
        let counts = Server { replicas: Vec::new(), mixed: Vec::new(), ports: 64, asked: 1, lost: 0, failed: 0 };
        let of_server = |ends| Server { replicas: vec![replica(ends)], ..counts.clone() };
        let all = servers.iter().map(had).max_by_key(|moment| moment.high_ns).unwrap();
        ObservedChange { servers: servers.iter().map(of_server).collect(), all, done_ns: Some(done_ms * MS) }
    }

    fn names() -> Vec<String> {
        ["a", "b", "c"].map(String::from).into()
    }

    #[test]
    fn done_is_before_the_last_server_or_after_it() {
        let said = |done_ms| done(&[change(&[(0, 10), (90, 110)], done_ms)]);
        let done = |before: f64, low: f64, high: f64| {
            let [before_ns, low_ns, high_ns] = [before, low, high].map(|ms| ms * 1e6);
            Some(Remark::Done { changes: 1, before_ns, low_ns, high_ns: Some(high_ns) })
        };
        assert_eq!(said(20), done(80.0, 70.0, 90.0));
        assert_eq!(said(200), done(-100.0, -110.0, -90.0));
    }

    #[test]
    fn a_second_between_the_one_that_is_told_and_all_others_is_named() {
        let (held_back, at_once) =
            (change(&[(0, 20), (970, 990), (1_040, 1_060)], 1), change(&[(0, 20), (30, 50), (990, 1_010)], 1));
        let Some(Remark::Held { server, held_ns }) = held(&names(), 0, &[change(&[(0, 20), (970, 990)], 1)]) else {
            panic!("it is held back");
        };
        assert_eq!((server.as_str(), held_ns), ("a", 970e6));
        // No remark is made if another server is the primary, or if the delay occurs only in some changes.
        assert_eq!(held(&names(), 1, &[change(&[(0, 20), (970, 990)], 1)]), None);
        assert_eq!(held(&names(), 0, &[held_back, at_once]), None);
    }
}
