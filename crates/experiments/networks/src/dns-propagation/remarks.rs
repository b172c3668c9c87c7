//! What is said of all changes of a session beside figures.

use ascertain_engine::finding::Remark;
use ascertain_stats::quantile_ranks;

use super::propagation::{Moment, Server, times};

/// A chance to have missed a replica that is worth a sentence.
pub const MUCH_MISSED: f64 = 0.01;
/// For how long a NOTIFY is held back: about a second.
const HELD_NS: std::ops::Range<f64> = 0.7e9..1.3e9;
/// The error of each end of an interval.
const ERROR_OF_END: f64 = 0.025;

/// What is remembered of a change, by server.
pub struct Change {
    servers: Vec<OfServer>,
    /// When the last server had it.
    all: Moment,
    /// When who changed it said that it was done, if that is known.
    done_ns: Option<u64>,
}

struct OfServer {
    had: Moment,
    replicas: u64,
    ports: u64,
    misses: f64,
}

impl Change {
    /// None where a server does not answer.
    pub fn new(servers: &[Server], done_ns: Option<u64>) -> Option<Self> {
        let of_server = |server: &Server| {
            let (replicas, ports) = (server.replicas.len() as u64, server.ports as u64);
            Some(OfServer { had: times([server])?.all, replicas, ports, misses: server.misses() })
        };
        let all = times(servers)?.all;
        Some(Self { servers: servers.iter().map(of_server).collect::<Option<_>>()?, all, done_ns })
    }

    /// Whether there may well be replicas that were not seen: then all of them may have it later.
    pub fn may_miss(&self) -> bool {
        self.servers.iter().any(|server| server.misses > MUCH_MISSED)
    }
}

/// The median of moments, and its interval: by the order of the changes where these are enough, else all that is known
/// of any of them. A moment that has not come is behind all others.
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

/// The ends and the middle of what is known.
fn known(moment: Moment) -> [f64; 3] {
    let or_never = |ns: Option<u64>| ns.map_or(f64::INFINITY, |ns| ns as f64);
    [moment.low_ns as f64, or_never(moment.estimate_ns()), or_never(moment.high_ns)]
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// By how much "done" came before the last server.
pub fn done(changes: &[Change]) -> Option<Remark> {
    let before = |change: &Change| {
        let done_ns = change.done_ns? as f64;
        Some(known(change.all).map(|ns| ns - done_ns))
    };
    let known: Option<Vec<[f64; 3]>> = changes.iter().map(before).collect();
    let Median { estimate_ns, low_ns, high_ns } = median(known?.into_iter());
    let before_ns = finite(estimate_ns).unwrap_or(low_ns);
    Some(Remark::Done { changes: changes.len() as u64, before_ns, low_ns, high_ns: finite(high_ns) })
}

/// Whether the server that is told, an index, always had a change about a second before all others.
pub fn held(names: &[String], told: usize, changes: &[Change]) -> Option<Remark> {
    let before = |change: &Change| {
        let at_ns = |server: &OfServer| server.had.estimate_ns().map(|ns| ns as f64);
        let others = change.servers.iter().enumerate().filter(|(number, _)| *number != told);
        let next_ns = others.filter_map(|(_, server)| at_ns(server)).min_by(f64::total_cmp)?;
        Some(next_ns - at_ns(&change.servers[told])?).filter(|held_ns| HELD_NS.contains(held_ns))
    };
    let mut held_ns: Vec<f64> = changes.iter().map(before).collect::<Option<_>>()?;
    held_ns.sort_unstable_by(f64::total_cmp);
    let held_ns = *held_ns.get(held_ns.len().saturating_sub(1) / 2)?;
    Some(Remark::Held { server: names[told].clone(), held_ns })
}

/// Behind which server a replica may well have been missed, in the last change.
pub fn few_ports(names: &[String], changes: &[Change]) -> Option<Remark> {
    let of_last = changes.last()?.servers.iter().zip(names);
    let (of_server, server) = of_last.max_by(|(a, _), (b, _)| a.misses.total_cmp(&b.misses))?;
    let OfServer { replicas, ports, misses: chance, .. } = *of_server;
    (chance > MUCH_MISSED).then(|| Remark::FewPorts { server: server.clone(), replicas, ports, chance })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Servers that had a change between these milliseconds, and when it was done.
    fn change(servers: &[(u64, u64)], done_ms: u64) -> Change {
        let had = |(low_ms, high_ms): &(u64, u64)| Moment { low_ns: low_ms * MS, high_ns: Some(high_ms * MS) };
        let of_server = |ends| OfServer { had: had(ends), replicas: 1, ports: 64, misses: 0.0 };
        let all = servers.iter().map(had).max_by_key(|moment| moment.high_ns).unwrap();
        Change { servers: servers.iter().map(of_server).collect(), all, done_ns: Some(done_ms * MS) }
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
        // Another one is told, or it is so in some changes only.
        assert_eq!(held(&names(), 1, &[change(&[(0, 20), (970, 990)], 1)]), None);
        assert_eq!(held(&names(), 0, &[held_back, at_once]), None);
    }
}
