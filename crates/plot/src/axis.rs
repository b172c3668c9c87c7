/// How a number becomes a place.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Scale {
    /// Equal differences are equally long.
    Linear,
    /// Equal ratios are equally long; what is not above zero has no place on it.
    Log,
    /// Shares between 0 and 1, stretched at both ends so that 0.9, 0.99 and 0.999 are equally far apart
    /// (log-odds); 0 and 1 have no place on it.
    Logit,
    /// Names in a row: the first is 0, the second 1. On the y axis the first is at the top.
    Names(Vec<String>),
}

/// How the numbers of a unit are written: factors with their symbols, from the greatest on, the last one with the
/// factor 1. Nothing for numbers without a unit.
///
/// ```
/// use ascertain_plot::{Axis, Prefixes, Scale};
/// const TIME: Prefixes = &[(60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
/// assert_eq!(Axis::new("time", Scale::Log, TIME).prefix(2.5e6), (1e6, "ms"));
/// ```
pub type Prefixes = &'static [(f64, &'static str)];

/// The prefix that fits a number.
pub(crate) fn prefix(unit: Prefixes, value: f64) -> (f64, &'static str) {
    let fitting = unit.iter().find(|(factor, _)| value.abs() >= *factor);
    fitting.or(unit.last()).copied().unwrap_or((1.0, ""))
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Axis {
    /// What it shows, without the unit, which the ticks carry: `time`, `trial`.
    pub label: String,
    /// How its numbers become places.
    pub scale: Scale,
    /// What its numbers are in.
    pub unit: Prefixes,
    /// The least and the greatest number that must be seen; `None`: those of the marks.
    pub domain: Option<(f64, f64)>,
    /// Whether its numbers are shares that are written in percent. On a logarithmic scale they are not.
    pub in_percent: bool,
    /// The only numbers that there are on it, as a factor has levels: ticks are at these alone. Empty where it has no
    /// such.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub levels: Vec<f64>,
}

impl Axis {
    /// An axis as wide as its marks.
    pub fn new(label: &str, scale: Scale, unit: impl Into<Prefixes>) -> Axis {
        Axis { label: label.to_string(), scale, unit: unit.into(), domain: None, in_percent: false, levels: Vec::new() }
    }

    /// The axis with these numbers in sight, whatever the marks are.
    #[must_use]
    pub fn showing(mut self, low: f64, high: f64) -> Axis {
        self.domain = Some((low, high));
        self
    }

    /// The axis with its numbers, which are shares, written in percent: 0.99 as `99 %`.
    #[must_use]
    pub fn percent(mut self) -> Axis {
        self.in_percent = true;
        self
    }

    /// The axis with ticks at these numbers alone.
    #[must_use]
    pub fn at(mut self, levels: impl IntoIterator<Item = f64>) -> Axis {
        self.levels = levels.into_iter().collect();
        self
    }

    /// The factor and the symbol that a number is written with.
    pub fn prefix(&self, value: f64) -> (f64, &'static str) {
        if self.in_percent { (0.01, "%") } else { prefix(self.unit, value) }
    }
}
