//! The only list of experiments.

use ascertain_engine::experiment::Experiment;

// A folder is named as its experiment is on the command line.
#[path = "barrier/mod.rs"]
pub mod barrier;
#[path = "cbrt/mod.rs"]
pub mod cbrt;
#[path = "core-latency/mod.rs"]
pub mod core_latency;
#[path = "decimal/mod.rs"]
pub mod decimal;
#[path = "event-count/mod.rs"]
pub mod event_count;
#[path = "fill-rate/mod.rs"]
pub mod fill_rate;
#[path = "format-scaling/mod.rs"]
pub mod format_scaling;
#[path = "per-cpu/mod.rs"]
pub mod per_cpu;
#[path = "polynomial/mod.rs"]
pub mod polynomial;
#[path = "reclamation/mod.rs"]
pub mod reclamation;
#[path = "reshuffle/mod.rs"]
pub mod reshuffle;
#[path = "sum/mod.rs"]
pub mod sum;

/// Every experiment that ships.
pub fn registry() -> &'static [&'static dyn Experiment] {
    &[
        &sum::Sum,
        &decimal::Decimal,
        &cbrt::Cbrt,
        &polynomial::Polynomial,
        &format_scaling::FormatScaling,
        &core_latency::CoreLatency,
        &event_count::EventCount,
        &per_cpu::PerCpu,
        &reclamation::Reclamation,
        &fill_rate::FillRate,
        &reshuffle::Reshuffle,
        &barrier::Barrier,
    ]
}
