use crate::clip::Clip;
use crate::{Axis, Layer, Scale, Which};

/// An axis whose ends are known. It converts numbers to positions between 0 and 1.
#[derive(Clone, Debug)]
pub(crate) struct Ruler {
    pub(crate) axis: Axis,
    /// The left or bottom end after the transformation of the scale: on a logarithmic axis, its logarithm.
    from: f64,
    /// The right or top end after the transformation of the scale.
    to: f64,
    /// `true` if all marks are at whole numbers. Ticks are then only at whole numbers, too.
    pub(crate) is_whole: bool,
    /// `true` if all marks are at powers of two or at three times such a power. Ticks are then at powers of two.
    pub(crate) is_binary: bool,
}

/// The largest absolute value of a number at an end of an axis. The difference of two larger numbers could overflow.
const FARTHEST: f64 = 1e300;
/// Largest distance between the marks and a rule (a labelled line, [`Layer::Rule`]) at which the axis is extended to
/// show the rule. The unit is the length of the range of the marks. If a rule is farther away, only its label is shown,
/// at the edge.
const RULE_REACH: f64 = 1.0;

impl Ruler {
    /// Creates the axis for these layers. The new axis shows the requested range, all levels of `axis` and, with a
    /// small margin, all marks except the outliers in `clip`. If the lowest number is near zero, the axis starts at
    /// zero.
    pub(crate) fn new(axis: &Axis, layers: &[Layer], on: Which, clip: Option<&Clip>) -> Ruler {
        let is_seen = |number: &f64| clip.is_none_or(|clip| clip.has(*number));
        let marks: Vec<f64> = layers
            .iter()
            .flat_map(|layer| numbers(layer, on))
            .filter(is_seen)
            .chain(axis.levels.iter().copied())
            .collect();
        let (from, to) = match &axis.scale {
            // On the y axis, the first name is at the top.
            Scale::Names(names) if on == Which::Y => (names.len().max(1) as f64 - 0.5, -0.5),
            Scale::Names(names) => (-0.5, names.len().max(1) as f64 - 0.5),
            scale => ends(axis, scale, &marks, layers, on),
        };
        let placed = || marks.iter().copied().filter(|v| place(&axis.scale, *v).is_some());
        let is_whole = placed().next().is_some() && placed().all(|v| v.fract() == 0.0 && v.abs() < 1e15);
        let is_binary =
            is_whole && axis.scale == Scale::Log && placed().all(is_round_binary) && placed().any(|v| v >= 8.0);
        Ruler { axis: axis.clone(), from, to, is_whole, is_binary }
    }

    /// Returns whether the axis is linear, without percentages, and does not contain zero. On such an axis, a mark at
    /// half the height of another mark does not stand for half the value.
    pub(crate) fn is_cut(&self) -> bool {
        self.axis.scale == Scale::Linear && !self.axis.in_percent && (self.from > 0.0 || self.to < 0.0)
    }

    /// Returns the position of a number: 0 at the left or bottom, 1 at the right or top. `None` if the scale can't show
    /// the number, such as 0 on a logarithmic scale.
    pub(crate) fn share(&self, value: f64) -> Option<f64> {
        let at = place(&self.axis.scale, value)?;
        let share = (at - self.from) / (self.to - self.from);
        let is_named = !matches!(self.axis.scale, Scale::Names(_)) || (0.0..=1.0).contains(&share);
        is_named.then_some(share.clamp(0.0, 1.0))
    }

    /// Returns the position of an end of an interval, from 0 to 1. It is at the edge if the end is infinite, or if the
    /// scale can't show it, such as 0 on a logarithmic scale. `None` for NaN.
    pub(crate) fn end(&self, value: f64) -> Option<f64> {
        let beyond = match self.axis.scale {
            Scale::Log => value <= 0.0,
            Scale::Logit => value <= 0.0 || value >= 1.0,
            _ => false,
        };
        if value.is_infinite() || beyond { Some(if value > 0.5 { 1.0 } else { 0.0 }) } else { self.share(value) }
    }

    /// Compares a number with the range of the axis: below (`Less`), within (`Equal`) or above it. `None` if the scale
    /// can't show the number.
    pub(crate) fn side(&self, value: f64) -> Option<std::cmp::Ordering> {
        let at = place(&self.axis.scale, value)?;
        let (low, high) = (self.from.min(self.to), self.from.max(self.to));
        let slack = (high - low) * 1e-9;
        Some(at.total_cmp(&at.clamp(low - slack, high + slack)))
    }

    /// Returns the numbers at the two ends of the axis.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (number(&self.axis.scale, self.from), number(&self.axis.scale, self.to))
    }

    /// Returns the two ends of the axis after the transformation of the scale: on a logarithmic axis, their logarithms.
    pub(crate) fn places(&self) -> (f64, f64) {
        (self.from, self.to)
    }
}

/// Returns a number after the transformation of the scale: its logarithm, its log-odds, or on a linear scale the number
/// itself. `None` if the scale can't show the number.
pub(crate) fn place(scale: &Scale, value: f64) -> Option<f64> {
    let at = match scale {
        Scale::Linear | Scale::Names(_) => value.is_finite().then_some(value)?,
        Scale::Log => (value > 0.0).then(|| value.log10())?,
        Scale::Logit => (value > 0.0 && value < 1.0).then(|| (value / (1.0 - value)).log10())?,
    };
    at.is_finite().then_some(at.clamp(-FARTHEST, FARTHEST))
}

