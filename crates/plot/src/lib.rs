#![doc = include_str!("../README.md")]

mod axis;
mod escape;
mod layer;

#[cfg(feature = "drawing")]
mod clip;
#[cfg(feature = "drawing")]
mod ink;
#[cfg(feature = "drawing")]
mod label;
#[cfg(feature = "drawing")]
mod names;
#[cfg(feature = "drawing")]
mod scale;
#[cfg(feature = "drawing")]
mod scene;
#[cfg(feature = "drawing")]
mod stairs;
#[cfg(feature = "drawing")]
pub mod svg;
#[cfg(feature = "drawing")]
pub mod text;
#[cfg(feature = "drawing")]
mod thin;
#[cfg(feature = "drawing")]
mod ticks;
#[cfg(feature = "drawing")]
mod values;

pub use axis::{Axis, Prefixes, Scale};
pub use escape::{escape_controls, is_harmless};
#[cfg(feature = "drawing")]
pub use ink::{COLORS, SHAPES};
pub use layer::{Cell, Interval, Layer, Range, Which};
#[cfg(feature = "drawing")]
pub use thin::{MOST_MARKS, thin, thin_ranges};

/// A picture.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Plot {
    /// Its name, unique in a report, in letters that an address may hold: `sum-time-quantiles`.
    pub id: String,
    /// What is to be seen, as a short sentence.
    pub title: String,
    /// What the picture says, for those who can't see it: one or two sentences with the figures.
    pub alt: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// The names of what is told apart by colour, in the legend's order; a layer names its index.
    pub series: Vec<String>,
    /// What is drawn, from the back to the front.
    pub layers: Vec<Layer>,
}
