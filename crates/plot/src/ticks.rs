//! Choosing the numbers that are written on an axis.

use std::cmp::Ordering;

use crate::Scale;
use crate::label;
use crate::names::told_apart;
use crate::scale::{Ruler, number};

/// A tick on an axis, with its label.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// The position on the axis: 0 at the left or bottom, 1 at the right or top.
    pub(crate) share: f64,
    /// The text at the tick; empty for the short ticks between decades.
    pub(crate) label: String,
    /// The name in full; the label may be a shortened name.
    pub(crate) name: String,
}

impl Tick {
    fn new(share: f64, label: String) -> Tick {
        Tick { share, name: label.clone(), label }
    }
}

/// The space for the labels of an axis. It decides whether a set of labels fits, and how wide a single name may be.
pub(crate) struct TickSpace<'a> {
    /// Returns whether the labels of these ticks fit without overlapping.
    pub(crate) fits: &'a dyn Fn(&[Tick]) -> bool,
    /// The largest width of a name, in the unit of `width`; longer names are shortened.
    pub(crate) most: f64,
    /// Returns the width of a text in the unit of the picture (pixels or columns).
    pub(crate) width: fn(&str) -> f64,
}

/// Returns as many ticks as fit, in ascending order. They are at round numbers, at the levels of the axis or at names.
pub(crate) fn ticks(ruler: &Ruler, space: &TickSpace) -> Vec<Tick> {
    let mut ticks = match &ruler.axis.scale {
        Scale::Names(names) => return named(ruler, names, space),
        _ if !ruler.axis.levels.is_empty() => return every(&levels(ruler), space),
        Scale::Linear => densest(linear(ruler), space),
        Scale::Log if ruler.is_binary => densest(binary(ruler), space),
        Scale::Log => densest(logarithmic(ruler), space),
        Scale::Logit => densest(logit(ruler), space),
    };
    if ruler.axis.scale == Scale::Log && !ruler.is_binary {
        let between = between_decades(ruler, &ticks);
        ticks.extend(between);
        ticks.sort_by(|a, b| a.share.total_cmp(&b.share));
    }
    ticks
}

/// Returns whether each label ends at least `gap` before the next one begins. `ends` returns the positions at which a
/// label begins and ends. Ticks without a label are ignored.
pub(crate) fn are_apart(ticks: &[Tick], gap: f64, ends: impl Fn(&Tick) -> [f64; 2]) -> bool {
    let written: Vec<[f64; 2]> = ticks.iter().filter(|tick| !tick.label.is_empty()).map(ends).collect();
    written.windows(2).all(|pair| pair[0][1] + gap <= pair[1][0])
}

/// Returns the first set that has at least two ticks and whose labels fit; the sets are ordered from dense to sparse.
/// If there is no such set, returns every second, fifth, tenth … tick of the last set that is not empty.
fn densest(sets: Vec<Vec<Tick>>, space: &TickSpace) -> Vec<Tick> {
    if let Some(set) = sets.iter().find(|set| set.len() > 1 && (space.fits)(set)) {
        return set.clone();
    }
    let last = sets.into_iter().rfind(|set| !set.is_empty()).unwrap_or_default();
    every(&last, space)
}

/// Returns all ticks if their labels fit, otherwise every second, fifth, tenth … tick.
fn every(all: &[Tick], space: &TickSpace) -> Vec<Tick> {
    let strides = (0..).map(|rank| [1, 2, 5][rank % 3] * 10usize.pow(rank as u32 / 3));
    let mut sets = strides
        .take_while(|stride| *stride < all.len().max(2))
        .map(|stride| all.iter().step_by(stride).cloned().collect::<Vec<_>>());
    sets.find(|set| (space.fits)(set)).unwrap_or_else(|| all[..all.len().min(1)].to_vec())
}

