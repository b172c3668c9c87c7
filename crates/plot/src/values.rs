use crate::axis::prefix;
use crate::scale::Ruler;
use crate::{Axis, Cell, Layer, Prefixes, Scale, Which};

/// The colour scale of a heat map, and the unit of its values.
pub(crate) struct Values {
    pub(crate) ruler: Ruler,
    factor: f64,
    /// The symbol of the unit in which [`short`](Values::short) writes values.
    pub(crate) symbol: &'static str,
}

/// If the largest value is more than this many times the smallest, colours show the logarithms of the values.
const WIDE_SPAN: f64 = 50.0;

impl Values {
    /// Creates a colour scale that covers the values of these cells and the range `domain`.
    pub(crate) fn new(cells: &[Cell], domain: Option<(f64, f64)>, unit: Prefixes) -> Values {
        let asked = || domain.into_iter().flat_map(|(low, high)| [low, high]);
        let known = || cells.iter().map(|cell| cell.value).chain(asked()).filter(|v| v.is_finite());
        let (low, high) = known().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let scale = if low > 0.0 && high / low > WIDE_SPAN { Scale::Log } else { Scale::Linear };
        let mut axis = Axis::new("", scale, unit);
        if low < high {
            axis = axis.showing(low, high);
        }
        let dots = Layer::Dots { series: None, points: known().map(|v| [v, v]).collect(), hollow: false };
        let ruler = Ruler::new(&axis, &[dots], Which::X, None);
        let (factor, symbol) = prefix(unit, if high.is_finite() { high } else { 0.0 });
        Values { ruler, factor, symbol }
    }

    /// Returns the position of a value on the colour scale, from 0 to 1; `None` if the scale can't show it.
    pub(crate) fn share(&self, value: f64) -> Option<f64> {
        self.ruler.share(value)
    }

    /// Writes a value with three significant digits in the unit `symbol`, without the symbol.
    pub(crate) fn short(&self, value: f64) -> String {
        let value = value / self.factor;
        if !value.is_finite() {
            return match value {
                f64::INFINITY => "∞".into(),
                f64::NEG_INFINITY => "-∞".into(),
                _ => "-".into(),
            };
        }
        let magnitude = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
        if !(-4.0..7.0).contains(&magnitude) {
            return format!("{value:.0e}");
        }
        let decimals = (2.0 - magnitude).max(0.0) as usize;
        let text = format!("{value:.decimals$}");
        if self.ruler.is_whole && self.factor == 1.0 { format!("{value:.0}") } else { text }
    }
}
