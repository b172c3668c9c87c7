//! Heat maps: a median for each pair of names, such as two CPUs.

use std::collections::BTreeSet;

use ascertain_engine::experiment::Arm;
use ascertain_engine::unit::Unit;

use super::measured::{ArmRow, MetricRows, extremes, numbered};
use super::names::natural;
use super::quantiles::cut_off;
use super::{Picture, PictureKind, Table, names};
use crate::plot::{Axis, Cell, Layer, Plot, Scale};

/// Draws a metric whose keys consist of two names, such as `0-3`. There is a plot for each arm, and a cell for each
/// key. All plots have the same colour scale. Empty if no key consists of two names.
pub(super) fn matrices(measured: &MetricRows, id: &str, experiment: &str) -> Vec<Picture> {
    let mut arms: Vec<&Arm> = measured.rows.iter().map(|row| row.arm).collect();
    arms.dedup();
    let arm_names = names::of_rows(&arms.iter().map(|arm| (*arm, "")).collect::<Vec<_>>());
    let several = arms.len() > 1;
    let domain = extremes(pairs(measured.rows.iter()).map(|pair| pair.median));
    let pictures = arms.iter().zip(&arm_names).enumerate().filter_map(|(index, (arm, name))| {
        let pairs: Vec<Pair> = pairs(measured.rows.iter().filter(|row| row.arm == *arm)).collect();
        let of_arm = if several { format!(", {name}") } else { String::new() };
        let title = format!("{} by pair{of_arm}: medians", measured.title());
        let about = format!("{} of {name} by pair in the experiment {experiment}", measured.title());
        picture(measured, &pairs, domain, [numbered(format!("{id}-matrix"), index), title, about])
    });
    pictures.collect()
}

/// A cell of a heat map: the two names in a key of the metric, and the median of the key's values.
struct Pair<'a> {
    from: &'a str,
    to: &'a str,
    median: f64,
}

/// Returns the cells for the rows whose keys consist of two names.
fn pairs<'a>(rows: impl Iterator<Item = &'a ArmRow<'a>>) -> impl Iterator<Item = Pair<'a>> {
    rows.filter_map(|row| row.key.split_once('-').map(|(from, to)| Pair { from, to, median: row.quantile(0.5) }))
}

/// Draws the heat map of one arm. The colour scale covers `domain`.
fn picture(
    measured: &MetricRows,
    pairs: &[Pair],
    domain: Option<(f64, f64)>,
    [id, title, about]: [String; 3],
) -> Option<Picture> {
    let (from, to) = (in_order(pairs.iter().map(|pair| pair.from)), in_order(pairs.iter().map(|pair| pair.to)));
    let place = |names: &[&str], name: &str| names.iter().position(|known| *known == name);
    let finite = pairs.iter().filter(|pair| pair.median.is_finite());
    let cell = |pair: &Pair| Some(Cell { x: place(&to, pair.to)?, y: place(&from, pair.from)?, value: pair.median });
    let least = finite.clone().min_by(|a, b| a.median.total_cmp(&b.median))?;
    let most = finite.clone().max_by(|a, b| a.median.total_cmp(&b.median))?;
    let said = |pair: &Pair| format!("{} ({} to {})", measured.unit.human(pair.median), pair.from, pair.to);
    let cells: Vec<Cell> = finite.filter_map(cell).collect();
    let ends = match cells.as_slice() {
        [_] => said(least),
        _ => format!("from {} to {}", said(least), said(most)),
    };
    let label = format!("median {}", names::spoken(measured.metric));
    let names = |names: &[&str]| Scale::Names(names.iter().map(ToString::to_string).collect());
    let plot = Plot {
        id,
        title,
        alt: format!("{about}: {ends}.{}", cut_off(measured)),
        x: Axis::new("to", names(&to), Unit::One),
        y: Axis::new("from", names(&from), Unit::One),
        series: Vec::new(),
        layers: vec![Layer::Cells { cells, domain, label, unit: measured.unit.prefixes() }],
    };
    let mut table = Table::new(&[&["From"], to.as_slice()].concat());
    for row in &from {
        let median = |column: &&str| {
            let pair = pairs.iter().find(|pair| (&pair.from, &pair.to) == (row, column));
            pair.map_or_else(String::new, |pair| measured.unit.human(pair.median))
        };
        table.rows.push([row.to_string()].into_iter().chain(to.iter().map(median)).collect());
    }
    Some(Picture { kind: PictureKind::Matrix, plot, table })
}

/// Returns each name once, in natural order (`2` before `10`).
fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect::<BTreeSet<_>>().into_iter().collect();
    names.sort_by(|a, b| natural(a, b));
    names
}
