//! How long it takes a CPU to tell another something: two ways to hand over, and the usual tool. Each trial measures
//! all pairs of a few CPUs, until all pairs of the machine have had their turn.

mod peer;
mod ping_pong;
mod topology;

use std::borrow::Cow;
use std::path::Path;
use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, ArmId, Better, Experiment, Factor, Metric, Plot, Reduce, Sample, Samples, Session, Setup, Spec,
    Status, TargetError, Trial, Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::affinity;
use ascertain_sys::machine::Machine;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use ping_pong::{Load, Means, Passed, between};
use topology::{LEVEL_CPUS, Topology, compare, levels};

/// Latencies between CPUs.
pub struct CoreLatency;

const LATENCY: usize = 0;
const LEVELS: usize = 1;
const KERNEL_LEVELS: usize = 2;
const AGREEMENT: usize = 3;

/// The usual tool, by its name on the command line.
const PEER: &str = "core-to-core-latency";

/// The shortest window, by its variant's name.
const SHORTEST: &str = "cas-shortest";

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    let latency = Metric::time("latency", "from a CPU to another, one way");
    Spec {
        title: "How long it takes a CPU to tell another something".into(),
        variants: [
            ("cas", "compare-and-swap, to hand over and to wait"),
            (SHORTEST, "limit: as cas, of the shortest window instead of the median: what nothing disturbed"),
            ("load-store", "a store to hand over, loads to wait"),
            (PEER, "the command of that name, which takes the mean; one cache line only"),
        ]
        .map(Variant::from)
        .to_vec(),
        factors: vec![
            Factor::new(
                "lines",
                "cache lines: one for both directions, or one for each",
                1,
                Accepts::Integers { min: 1, max: 2 },
            ),
            Factor::new(
                "load_per_cpu",
                "threads on each CPU that do nothing but keep it busy",
                0,
                Accepts::Integers { min: 0, max: 16 },
            ),
        ],
        metrics: vec![
            Metric { reduce: Reduce::Quantile(0.5), ..latency },
            Metric::new("levels", "levels of nearness that the latencies show", Unit::One, Better::Lower),
            Metric::new("kernel_levels", "levels of nearness that the kernel knows of", Unit::One, Better::Lower),
            Metric::new(
                "agreement",
                "how often, of two pairs that the kernel says differ, the nearer is the faster",
                Unit::One,
                Better::Higher,
            ),
        ],
        plots: vec![Plot::Matrix { metric: "latency".into() }],
        ..Spec::new("core-latency", include_str!("README.md"))
    }
});

impl Experiment for CoreLatency {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        let cpus = affinity::allowed();
        if cpus.len() < 2 {
            return Err(Unavailable::Cpus { needed: 2, usable: cpus.len() });
        }
        let can_pin = std::thread::spawn(move || affinity::pin_current_thread(cpus[0])).join();
        if !can_pin.is_ok_and(|pinned| pinned.is_ok()) {
            return Err(Unavailable::other("this system can't tie a thread to a CPU"));
        }
        if arm.variant != PEER {
            return Ok(());
        }
        if arm.integer("lines") != Ok(1) {
            return Err(Unavailable::levels(format!("{PEER} knows compare-and-swap on one cache line only")));
        }
        peer::path().map(drop)
    }

    fn shows(&self, _: &Arm, metric: usize, machine: &Machine) -> Result<(), Unavailable> {
        let cpus = machine.cpus_allowed;
        match metric {
            // Two levels take two pairs each.
            LEVELS if cpus < LEVEL_CPUS => Err(Unavailable::Cpus { needed: LEVEL_CPUS, usable: cpus }),
            _ => Ok(()),
        }
    }

    /// Deals the CPUs into groups, and reads what the kernel says of them.
    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let targets = arms.iter().map(Target::new).collect::<Result<_, _>>()?;
        let mut cpus = affinity::allowed();
        if cpus.len() < 2 {
            return Err(TargetError::Failed("needs two CPUs, and only one may be used".into()));
        }
        let topology = Topology::read(Path::new("/sys/devices/system/cpu"), &cpus);
        cpus.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(setup.seed));
        let groups = cpus.chunks(GROUP).map(<[usize]>::to_vec).collect();
        Ok(Box::new(Targets { targets, groups, topology }))
    }
}

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
    fn new(arm: &Arm) -> Result<Target, TargetError> {
        let means = match arm.variant.as_str() {
            PEER => None,
            "cas" | SHORTEST => Some(Means::CompareAndSwap),
            _ => Some(Means::LoadStore),
        };
        let [lines, load_per_cpu] = [arm.integer("lines")?, arm.integer("load_per_cpu")?].map(|level| level as usize);
        Ok(Target { means, is_shortest: arm.variant == SHORTEST, lines, load_per_cpu })
    }

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