fn named(ruler: &Ruler, names: &[String], space: &TickSpace) -> Vec<Tick> {
    let tick = |(index, (name, label)): (usize, (&String, String))| {
        Some(Tick { share: ruler.share(index as f64)?, label, name: name.clone() })
    };
    let labels = told_apart(names, space.most, space.width);
    every(&names.iter().zip(labels).enumerate().filter_map(tick).collect::<Vec<_>>(), space)
}

/// Creates a tick at each of the `values` within the range of the axis. `labels` returns the labels for all of these
/// values together.
fn at(ruler: &Ruler, values: &[f64], labels: impl Fn(&[f64]) -> Vec<String>) -> Vec<Tick> {
    let within = |v: &f64| ruler.side(*v) == Some(Ordering::Equal);
    let values: Vec<f64> = values.iter().copied().filter(within).collect();
    let labels = labels(&values);
    let tick = |(v, label): (&f64, String)| Some(Tick::new(ruler.share(*v)?, label));
    values.iter().zip(labels).filter_map(tick).collect()
}

/// Creates a tick at each level of the axis.
fn levels(ruler: &Ruler) -> Vec<Tick> {
    let unit = ruler.axis.unit;
    let written = |value: &f64| match label::own(*value, unit) {
        _ if ruler.is_binary => label::binary(*value, unit),
        // A level may be any number. If two digits are not enough for it, it is written with all of its digits.
        _ if label::symbol(unit).is_empty() && !has_two_digits(*value) => value.to_string(),
        own => own,
    };
    let mut sorted = ruler.axis.levels.clone();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    at(ruler, &sorted, |values| values.iter().map(written).collect())
}

/// Returns whether a number has at most two significant digits.
fn has_two_digits(value: f64) -> bool {
    format!("{value:.1e}").parse() == Ok(value)
}

/// Returns sets of ticks, from dense to sparse. The ticks of a set are at the multiples of a step. The step, in the
/// unit of the labels (such as ms), is 1, 2 or 5 times a power of ten.
fn linear(ruler: &Ruler) -> Vec<Vec<Tick>> {
    let (low, high) = ruler.ends();
    let prefix @ (factor, _) = ruler.axis.prefix(low.abs().max(high.abs()));
    let finest = (high - low) / factor / 20.0;
    // The length of an axis can overflow; the axis then has no ticks.
    let rank = (finest.log10() * 3.0).floor().clamp(-3000.0, 3000.0) as i32;
    let steps = (rank..rank + 8)
        .map(|rank| [1.0, 2.0, 5.0][rank.rem_euclid(3) as usize] * 10f64.powi(rank.div_euclid(3)) * factor);
    let least = if ruler.is_whole && factor == 1.0 { 1.0 } else { 0.0 };
    let set = |step: f64| {
        let (first, last) = ((low / step - 1e-6).ceil(), (high / step + 1e-6).floor());
        let count = (last - first).clamp(-1.0, 50.0) as i64;
        let values: Vec<f64> = (0..=count).map(|index| (first + index as f64) * step).collect();
        at(ruler, &values, |values| label::common(values, step, prefix))
    };
    steps.filter(|step| *step >= least && step.is_normal()).map(set).collect()
}

