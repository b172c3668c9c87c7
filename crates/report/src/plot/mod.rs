//! Pictures as plain data, drawn as SVG for pages and in characters for terminals.
//!
//! A [`Plot`] says what is to be seen; [`svg`] and [`text`] say it. Both show the same marks on the same
//! scales, so that what a terminal shows is what a page shows.

mod axis;
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

use serde::Serialize;

pub use axis::{Axis, Scale};
pub use layer::{Cell, Interval, Layer, Range, Which};
pub use thin::{MOST_MARKS, thin, thin_ranges};

/// A picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
