use crate::clip::Clip;
use crate::{Axis, Layer, Scale, Which};

/// An axis with its ends fixed: numbers to shares of its length.
#[derive(Clone, Debug)]
pub(crate) struct Ruler {
    pub(crate) axis: Axis,
    /// Its ends, as places: logarithms on a logarithmic axis.
    from: f64,
    to: f64,
    /// Whether all marks are at whole numbers: then so are the ticks.
    pub(crate) is_whole: bool,
    /// Whether the marks are at powers of two, or thrice such: then so are the ticks.
    pub(crate) is_binary: bool,
}

/// Beyond this, differences of two numbers overflow.
const FARTHEST: f64 = 1e300;
/// A rule further from the marks than so many times their own extent is told of at the edge instead.
const RULE_REACH: f64 = 1.0;

impl Ruler {
    /// The axis for these layers. It shows the numbers that it was asked to show, its levels and all marks, with a
    /// little air beyond marks; a quantity near zero is shown from zero. What is clipped does not count.
    pub(crate) fn new(axis: &Axis, layers: &[Layer], on: Which, clip: Option<&Clip>) -> Ruler {
        let is_seen = |number: &f64| clip.is_none_or(|clip| clip.has(*number));
        let marks: Vec<f64> = layers
            .iter()
            .flat_map(|layer| numbers(layer, on))
            .filter(is_seen)
            .chain(axis.levels.iter().copied())
            .collect();
        let (from, to) = match &axis.scale {
            // On the y axis the first name is at the top.
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

    /// Whether it is of lengths from somewhere else than zero: what is half as long is not half as much.
    pub(crate) fn is_cut(&self) -> bool {
        self.axis.scale == Scale::Linear && !self.axis.in_percent && (self.from > 0.0 || self.to < 0.0)
    }

    /// Where a number is: 0 at the left or bottom, 1 at the right or top. `None`: it has no place here.
    pub(crate) fn share(&self, value: f64) -> Option<f64> {
        let at = place(&self.axis.scale, value)?;
        let share = (at - self.from) / (self.to - self.from);
        let is_named = !matches!(self.axis.scale, Scale::Names(_)) || (0.0..=1.0).contains(&share);
        is_named.then_some(share.clamp(0.0, 1.0))
    }

    /// Where an end of an interval is: one that is not bounded, or beyond all places, is at the edge.
    pub(crate) fn end(&self, value: f64) -> Option<f64> {
        let beyond = match self.axis.scale {
            Scale::Log => value <= 0.0,
            Scale::Logit => value <= 0.0 || value >= 1.0,
            _ => false,
        };
        if value.is_infinite() || beyond { Some(if value > 0.5 { 1.0 } else { 0.0 }) } else { self.share(value) }
    }

    /// Whether a number is between the ends, or beyond which.
    pub(crate) fn side(&self, value: f64) -> Option<std::cmp::Ordering> {
        let at = place(&self.axis.scale, value)?;
        let (low, high) = (self.from.min(self.to), self.from.max(self.to));
        let slack = (high - low) * 1e-9;
        Some(if at < low - slack {
            std::cmp::Ordering::Less
        } else if at > high + slack {
            std::cmp::Ordering::Greater
        } else {
            std::cmp::Ordering::Equal
        })
    }

    /// The numbers at its ends.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (number(&self.axis.scale, self.from), number(&self.axis.scale, self.to))
    }

    /// Its ends as places.
    pub(crate) fn places(&self) -> (f64, f64) {
        (self.from, self.to)
    }
}

/// Where a number is on its scale; `None`: nowhere.
pub(crate) fn place(scale: &Scale, value: f64) -> Option<f64> {
    let at = match scale {
        Scale::Linear | Scale::Names(_) => value.is_finite().then_some(value)?,
        Scale::Log => (value > 0.0).then(|| value.log10())?,
        Scale::Logit => (value > 0.0 && value < 1.0).then(|| (value / (1.0 - value)).log10())?,
    };
    at.is_finite().then_some(at.clamp(-FARTHEST, FARTHEST))
}

/// The number at a place.
pub(crate) fn number(scale: &Scale, place: f64) -> f64 {
    match scale {
        Scale::Linear | Scale::Names(_) => place,
        Scale::Log => 10f64.powf(place),
        Scale::Logit => 1.0 / (1.0 + 10f64.powf(-place)),
    }
}

/// All numbers of a layer's marks on an axis. Rules are not marks.
fn numbers(layer: &Layer, on: Which) -> Vec<f64> {
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

/// Two ends, as places.
#[derive(Clone, Copy)]
struct Extent {
    low: f64,
    high: f64,
}

impl Extent {
    fn of(places: impl Iterator<Item = f64>) -> Option<Extent> {
        places.fold(None, |extent: Option<Extent>, at| {
            let known = extent.unwrap_or(Extent { low: at, high: at });
            Some(Extent { low: known.low.min(at), high: known.high.max(at) })
        })
    }

    fn length(self) -> f64 {
        self.high - self.low
    }

    /// Whether its ends are so near to each other that nothing can be told apart between them.
    fn is_point(self) -> bool {
        self.length() <= 1e-300 || self.length() <= self.low.abs().max(self.high.abs()) * 1e-12
    }
}

/// The ends of an axis of numbers, as places.
fn ends(axis: &Axis, scale: &Scale, marks: &[f64], layers: &[Layer], on: Which) -> (f64, f64) {
    let asked = axis.domain.and_then(|(a, b)| Extent::of([a, b].into_iter().filter_map(|v| place(scale, v))));
    let marked = Extent::of(marks.iter().filter_map(|v| place(scale, *v)));
    let rules = layers.iter().filter_map(|layer| match layer {
        Layer::Rule { on: which, at, .. } if *which == on => place(scale, *at),
        _ => None,
    });
    let both = Extent::of([asked, marked].into_iter().flatten().flat_map(|extent| [extent.low, extent.high]));
    let Some(both) = both.or_else(|| Extent::of(rules.clone())) else { return empty(scale) };
    let reach = both.length() * RULE_REACH;
    let near = rules.filter(|at| both.is_point() || (both.low - reach..=both.high + reach).contains(at));
    let mut all = Extent::of(near.chain([both.low, both.high])).unwrap_or(both);
    if all.is_point() {
        all = around(scale, all.low);
        return (all.low, all.high);
    }
    let air = all.length() * if on == Which::X { 0.025 } else { 0.05 };
    let is_area = on == Which::Y && layers.iter().any(|layer| matches!(layer, Layer::Area { .. }));
    let is_exact = |end: f64, asked: Option<f64>| asked == Some(end);
    let from_zero = *scale == Scale::Linear && (is_area || all.low <= 0.3 * all.high) && all.low >= 0.0;
    let to_zero = *scale == Scale::Linear && all.high <= 0.0 && all.high >= 0.3 * all.low;
    let low = match all.low {
        _ if from_zero && !is_exact(all.low, asked.map(|a| a.low)) => 0.0,
        low if is_exact(low, asked.map(|a| a.low)) => low,
        low => low - air,
    };
    let high = match all.high {
        _ if to_zero && !is_exact(all.high, asked.map(|a| a.high)) => 0.0,
        high if is_exact(high, asked.map(|a| a.high)) => high,
        high => high + air,
    };
    (low, high)
}

/// The ends where there is nothing to show.
fn empty(scale: &Scale) -> (f64, f64) {
    match scale {
        Scale::Logit => (-2.0, 2.0),
        _ => (0.0, 1.0),
    }
}

/// Ends around a single place.
fn around(scale: &Scale, at: f64) -> Extent {
    let air = match scale {
        Scale::Linear | Scale::Names(_) => at.abs() / 10.0,
        Scale::Log | Scale::Logit => 0.5,
    };
    if air > 1e-290 { Extent { low: at - air, high: at + air } } else { Extent { low: 0.0, high: 1.0 } }
}

/// Whether a whole number is a power of two, or thrice one, as block and array sizes are.
fn is_round_binary(value: f64) -> bool {
    value >= 1.0 && value < 2f64.powi(60) && {
        let whole = value as u64;
        whole >> whole.trailing_zeros() <= 3
    }
}
