use ascertain_engine::claim::{Bound, Effect, Judging};
use ascertain_engine::outcome::{ClaimResult, Outcome, TestSpec};
use ascertain_engine::recorded::RecordedRun;
use ascertain_engine::unit::Unit;

use super::claim::{directions, said};
use super::labelled::labelled;
use super::names::{self, Lines};
use super::{Picture, PictureKind, Table};
use crate::amount::Amount;
use crate::figure::{Figure, exact_percent};
use crate::grid::answer;
use crate::plot::{Axis, Interval, Layer, Plot, Scale, Which};
use crate::standing::Standing;

/// All claims side by side: of claims on ratios how far each measured ratio is from the claimed one, and of claims
/// on rates each rate beside the claimed one. A picture of its own for either kind, where there are two claims to see.
pub fn overview(run: &RecordedRun) -> Vec<Picture> {
    let [of_ratios, of_rates] = rows(&run.outcome);
    if of_ratios.len() + of_rates.len() < 2 {
        return Vec::new();
    }
    let in_parts = |rows: &[Row], picture: fn(&[Row]) -> Option<Picture>| -> Vec<Picture> {
        let count = rows.len().div_ceil(MOST_ROWS).max(1);
        let parts = rows.chunks(rows.len().div_ceil(count).max(1)).enumerate();
        let span = span(rows);
        let part = |(index, rows): (usize, &[Row])| {
            let mut picture = picture(rows)?;
            if count > 1 {
                picture.plot.title += &format!(" ({} of {count})", index + 1);
                picture.plot.x.domain = span;
            }
            if index > 0 {
                picture.plot.id += &format!("-{}", index + 1);
            }
            Some(picture)
        };
        parts.filter_map(part).collect()
    };
    [in_parts(&of_ratios, ratios), in_parts(&of_rates, rates)].concat()
}

/// More rows than so many are parted, so that an axis is in sight of each, and each part fits on paper.
const MOST_ROWS: usize = 24;

/// The least and the greatest number of all rows that can be drawn, for parts to have the same axis.
fn span(rows: &[Row]) -> Option<(f64, f64)> {
    let numbers = rows.iter().flat_map(|row| [row.low, row.value, row.high]);
    let drawn: Vec<f64> = numbers.filter(|number| number.is_finite() && *number > 0.0).collect();
    Some((drawn.iter().copied().reduce(f64::min)?, drawn.iter().copied().reduce(f64::max)?))
}

/// The claims on ratios and those on rates, if any of a kind can be drawn.
fn rows(outcome: &Outcome) -> [Vec<Row<'_>>; 2] {
    let is_rate = |claim: &&ClaimResult| {
        let is_ratio = matches!(claim.asked.tests.as_slice(), [TestSpec::Versus { scale: Effect::Ratio, .. }]);
        claim.asked.judging == Judging::Rate && !(is_ratio && claim.rate_claimed == 0.5)
    };
    let ratios = outcome.claims.iter().filter_map(relative).collect();
    let rates = outcome.claims.iter().filter(is_rate).filter_map(rate).collect();
    [ratios, rates].map(|rows: Vec<Row>| if rows.iter().any(|row| row.value.is_finite()) { rows } else { Vec::new() })
}

/// A claim's figure, whose ends are infinite where nothing bounds them.
struct Row<'a> {
    claim: &'a ClaimResult,
    value: f64,
    low: f64,
    high: f64,
}

fn ratios(rows: &[Row]) -> Option<Picture> {
    let is_order = rows.iter().all(|row| row.claim.asked.judging == Judging::Order);
    let (title, label) = match (is_order, rows.first().and_then(|row| Amount::of_order(row.claim))) {
        (true, Some(amount)) => ("What the reference takes by what each takes itself", amount.ratio()),
        (true, None) => ("How many times as fast as the reference", "times as fast".into()),
        (false, _) => {
            ("Each ratio by the one that was claimed: as claimed at 1, better beyond", "measured by claimed".into())
        }
    };
    let rule = Layer::Rule { on: Which::X, at: 1.0, label: if is_order { "equal" } else { "as claimed" }.into() };
    let x = Axis::new(&label, Scale::Log, Unit::One);
    let (series, mut layers) = by_answer(rows)?;
    layers.push(rule);
    let mut table = Table::new(&["Claim", "Answer", "Ratio", "By the claimed one"]);
    for Row { claim, value, low, high } in rows {
        let ratio = Figure::new(claim.ratio, claim.ratio_low, claim.ratio_high, &[]).to_string();
        let relative = Figure::new(Some(*value), Some(*low), Some(*high), &[1.0]).to_string();
        table.rows.push(vec![claim.id.clone(), answer(claim).into(), ratio, relative]);
    }
    let plot = plot("claims-ratios", title, x, rows, (series, layers));
    Some(Picture { kind: PictureKind::Overview, plot, table })
}

/// A claim's ratio by the one that it claims, more than 1 on the side that keeps to it.
fn relative(claim: &ClaimResult) -> Option<Row<'_>> {
    let [TestSpec::Versus { scale: Effect::Ratio, bound, .. }] = claim.asked.tests.as_slice() else { return None };
    let Standing { value, low, high } = Standing::of(claim)?;
    (!matches!(bound, Bound::Within(..))).then_some(Row { claim, value, low, high })
}

