//! The only list of experiments.

use ascertain_engine::experiment::Experiment;

// A folder is named as its experiment is on the command line.
#[cfg(feature = "sync")]
#[path = "barrier/experiment.rs"]
pub mod barrier;
#[cfg(feature = "storage")]
#[path = "cache-race/experiment.rs"]
pub mod cache_race;
#[cfg(feature = "numeric")]
#[path = "cbrt/experiment.rs"]
pub mod cbrt;
#[cfg(feature = "sync")]
#[path = "core-latency/experiment.rs"]
pub mod core_latency;
#[cfg(feature = "numeric")]
#[path = "decimal/experiment.rs"]
pub mod decimal;
#[cfg(feature = "networks")]
#[path = "dns-load/experiment.rs"]
pub mod dns_load;
#[cfg(feature = "networks")]
#[path = "dns-propagation/experiment.rs"]
pub mod dns_propagation;
#[cfg(feature = "sync")]
#[path = "event-count/experiment.rs"]
pub mod event_count;
#[cfg(feature = "networks")]
#[path = "favouritism/experiment.rs"]
pub mod favouritism;
#[cfg(feature = "chance")]
#[path = "fill-rate/experiment.rs"]
pub mod fill_rate;
#[cfg(feature = "networks")]
#[path = "first-flight/experiment.rs"]
pub mod first_flight;
#[cfg(feature = "numeric")]
#[path = "format-scaling/experiment.rs"]
pub mod format_scaling;
#[cfg(feature = "networks")]
#[path = "https-throughput/experiment.rs"]
pub mod https_throughput;
#[cfg(feature = "networks")]
#[path = "link-throughput/experiment.rs"]
pub mod link_throughput;
#[cfg(feature = "networks")]
#[path = "link-truth/experiment.rs"]
pub mod link_truth;
#[cfg(feature = "sync")]
#[path = "per-cpu/experiment.rs"]
pub mod per_cpu;
#[cfg(feature = "numeric")]
#[path = "polynomial/experiment.rs"]
pub mod polynomial;
#[cfg(feature = "sync")]
#[path = "reclamation/experiment.rs"]
pub mod reclamation;
#[cfg(feature = "chance")]
#[path = "reshuffle/experiment.rs"]
pub mod reshuffle;
#[cfg(feature = "numeric")]
#[path = "sum/experiment.rs"]
pub mod sum;
#[cfg(feature = "storage")]
#[path = "transfer/experiment.rs"]
pub mod transfer;

/// Every experiment that ships, those of a family together.
pub fn registry() -> &'static [&'static dyn Experiment] {
    &[
        #[cfg(feature = "numeric")]
        &sum::Sum,
        #[cfg(feature = "numeric")]
        &decimal::Decimal,
        #[cfg(feature = "numeric")]
        &cbrt::Cbrt,
        #[cfg(feature = "numeric")]
        &polynomial::Polynomial,
        #[cfg(feature = "numeric")]
        &format_scaling::FormatScaling,
        #[cfg(feature = "sync")]
        &core_latency::CoreLatency,
        #[cfg(feature = "sync")]
        &event_count::EventCount,
        #[cfg(feature = "sync")]
        &per_cpu::PerCpu,
        #[cfg(feature = "sync")]
        &reclamation::Reclamation,
        #[cfg(feature = "sync")]
        &barrier::Barrier,
        #[cfg(feature = "networks")]
        &first_flight::FirstFlight,
        #[cfg(feature = "networks")]
        &favouritism::Favouritism,
        #[cfg(feature = "networks")]
        &link_throughput::LinkThroughput,
        #[cfg(feature = "networks")]
        &link_truth::LinkTruth,
        #[cfg(feature = "networks")]
        &https_throughput::HttpsThroughput,
        #[cfg(feature = "networks")]
        &dns_propagation::DnsPropagation,
        #[cfg(feature = "networks")]
        &dns_load::DnsLoad,
        #[cfg(feature = "storage")]
        &transfer::Transfer,
        #[cfg(feature = "storage")]
        &cache_race::CacheRace,
        #[cfg(feature = "chance")]
        &fill_rate::FillRate,
        #[cfg(feature = "chance")]
        &reshuffle::Reshuffle,
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
