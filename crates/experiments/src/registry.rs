//! The list of all experiments.

use ascertain_engine::experiment::Experiment;
#[cfg(feature = "chance")]
use ascertain_experiments_chance as chance;
#[cfg(feature = "host")]
use ascertain_experiments_host as host;
#[cfg(feature = "networks")]
use ascertain_experiments_networks as networks;
#[cfg(feature = "numeric")]
use ascertain_experiments_numeric as numeric;
#[cfg(feature = "storage")]
use ascertain_experiments_storage as storage;
#[cfg(feature = "sync")]
use ascertain_experiments_sync as sync;
#[cfg(feature = "transfer")]
use ascertain_experiments_transfer as transfer;

/// The title of a family of experiments, and its experiments.
pub type Family = (&'static str, &'static [&'static dyn Experiment]);

const FAMILIES: &[Family] = &[
    #[cfg(feature = "numeric")]
    ("Numbers", &[&numeric::Sum, &numeric::Decimal, &numeric::Cbrt, &numeric::Polynomial, &numeric::FormatScaling]),
    #[cfg(feature = "sync")]
    ("Threads", &[&sync::CoreLatency, &sync::EventCount, &sync::PerCpu, &sync::Reclamation, &sync::Barrier]),
    #[cfg(feature = "networks")]
    (
        "Networks",
        &[
            &networks::FirstFlight,
            &networks::Favouritism,
            &networks::LinkThroughput,
            &networks::LinkTruth,
            &networks::HttpsThroughput,
            &networks::DnsPropagation,
            &networks::DnsLoad,
        ],
    ),
    #[cfg(feature = "storage")]
    ("Storage", &[&storage::Storage]),
    #[cfg(feature = "transfer")]
    ("Transfer", &[&transfer::Transfer, &transfer::CacheRace]),
    #[cfg(feature = "host")]
    ("Programs", &[&host::GitStatus, &host::Runtimes]),
    #[cfg(feature = "chance")]
    ("Chance", &[&chance::FillRate, &chance::Reshuffle]),
];

/// Returns the shipped experiments by family.
#[must_use]
pub fn families() -> &'static [Family] {
    FAMILIES
}

/// Returns every shipped experiment. The experiments of a family follow one another.
#[must_use]
pub fn registry() -> Vec<&'static dyn Experiment> {
    FAMILIES.iter().flat_map(|(_, experiments)| *experiments).copied().collect()
}
