//! Measures how long a message takes from one CPU to another, with two ways of passing the message and with a widely
//! used tool. Each trial measures all pairs of a few CPUs. After enough trials, every pair of CPUs has been measured.

mod peer;
mod ping_pong;
mod topology;

use std::borrow::Cow;
use std::path::Path;
use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Arm, ArmId, Better, Experiment, Factor, Metric, Plot, Reduce, Sample, Samples, Session, Setup, Spec, Status,
    TargetError, Trial, Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::affinity;
use ascertain_sys::machine::Machine;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use ping_pong::{Load, Means, RoundTrips, between};
use topology::{LEVEL_CPUS, Topology, compare, levels};

/// The experiment `core-latency`: the time of a message from one CPU to another, for all pairs of CPUs.
pub struct CoreLatency;

const LATENCY: usize = 0;
const LEVELS: usize = 1;
const KERNEL_LEVELS: usize = 2;
const AGREEMENT: usize = 3;

/// Name of the variant that runs the widely used tool, which is also the tool's command.
const PEER: &str = "core-to-core-latency";

/// Name of the variant that reports the latency in the shortest window, a group of round trips that is timed as a
/// whole. Other variants report the median over windows.
const SHORTEST: &str = "cas-shortest";

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    let latency = Metric::time("latency", "one-way time of a message from one CPU to another");
    Spec {
        title: "The time of a message from one CPU to another".into(),
        variants: [
            ("cas", "compare-and-swap, both to hand over and to wait"),
            (
                SHORTEST,
                "speed limit: like cas, but reports the shortest (least disturbed) window instead of the median",
            ),
            ("load-store", "a store to hand over, and loads to wait"),
            (PEER, "the command with this name; reports the mean, and supports only one cache line"),
        ]
        .map(Variant::from)
        .to_vec(),
        factors: vec![
            Factor::integer("lines", "cache lines: one for both directions, or one for each", 1, 1..=2),
            Factor::integer("load_per_cpu", "threads on each CPU that only keep it busy", 0, 0..=16),
        ],
        metrics: vec![
            Metric { reduce: Reduce::Quantile(0.5), ..latency },
            Metric::new("levels", "number of distance levels that the latencies show", Unit::One, Better::Lower),
            Metric::new(
                "kernel_levels",
                "number of distance levels in the kernel's topology",
                Unit::One,
                Better::Lower,
            ),
            Metric::new(
                "agreement",
                "in comparisons of two pairs of CPUs, the share in which the pair that is closer in the kernel's topology \
                 is faster (0 to 1)",
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
            return Err(Unavailable::other("this system can't pin a thread to a CPU"));
        }
        if arm.variant != PEER {
            return Ok(());
        }
        if arm.integer("lines") != Ok(1) {
            return Err(Unavailable::levels(format!("{PEER} only supports compare-and-swap on one cache line")));
        }
        peer::path().map(drop)
    }

    fn shows(&self, _: &Arm, metric: usize, machine: &Machine) -> Result<(), Unavailable> {
        let cpus = machine.cpus_allowed;
        match metric {
            // The metric is the number of distance levels. To show two levels, the CPUs need at least two pairs in
            // each.
            LEVELS if cpus < LEVEL_CPUS => Err(Unavailable::Cpus { needed: LEVEL_CPUS, usable: cpus }),
            _ => Ok(()),
        }
    }

    /// Divides the CPUs into groups, and reads the kernel's CPU topology.
    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let probes = arms.iter().map(LatencyProbe::new).collect::<Result<_, _>>()?;
        let mut cpus = affinity::allowed();
        if cpus.len() < 2 {
            return Err(TargetError::Failed("needs two CPUs, but only one may be used".into()));
        }
        let topology = Topology::read(Path::new("/sys/devices/system/cpu"), &cpus);
        cpus.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(setup.seed));
        let groups = cpus.chunks(GROUP).map(<[usize]>::to_vec).collect();
        Ok(Box::new(CoreLatencySession { probes, groups, topology }))
    }
}

/// Number of CPUs in a group. A trial measures all pairs of two groups.
const GROUP: usize = 4;

struct LatencyProbe {
    /// The method of passing a message; `None` for the variant that runs the tool.
    means: Option<Means>,
    /// `true` if the latency comes from the shortest window, a group of round trips that is timed as a whole. `false`
    /// if it comes from the median window.
    is_shortest: bool,
    lines: usize,
    load_per_cpu: usize,
}

struct CoreLatencySession {
    probes: Vec<LatencyProbe>,
    groups: Vec<Vec<usize>>,
    topology: Topology,
}

/// Returns the CPUs to measure in a trial: those of two groups. Over the trials, every pair of groups is measured.
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

impl LatencyProbe {
    fn new(arm: &Arm) -> Result<LatencyProbe, TargetError> {
        let means = match arm.variant.as_str() {
            PEER => None,
            "cas" | SHORTEST => Some(Means::CompareAndSwap),
            _ => Some(Means::LoadStore),
        };
        let [lines, load_per_cpu] = [arm.integer("lines")?, arm.integer("load_per_cpu")?].map(|level| level as usize);
        Ok(LatencyProbe { means, is_shortest: arm.variant == SHORTEST, lines, load_per_cpu })
    }

    fn latencies_ns(&self, cpus: &[usize]) -> Result<Vec<([usize; 2], f64)>, TargetError> {
        let _load = Load::start(self.load_per_cpu, cpus);
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

/// Checks that each message arrived once: both sides must have counted the same number.
fn checked(passed: &RoundTrips) -> Result<(), TargetError> {
    let [asked, answered] = passed.round_trips;
    if asked != answered {
        return Err(TargetError::WrongAnswer(format!("{asked} messages were sent, but {answered} were answered")));
    }
    Ok(())
}

impl Session for CoreLatencySession {
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let latencies = self.probes[arm].latencies_ns(&cpus_of(&self.groups, 0)[..2])?;
        match latencies.iter().find(|(_, latency_ns)| !(latency_ns.is_finite() && *latency_ns > 0.0)) {
            Some((_, latency_ns)) => {
                Err(TargetError::WrongAnswer(format!("the latency of two CPUs is {latency_ns} ns; it must be above 0")))
            }
            None => Ok(()),
        }
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let latencies = self.probes[arm].latencies_ns(&cpus_of(&self.groups, trial.number))?;
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

    /// Tests that 64 CPUs need 120 trials of 28 pairs.
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
            return; // Pinning fails if this is not Linux, or if a filter of system calls forbids it.
        }
        for means in [Means::CompareAndSwap, Means::LoadStore] {
            for lines in [1, 2] {
                // Pinning also works on a single CPU, where each thread waits until the other one may run.
                let passed = between([cpus[0], *cpus.last().unwrap()], means, lines).unwrap();
                checked(&passed).unwrap();
                assert!(0.0 < passed.shortest_ns && passed.shortest_ns <= passed.latency_ns);
                assert!(passed.round_trips[0] >= 11 * 50);
            }
        }
        let lost = RoundTrips { latency_ns: 1.0, shortest_ns: 1.0, round_trips: [2, 1] };
        assert!(matches!(checked(&lost), Err(TargetError::WrongAnswer(_))));
    }
}
