//! What must be true of a trial, a comparison with a bound or a predicate, and the sentence of a claim that has none.

use toml::de::DeValue;

use super::error::{Notes, unknown};
use super::keys::{Entry, Fields, entries, number, shown};
use super::read::{COMPARISON_RATE, Criterion};
use super::subject::{Points, factor, level};
use crate::claim::{Bound, Effect, Judging, Test};
use crate::command::PrintedMetric;
use crate::experiment::{Arm, Better, Level, Metric, Point, Spec};
use crate::predicate::Predicate;
use crate::unit::{Unit, parse_quantity};

/// What must be true, but for where.
pub(super) enum Question {
    Versus { metric: usize, candidate: Side, baseline: Side, scale: Effect, bound: Bound },
    Predicate { side: Side, predicate: Predicate },
}

impl Question {
    /// Reads what must be true.
    pub(super) fn read(
        fields: &Fields<'_>,
        spec: &Spec,
        printed: &[PrintedMetric],
        notes: &mut Notes<'_>,
    ) -> Option<Question> {
        let candidate = fields.get("candidate").map(|entry| read_side(entry, spec, notes));
        let baseline = fields.get("baseline").map(|entry| read_side(entry, spec, notes));
        let metric = read_metric(fields, spec, printed, notes);
        if fields.is_predicate() {
            let first = || spec.variants.first().map(|first| Side { variant: first.name.clone(), levels: Vec::new() });
            let predicate = read_predicate(fields, spec, notes);
            let side = if fields.has("candidate") { candidate.flatten() } else { first() };
            return Some(Question::Predicate { side: side?, predicate: predicate? });
        }
        let bound_key = fields.bound()?;
        for key in ["candidate", "baseline"] {
            if !fields.has(key) {
                notes.add(fields.at, format!("`{key}` is missing; `{bound_key}` compares a candidate with a baseline"));
            }
        }
        let scale = if fields.flag("difference") { Effect::Difference } else { Effect::Ratio };
        let bound = fields.get(bound_key).zip(metric);
        let bound = bound.and_then(|(entry, metric)| read_bound(entry, scale, &spec.metrics[metric], notes));
        Some(Question::Versus {
            metric: metric?,
            candidate: candidate.flatten()?,
            baseline: baseline.flatten()?,
            scale,
            bound: bound?,
        })
    }
}

/// A variant, with the levels in which it differs from the point.
pub(super) struct Side {
    pub(super) variant: String,
    pub(super) levels: Vec<(String, Level)>,
}

impl Side {
    /// The arm at a point.
    pub(super) fn at(&self, point: &Point) -> Arm {
        let with = |point: Point, (factor, level): &(String, Level)| point.with(factor, level.clone());
        Arm { variant: self.variant.clone(), point: self.levels.iter().fold(point.clone(), with) }
    }
}

impl Question {
    /// The test at a point.
    pub(super) fn at(&self, point: &Point) -> Test {
        match self {
            Question::Versus { metric, candidate, baseline, scale, bound } => Test::Versus {
                metric: *metric,
                candidate: candidate.at(point),
                baseline: baseline.at(point),
                scale: *scale,
                bound: *bound,
            },
            Question::Predicate { side, predicate } => {
                Test::Predicate { arm: side.at(point), predicate: predicate.clone() }
            }
        }
    }
}

fn read_metric(fields: &Fields<'_>, spec: &Spec, printed: &[PrintedMetric], notes: &mut Notes<'_>) -> Option<usize> {
    let (at, name) = match (fields.has("metric"), printed.first()) {
        (true, _) => {
            let entry = fields.get("metric")?;
            let text = entry.value.as_str()?;
            // One that is described here comes first.
            let is_described = !printed.is_empty() && PrintedMetric::describes(text);
            (entry.at, printed.first().filter(|_| is_described).map_or(text, |metric| metric.name.as_str()))
        }
        (false, Some(first)) => (fields.get("metrics")?.at, first.name.as_str()),
        (false, None) => return (!spec.metrics.is_empty()).then_some(0),
    };
    if !fields.is_predicate() && printed.iter().any(|metric| metric.name == name && metric.better.is_none()) {
        let message = format!(
            "`{name}` has no direction; write metrics = {{ {name} = {{ pattern = …, better = \"higher\" }} }}, or \
             \"lower\", or a unit that implies it"
        );
        notes.add(at, message);
    }
    let found = spec.metric(name);
    if found.is_none() {
        notes.add(at, unknown("metric", name, spec.metrics.iter().map(|metric| metric.name.as_str())));
    }
    found
}

