#![doc = include_str!("../README.md")]
// What only many claims make use of costs nothing where there are none: it is not compiled to the end.
#![cfg_attr(not(feature = "claims"), allow(dead_code, unused_imports))]

pub mod allocations;
pub mod alphabet;
#[cfg(feature = "commands")]
pub mod calibration;
pub mod csv;
pub mod export;
pub mod exports;
pub mod fastest;
pub mod figure;
#[cfg(feature = "recorded")]
pub mod history;
#[cfg(feature = "html")]
pub mod html;
#[cfg(feature = "exports")]
pub mod hyperfine;
pub mod json;
pub mod judgement;
pub mod layout;
pub mod markdown;
#[cfg(feature = "storage")]
pub mod moving;
pub mod outlook;
#[cfg(feature = "permute")]
pub mod permutation;
#[cfg(feature = "html")]
pub mod pictures;
#[cfg(feature = "plot")]
pub mod power;
pub mod progress;
pub mod sentence;
pub mod terminal;

/// What pictures are drawn with.
#[cfg(feature = "plot")]
pub use ascertain_plot as plot;

mod amount;
mod clause;
mod counters;
mod finding;
mod grid;
mod standing;
mod text;
