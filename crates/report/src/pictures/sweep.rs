//! Sweeps: a metric by the levels of a numeric factor.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use ascertain_engine::experiment::{Arm, Footprint, Point};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Cache;

use super::measured::{ArmRow, MetricRows, extremes, numbered};
use super::quantiles::{MOST_LINES, cut_off};
use super::{Picture, PictureKind, Table, measured, names};
use crate::figure::Estimate;
use crate::grid::scan::number;
use crate::plot::{Axis, Layer, Plot, Range, Scale, Which};
use crate::text::{counted, gathered};

/// The space between the numbers and the ends of the y axis, as a factor. The upper end is the highest number
/// multiplied by this factor. The lower end of a logarithmic axis is the lowest number divided by it.
const AIR: f64 = 1.05;

/// A metric by the levels of the swept factor.
pub(super) struct Sweep<'a> {
    pub measured: &'a MetricRows<'a>,
    pub factor: &'a str,
    /// The bytes of memory that arms use per unit of the swept factor. Each entry applies to arms with certain levels;
    /// the first entry that applies to an arm is used.
    pub footprints: &'a [Footprint],
    pub caches: &'a [Cache],
    /// The levels that some arms chose by themselves, as values of a metric; `None` if no arm does so.
    pub chosen: Option<&'a MetricRows<'a>>,
}

/// A line of the plot: an arm without its level of the swept factor, and its medians by level.
struct Line<'a> {
    /// The arm without its level of the swept factor.
    arm: Arm,
    bytes_each: Option<f64>,
    /// For each measured level, in ascending order: the level as a number, its row, and its median.
    at: Vec<(f64, &'a ArmRow<'a>, Estimate)>,
}

impl<'a> Sweep<'a> {
    /// Draws the metric by the numeric levels of the swept factor. Arms that differ only in this factor become one line
    /// of medians, with a band. An arm that was measured at only one level has no line. Vertical lines show the sizes
    /// of the caches. If arms need different amounts of memory at the same level, their lines are in separate plots.
    /// The lines are also divided among several plots if there are more lines than colours. A plot whose values are all
    /// equal is left out.
    pub fn pictures(&self, id: &str, about: &str) -> Vec<Picture> {
        let lines = self.lines();
        let mut groups = groups(&lines);
        let are_apart = groups.len() > 1;
        groups.retain(|group| everywhere(group).is_none());
        let id = format!("{id}-{}-sweep", names::slugs([self.factor]).concat());
        let drawn: Vec<&Line> = groups.iter().flatten().copied().collect();
        let axes = self.axes(&drawn);
        let pictures = groups.iter().enumerate().filter_map(|(index, group)| {
            let id = numbered(id.clone(), index);
            let which = if are_apart { which(group, &lines, index, groups.len()) } else { String::new() };
            self.picture(group, id, &which, about, axes.clone())
        });
        pictures.collect()
    }

    /// Returns an entry for each plot that was left out because all its values are equal: the value, and the names of
    /// its lines.
    pub fn constants(&self) -> Vec<(f64, Vec<String>)> {
        let lines = self.lines();
        let names = names::of_rows(&lines.iter().map(|line| (&line.arm, "")).collect::<Vec<_>>());
        let names = |group: &[&Line]| {
            let named = lines.iter().zip(&names).filter(|(line, _)| group.iter().any(|other| other.arm == line.arm));
            named.map(|(_, name)| name.clone()).collect::<Vec<_>>()
        };
        let constants = groups(&lines).into_iter().filter_map(|group| Some((everywhere(&group)?, names(&group))));
        gathered(constants).into_iter().map(|(value, names)| (value, names.concat())).collect()
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
        // An arm that was measured at only one level, because of a claim, has no line.
        lines.retain(|line| line.at.len() > 1);
        lines
    }

    fn bytes_each(&self, arm: &Arm) -> Option<f64> {
        let is_at = |at: &Point| at.0.iter().all(|(factor, level)| arm.point.get(factor) == Some(level));
        let footprint = self.footprints.iter().find(|footprint| is_at(&footprint.at));
        footprint.map(|footprint| footprint.bytes_each).filter(|bytes| *bytes > 0.0)
    }

    /// Returns the two axes for all pictures of these lines. The x axis has the measured levels. All pictures have the
    /// same y axis, so that heights can be compared between them.
    fn axes(&self, lines: &[&Line]) -> [Axis; 2] {
        let levels = || lines.iter().flat_map(|line| line.at.iter().map(|(level, ..)| *level));
        let is_log = levels().all(|level| level > 0.0) && !are_even(levels().collect());
        let scale = if is_log { Scale::Log } else { Scale::Linear };
        let x = Axis::new(&names::spoken(self.factor), scale, Unit::One).at(levels());
        let medians = || lines.iter().flat_map(|line| line.at.iter().map(|(.., estimate)| *estimate));
        let y = self.measured.axis(medians().map(|median| median.value).filter(|median| *median != 0.0));
        if y.scale == Scale::Log {
            let bands = medians().filter(|median| median.is_bounded()).flat_map(|median| [median.low, median.high]);
            let placed = medians().map(|median| median.value).chain(bands).filter(|number| *number > 0.0);
            return match extremes(placed) {
                Some((least, most)) => [x, y.showing(least / AIR, most * AIR)],
                None => [x, y],
            };
        }
        let ends = extremes(medians().flat_map(|median| [median.value, median.high]));
        let (least, most) = ends.unwrap_or_default();
        [x, y.showing(least.min(0.0), AIR * most.max(0.0))]
    }

