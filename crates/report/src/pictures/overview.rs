use ascertain_engine::claim::{Bound, Effect, Judging, Test};
use ascertain_engine::outcome::{ClaimResult, Outcome};
use ascertain_engine::recorded::RecordedRun;
use ascertain_engine::unit::Unit;

use super::claim::{claim_in_words, directions};
use super::labelled::labelled;
use super::measured::{extremes, numbered};
use super::names::{self, Lines};
use super::{Picture, PictureKind, Table};
use crate::amount::Amount;
use crate::clause::share_figure;
use crate::figure::{Estimate, Figure, exact_percent};
use crate::grid::answer;
use crate::plot::{Axis, Layer, Plot, Scale, Which};
use crate::standing::{rate, standing};
use crate::text::distinct;

/// Draws all claims of a run, with a row for each. Claims about ratios have one picture, with the measured ratio
/// divided by the claimed one. Claims about rates have another, with the measured and the claimed rate. Empty if there
/// are fewer than two such claims.
pub fn overview(run: &RecordedRun) -> Vec<Picture> {
    let [of_ratios, of_rates] = rows(&run.outcome);
    if of_ratios.len() + of_rates.len() < 2 {
        return Vec::new();
    }
    let in_parts = |rows: &[Row], picture: fn(&[Row]) -> Option<Picture>| -> Vec<Picture> {
        let count = rows.len().div_ceil(MOST_ROWS).max(1);
        let parts = rows.chunks(rows.len().div_ceil(count).max(1)).enumerate();
        // If a picture is split, all resulting pictures have the same axis.
        let numbers = rows.iter().flat_map(|row| [row.estimate.low, row.estimate.value, row.estimate.high]);
        let span = extremes(numbers.filter(|number| *number > 0.0));
        let part = |(index, rows): (usize, &[Row])| {
            let mut picture = picture(rows)?;
            if count > 1 {
                picture.plot.title += &format!(" ({} of {count})", index + 1);
                picture.plot.x.domain = span;
            }
            picture.plot.id = numbered(picture.plot.id, index);
            Some(picture)
        };
        parts.filter_map(part).collect()
    };
    [in_parts(&of_ratios, ratios), in_parts(&of_rates, rates)].concat()
}

/// The largest number of rows in a picture. A picture with more rows is split. Each resulting picture fits on a sheet
/// of paper and on a screen, together with its axis.
const MOST_ROWS: usize = 24;

/// Returns two lists: the rows of claims about ratios and those of claims about rates. A list is empty if no claim of
/// its kind has a finite value.
fn rows(outcome: &Outcome) -> [Vec<Row<'_>>; 2] {
    let is_rate = |claim: &&ClaimResult| {
        let is_ratio = matches!(claim.asked.tests.as_slice(), [Test::Versus { scale: Effect::Ratio, .. }]);
        claim.asked.judging == Judging::Rate && !(is_ratio && claim.rate_claimed == 0.5)
    };
    let ratios = outcome.claims.iter().filter_map(relative).collect();
    let rates =
        outcome.claims.iter().filter(is_rate).filter_map(|claim| Some(Row { claim, estimate: rate(claim)? })).collect();
    [ratios, rates]
        .map(|rows: Vec<Row>| if rows.iter().any(|row| row.estimate.value.is_finite()) { rows } else { Vec::new() })
}

/// A claim with its measured value.
struct Row<'a> {
    claim: &'a ClaimResult,
    estimate: Estimate,
}

fn ratios(rows: &[Row]) -> Option<Picture> {
    let is_order = rows.iter().all(|row| row.claim.asked.judging == Judging::Order);
    let (title, label) = match (is_order, rows.first().and_then(|row| Amount::of_order(row.claim))) {
        (true, Some(amount)) => ("Ratio of the reference to each command", amount.ratio()),
        (true, None) => ("Speed relative to the reference", "times as fast (above 1: faster)".into()),
        (false, _) => (
            "Measured ratio of each claim, divided by the claimed ratio",
            "measured / claimed (above 1: better than claimed)".into(),
        ),
    };
    let rule = Layer::Rule { on: Which::X, at: 1.0, label: if is_order { "equal" } else { "as claimed" }.into() };
    let x = Axis::new(&label, Scale::Log, Unit::One);
    let (series, mut layers) = by_answer(rows)?;
    layers.push(rule);
    let mut table = Table::new(&["Claim", "Answer", "Ratio", "Divided by claimed"]);
    for Row { claim, estimate } in rows {
        let ratio = Figure::new(claim.ratio, claim.ratio_low, claim.ratio_high, &[]).to_string();
        table.rows.push(vec![claim.id.clone(), answer(claim).into(), ratio, estimate.ratio().to_string()]);
    }
    let plot = plot("claims-ratios", title, x, rows, (series, layers));
    Some(Picture { kind: PictureKind::Overview, plot, table })
}

