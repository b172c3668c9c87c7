//! A metric over a factor's levels.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use ascertain_engine::experiment::{Arm, Footprint, Point};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Cache;

use super::measured::{ArmRow, Measured, MedianInterval};
use super::quantiles::{MOST_LINES, cut_off};
use super::{Picture, PictureKind, Table, measured, names};
use crate::grid::scan::number;
use crate::plot::{Axis, Layer, Plot, Range, Scale, Which};
use crate::text::counted;

/// So many times as far as the marks goes an axis that several pictures share.
const AIR: f64 = 1.05;

/// What is swept, and where.
pub(super) struct Sweep<'a> {
    pub measured: &'a Measured<'a>,
    pub factor: &'a str,
    /// The memory that a level touches; the first that fits counts.
    pub footprints: &'a [Footprint],
    pub caches: &'a [Cache],
    /// The levels that arms chose by themselves.
    pub chosen: Option<&'a Measured<'a>>,
}

/// A variant with its other levels, over the swept ones.
struct Line<'a> {
    /// Without the swept factor.
    arm: Arm,
    bytes_each: Option<f64>,
    /// By level, in ascending order.
    at: Vec<(f64, &'a ArmRow<'a>, MedianInterval)>,
}

impl<'a> Sweep<'a> {
    /// The metric over the factor's levels that are numbers, a line a variant with its median and band, with the ends
    /// of the caches marked. Where there are more lines than colours, or where they touch different amounts of memory,
    /// several plots; none of lines that are all at one value everywhere. A line has two levels at least.
    pub fn pictures(&self, id: &str, about: &str) -> Vec<Picture> {
        let lines = self.lines();
        let mut groups = groups(&lines);
        let are_apart = groups.len() > 1;
        groups.retain(|group| everywhere(group).is_none());
        let id = format!("{id}-{}-sweep", names::slugs([self.factor]).concat());
        let drawn: Vec<&Line> = groups.iter().flatten().copied().collect();
        let Some(axes) = self.axes(&drawn) else { return Vec::new() };
        let pictures = groups.iter().enumerate().filter_map(|(index, group)| {
            let id = if index == 0 { id.clone() } else { format!("{id}-{}", index + 1) };
            let which = if are_apart { which(group, &lines, index, groups.len()) } else { String::new() };
            self.picture(group, id, &which, about, axes.clone())
        });
        pictures.collect()
    }

    /// The values at which plots that are not drawn would be everywhere, and the names of their lines.
    pub fn constants(&self) -> Vec<(f64, Vec<String>)> {
        let lines = self.lines();
        let names = names::of_rows(&lines.iter().map(|line| (&line.arm, "")).collect::<Vec<_>>());
        let name =
            |line: &&Line| lines.iter().zip(&names).find(|(other, _)| other.arm == line.arm).map(|(_, name)| name);
        let mut constants: Vec<(f64, Vec<String>)> = Vec::new();
        for group in groups(&lines) {
            let Some(value) = everywhere(&group) else { continue };
            let names = group.iter().filter_map(name).cloned();
            match constants.iter_mut().find(|(known, _)| *known == value) {
                Some((_, known)) => known.extend(names),
                None => constants.push((value, names.collect())),
            }
        }
        constants
    }

