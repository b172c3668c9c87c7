//! Reads the condition on a trial: a comparison with a bound, or a predicate. Also writes a sentence for a claim
//! without `says`.

use toml::de::DeValue;

use super::error::Notes;
use super::keys::{Entry, Fields, entries, number, shown};
use super::read::COMPARISON_RATE;
use super::subject::{Points, factor, level};
use crate::claim::{Bound, Claim, Effect, Judging, Measure, Test};
use crate::command::PrintedMetric;
use crate::derived::{DerivedMetric, is_expression};
use crate::experiment::{Arm, Better, Metric, Point, Spec};
use crate::names::unknown;
use crate::predicate::Predicate;
use crate::unit::{Unit, parse_quantity};

/// Reads the test of a claim. Each arm in the result has only the levels that the claim sets for this arm alone. Call
/// [`test_at`] to add the levels of a point in `at`.
pub(super) fn read_test(
    fields: &Fields<'_>,
    spec: &Spec,
    printed: &[PrintedMetric],
    notes: &mut Notes<'_>,
) -> Option<Test> {
    let candidate = fields.get("candidate").map(|entry| read_arm(entry, spec, notes));
    let baseline = fields.get("baseline").map(|entry| read_arm(entry, spec, notes));
    let metric = read_measure(fields, spec, printed, notes);
    if fields.is_predicate() {
        let first = || spec.variants.first().map(|first| Arm { variant: first.name.clone(), point: Point::default() });
        let predicate = read_predicate(fields, spec, notes);
        let arm = if fields.has("candidate") { candidate.flatten() } else { first() };
        return Some(Test::predicate(arm?, predicate?));
    }
    let bound_key = fields.bound()?;
    for key in ["candidate", "baseline"] {
        if !fields.has(key) {
            notes.add(fields.at, format!("`{key}` is missing; `{bound_key}` compares a candidate with a baseline"));
        }
    }
    let scale = if fields.flag("difference") { Effect::Difference } else { Effect::Ratio };
    let bound = fields.get(bound_key).zip(metric.as_ref());
    let bound = bound.and_then(|(entry, (metric, _))| read_bound(entry, scale, metric, notes));
    let (candidate, baseline) = (candidate.flatten()?, baseline.flatten()?);
    let (_, measure) = metric?;
    Some(Test::Versus { measure, candidate, baseline, scale, bound: bound? })
}

/// Returns the test with its arms at this point. Each arm gets the levels of the point, but keeps the levels that it
/// sets itself.
pub(super) fn test_at(test: &Test, point: &Point) -> Test {
    let mut test = test.clone();
    for arm in test.arms_mut() {
        let own = std::mem::replace(&mut arm.point, point.clone());
        arm.point.0.extend(own.0);
    }
    test
}

/// Reads the metric of a comparison, or the expression in its place. Returns it as a metric and as a measure.
fn read_measure(
    fields: &Fields<'_>,
    spec: &Spec,
    printed: &[PrintedMetric],
    notes: &mut Notes<'_>,
) -> Option<(Metric, Measure)> {
    let expression = fields.get("metric").and_then(|entry| Some((entry.at, entry.value.as_str()?)));
    let expression = expression.filter(|(_, text)| spec.metric(text).is_none() && is_expression(text));
    let Some((at, text)) = expression else {
        let metric = &spec.metrics[read_metric(fields, spec, printed, notes)?];
        return Some((metric.clone(), metric.into()));
    };
    let derived = read_expression(text, at, fields, spec, notes)?;
    if derived.trials_per_value().is_none() {
        notes.add(at, "`where` may select other trials of each arm, so their values are not pairs; compare without it");
        return None;
    }
    if derived.better().is_none() {
        let message = "it is unknown whether higher or lower values of this expression are better; use an expression \
                       with a unit, or a predicate";
        notes.add(at, message);
        return None;
    }
    Some((derived.metric(text), derived.measure(text, spec)))
}

