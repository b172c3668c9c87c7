/// The scale of an axis, which maps numbers to positions.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Scale {
    /// Equal differences have equal lengths.
    Linear,
    /// Equal ratios have equal lengths. This scale can't show numbers that are zero or negative.
    Log,
    /// Shares between 0 and 1, stretched at both ends (log-odds), so that 0.9, 0.99 and 0.999 are equally far apart.
    /// This scale can't show the shares 0 and 1.
    Logit,
    /// Names at equal distances. The number of a name is its index, from 0. On the y axis the first name is at the top.
    Names(Vec<String>),
}

/// The prefixes of a unit, each a factor and a symbol, in descending order; the last factor is 1. Empty for numbers
/// without a unit.
///
/// ```
/// use ascertain_plot::{Axis, Prefixes, Scale};
/// const TIME: Prefixes = &[(60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
/// assert_eq!(Axis::new("time", Scale::Log, TIME).prefix(2.5e6), (1e6, "ms"));
/// ```
pub type Prefixes = &'static [(f64, &'static str)];

/// Returns the factor and the symbol of the largest prefix that the number reaches. If the number reaches no prefix,
/// returns the factor and the symbol of the smallest prefix.
pub(crate) fn prefix(unit: Prefixes, value: f64) -> (f64, &'static str) {
    let fitting = unit.iter().find(|(factor, _)| value.abs() >= *factor);
    fitting.or(unit.last()).copied().unwrap_or((1.0, ""))
}

/// An axis of a plot: its label, its scale and its unit.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Axis {
    /// The label, such as `time` or `trial`. It does not include the unit, because the tick labels do.
    pub label: String,
    /// The scale: linear, logarithmic, log-odds or names.
    pub scale: Scale,
    /// The unit of the numbers, with its prefixes; empty for numbers without a unit.
    pub unit: Prefixes,
    /// The lowest and the highest number that must be visible; `None` if the axis only needs to show all marks.
    pub domain: Option<(f64, f64)>,
    /// `true` if the axis writes its numbers in percent; the numbers must be shares. Has no effect on a logarithmic
    /// scale.
    pub in_percent: bool,
    /// All numbers that are possible on the axis, such as the levels of a factor. The axis has ticks only at these
    /// numbers. Empty if any number is possible.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub levels: Vec<f64>,
}

impl Axis {
    /// Creates an axis that shows all of its marks, with ticks at round numbers.
    pub fn new(label: &str, scale: Scale, unit: impl Into<Prefixes>) -> Axis {
        Axis { label: label.to_string(), scale, unit: unit.into(), domain: None, in_percent: false, levels: Vec::new() }
    }

    /// Returns the axis with a range that is always visible, even if no mark is there.
    #[must_use]
    pub fn showing(mut self, low: f64, high: f64) -> Axis {
        self.domain = Some((low, high));
        self
    }

    /// Returns the axis with its numbers written in percent: 0.99 as `99 %`. The numbers must be shares.
    #[must_use]
    pub fn percent(mut self) -> Axis {
        self.in_percent = true;
        self
    }

    /// Returns the axis with ticks only at these levels.
    #[must_use]
    pub fn at(mut self, levels: impl IntoIterator<Item = f64>) -> Axis {
        self.levels = levels.into_iter().collect();
        self
    }

    /// Returns the factor and the symbol (such as `ms`) of the prefix with which this axis writes the number.
    pub fn prefix(&self, value: f64) -> (f64, &'static str) {
        if self.in_percent { (0.01, "%") } else { prefix(self.unit, value) }
    }
}