    fn lines(&self) -> Vec<Line<'a>> {
        let mut lines: Vec<Line> = Vec::new();
        for row in &self.measured.rows {
            let Some(level) = row.arm.point.get(self.factor).and_then(number) else { continue };
            let mut arm = row.arm.clone();
            arm.point.0.remove(self.factor);
            let at = (level, row, row.median);
            match lines.iter_mut().find(|line| line.arm == arm) {
                Some(line) => line.at.push(at),
                None => lines.push(Line { bytes_each: self.bytes_each(&arm), arm, at: vec![at] }),
            }
        }
        for line in &mut lines {
            line.at.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
        }
        // What was measured at one level only, for a claim, is no line.
        lines.retain(|line| line.at.len() > 1);
        lines
    }

    fn bytes_each(&self, arm: &Arm) -> Option<f64> {
        let is_at = |at: &Point| at.0.iter().all(|(factor, level)| arm.point.get(factor) == Some(level));
        let footprint = self.footprints.iter().find(|footprint| is_at(&footprint.at));
        footprint.map(|footprint| footprint.bytes_each).filter(|bytes| *bytes > 0.0)
    }

    /// The axes of all pictures of these lines: the levels that were measured, and one scale with one pair of ends, so
    /// that what stands higher in one is more than what stands lower in another.
    fn axes(&self, lines: &[&Line]) -> Option<[Axis; 2]> {
        let levels = || lines.iter().flat_map(|line| line.at.iter().map(|(level, ..)| *level));
        let ends = |numbers: &dyn Fn() -> Vec<f64>| {
            let numbers = numbers();
            Some((numbers.iter().copied().reduce(f64::min)?, numbers.iter().copied().reduce(f64::max)?))
        };
        let is_log = levels().all(|level| level > 0.0) && !are_even(levels().collect());
        let scale = if is_log { Scale::Log } else { Scale::Linear };
        let x = Axis::new(&names::spoken(self.factor), scale, Unit::One).at(levels());
        let medians = || lines.iter().flat_map(|line| line.at.iter().map(|(.., estimate)| *estimate));
        let y = self.measured.axis(medians().map(|median| median.value).filter(|median| *median != 0.0));
        let y = match y.scale {
            Scale::Log => {
                let placed = |number: &f64| number.is_finite() && *number > 0.0;
                let bands =
                    || medians().filter(|median| median.is_bounded()).flat_map(|median| [median.low, median.high]);
                let all = || medians().map(|median| median.value).chain(bands()).filter(placed).collect();
                ends(&all).map_or(y.clone(), |(least, most)| y.clone().showing(least / AIR, most * AIR))
            }
            _ => {
                let all = || medians().flat_map(|median| [median.value, median.high]).filter(|end| end.is_finite());
                let most = all().fold(0.0, f64::max);
                y.showing(all().fold(0.0, f64::min), AIR * most)
            }
        };
        Some([x, y])
    }

    fn picture(&self, lines: &[&Line], id: String, which: &str, about: &str, [x, y]: [Axis; 2]) -> Option<Picture> {
        let levels = || lines.iter().flat_map(|line| line.at.iter().map(|(level, ..)| *level));
        let (least, most) = (levels().reduce(f64::min)?, levels().reduce(f64::max)?);
        let medians = || lines.iter().flat_map(|line| line.at.iter().map(|(.., estimate)| estimate.value));
        if !medians().any(f64::is_finite) {
            return None;
        }
        let hidden = zeros(&y.scale, medians());
        let is_banded = lines.iter().flat_map(|line| &line.at).any(|(.., estimate)| estimate.is_bounded());
        let banded = if is_banded { ", with 95 % bands" } else { ": medians" };
        let factor = names::spoken(self.factor);
        let names = names::of_rows(&lines.iter().map(|line| (&line.arm, "")).collect::<Vec<_>>());
        let rows: Vec<(&Arm, String)> = lines.iter().map(|line| &line.arm).zip(names.iter().cloned()).collect();
        let (places, mut series) = names::series(self.measured.variants, &rows);
        let mut layers: Vec<Layer> = places.iter().zip(lines).map(|(index, line)| line.band(*index)).collect();
        layers.extend(places.iter().zip(lines).flat_map(|(index, line)| line.line(*index)));
        layers.extend(self.cache_ends(lines, least..=most));
        let chosen = self.choices();
        if let (Some((row, _)), true) = (chosen.first(), series.len() < MOST_LINES) {
            let points = chosen.iter().map(|(row, level)| [*level, row.median.value]).collect();
            layers.push(Layer::Dots { series: Some(series.len()), points, hollow: true });
            series.push(choice_of(row));
        }
        let plot = Plot {
            id,
            title: format!("{} by {factor}{which}{banded}{hidden}", self.measured.title()),
            alt: format!("{about}. {}{}", self.in_words(lines, &names), cut_off(self.measured)),
            x,
            y,
            layers,
            series,
        };
        Some(Picture { kind: PictureKind::Sweep, plot, table: self.table(lines, &names, &chosen) })
    }

    /// The arms that chose a level by themselves, and which.
    fn choices(&self) -> Vec<(&'a ArmRow<'a>, f64)> {
        let chose = |row: &'a ArmRow<'a>| {
            let level = self.chosen?.rows.iter().find(|chosen| chosen.arm == row.arm)?.median.value;
            Some((row, level))
        };
        self.measured.rows.iter().filter_map(chose).collect()
    }

    /// The ends of the caches that data is kept in, where all lines touch as much memory.
    fn cache_ends(&self, lines: &[&Line], shown: RangeInclusive<f64>) -> Vec<Layer> {
        let Some(bytes_each) = lines[0].bytes_each else { return Vec::new() };
        let kept = self.caches.iter().filter(|cache| cache.kind != "Instruction");
        let rules = kept.map(|cache| {
            let kind = if cache.kind == "Data" { "d" } else { "" };
            let label = format!("L{}{kind} ends", cache.level);
            (cache.size_bytes as f64 / bytes_each, label)
        });
        rules.filter(|(at, _)| shown.contains(at)).map(|(at, label)| Layer::Rule { on: Which::X, at, label }).collect()
    }

    fn in_words(&self, lines: &[&Line], names: &[String]) -> String {
        let unit = self.measured.unit;
        let said = lines.iter().zip(names).take(MOST_LINES / 2).filter_map(|(line, name)| {
            let ((first, _, from), (last, _, to)) = (line.at.first()?, line.at.last()?);
            let (from, to) = (unit.human(from.value), unit.human(to.value));
            Some(format!("{name}: median {from} at {first} and {to} at {last}"))
        });
        let said: Vec<String> = said.collect();
        format!("{}.", said.join("; "))
    }

    fn table(&self, lines: &[&Line], names: &[String], chosen: &[(&ArmRow, f64)]) -> Table {
        let mut table = Table::new(&["", &names::spoken(self.factor), "Trials", "Median", "95 % interval"]);
        for (line, name) in lines.iter().zip(names) {
            for (level, row, estimate) in &line.at {
                let figure = estimate.figure(self.measured.unit);
                let (level, n) = (level.to_string(), row.n().to_string());
                table.rows.push(vec![name.clone(), level, n, figure.value, figure.range]);
            }
        }
        for (row, level) in chosen {
            let figure = row.median.figure(self.measured.unit);
            let (level, n) = (Unit::One.exact(level.round()), row.n().to_string());
            table.rows.push(vec![choice_of(row), level, n, figure.value, figure.range]);
        }
        table
    }
}