    fn picture(&self, lines: &[&Line], id: String, which: &str, about: &str, [x, y]: [Axis; 2]) -> Option<Picture> {
        let (least, most) = extremes(lines.iter().flat_map(|line| line.at.iter().map(|(level, ..)| *level)))?;
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

    /// Returns each arm that chose a level of the factor by itself, with this level.
    fn choices(&self) -> Vec<(&'a ArmRow<'a>, f64)> {
        let chose = |row: &'a ArmRow<'a>| {
            let level = self.chosen?.rows.iter().find(|chosen| chosen.arm == row.arm)?.median.value;
            Some((row, level))
        };
        self.measured.rows.iter().filter_map(chose).collect()
    }

    /// Returns vertical lines ([`Layer::Rule`]) at the levels whose memory just fills a data cache, if they are in the
    /// range `shown`. Empty if the memory that the arms touch is unknown.
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
                let figure = estimate.in_unit(self.measured.unit);
                let (level, n) = (level.to_string(), row.n().to_string());
                table.rows.push(vec![name.clone(), level, n, figure.value, figure.range]);
            }
        }
        for (row, level) in chosen {
            let figure = row.median.in_unit(self.measured.unit);
            let (level, n) = (Unit::One.exact(level.round()), row.n().to_string());
            table.rows.push(vec![choice_of(row), level, n, figure.value, figure.range]);
        }
        table
    }
}

impl Line<'_> {
    /// Draws the intervals of a line as a band. An interval with an unknown end is left out, because its band would
    /// cover the other lines.
    fn band(&self, series: usize) -> Layer {
        let bounded = self.at.iter().filter(|(.., estimate)| estimate.is_bounded());
        let range = |&(level, _, Estimate { low, high, .. }): &_| Range { x: level, low, high };
        Layer::Band { series: Some(series), ranges: bounded.map(range).collect() }
    }

    /// Draws a line, with a dot for each measured level.
    fn line(&self, series: usize) -> [Layer; 2] {
        let points: Vec<[f64; 2]> = self.at.iter().map(|(level, _, estimate)| [*level, estimate.value]).collect();
        let dots = Layer::Dots { series: Some(series), points: points.clone(), hollow: false };
        [Layer::Line { series: Some(series), points, steps: false, dashed: false }, dots]
    }
}

fn choice_of(row: &ArmRow) -> String {
    format!("at the level that {} chose", row.arm.variant)
}

/// Returns whether there are at least three levels in equal distances, as in a scan.
fn are_even(mut levels: Vec<f64>) -> bool {
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let steps: Vec<f64> = levels.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.len() > 1 && steps.iter().all(|step| (step / steps[0] - 1.0).abs() < 1e-6)
}

/// Returns a note for the title that states how many medians are zero, which a logarithmic axis can't show. Empty if
/// there are none.
pub(super) fn zeros(scale: &Scale, medians: impl Iterator<Item = f64>) -> String {
    let count = medians.filter(|median| *median == 0.0 && *scale == Scale::Log).count();
    if count == 0 { String::new() } else { format!(" ({} of zero not drawn)", counted(count, "median")) }
}

/// Groups the lines by plot. If arms need different amounts of memory at the same level, their lines are in separate
/// plots. If there are more lines than colours, the lines are also divided by their other levels.
fn groups<'a, 'b>(lines: &'b [Line<'a>]) -> Vec<Vec<&'b Line<'a>>> {
    let mut groups: BTreeMap<(u64, Option<&Point>), Vec<&Line>> = BTreeMap::new();
    for line in lines {
        let alike = lines.iter().filter(|other| other.bytes_each == line.bytes_each).count();
        let point = (alike > MOST_LINES).then_some(&line.arm.point);
        groups.entry((line.bytes_each.map_or(0, f64::to_bits), point)).or_default().push(line);
    }
    groups.into_values().flat_map(|group| group.chunks(MOST_LINES).map(<[_]>::to_vec).collect::<Vec<_>>()).collect()
}

/// Returns the value that all trials of these lines have; `None` if their values differ.
fn everywhere(lines: &[&Line]) -> Option<f64> {
    measured::everywhere(lines.iter().flat_map(|line| line.at.iter().map(|(_, row, _)| *row)))
}

/// Returns the words in the title that distinguish this plot from the others, such as " (type=f32, 1 of 2)". They are
/// the levels that only the lines of this plot share, and the number of the plot.
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
