//! Which numbers of an axis are written.

use std::cmp::Ordering;

use crate::Scale;
use crate::label;
use crate::names::told_apart;
use crate::scale::{Ruler, number};

/// A place on an axis that is marked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// Where: 0 at the left or bottom, 1 at the right or top.
    pub(crate) share: f64,
    /// What is written there; nothing beside the short ticks between decades.
    pub(crate) label: String,
    /// The whole name where the label is shortened.
    pub(crate) name: Option<String>,
}

/// The space that an axis has for its ticks' labels.
pub(crate) struct TickSpace<'a> {
    /// Whether these labels can stand side by side.
    pub(crate) fits: &'a dyn Fn(&[Tick]) -> bool,
    /// How wide a name may be.
    pub(crate) most: f64,
    /// And how wide it is.
    pub(crate) width: fn(&str) -> f64,
}

/// The most ticks that fit, at round numbers, in the order of their places.
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

/// The first set that fits; where none does, ever fewer of the last.
fn densest(sets: Vec<Vec<Tick>>, space: &TickSpace) -> Vec<Tick> {
    if let Some(set) = sets.iter().find(|set| set.len() > 1 && (space.fits)(set)) {
        return set.clone();
    }
    let last = sets.into_iter().rfind(|set| !set.is_empty()).unwrap_or_default();
    every(&last, space)
}

/// Every second, fifth, tenth … tick, so that they fit.
fn every(all: &[Tick], space: &TickSpace) -> Vec<Tick> {
    let strides = (0..).map(|rank| [1, 2, 5][rank % 3] * 10usize.pow(rank as u32 / 3));
    let mut sets = strides
        .take_while(|stride| *stride < all.len().max(2))
        .map(|stride| all.iter().step_by(stride).cloned().collect::<Vec<_>>());
    sets.find(|set| (space.fits)(set)).unwrap_or_else(|| all[..all.len().min(1)].to_vec())
}

fn named(ruler: &Ruler, names: &[String], space: &TickSpace) -> Vec<Tick> {
    let tick = |(index, (name, label)): (usize, (&String, String))| {
        let whole = (label != *name).then(|| name.clone());
        Some(Tick { share: ruler.share(index as f64)?, label, name: whole })
    };
    let labels = told_apart(names, space.most, space.width);
    every(&names.iter().zip(labels).enumerate().filter_map(tick).collect::<Vec<_>>(), space)
}

/// Ticks at these numbers, where they are between the ends.
fn at(ruler: &Ruler, values: &[f64], labels: impl Fn(&[f64]) -> Vec<String>) -> Vec<Tick> {
    let within = |v: &f64| ruler.side(*v) == Some(Ordering::Equal);
    let values: Vec<f64> = values.iter().copied().filter(within).collect();
    let labels = labels(&values);
    let placed =
        values.iter().zip(labels).filter_map(|(v, label)| Some(Tick { share: ruler.share(*v)?, label, name: None }));
    placed.collect()
}

/// The numbers that there are on the axis, and no others.
fn levels(ruler: &Ruler) -> Vec<Tick> {
    let unit = ruler.axis.unit;
    let written = |value: &f64| match label::own(*value, unit) {
        _ if ruler.is_binary => label::binary(*value, unit),
        // Two digits, as ticks have them, may be too few for a number that somebody chose.
        _ if label::symbol(unit).is_empty() && !has_two_digits(*value) => value.to_string(),
        own => own,
    };
    let mut sorted = ruler.axis.levels.clone();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    at(ruler, &sorted, |values| values.iter().map(written).collect())
}

/// Whether two significant digits say all of a number.
fn has_two_digits(value: f64) -> bool {
    format!("{value:.1e}").parse() == Ok(value)
}

/// Multiples of 1, 2 or 5 times a power of ten in the unit that the labels show, ever fewer.
fn linear(ruler: &Ruler) -> Vec<Vec<Tick>> {
    let (low, high) = ruler.ends();
    let prefix @ (factor, _) = ruler.axis.prefix(low.abs().max(high.abs()));
    let finest = (high - low) / factor / 20.0;
    // What overflows has no ticks.
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

/// 1, 2 and 5 times each power of ten, then fewer; where the axis is too short for three of them, even steps or other
/// round numbers, whichever are more.
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
    let share = if ruler.axis.in_percent { label::percent } else { label::quantile };
    let labels = |values: &[f64]| values.iter().map(|v| share(*v)).collect::<Vec<_>>();
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
    // Between two of these: even steps, labelled alike.
    let relabelled = |set: Vec<Tick>| {
        let (from, to) = ruler.places();
        let value = |share: f64| number(&Scale::Logit, from + share * (to - from));
        set.into_iter().map(|tick| Tick { label: share(value(tick.share)), ..tick }).collect()
    };
    linear(ruler).into_iter().map(relabelled).collect()
}

/// 2 to 9 times each power of ten, unwritten, where the decades are.
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