/// Plans an expression over the metrics of an arm.
fn read_expression(
    text: &str,
    at: usize,
    fields: &Fields<'_>,
    spec: &Spec,
    notes: &mut Notes<'_>,
) -> Option<DerivedMetric> {
    if fields.is_exact() {
        notes.add(at, "an exact claim is checked in one trial; name a metric instead of an expression");
        return None;
    }
    DerivedMetric::new(text, spec).map_err(|message| notes.add(at, format!("`{text}`: {message}"))).ok()
}

fn read_metric(fields: &Fields<'_>, spec: &Spec, printed: &[PrintedMetric], notes: &mut Notes<'_>) -> Option<usize> {
    let (at, name) = match (fields.has("metric"), printed.first()) {
        (true, _) => {
            let entry = fields.get("metric")?;
            let text = entry.value.as_str()?;
            // The key `metric` may describe a printed metric by a pattern, instead of naming a metric. The described
            // metric is then the first of `printed`.
            let is_described = !printed.is_empty() && PrintedMetric::describes(text);
            (entry.at, printed.first().filter(|_| is_described).map_or(text, |metric| metric.name.as_str()))
        }
        (false, Some(first)) => (fields.get("metrics")?.at, first.name.as_str()),
        (false, None) => return (!spec.metrics.is_empty()).then_some(0),
    };
    if !fields.is_predicate() && printed.iter().any(|metric| metric.name == name && metric.better.is_none()) {
        let message = format!(
            "it is unknown whether higher or lower `{name}` is better; write metrics = {{ {name} = {{ pattern = …, better = \"higher\" }} }}, or \
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
    let text = entry.value.as_str()?;
    let subjects = Predicate::subjects(text);
    let mut expressions = subjects.iter().filter(|subject| spec.metric(subject).is_none() && is_expression(subject));
    let Some(&expression) = expressions.next() else {
        return Predicate::parse(text, &spec.metrics).map_err(|error| notes.add(entry.at, error.to_string())).ok();
    };
    let derived = read_expression(expression, entry.at, fields, spec, notes)?;
    if let Some(other) = subjects.iter().find(|other| **other != expression && **other != "exit") {
        let message = format!(
            "`{expression}` has one value for several trials, and `{other}` has other values; make a claim for each"
        );
        notes.add(entry.at, message);
        return None;
    }
    let metrics: Vec<Metric> = spec.metrics.iter().cloned().chain([derived.metric(expression)]).collect();
    let mut predicate =
        Predicate::parse(text, &metrics).map_err(|error| notes.add(entry.at, error.to_string())).ok()?;
    for condition in predicate.0.iter_mut().filter(|condition| condition.measure.metric == expression) {
        condition.measure = derived.measure(expression, spec);
    }
    Some(predicate)
}

fn read_arm(entry: Entry<'_>, spec: &Spec, notes: &mut Notes<'_>) -> Option<Arm> {
    let table = match entry.value {
        DeValue::Table(table) => entries(table),
        name => {
            let variant = read_variant(name, entry.at, spec, notes)?;
            return Some(Arm { variant, point: Point::default() });
        }
    };
    let named = table.iter().find(|inner| inner.key == "variant");
    if named.is_none() {
        notes.add(entry.at, format!("`{}` has no variant; write {{ variant = \"…\", … }}", entry.key));
    }
    let variant = named.and_then(|named| read_variant(named.value, named.at, spec, notes));
    let overrides = table.iter().filter(|inner| inner.key != "variant");
    let read: Vec<_> = overrides
        .map(|inner| {
            let factor = factor(inner, spec, Some("variant"), notes)?;
            level(factor, inner.value, inner.at, notes).map(|level| (factor.name.clone(), level))
        })
        .collect();
    Some(Arm { variant: variant?, point: Point(read.into_iter().collect::<Option<_>>()?) })
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

/// Parses the bound of a comparison, as a factor by which the candidate is better. The factor must be a number above
/// zero.
fn ratio(value: &DeValue<'_>) -> Result<f64, String> {
    let ratio = number(value).filter(|ratio| *ratio > 0.0 && ratio.is_finite());
    ratio.ok_or_else(|| {
        let shown = shown(value);
        format!(
            "expected a factor above 0 such as 8.0, not {shown}; \
             for a difference such as \"5 ms\" add difference = true"
        )
    })
}

/// Parses the bound of a comparison, as a difference by which the candidate is better. It is a quantity in the metric's
/// unit; a plain number if the metric has no unit.
fn difference(value: &DeValue<'_>, metric: &Metric) -> Result<f64, String> {
    let text = match (value.as_str(), number(value)) {
        (Some(text), _) => text.to_string(),
        (None, Some(number)) => number.to_string(),
        (None, None) => shown(value),
    };
    parse_quantity(&text, metric.unit).map_err(|error| error.to_string())
}

/// Returns a sentence for a claim without `says`. The claim applies this test at the points in `at`.
pub(super) fn sentence(claim: &Claim, test: &Test, points: &Points, at: &[Point], spec: &Spec) -> String {
    let what = match test {
        Test::Versus { measure, candidate, baseline, scale, bound } => {
            let is_first = spec.metrics.first().is_some_and(|first| first.name == measure.metric);
            let compared = comparison(*scale, *bound, measure, is_first);
            format!("{} {}", named(candidate), compared.replace("{}", &named(baseline)))
        }
        Test::Predicate { arm, predicate, .. } => format!("{}: {predicate}", named(arm)),
    };
    let needs_rate = claim.rate != COMPARISON_RATE || matches!(test, Test::Predicate { .. });
    let how_often = match claim.asked.judging {
        Judging::Rate if needs_rate => {
            let outcomes = if test.expression().is_some() { "values" } else { "trials" };
            format!(" in at least {} % of the {outcomes}", Unit::One.exact(claim.rate * 100.0))
        }
        _ => String::new(),
    };
    let is_shared = |factor: &&str| test.arms().iter().all(|arm| arm.point.get(factor).is_none());
    let factors: Vec<&str> = points.named.iter().map(String::as_str).filter(is_shared).collect();
    format!("{what}{how_often}{}", place(&factors, at))
}

/// Returns the point's levels of these factors as text: `elements=1024,type=f32`. `separator` stands between two
/// levels.
pub(super) fn levels(factors: &[String], point: &Point, separator: &str) -> String {
    let level = |factor: &String| point.get(factor).map(|level| format!("{factor}={level}"));
    factors.iter().filter_map(level).collect::<Vec<_>>().join(separator)
}

/// Returns the name of the arm's variant, with the levels that the claim sets for this arm alone.
fn named(arm: &Arm) -> String {
    let levels: Vec<String> = arm.point.0.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
    match levels.is_empty() {
        true => format!("`{}`", arm.variant),
        false => format!("`{}` with {}", arm.variant, levels.join(", ")),
    }
}

/// Returns the text that follows the candidate's name in a sentence, such as `is at least 8 times as fast as {}`. The
/// text `{}` stands for the baseline. The metric is named unless it measures speed and is the experiment's first metric
/// (`is_first`).
fn comparison(scale: Effect, bound: Bound, measure: &Measure, is_first: bool) -> String {
    let is_speed = match measure.unit {
        Unit::Nanosecond => measure.better == Better::Lower,
        Unit::PerSecond | Unit::BytePerSecond => measure.better == Better::Higher,
        Unit::Byte | Unit::One => false,
    };
    let by_metric = if is_speed && is_first { String::new() } else { format!(" in `{}`", measure.metric) };
    match scale {
        Effect::Ratio if is_speed => format!("is {bound} times as fast as {{}}{by_metric}"),
        Effect::Ratio => format!("is {bound} times as good as {{}}{by_metric}"),
        Effect::Difference => {
            let exact = |value: f64| measure.unit.exact(value);
            let by = match bound {
                Bound::Within(low, high) if low == -high => {
                    return format!("is within ±{} of {{}}{by_metric}", exact(high));
                }
                Bound::AtLeast(low) => format!("at least {}", exact(low)),
                Bound::AtMost(high) => format!("at most {}", exact(high)),
                Bound::Within(low, high) => format!("{} to {}", exact(low), exact(high)),
            };
            let better = if is_speed { "faster" } else { "better" };
            format!("is {better} than {{}} by {by}{by_metric}")
        }
    }
}

/// Returns the text that names the points in a sentence: ` at type=f32, at every one of elements=1024, 4096`.
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