fn read_predicate(fields: &Fields<'_>, spec: &Spec, notes: &mut Notes<'_>) -> Option<Predicate> {
    let entry = fields.get("predicate")?;
    let parsed = Predicate::parse(entry.value.as_str()?, &spec.metrics);
    parsed.map_err(|error| notes.add(entry.at, error.to_string())).ok()
}

fn read_side(entry: Entry<'_>, spec: &Spec, notes: &mut Notes<'_>) -> Option<Side> {
    let table = match entry.value {
        DeValue::Table(table) => entries(table),
        name => {
            let variant = read_variant(name, entry.at, spec, notes)?;
            return Some(Side { variant, levels: Vec::new() });
        }
    };
    let named = table.iter().find(|inner| inner.key == "variant");
    if named.is_none() {
        notes.add(entry.at, format!("`{}` names no variant; write {{ variant = \"…\", … }}", entry.key));
    }
    let variant = named.and_then(|named| read_variant(named.value, named.at, spec, notes));
    let overrides = table.iter().filter(|inner| inner.key != "variant");
    let read: Vec<_> = overrides
        .map(|inner| {
            let factor = factor(inner, spec, Some("variant"), notes)?;
            level(factor, inner.value, inner.at, notes).map(|level| (factor.name.clone(), level))
        })
        .collect();
    Some(Side { variant: variant?, levels: read.into_iter().collect::<Option<_>>()? })
}

fn read_variant(value: &DeValue<'_>, at: usize, spec: &Spec, notes: &mut Notes<'_>) -> Option<String> {
    let known = || spec.variants.iter().map(|variant| variant.name.as_str());
    match value.as_str() {
        Some(name) if known().any(|known| known == name) => return Some(name.to_string()),
        Some(name) => notes.add(at, unknown("variant", name, known())),
        None => notes.add(at, format!("`variant` must be a string, not {}", shown(value))),
    }
    None
}

fn read_bound(entry: Entry<'_>, scale: Effect, metric: &Metric, notes: &mut Notes<'_>) -> Option<Bound> {
    let mut value = |value: &DeValue<'_>, at: usize| {
        let read = match scale {
            Effect::Ratio => ratio(value),
            Effect::Difference => difference(value, metric),
        };
        read.map_err(|message| notes.add(at, format!("`{}`: {message}", entry.key))).ok()
    };
    let DeValue::Array(both) = entry.value else {
        let bound = value(entry.value, entry.at)?;
        return Some(if entry.key == "at_most" { Bound::AtMost(bound) } else { Bound::AtLeast(bound) });
    };
    let ends: Vec<Option<f64>> = both.iter().map(|end| value(end.get_ref(), end.span().start)).collect();
    let [Some(low), Some(high)] = ends[..] else { return None };
    if low > high {
        notes.add(entry.at, "`within` must be [low, high] with low no greater than high");
        return None;
    }
    Some(Bound::Within(low, high))
}

/// How many times better: a number above zero.
fn ratio(value: &DeValue<'_>) -> Result<f64, String> {
    let ratio = number(value).filter(|ratio| *ratio > 0.0 && ratio.is_finite());
    ratio.ok_or_else(|| {
        let shown = shown(value);
        format!(
            "how many times better is a number above 0 such as 8.0, not {shown}; \
             for a difference such as \"5 ms\" add difference = true"
        )
    })
}

/// By how much better: a quantity in the metric's unit. A plain number is one without a unit.
fn difference(value: &DeValue<'_>, metric: &Metric) -> Result<f64, String> {
    let text = match (value.as_str(), number(value)) {
        (Some(text), _) => text.to_string(),
        (None, Some(number)) => number.to_string(),
        (None, None) => shown(value),
    };
    parse_quantity(&text, metric.unit).map_err(|error| error.to_string())
}