/// Returns the number from its transformed value; the inverse of [`place`].
pub(crate) fn number(scale: &Scale, place: f64) -> f64 {
    match scale {
        Scale::Linear | Scale::Names(_) => place,
        Scale::Log => 10f64.powf(place),
        Scale::Logit => 1.0 / (1.0 + 10f64.powf(-place)),
    }
}

/// Returns the coordinates of all marks of a layer on one axis. A rule ([`Layer::Rule`]) has no marks.
pub(crate) fn numbers(layer: &Layer, on: Which) -> Vec<f64> {
    let of = usize::from(on == Which::Y);
    match layer {
        Layer::Line { points, .. } | Layer::Dots { points, .. } | Layer::Area { points, .. } => {
            points.iter().map(|point| point[of]).collect()
        }
        Layer::Band { ranges, .. } if on == Which::X => ranges.iter().map(|range| range.x).collect(),
        Layer::Band { ranges, .. } => ranges.iter().flat_map(|range| [range.low, range.high]).collect(),
        Layer::Intervals { rows, .. } if on == Which::Y => rows.iter().map(|row| row.y).collect(),
        Layer::Intervals { rows, .. } => rows.iter().flat_map(|row| [row.low, row.value, row.high]).collect(),
        Layer::Cells { .. } | Layer::Rule { .. } => Vec::new(),
    }
}

/// A range of numbers after the transformation of the scale, for example of their logarithms.
#[derive(Clone, Copy)]
struct Extent {
    low: f64,
    high: f64,
}

impl Extent {
    fn from_places(places: impl Iterator<Item = f64>) -> Option<Extent> {
        places.fold(None, |extent: Option<Extent>, at| {
            let known = extent.unwrap_or(Extent { low: at, high: at });
            Some(Extent { low: known.low.min(at), high: known.high.max(at) })
        })
    }

    fn length(self) -> f64 {
        self.high - self.low
    }

    /// Returns whether the two ends are so close that the range between them can't be divided in floating-point
    /// numbers.
    fn is_point(self) -> bool {
        self.length() <= 1e-300 || self.length() <= self.low.abs().max(self.high.abs()) * 1e-12
    }
}

/// Returns the two ends of the axis `on`, after the transformation of the scale. The axis must be an axis of numbers.
/// `marks` are the coordinates of all marks; the rules among the `layers` may extend the axis.
fn ends(axis: &Axis, scale: &Scale, marks: &[f64], layers: &[Layer], on: Which) -> (f64, f64) {
    let asked = axis.domain.and_then(|(a, b)| Extent::from_places([a, b].into_iter().filter_map(|v| place(scale, v))));
    let marked = Extent::from_places(marks.iter().filter_map(|v| place(scale, *v)));
    let rules = layers.iter().filter_map(|layer| match layer {
        Layer::Rule { on: which, at, .. } if *which == on => place(scale, *at),
        _ => None,
    });
    let both = Extent::from_places([asked, marked].into_iter().flatten().flat_map(|extent| [extent.low, extent.high]));
    let Some(both) = both.or_else(|| Extent::from_places(rules.clone())) else { return empty(scale) };
    let reach = both.length() * RULE_REACH;
    let near = rules.filter(|at| both.is_point() || (both.low - reach..=both.high + reach).contains(at));
    let mut all = Extent::from_places(near.chain([both.low, both.high])).unwrap_or(both);
    if all.is_point() {
        all = around(scale, all.low);
        return (all.low, all.high);
    }
    let air = all.length() * if on == Which::X { 0.025 } else { 0.05 };
    let is_area = on == Which::Y && layers.iter().any(|layer| matches!(layer, Layer::Area { .. }));
    let from_zero = *scale == Scale::Linear && (is_area || all.low <= 0.3 * all.high) && all.low >= 0.0;
    let to_zero = *scale == Scale::Linear && all.high <= 0.0 && all.high >= 0.3 * all.low;
    let end = |end: f64, asked: Option<f64>, is_at_zero: bool, air: f64| match asked {
        Some(asked) if asked == end => end,
        _ if is_at_zero => 0.0,
        _ => end + air,
    };
    let low = end(all.low, asked.map(|asked| asked.low), from_zero, -air);
    let high = end(all.high, asked.map(|asked| asked.high), to_zero, air);
    (low, high)
}

/// Returns the transformed ends of an axis that has no marks, rules or range.
fn empty(scale: &Scale) -> (f64, f64) {
    match scale {
        Scale::Logit => (-2.0, 2.0),
        _ => (0.0, 1.0),
    }
}

/// Returns the range for an axis whose marks are all at the number `at`.
fn around(scale: &Scale, at: f64) -> Extent {
    let air = match scale {
        Scale::Linear | Scale::Names(_) => at.abs() / 10.0,
        Scale::Log | Scale::Logit => 0.5,
    };
    if air > 1e-290 { Extent { low: at - air, high: at + air } } else { Extent { low: 0.0, high: 1.0 } }
}

/// Returns whether a whole number is a power of two or three times a power of two, as block and array sizes are.
fn is_round_binary(value: f64) -> bool {
    value >= 1.0 && value < 2f64.powi(60) && {
        let whole = value as u64;
        whole >> whole.trailing_zeros() <= 3
    }
}
