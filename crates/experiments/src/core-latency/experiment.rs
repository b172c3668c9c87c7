//! The experiment as data: two ways to hand over, and the usual tool.

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Metric, Plot, Reduce, Session, Setup, Spec, TargetError, Unavailable,
    Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::affinity;
use ascertain_sys::machine::Machine;

use super::topology::LEVEL_CPUS;
use super::{peer, session};

/// Latencies between CPUs.
pub struct CoreLatency;

pub(super) const LATENCY: usize = 0;
pub(super) const LEVELS: usize = 1;
pub(super) const KERNEL_LEVELS: usize = 2;
pub(super) const AGREEMENT: usize = 3;

/// The usual tool, by its name on the command line.
pub(super) const PEER: &str = "core-to-core-latency";

/// The shortest window, by its variant's name.
pub(super) const SHORTEST: &str = "cas-shortest";

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    let variant = |name: &str, about: &str| Variant { name: name.into(), about: about.into() };
    let latency = Metric::new("latency", "from a CPU to another, one way", Unit::Nanosecond, Better::Lower);
    Spec {
        id: "core-latency".into(),
        title: "How long it takes a CPU to tell another something".into(),
        readme: include_str!("README.md").into(),
        variants: vec![
            variant("cas", "compare-and-swap, to hand over and to wait"),
            variant(SHORTEST, "limit: as cas, of the shortest window instead of the median: what nothing disturbed"),
            variant("load-store", "a store to hand over, loads to wait"),
            variant(PEER, "the command of that name, which takes the mean; one cache line only"),
        ],
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
        if level(arm, "lines") != Some(1) {
            return Err(Unavailable::other(format!("{PEER} knows compare-and-swap on one cache line only")));
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

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        session::open(arms, setup)
    }
}

/// A factor's whole number.
pub(super) fn level(arm: &Arm, factor: &str) -> Option<u64> {
    arm.point.get(factor)?.integer()
}

#[cfg(test)]
mod tests {
    use ascertain_engine::claim::Test;
    use ascertain_sys::machine::describe;

    use super::*;

    #[test]
    fn blocks_can_not_be_seen_on_fewer_than_four_cpus() {
        let file = crate::claims::shipped_claims().unwrap();
        let spoken_of = |id: &str| {
            let claim = file.claims.iter().find(|claim| claim.id == id).unwrap();
            claim.tests.iter().flat_map(Test::observed).map(|(arm, metric)| (arm.clone(), metric)).collect::<Vec<_>>()
        };
        let shown = |id: &str, cpus_allowed: usize| {
            let machine = Machine { cpus_allowed, ..describe() };
            spoken_of(id).iter().try_for_each(|(arm, metric)| CoreLatency.shows(arm, *metric, &machine))
        };
        for cpus in [1, 2, 3] {
            let lack = shown("core-latency.clusters", cpus).unwrap_err();
            assert_eq!(lack, Unavailable::Cpus { needed: 4, usable: cpus });
        }
        assert_eq!(shown("core-latency.clusters", 4), Ok(()));
        assert_eq!(shown("core-latency.compare-and-swap-measures", 2), Ok(()), "its pair is enough");
    }
}
