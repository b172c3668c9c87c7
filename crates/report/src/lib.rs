#![doc = include_str!("../README.md")]
// Without these features, the code for many claims and for pages is unused, and the compiler omits it.
#![cfg_attr(not(all(feature = "claims", feature = "commands", feature = "html")), allow(dead_code, unused_imports))]

pub mod allocations;
pub mod alphabet;
#[cfg(feature = "commands")]
pub mod calibration;
#[cfg(feature = "cost")]
pub mod cost;
pub mod csv;
pub mod export;
pub mod exports;
pub mod fastest;
pub mod figure;
pub mod formats;
#[cfg(feature = "recorded")]
pub mod history;
#[cfg(feature = "html")]
pub mod html;
#[cfg(feature = "exports")]
pub mod hyperfine;
pub mod identical;
pub mod json;
pub mod judgement;
pub mod markdown;
#[cfg(feature = "transfer")]
pub mod objects;
pub mod options;
pub mod outlook;
#[cfg(feature = "permute")]
pub mod permutation;
#[cfg(feature = "html")]
pub mod pictures;
#[cfg(feature = "plot")]
pub mod power;
pub mod progress;
#[cfg(feature = "html")]
pub mod pyperf;
#[cfg(all(feature = "claims", feature = "commands", feature = "html"))]
pub mod render;
pub mod sentence;
#[cfg(feature = "recorded")]
pub mod series;
pub mod stores;
mod suite;
pub mod terminal;
#[cfg(feature = "transfer")]
pub mod transfer;
mod windows;

/// The crate `ascertain-plot`, which draws the plots.
#[cfg(feature = "plot")]
pub use ascertain_plot as plot;

mod amount;
mod clause;
mod counters;
mod finding;
mod grid;
mod standing;
mod tails;
mod text;
