use crate::Prefixes;

/// Marks of one kind. `series` is an index into [`Plot::series`](crate::Plot::series); with `None`, the marks have the
/// colour of the text. A number that is not finite, or that the scale of its axis can't show, is not drawn and
/// interrupts a line.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Layer {
    /// A line through points, in the given order.
    Line {
        /// The series of the line.
        series: Option<usize>,
        /// The points, as `[x, y]`.
        points: Vec<[f64; 2]>,
        /// `true` to draw steps: the line stays at the same height until the next point, and then goes up or down.
        steps: bool,
        /// `true` if the line is dashed, for example for a limit or a model.
        dashed: bool,
    },
    /// The area between a lower and an upper line, for example an interval for each x.
    Band {
        /// The series of the band.
        series: Option<usize>,
        /// The interval at each x, in the order of x.
        ranges: Vec<Range>,
    },
    /// Dots at single points.
    Dots {
        /// The series of the dots.
        series: Option<usize>,
        /// The points, as `[x, y]`.
        points: Vec<[f64; 2]>,
        /// `true` for hollow dots. They mark values that are not counted, and values for which only a bound is known,
        /// such as times that were stopped at a limit.
        hollow: bool,
    },
    /// The area between a line and the bottom of the plot, for example a density.
    Area {
        /// The series of the area.
        series: Option<usize>,
        /// The points of the upper line, as `[x, y]`.
        points: Vec<[f64; 2]>,
    },
    /// Estimates with their intervals along the x axis: a forest plot.
    Intervals {
        /// The series of the intervals.
        series: Option<usize>,
        /// The intervals, one per row.
        rows: Vec<Interval>,
    },
    /// Coloured cells: a heat map. Its legend is a colour scale.
    Cells {
        /// The cells; no two may be at the same row and column.
        cells: Vec<Cell>,
        /// The lowest and the highest value that the colour scale must cover, so that several maps can have the same
        /// scale. `None` if it only needs to cover the values of the cells.
        domain: Option<(f64, f64)>,
        /// The label of the colour scale.
        label: String,
        /// The unit of the cells' values.
        unit: Prefixes,
    },
    /// A straight line across the whole plot at one number of an axis, for example at a threshold or at the size of a
    /// cache.
    Rule {
        /// The axis that has the number: the line is vertical for the x axis and horizontal for the y axis.
        on: Which,
        /// The number on the axis at which the line is drawn.
        at: f64,
        /// The label of the line, a few words; empty for a line without a label.
        label: String,
    },
}

/// The choice of an axis: the horizontal or the vertical one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Which {
    /// The horizontal axis, from left to right.
    X,
    /// The vertical axis, from bottom to top.
    Y,
}

/// An interval of y at one x. An end that is infinite is drawn at the edge of the plot.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Range {
    /// Position on the x axis, in its unit.
    pub x: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// An estimate with its interval, both on the x axis. An end that is infinite is drawn as an arrow.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Interval {
    /// The position on the y axis: the index of the row's name.
    pub y: f64,
    /// The estimate; NaN if it is unknown.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// The estimate and the interval as text, written beside the row if there is enough space.
    pub label: String,
}

/// A cell of a heat map, whose axes are both [`Scale::Names`](crate::Scale::Names).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Cell {
    /// The index of the column.
    pub x: usize,
    /// The index of the row.
    pub y: usize,
    /// The value that determines the colour.
    pub value: f64,
}
