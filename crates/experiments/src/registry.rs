//! The only list of experiments.

use ascertain_engine::experiment::Experiment;
#[cfg(feature = "chance")]
use ascertain_experiments_chance as chance;
#[cfg(feature = "networks")]
use ascertain_experiments_networks as networks;
#[cfg(feature = "numeric")]
use ascertain_experiments_numeric as numeric;
#[cfg(feature = "storage")]
use ascertain_experiments_storage as storage;
#[cfg(feature = "sync")]
use ascertain_experiments_sync as sync;

/// Every experiment that ships, those of a family together.
pub fn registry() -> &'static [&'static dyn Experiment] {
    &[
        #[cfg(feature = "numeric")]
        &numeric::Sum,
        #[cfg(feature = "numeric")]
        &numeric::Decimal,
        #[cfg(feature = "numeric")]
        &numeric::Cbrt,
        #[cfg(feature = "numeric")]
        &numeric::Polynomial,
        #[cfg(feature = "numeric")]
        &numeric::FormatScaling,
        #[cfg(feature = "sync")]
        &sync::CoreLatency,
        #[cfg(feature = "sync")]
        &sync::EventCount,
        #[cfg(feature = "sync")]
        &sync::PerCpu,
        #[cfg(feature = "sync")]
        &sync::Reclamation,
        #[cfg(feature = "sync")]
        &sync::Barrier,
        #[cfg(feature = "networks")]
        &networks::FirstFlight,
        #[cfg(feature = "networks")]
        &networks::Favouritism,
        #[cfg(feature = "networks")]
        &networks::LinkThroughput,
        #[cfg(feature = "networks")]
        &networks::LinkTruth,
        #[cfg(feature = "networks")]
        &networks::HttpsThroughput,
        #[cfg(feature = "networks")]
        &networks::DnsPropagation,
        #[cfg(feature = "networks")]
        &networks::DnsLoad,
        #[cfg(feature = "storage")]
        &storage::Transfer,
        #[cfg(feature = "storage")]
        &storage::CacheRace,
        #[cfg(feature = "chance")]
        &chance::FillRate,
        #[cfg(feature = "chance")]
        &chance::Reshuffle,
    ]
}

/// The families, each with the first of its experiments: the registry has the others behind it.
const FAMILIES: [(&str, &str); 5] = [
    ("Numbers", "sum"),
    ("Threads", "core-latency"),
    ("Networks", "first-flight"),
    ("Storage", "transfer"),
    ("Chance", "fill-rate"),
];

/// The experiments by family: what each is about, and those of it.
pub fn families() -> Vec<(&'static str, &'static [&'static dyn Experiment])> {
    let mut rest = registry();
    let family = |(title, first): &(&'static str, &str)| {
        let (others, of_family) = rest.split_at(rest.iter().position(|experiment| experiment.spec().id == *first)?);
        rest = others;
        Some((*title, of_family))
    };
    let mut families: Vec<_> = FAMILIES.iter().rev().filter_map(family).collect();
    families.reverse();
    families
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_is_of_a_family() {
        let counted: usize = families().iter().map(|(_, experiments)| experiments.len()).sum();
        assert_eq!(counted, registry().len());
    }
}
