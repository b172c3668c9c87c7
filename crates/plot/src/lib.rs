#![doc = include_str!("../README.md")]

mod axis;
mod clip;
mod escape;
mod ink;
mod label;
mod layer;
mod names;
mod scale;
mod scene;
mod stairs;
pub mod svg;
pub mod text;
mod thin;
mod ticks;
mod values;

pub use axis::{Axis, Prefixes, Scale};
pub use escape::{escape_controls, is_harmless};
pub use layer::{Cell, Interval, Layer, Range, Which};
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