/// Says what a claim claims at these points.
pub(super) fn says(question: &Question, criterion: &Criterion, points: &Points, at: &[Point], spec: &Spec) -> String {
    let (what, overridden): (String, Vec<&str>) = match question {
        Question::Versus { metric, candidate, baseline, scale, bound } => {
            let compared = comparison(*scale, *bound, &spec.metrics[*metric], *metric == 0);
            let both = candidate.levels.iter().chain(&baseline.levels);
            let what = format!("{} {}", named(candidate), compared.replace("{}", &named(baseline)));
            (what, both.map(|(factor, _)| factor.as_str()).collect())
        }
        Question::Predicate { side, predicate } => {
            let what = format!("{}: {}", named(side), predicate.spelled(&spec.metrics));
            (what, side.levels.iter().map(|(factor, _)| factor.as_str()).collect())
        }
    };
    let needs_rate = match question {
        Question::Versus { .. } => criterion.rate != COMPARISON_RATE,
        Question::Predicate { .. } => true,
    };
    let how_often = match criterion.judging {
        Judging::Rate if needs_rate => {
            format!(" in at least {} % of the trials", Unit::One.exact(criterion.rate * 100.0))
        }
        _ => String::new(),
    };
    let factors: Vec<&str> = points.named.iter().map(String::as_str).filter(|f| !overridden.contains(f)).collect();
    format!("{what}{how_often}{}", place(&factors, at))
}

/// The levels of these factors: `elements=1024,type=f32`.
pub(super) fn levels(factors: &[String], point: &Point, separator: &str) -> String {
    let level = |factor: &String| point.get(factor).map(|level| format!("{factor}={level}"));
    factors.iter().filter_map(level).collect::<Vec<_>>().join(separator)
}

/// The variant, with the levels that it does not share.
fn named(side: &Side) -> String {
    let levels: Vec<String> = side.levels.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
    match levels.is_empty() {
        true => format!("`{}`", side.variant),
        false => format!("`{}` with {}", side.variant, levels.join(", ")),
    }
}

/// The verb, with `{}` for the baseline.
fn comparison(scale: Effect, bound: Bound, metric: &Metric, is_first: bool) -> String {
    let is_speed = match metric.unit {
        Unit::Nanosecond => metric.better == Better::Lower,
        Unit::PerSecond | Unit::BytePerSecond => metric.better == Better::Higher,
        Unit::Byte | Unit::One => false,
    };
    let by_metric = if is_speed && is_first { String::new() } else { format!(" in `{}`", metric.name) };
    match scale {
        Effect::Ratio if is_speed => format!("is {bound} times as fast as {{}}{by_metric}"),
        Effect::Ratio => format!("is {bound} times as good as {{}}{by_metric}"),
        Effect::Difference => {
            let exact = |value: f64| metric.unit.exact(value);
            let by = match bound {
                Bound::AtLeast(low) => format!("at least {}", exact(low)),
                Bound::AtMost(high) => format!("at most {}", exact(high)),
                Bound::Within(low, high) => format!("{} to {}", exact(low), exact(high)),
            };
            let better = if is_speed { "faster" } else { "better" };
            format!("is {better} than {{}} by {by}{by_metric}")
        }
    }
}

/// Where: ` at type=f32, at every one of elements=1024, 4096`.
fn place(factors: &[&str], at: &[Point]) -> String {
    let mut fixed = Vec::new();
    let mut swept = Vec::new();
    for factor in factors {
        let mut levels: Vec<String> = Vec::new();
        for level in at.iter().filter_map(|point| point.get(factor)).map(ToString::to_string) {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        let is_fixed = levels.len() == 1;
        let text = format!("{factor}={}", levels.join(", "));
        if is_fixed { fixed.push(text) } else { swept.push(format!(", at every one of {text}")) }
    }
    let fixed = if fixed.is_empty() { String::new() } else { format!(" at {}", fixed.join(", ")) };
    format!("{fixed}{}", swept.concat())
}