fn rates(rows: &[Row]) -> Option<Picture> {
    let (mut series, mut layers) = by_answer(rows)?;
    let claimed = rows.iter().zip(lines(rows).places).map(|(row, y)| [row.claim.rate_claimed, y]);
    layers.push(Layer::Dots { series: Some(series.len()), points: claimed.collect(), hollow: true });
    series.push("judged against".into());
    let mut table = Table::new(&["Claim", "Answer", "Rate", "Judged against"]);
    for Row { claim, .. } in rows {
        let rate = Figure::of_share(claim.rate, claim.rate_low, claim.rate_high, claim.rate_claimed).to_string();
        table.rows.push(vec![claim.id.clone(), answer(claim).into(), rate, exact_percent(claim.rate_claimed)]);
    }
    let x = Axis::new("rate of success", Scale::Linear, Unit::One).percent();
    let plot = plot("claims-rates", "Each rate beside the one that it was judged against", x, rows, (series, layers));
    Some(Picture { kind: PictureKind::Overview, plot, table })
}

fn rate(claim: &ClaimResult) -> Option<Row<'_>> {
    let value = claim.rate?;
    let (low, high) = match claim.has_lost_interval(true) {
        true => (value, value),
        false => (claim.rate_low.unwrap_or(0.0), claim.rate_high.unwrap_or(1.0)),
    };
    Some(Row { claim, value, low, high })
}

/// The rows coloured by what was concluded; nothing where there are none.
fn by_answer(rows: &[Row]) -> Option<(Vec<String>, Vec<Layer>)> {
    // The colours of verdicts are the same in all runs.
    let first = rows.first()?.claim;
    let [better, worse] = directions(first);
    let mut answers = vec![better, worse, "undecided"];
    if first.asked.judging == Judging::Order {
        answers.push("same");
    }
    for row in rows {
        if !answers.contains(&answer(row.claim)) {
            answers.push(answer(row.claim));
        }
    }
    let places = lines(rows).places;
    let layers = answers.iter().enumerate().map(|(series, word)| {
        let of_word = places.iter().zip(rows).filter(|(_, row)| answer(row.claim) == *word);
        let interval = |(y, row): (&f64, &Row)| {
            let Row { value, low, high, .. } = *row;
            Interval { y: *y, value, low, high, label: String::new() }
        };
        Layer::Intervals { series: Some(series), rows: of_word.map(interval).collect() }
    });
    Some((answers.iter().map(ToString::to_string).collect(), layers.collect()))
}

/// Claims whose names begin alike have a line for that, and one for the rest of each: `decimal.` above
/// `packed-4x-libc:` above `skewed`.
fn lines(rows: &[Row]) -> Lines {
    let ids: Vec<&str> = rows.iter().map(|row| row.claim.id.as_str()).collect();
    let (ids, label) = names::on_axis(&ids);
    let mut lines = Lines { names: Vec::new(), label, places: Vec::new() };
    let parts: Vec<[&str; 3]> = ids.iter().map(|id| parts(id)).collect();
    for of_family in parts.chunk_by(|one, other| one[0] == other[0]) {
        let is_family = !of_family[0][0].is_empty() && of_family.len() > 1 && of_family.len() < parts.len();
        lines.names.extend(is_family.then(|| of_family[0][0].to_string()));
        for same in of_family.chunk_by(|one, other| one[1] == other[1]) {
            let [family, name, _] = same[0];
            let name = if is_family { name.to_string() } else { format!("{family}{name}") };
            lines.names.extend((same.len() > 1).then(|| format!("{name}:")));
            for [.., at] in same {
                lines.places.push(lines.names.len() as f64);
                let whole = if at.is_empty() { name.clone() } else { format!("{name}[{at}]") };
                lines.names.push(if same.len() > 1 { level(at).to_string() } else { whole });
            }
        }
    }
    lines
}

/// The level alone, where there is one factor: `skewed`.
fn level(at: &str) -> &str {
    at.split_once('=').map(|(_, level)| level).filter(|level| !level.contains('=')).unwrap_or(at)
}

/// `decimal.packed-4x-libc[distribution=skewed]` as `decimal.`, `packed-4x-libc` and `distribution=skewed`.
fn parts(id: &str) -> [&str; 3] {
    let (name, at) = id.strip_suffix(']').and_then(|id| id.split_once('[')).unwrap_or((id, ""));
    let (family, name) = name.split_at(name.find('.').map_or(0, |dot| dot + 1));
    [family, name, at]
}

fn plot(id: &str, title: &str, x: Axis, rows: &[Row], (series, layers): (Vec<String>, Vec<Layer>)) -> Plot {
    let said = rows.iter().take(3).map(|row| {
        let figure = Figure::new(Some(row.value), Some(row.low), Some(row.high), &[1.0]);
        format!("{}: {figure}, {}", said(row.claim), answer(row.claim))
    });
    let said = said.collect::<Vec<_>>().join("; ");
    let more = if rows.len() > 3 { format!("; and {} more", rows.len() - 3) } else { String::new() };
    let Lines { names, label, .. } = lines(rows);
    let plot = Plot {
        id: id.into(),
        title: title.into(),
        alt: format!("{title}. {said}{more}."),
        x,
        y: Axis::new(&label, Scale::Names(names), Unit::One),
        series,
        layers,
    };
    labelled(plot, Unit::One)
}
