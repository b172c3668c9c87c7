//! Measuring: all pairs of a few CPUs in each trial, until all pairs of the machine have had their turn.

use std::borrow::Cow;
use std::path::Path;

use ascertain_engine::experiment::{Arm, ArmId, Sample, Samples, Session, Setup, Status, TargetError, Trial};
use ascertain_sys::affinity;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::experiment::{AGREEMENT, KERNEL_LEVELS, LATENCY, LEVELS, PEER, SHORTEST, level};
use super::load::Load;
use super::peer;
use super::ping_pong::{Means, Passed, between};
use super::topology::{Topology, compare, levels};

/// CPUs are dealt into groups of so many, and a trial measures all pairs of two groups.
const GROUP: usize = 4;

struct Target {
    /// None: the usual tool's.
    means: Option<Means>,
    /// The shortest window's latency, not the median one's.
    is_shortest: bool,
    lines: usize,
    load_per_cpu: usize,
}

struct Targets {
    targets: Vec<Target>,
    groups: Vec<Vec<usize>>,
    topology: Topology,
}

/// Deals the CPUs into groups, and reads what the kernel says of them.
pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    let target = |arm: &Arm| {
        let whole = |factor: &str| {
            let missing = || TargetError::Failed(format!("{arm}: {factor} is a whole number"));
            level(arm, factor).map(|level| level as usize).ok_or_else(missing)
        };
        let means = match arm.variant.as_str() {
            PEER => None,
            "cas" | SHORTEST => Some(Means::CompareAndSwap),
            _ => Some(Means::LoadStore),
        };
        let is_shortest = arm.variant == SHORTEST;
        Ok(Target { means, is_shortest, lines: whole("lines")?, load_per_cpu: whole("load_per_cpu")? })
    };
    let targets = arms.iter().map(target).collect::<Result<_, TargetError>>()?;
    let mut cpus = affinity::allowed();
    if cpus.len() < 2 {
        return Err(TargetError::Failed("needs two CPUs, and only one may be used".into()));
    }
    let topology = Topology::read(Path::new("/sys/devices/system/cpu"), &cpus);
    cpus.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(setup.seed));
    let groups = cpus.chunks(GROUP).map(<[usize]>::to_vec).collect();
    Ok(Box::new(Targets { targets, groups, topology }))
}

/// The CPUs of a trial, in order: two groups, so that each two of them have their turn.
fn cpus_of(groups: &[Vec<usize>], trial: u64) -> Vec<usize> {
    let two = (0..groups.len()).flat_map(|first| (first + 1..groups.len()).map(move |second| [first, second]));
    let two: Vec<[usize; 2]> = two.collect();
    let mut cpus = match two.len() {
        0 => groups[0].clone(),
        turns => two[(trial % turns as u64) as usize].iter().flat_map(|group| groups[*group].clone()).collect(),
    };
    cpus.sort_unstable();
    cpus
}

impl Target {
    fn latencies_ns(&self, cpus: &[usize]) -> Result<Vec<([usize; 2], f64)>, TargetError> {
        let _load = Load::begin(self.load_per_cpu, cpus);
        let Some(means) = self.means else { return peer::latencies_ns(cpus) };
        let pairs = cpus.iter().enumerate().flat_map(|(at, from)| cpus[at + 1..].iter().map(move |to| [*from, *to]));
        let one = |pair: [usize; 2]| {
            let passed = between(pair, means, self.lines).map_err(TargetError::Failed)?;
            checked(&passed)?;
            Ok((pair, if self.is_shortest { passed.shortest_ns } else { passed.latency_ns }))
        };
        pairs.map(one).collect()
    }
}

/// Each message arrived once: both sides counted as many.
fn checked(passed: &Passed) -> Result<(), TargetError> {
    let [asked, answered] = passed.round_trips;
    if asked != answered {
        return Err(TargetError::WrongAnswer(format!("{asked} messages were sent and {answered} answered")));
    }
    Ok(())
}

impl Session for Targets {
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let latencies = self.targets[arm].latencies_ns(&cpus_of(&self.groups, 0)[..2])?;
        match latencies.iter().find(|(_, latency_ns)| !(latency_ns.is_finite() && *latency_ns > 0.0)) {
            Some((_, latency_ns)) => Err(TargetError::WrongAnswer(format!("a latency of {latency_ns} ns"))),
            None => Ok(()),
        }
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let latencies = self.targets[arm].latencies_ns(&cpus_of(&self.groups, trial.number))?;
        for (pair, latency_ns) in &latencies {
            let [from, to] = pair;
            let key = Cow::Owned(format!("{from}-{to}"));
            out.push_sample(Sample { metric: LATENCY, key, offset_ns: 0, value: *latency_ns, status: Status::Ok });
        }
        if let Some(levels) = levels(&latencies.iter().map(|(_, ns)| *ns).collect::<Vec<_>>()) {
            out.push(LEVELS, levels as f64);
        }
        let known = latencies.iter().filter_map(|(pair, ns)| Some((*ns, self.topology.distance(*pair)?)));
        let compared = compare(&known.collect::<Vec<_>>());
        if compared.kernel_levels > 0 {
            out.push(KERNEL_LEVELS, compared.kernel_levels as f64);
        }
        if let Some(agreement) = compared.agreement {
            out.push(AGREEMENT, agreement);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// 64 CPUs take 120 trials of 28 pairs.
    #[test]
    fn all_pairs_have_their_turn() {
        for (count, turns) in [(2, 1), (4, 1), (7, 1), (64, 120)] {
            let all: Vec<usize> = (0..count).collect();
            let groups: Vec<Vec<usize>> = all.chunks(GROUP).map(<[usize]>::to_vec).collect();
            let mut seen = BTreeSet::new();
            for trial in 0..turns {
                let cpus = cpus_of(&groups, trial);
                assert!(cpus.len() <= 2 * GROUP && cpus.is_sorted());
                seen.extend(cpus.iter().flat_map(|a| cpus.iter().map(move |b| (*a, *b))).filter(|(a, b)| a < b));
            }
            assert_eq!(seen.len(), count * (count - 1) / 2, "{count}");
        }
    }

    #[test]
    fn messages_arrive_once_by_either_means() {
        let cpus = affinity::allowed();
        let first = cpus[0];
        if std::thread::spawn(move || affinity::pin_current_thread(first)).join().unwrap().is_err() {
            return; // Not Linux, or a filter of system calls forbids it.
        }
        for means in [Means::CompareAndSwap, Means::LoadStore] {
            for lines in [1, 2] {
                // On one CPU too, where each waits until the other is let in.
                let passed = between([cpus[0], *cpus.last().unwrap()], means, lines).unwrap();
                checked(&passed).unwrap();
                assert!(0.0 < passed.shortest_ns && passed.shortest_ns <= passed.latency_ns);
                assert!(passed.round_trips[0] >= 11 * 50);
            }
        }
        let lost = Passed { latency_ns: 1.0, shortest_ns: 1.0, round_trips: [2, 1] };
        assert!(matches!(checked(&lost), Err(TargetError::WrongAnswer(_))));
    }
}