/// Returns sets of ticks for a logarithmic axis, from dense to sparse. The first set is at 1, 2 and 5 times each power
/// of ten, the second at 1 and 3 times, the others only at powers of ten. If fewer than three ticks of the first set
/// are on the axis, all sets are at other round numbers instead, or evenly spaced.
fn logarithmic(ruler: &Ruler) -> Vec<Vec<Tick>> {
    let (from, to) = ruler.places();
    let unit = ruler.axis.unit;
    let decades = from.floor() as i32..=to.ceil() as i32;
    let power = |exponent: i32| format!("1e{exponent}").parse::<f64>().unwrap_or(0.0);
    let own = |values: &[f64]| values.iter().map(|v| label::own(*v, unit)).collect::<Vec<_>>();
    let of = |digits: &[f64], stride: i32| {
        let chosen = decades.clone().filter(|exponent| exponent.rem_euclid(stride) == 0);
        let values = chosen.flat_map(|exponent| digits.iter().map(move |digit| digit * power(exponent)));
        at(ruler, &values.collect::<Vec<_>>(), own)
    };
    let fine = of(&[1.0, 2.0, 5.0], 1);
    if fine.len() < 3 {
        let digits: [&[f64]; 3] = [
            &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
            &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
            &[1.0, 2.0, 3.0, 5.0, 7.0],
        ];
        let mut sets = [linear(ruler), digits.map(|digits| of(digits, 1)).into()].concat();
        sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
        return sets;
    }
    let strides = [1, 2, 3, 5, 10, 20, 30, 50, 100, 200];
    let rest = strides.iter().map(|stride| of(&[1.0], *stride)).filter(|set| set.len() > 1);
    [fine, of(&[1.0, 3.0], 1)].into_iter().chain(rest).collect()
}

fn binary(ruler: &Ruler) -> Vec<Vec<Tick>> {
    let (from, to) = ruler.places();
    let [first, last] = [from, to].map(|place| place / 2f64.log10());
    let set = |stride: usize| {
        let start = (first.ceil() as i32).div_euclid(stride as i32) * stride as i32;
        let powers: Vec<f64> = (start..=last.floor() as i32).step_by(stride).map(|power| 2f64.powi(power)).collect();
        let write = |values: &[f64]| values.iter().map(|v| label::binary(*v, ruler.axis.unit)).collect();
        at(ruler, &powers, write)
    };
    [1, 2, 5, 10, 20].into_iter().map(set).collect()
}

fn logit(ruler: &Ruler) -> Vec<Vec<Tick>> {
    let tails = || (2..=12).map(|digits| format!("1e-{digits}").parse::<f64>().unwrap_or(0.0));
    let written = if ruler.axis.in_percent { label::percent } else { label::quantile };
    let labels = |values: &[f64]| values.iter().map(|v| written(*v)).collect::<Vec<_>>();
    let set = |middle: &[f64]| {
        let mut values: Vec<f64> =
            tails().chain(middle.iter().copied()).chain(tails().map(|tail| 1.0 - tail)).collect();
        values.sort_by(f64::total_cmp);
        at(ruler, &values, labels)
    };
    let sets: [&[f64]; 3] = [&[0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95], &[0.1, 0.25, 0.5, 0.75, 0.9], &[0.1, 0.5, 0.9]];
    let sets: Vec<_> = sets.into_iter().map(set).filter(|set| set.len() > 1).collect();
    if !sets.is_empty() {
        return sets;
    }
    // If no set has two ticks on the axis, ticks are evenly spaced along it. Their labels have the usual form, `p90` or
    // `90 %`.
    let relabelled = |set: Vec<Tick>| {
        let (from, to) = ruler.places();
        let value = |share: f64| number(&Scale::Logit, from + share * (to - from));
        set.into_iter().map(|Tick { share, .. }| Tick::new(share, written(value(share)))).collect()
    };
    linear(ruler).into_iter().map(relabelled).collect()
}

/// Returns ticks without labels at 2 to 9 times each power of ten, in addition to the ticks `written`, which have
/// labels. Empty if the axis spans more than four powers of ten or less than half of one.
fn between_decades(ruler: &Ruler, written: &[Tick]) -> Vec<Tick> {
    let (from, to) = ruler.places();
    if to - from > 4.0 || to - from < 0.5 {
        return Vec::new();
    }
    let decades = from.floor() as i32..=to.ceil() as i32;
    let values: Vec<f64> =
        decades.flat_map(|exponent| (1..10).map(move |digit| f64::from(digit) * 10f64.powi(exponent))).collect();
    let ticks = at(ruler, &values, |values| vec![String::new(); values.len()]);
    ticks.into_iter().filter(|tick| written.iter().all(|other| (tick.share - other.share).abs() > 1e-6)).collect()
}
