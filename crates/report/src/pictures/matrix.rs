//! Heat maps: medians by pairs of names.

use std::collections::BTreeSet;

use ascertain_engine::experiment::Arm;
use ascertain_engine::unit::Unit;

use super::measured::{ArmRow, Measured};
use super::names::natural;
use super::quantiles::cut_off;
use super::{Picture, PictureKind, Table, names};
use crate::plot::{Axis, Cell, Layer, Plot, Scale};

/// A metric with keys such as `0-3`, a cell each, a plot an arm: all with one scale of colours. Nothing of arms without
/// such keys.
pub(super) fn matrices(measured: &Measured, id: &str, experiment: &str) -> Vec<Picture> {
    let mut arms: Vec<&Arm> = measured.rows.iter().map(|row| row.arm).collect();
    arms.dedup();
    let arm_names = names::of_rows(&arms.iter().map(|arm| (*arm, "")).collect::<Vec<_>>());
    let several = arms.len() > 1;
    let domain = domain(measured);
    let pictures = arms.iter().zip(&arm_names).enumerate().filter_map(|(index, (arm, name))| {
        let id = if index == 0 { format!("{id}-matrix") } else { format!("{id}-matrix-{}", index + 1) };
        let of_arm = if several { format!(", {name}") } else { String::new() };
        let title = format!("{} by pair{of_arm}: medians", measured.title());
        let about = format!("{} of {name} by pair in the experiment {experiment}", measured.title());
        Matrix { measured, id, title, about, domain }.picture(arm)
    });
    pictures.collect()
}

/// A pair's median.
struct Pair<'a> {
    from: &'a str,
    to: &'a str,
    row: &'a ArmRow<'a>,
}

/// The pairs among rows.
fn pairs<'a>(rows: impl Iterator<Item = &'a ArmRow<'a>>) -> impl Iterator<Item = Pair<'a>> {
    rows.filter_map(|row| row.key.split_once('-').map(|(from, to)| Pair { from, to, row }))
}

/// The least and the greatest median of all pairs of all arms.
fn domain(measured: &Measured) -> Option<(f64, f64)> {
    let medians = pairs(measured.rows.iter()).map(|pair| pair.row.quantile(0.5)).filter(|median| median.is_finite());
    medians.fold(None, |ends, median| {
        let (low, high) = ends.unwrap_or((median, median));
        Some((low.min(median), high.max(median)))
    })
}

/// A heat map, of one arm.
struct Matrix<'a> {
    measured: &'a Measured<'a>,
    id: String,
    title: String,
    about: String,
    /// What the colours cover.
    domain: Option<(f64, f64)>,
}

impl Matrix<'_> {
    fn picture(self, arm: &Arm) -> Option<Picture> {
        let Matrix { measured, id, title, about, domain } = self;
        let pairs: Vec<Pair> = pairs(measured.rows.iter().filter(|row| row.arm == arm)).collect();
        let from = in_order(pairs.iter().map(|pair| pair.from));
        let to = in_order(pairs.iter().map(|pair| pair.to));
        let place = |names: &[&str], name: &str| names.iter().position(|known| *known == name);
        let cells = pairs.iter().filter_map(|pair| {
            let value = pair.row.quantile(0.5);
            let cell = Cell { x: place(&to, pair.to)?, y: place(&from, pair.from)?, value };
            Some(cell).filter(|cell| cell.value.is_finite())
        });
        let cells: Vec<Cell> = cells.collect();
        let least = cells.iter().min_by(|a, b| a.value.total_cmp(&b.value))?;
        let most = cells.iter().max_by(|a, b| a.value.total_cmp(&b.value))?;
        let said = |cell: &Cell| format!("{} ({} to {})", measured.unit.human(cell.value), from[cell.y], to[cell.x]);
        let ends = match cells.as_slice() {
            [only] => said(only),
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
        Some(Picture { kind: PictureKind::Matrix, plot, table: table(measured.unit, &pairs, &from, &to) })
    }
}

/// The names, each once, as people expect them in order.
fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect::<BTreeSet<_>>().into_iter().collect();
    names.sort_by(|a, b| natural(a, b));
    names
}

fn table(unit: Unit, pairs: &[Pair], from: &[&str], to: &[&str]) -> Table {
    let mut headings = vec!["From"];
    headings.extend(to);
    let mut table = Table::new(&headings);
    for row in from {
        let median = |column: &&str| {
            let pair = pairs.iter().find(|pair| pair.from == *row && pair.to == *column);
            pair.map_or_else(String::new, |pair| unit.human(pair.row.quantile(0.5)))
        };
        table.rows.push([row.to_string()].into_iter().chain(to.iter().map(median)).collect());
    }
    table
}