/// Returns the measured ratio of a claim divided by the claimed one, or the inverse if the claim is an upper bound. A
/// result above 1 is therefore better than claimed. `None` for a claim that a ratio is within a range, and for claims
/// that are not about a ratio.
fn relative(claim: &ClaimResult) -> Option<Row<'_>> {
    let [Test::Versus { scale: Effect::Ratio, bound, .. }] = claim.asked.tests.as_slice() else { return None };
    let estimate = standing(claim)?;
    (!matches!(bound, Bound::Within(..))).then_some(Row { claim, estimate })
}

fn rates(rows: &[Row]) -> Option<Picture> {
    let (mut series, mut layers) = by_answer(rows)?;
    let claimed = rows.iter().zip(lines(rows).places).map(|(row, y)| [row.claim.rate_claimed, y]);
    layers.push(Layer::Dots { series: Some(series.len()), points: claimed.collect(), hollow: true });
    series.push("judged against".into());
    let mut table = Table::new(&["Claim", "Answer", "Rate", "Judged against"]);
    for Row { claim, .. } in rows {
        let (rate, claimed) = (share_figure(claim).to_string(), exact_percent(claim.rate_claimed));
        table.rows.push(vec![claim.id.clone(), answer(claim).into(), rate, claimed]);
    }
    let x = Axis::new("rate of success", Scale::Linear, Unit::One).percent();
    let plot = plot("claims-rates", "Measured rates and the rates they were judged against", x, rows, (series, layers));
    Some(Picture { kind: PictureKind::Overview, plot, table })
}

/// Returns the names of the series, one for each answer, and for each series a layer with the rows that have this
/// answer. `None` if there are no rows.
fn by_answer(rows: &[Row]) -> Option<(Vec<String>, Vec<Layer>)> {
    // Verdicts have the same colours in all runs, even if a verdict does not occur.
    let first = rows.first()?.claim;
    let [better, worse] = directions(first);
    let same = (first.asked.judging == Judging::Order).then_some("same");
    let answers = [better, worse, "undecided"].into_iter().chain(same);
    let answers = distinct(answers.chain(rows.iter().map(|row| answer(row.claim))));
    let places = lines(rows).places;
    let layers = answers.iter().enumerate().map(|(series, word)| {
        let of_word = places.iter().zip(rows).filter(|(_, row)| answer(row.claim) == *word);
        Layer::Intervals { series: Some(series), rows: of_word.map(|(y, row)| row.estimate.at(*y)).collect() }
    });
    Some((answers.iter().map(ToString::to_string).collect(), layers.collect()))
}

/// Returns the labels of the rows. Claims whose names begin with the same words are grouped: `decimal.` is above
/// `packed-4x-libc:`, which is above `skewed`.
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

/// Returns `at`, the levels in the id of a claim. If it has only one factor, returns the level without the factor:
/// `skewed`.
fn level(at: &str) -> &str {
    at.split_once('=').map(|(_, level)| level).filter(|level| !level.contains('=')).unwrap_or(at)
}

/// Splits the id of a claim into family, name and levels. For example, `decimal.packed-4x-libc[distribution=skewed]`
/// becomes `decimal.`, `packed-4x-libc` and `distribution=skewed`.
fn parts(id: &str) -> [&str; 3] {
    let (name, at) = id.strip_suffix(']').and_then(|id| id.split_once('[')).unwrap_or((id, ""));
    let (family, name) = name.split_at(name.find('.').map_or(0, |dot| dot + 1));
    [family, name, at]
}

fn plot(id: &str, title: &str, x: Axis, rows: &[Row], (series, layers): (Vec<String>, Vec<Layer>)) -> Plot {
    let said = rows
        .iter()
        .take(3)
        .map(|row| format!("{}: {}, {}", claim_in_words(row.claim), row.estimate.ratio(), answer(row.claim)));
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
