use crate::Prefixes;

/// Marks of one kind. `series` is an index into the plot's series; `None` draws in the text's colour.
/// A number that is not finite, or has no place on its axis, is not drawn and breaks a line.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Layer {
    /// A line through points in the order given.
    Line {
        /// Whose.
        series: Option<usize>,
        /// From one to the next.
        points: Vec<[f64; 2]>,
        /// Whether it goes on level until the next point, and then up or down.
        steps: bool,
        /// Whether it is dashed: a limit, a model.
        dashed: bool,
    },
    /// What lies between two lines: an interval at each place.
    Band {
        /// Whose.
        series: Option<usize>,
        /// By place.
        ranges: Vec<Range>,
    },
    /// Dots.
    Dots {
        /// Whose.
        series: Option<usize>,
        /// Where.
        points: Vec<[f64; 2]>,
        /// Whether they are rings: what does not count, a tie.
        hollow: bool,
    },
    /// What lies between a line and the bottom: a density.
    Area {
        /// Whose.
        series: Option<usize>,
        /// The line.
        points: Vec<[f64; 2]>,
    },
    /// Estimates with their intervals, lying along the x axis: a forest plot.
    Intervals {
        /// Whose.
        series: Option<usize>,
        /// One a row.
        rows: Vec<Interval>,
    },
    /// Coloured cells: a heat map. Its legend is a scale of colours.
    Cells {
        /// The cells.
        cells: Vec<Cell>,
        /// The least and the greatest value that the scale must cover, so that maps that stand side by side can have
        /// the same; `None`: those of the cells.
        domain: Option<(f64, f64)>,
        /// What the values are.
        label: String,
        /// What the values are in.
        unit: Prefixes,
    },
    /// A line across the plot at a number: a threshold, the end of a cache.
    Rule {
        /// The axis that the number is on.
        on: Which,
        /// The number.
        at: f64,
        /// What it is, in a few words.
        label: String,
    },
}

/// An axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Which {
    /// From left to right.
    X,
    /// From bottom to top.
    Y,
}

/// An interval of y at a place; an end that is not bounded is infinite and drawn to the plot's edge.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Range {
    /// Where.
    pub x: f64,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// An estimate and its interval; an end that is not bounded is infinite and drawn as an arrow.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Interval {
    /// The row, on the y axis.
    pub y: f64,
    /// The estimate; NaN where there is none.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// What is written beside it where there is room: the numbers in words.
    pub label: String,
}

/// A cell of a heat map, at whole numbers of two axes of names.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Cell {
    /// The column.
    pub x: usize,
    /// The row.
    pub y: usize,
    /// What its colour says.
    pub value: f64,
}
