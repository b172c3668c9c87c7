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
pub use escape::{escape_controls, escape_xml, is_harmless};
#[cfg(feature = "drawing")]
pub use ink::{COLORS, SHAPES};
pub use layer::{Cell, Interval, Layer, Range, Which};
#[cfg(feature = "drawing")]
pub use thin::{MOST_MARKS, thin, thin_ranges};

/// A picture as plain data: axes, series and layers of marks.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Plot {
    /// The id, unique among the plots of a report. It has only characters that are allowed in URLs:
    /// `sum-time-quantiles`.
    pub id: String,
    /// The title: a short sentence about the content of the plot.
    pub title: String,
    /// The alternative text for readers who can't see the picture: one or two sentences with the numbers.
    pub alt: String,
    /// The horizontal axis, from left to right.
    pub x: Axis,
    /// The vertical axis, from bottom to top.
    pub y: Axis,
    /// The names of the series, in the order of the legend. Layers refer to a series by its index, which also
    /// determines the colour.
    pub series: Vec<String>,
    /// The layers of marks, from back to front.
    pub layers: Vec<Layer>,
}