impl Line<'_> {
    /// The intervals that have two ends: what reaches to the edge would hide the other lines and say little.
    fn band(&self, series: usize) -> Layer {
        let bounded = self.at.iter().filter(|(.., estimate)| estimate.is_bounded());
        let range = |&(level, _, MedianInterval { low, high, .. }): &_| Range { x: level, low, high };
        Layer::Band { series: Some(series), ranges: bounded.map(range).collect() }
    }

    /// The line, and the levels that were measured.
    fn line(&self, series: usize) -> [Layer; 2] {
        let points: Vec<[f64; 2]> = self.at.iter().map(|(level, _, estimate)| [*level, estimate.value]).collect();
        let dots = Layer::Dots { series: Some(series), points: points.clone(), hollow: false };
        [Layer::Line { series: Some(series), points, steps: false, dashed: false }, dots]
    }
}

fn choice_of(row: &ArmRow) -> String {
    format!("where {} was by its own choice", row.arm.variant)
}

/// Whether the levels are steps of one size, three or more, such as those of a scan.
fn are_even(mut levels: Vec<f64>) -> bool {
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let steps: Vec<f64> = levels.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.len() > 1 && steps.iter().all(|step| (step / steps[0] - 1.0).abs() < 1e-6)
}

/// What a title says of medians that have no place on a logarithmic axis.
pub(super) fn zeros(scale: &Scale, medians: impl Iterator<Item = f64>) -> String {
    let count = medians.filter(|median| *median == 0.0 && *scale == Scale::Log).count();
    if count == 0 { String::new() } else { format!(" ({} of zero not drawn)", counted(count, "median")) }
}

/// The lines of each plot: together if they touch as much memory and are not too many, else by their other levels,
/// and of these so many as there are colours.
fn groups<'a, 'b>(lines: &'b [Line<'a>]) -> Vec<Vec<&'b Line<'a>>> {
    let mut groups: BTreeMap<(u64, Option<&Point>), Vec<&Line>> = BTreeMap::new();
    for line in lines {
        let alike = lines.iter().filter(|other| other.bytes_each == line.bytes_each).count();
        let point = (alike > MOST_LINES).then_some(&line.arm.point);
        groups.entry((line.bytes_each.map_or(0, f64::to_bits), point)).or_default().push(line);
    }
    groups.into_values().flat_map(|group| group.chunks(MOST_LINES).map(<[_]>::to_vec).collect::<Vec<_>>()).collect()
}

/// The one value of all trials at all levels of these lines, if there is no other.
fn everywhere(lines: &[&Line]) -> Option<f64> {
    measured::everywhere(lines.iter().flat_map(|line| line.at.iter().map(|(_, row, _)| *row)))
}

/// Which of several plots it is: the levels that its lines share and others do not have, and its number.
fn which(group: &[&Line], all: &[Line], index: usize, count: usize) -> String {
    let level = |line: &Line, factor: &str| line.arm.point.get(factor).cloned();
    let own = group[0].arm.point.0.keys().filter(|factor| {
        let first = level(group[0], factor);
        group.iter().all(|line| level(line, factor) == first) && all.iter().any(|line| level(line, factor) != first)
    });
    let own = own.filter_map(|factor| Some(names::setting(factor, group[0].arm.point.get(factor)?)));
    let part = (count > 1).then(|| format!("{} of {count}", index + 1));
    let which = own.chain(part).collect::<Vec<_>>().join(", ");
    if which.is_empty() { which } else { format!(" ({which})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_one_size_are_even() {
        let are = |levels: &[f64]| are_even(levels.to_vec());
        assert!(are(&[1.0, 2.0, 3.0]) && are(&[0.1, 0.2, 0.3, 0.4]) && are(&[3.0, 1.0, 2.0, 1.0]));
        assert!(!are(&[1.0, 2.0, 4.0]) && !are(&[1.0, 2.0]) && !are(&[]));
    }
}
