//! The plain reference: each operator on whole series in memory.

/// A value with the number of the observation at which it appears.
pub type Stamped = (u64, f64);

/// An expression for the reference, which is also written as text.
#[derive(Clone, Debug)]
pub enum Reference {
    Series,
    Add(Box<Reference>, Box<Reference>),
    Subtract(Box<Reference>, Box<Reference>),
    PlusNumber(Box<Reference>, f64),
    OverNumber(Box<Reference>, f64),
    Hold(Box<Reference>, Box<Reference>),
    Again(Box<Reference>, Box<Reference>),
    Every(Box<Reference>, usize),
    Repeat(Box<Reference>, usize),
    Lag(Box<Reference>, usize),
    Drop(Box<Reference>, usize),
    Ewma(Box<Reference>, f64),
    Running(&'static str, Box<Reference>),
    Window(&'static str, Box<Reference>, usize, usize),
    /// The values for which the series `x` plus an offset is above a limit.
    Where(Box<Reference>, f64),
    /// The values for which one series is below another.
    WhereLess(Box<Reference>, Box<Reference>, Box<Reference>),
    /// The values for which a series that is read again is above a limit.
    WhereAgain(Box<Reference>, Box<Reference>, f64),
    Multiply(Box<Reference>, Box<Reference>),
    Divide(Box<Reference>, Box<Reference>),
}

use Reference::{
    Add, Again, Divide, Drop, Every, Ewma, Hold, Lag, Multiply, OverNumber, PlusNumber, Repeat, Running, Series,
    Subtract, Where, WhereAgain, WhereLess, Window,
};

impl Reference {
    /// Returns the expression as text.
    pub fn text(&self) -> String {
        match self {
            Series => "x".into(),
            Add(a, b) => format!("({} + {})", a.text(), b.text()),
            Subtract(a, b) => format!("({} - {})", a.text(), b.text()),
            PlusNumber(a, number) => format!("({} + {number})", a.text()),
            OverNumber(a, number) => format!("({} / {number})", a.text()),
            Hold(a, b) => format!("({} - hold({}))", a.text(), b.text()),
            Again(a, b) => format!("({} - again({}))", a.text(), b.text()),
            Every(a, n) => format!("every({}, {n})", a.text()),
            Repeat(a, n) => format!("repeat({}, {n})", a.text()),
            Lag(a, k) => format!("lag({}, {k})", a.text()),
            Drop(a, k) => format!("drop({}, {k})", a.text()),
            Ewma(a, weight) => format!("ewma({}, {weight})", a.text()),
            Running(aggregate, a) => call(aggregate, &a.text()),
            Window(aggregate, a, length, step) => call(aggregate, &format!("window({}, {length}, {step})", a.text())),
            Where(a, limit) => format!("where({}, x > {limit})", a.text()),
            WhereLess(a, b, c) => format!("where({}, {} < {})", a.text(), b.text(), c.text()),
            WhereAgain(a, b, limit) => format!("where({}, again({}) > {limit})", a.text(), b.text()),
            Multiply(a, b) => format!("({} * {})", a.text(), b.text()),
            Divide(a, b) => format!("({} / {})", a.text(), b.text()),
        }
    }

    /// Computes the expression on a whole series.
    pub fn of(&self, x: &[f64]) -> Vec<Stamped> {
        match self {
            Series => (0..).zip(x.iter().copied()).collect(),
            Add(a, b) => join(&a.of(x), &b.of(x), |a, b| a + b),
            Subtract(a, b) => join(&a.of(x), &b.of(x), |a, b| a - b),
            PlusNumber(a, number) => map(a.of(x), |value| value + number),
            OverNumber(a, number) => map(a.of(x), |value| value / number),
            Hold(a, b) => {
                let held = b.of(x);
                let latest = |at: u64| held.iter().take_while(|(other, _)| *other <= at).last();
                let one = |(at, value): Stamped| (at, value - latest(at).map_or(f64::NAN, |(_, held)| *held));
                a.of(x).into_iter().map(one).collect()
            }
            Again(a, b) => a.of(x).into_iter().zip(b.of(x)).map(|((at, a), (_, b))| (at, a - b)).collect(),
            Every(a, n) => a.of(x).into_iter().step_by(*n).collect(),
            Repeat(a, n) => a.of(x).into_iter().flat_map(|value| vec![value; *n]).collect(),
            Lag(a, k) => {
                let values = a.of(x);
                let before = |index: usize| index.checked_sub(*k).map_or(f64::NAN, |index| values[index].1);
                values.iter().enumerate().map(|(index, (at, _))| (*at, before(index))).collect()
            }
            Drop(a, k) => a.of(x).into_iter().skip(*k).collect(),
            Ewma(a, weight) => {
                let mut average = None;
                map(a.of(x), |value| {
                    if !value.is_nan() {
                        let next = |before: f64| before * (1.0 - weight) + value * weight;
                        average = Some(average.map_or(value, next));
                    }
                    average.unwrap_or(f64::NAN)
                })
            }
            Running(name, a) => {
                let values = a.of(x);
                let of = |end: usize| (values[end].0, aggregate(name, &values[..=end]));
                (0..values.len()).map(of).collect()
            }
            Window(name, a, length, step) => {
                let values = a.of(x);
                let windows = values.windows(*length).step_by(*step);
                windows.map(|window| (window[window.len() - 1].0, aggregate(name, window))).collect()
            }
            Where(a, limit) => {
                let values = a.of(x);
                let selected = values.iter().zip((0..).zip(x)).filter(|(_, (_, condition))| **condition > *limit);
                selected.map(|((at, value), (other, _))| ((*at).max(other), *value)).collect()
            }
            WhereLess(a, b, c) => {
                let is_less = join(&b.of(x), &c.of(x), |b, c| f64::from(u8::from(b < c)));
                select(&join(&a.of(x), &is_less, |a, _| a), &is_less)
            }
            // The second reading is as far as the other side needs, so it has no influence on the time.
            WhereAgain(a, b, limit) => select(&a.of(x), &map(b.of(x), |value| f64::from(u8::from(value > *limit)))),
            Multiply(a, b) => join(&a.of(x), &b.of(x), |a, b| a * b),
            Divide(a, b) => join(&a.of(x), &b.of(x), |a, b| a / b),
        }
    }
}

/// Returns an aggregate of an expression as text.
pub fn call(aggregate: &str, argument: &str) -> String {
    match aggregate.strip_prefix("quantile ") {
        Some(level) => format!("quantile({level}, {argument})"),
        None => format!("{aggregate}({argument})"),
    }
}

/// Returns the values for which the condition with the same index is 1.
fn select(values: &[Stamped], conditions: &[Stamped]) -> Vec<Stamped> {
    values.iter().zip(conditions).filter(|(_, (_, condition))| *condition == 1.0).map(|(value, _)| *value).collect()
}

fn map(values: Vec<Stamped>, mut of: impl FnMut(f64) -> f64) -> Vec<Stamped> {
    values.into_iter().map(|(at, value)| (at, of(value))).collect()
}

fn join(a: &[Stamped], b: &[Stamped], of: impl Fn(f64, f64) -> f64) -> Vec<Stamped> {
    a.iter().zip(b).map(|((at, a), (other, b))| ((*at).max(*other), of(*a, *b))).collect()
}

/// Returns an aggregate of values, leaving out nulls.
pub fn aggregate(name: &str, values: &[Stamped]) -> f64 {
    let mut known: Vec<f64> = values.iter().map(|(_, value)| *value).filter(|value| !value.is_nan()).collect();
    if name == "count" {
        return known.len() as f64;
    }
    if known.is_empty() {
        return f64::NAN;
    }
    match name {
        "min" => known.into_iter().reduce(f64::min).unwrap(),
        "max" => known.into_iter().reduce(f64::max).unwrap(),
        "sum" => known.iter().sum(),
        "mean" => known.iter().sum::<f64>() / known.len() as f64,
        quantile_of => {
            known.sort_by(f64::total_cmp);
            quantile(&known, quantile_of.strip_prefix("quantile ").unwrap().parse().unwrap())
        }
    }
}

/// Returns a quantile of sorted values, interpolated as in NumPy's default.
pub fn quantile(sorted: &[f64], level: f64) -> f64 {
    let position = level * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    match position.fract() {
        0.0 => low,
        _ if low == high => low,
        fraction if (high - low).is_finite() => low + (high - low) * fraction,
        fraction => low * (1.0 - fraction) + high * fraction,
    }
}
