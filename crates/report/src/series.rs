//! Derived series: the output of `ascertain series`. Results are written while they are computed, so that the memory
//! does not depend on their number.

#[cfg(feature = "html")]
mod digest;

use std::fmt::Write as _;

use ascertain_engine::unit::{Unit, significant};
use serde::Serialize;
use serde_json::json;

use crate::csv::record;
use crate::formats::Element;
use crate::grid::{Cell, ColumnKind, Grid};
use crate::options::Format;
use crate::terminal::Style;
use crate::text::{grouped, grouped_count, parted};
#[cfg(feature = "html")]
pub use digest::SeriesDigest;

/// The name and version of the JSON schema.
const SCHEMA: &str = "ascertain.series/1";
/// Results at each end of the series that a table shows.
const SHOWN: usize = 10;

/// The memory of a derived series, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SeriesMemory {
    /// Buffers and states of the operators.
    pub states_bytes: u64,
    /// Values in flight between the operators.
    pub in_flight_bytes: u64,
    /// The list of steps.
    pub steps_bytes: u64,
    /// Columns into which the rows of a block are read.
    pub reading_bytes: u64,
    /// Sum of the other four, which `--memory` limits.
    pub total_bytes: u64,
}

/// A description of a derived series before its first result.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesHeader {
    /// The expression as the user wrote it.
    pub expression: String,
    /// The unit of the results.
    pub unit: Unit,
    /// The plan as text: steps, rates and memory.
    pub plan: String,
    /// The memory that the plan needs.
    pub memory: SeriesMemory,
    /// `true` if results are ranges, because observations were cut off.
    pub has_ranges: bool,
    /// The n of a run that recorded every n-th observation; 1 if the run recorded all of them.
    pub recorded_every: u64,
}

impl SeriesHeader {
    /// Returns a sentence if the run recorded only a part of its observations.
    #[must_use]
    pub fn sampled(&self) -> Option<String> {
        let every = Some(self.recorded_every).filter(|every| *every > 1)?;
        let every = grouped(every);
        Some(format!("The series has one observation in {every}, because the run recorded only one in {every}."))
    }
}

/// Writes a derived series in one of the formats, in pieces.
#[derive(Clone, Debug)]
pub struct SeriesWriter {
    header: SeriesHeader,
    format: Format,
    style: Style,
    results: u64,
    nulls: u64,
    /// Results that are infinite, or have an infinite bound.
    infinite: u64,
    sum: f64,
    least: f64,
    most: f64,
    first: Vec<[f64; 2]>,
    /// The last results; the one with index i is at i modulo the length.
    last: Vec<[f64; 2]>,
}

impl SeriesWriter {
    /// Makes a writer.
    #[must_use]
    pub fn new(header: SeriesHeader, format: Format, style: Style) -> SeriesWriter {
        let (first, last) = (Vec::with_capacity(SHOWN), Vec::with_capacity(SHOWN));
        let (least, most) = (f64::INFINITY, f64::NEG_INFINITY);
        SeriesWriter { header, format, style, results: 0, nulls: 0, infinite: 0, sum: 0.0, least, most, first, last }
    }

    /// Returns the text before the first result. Tables have the plan there.
    #[must_use]
    pub fn start(&self) -> String {
        let SeriesHeader { expression, unit, plan, memory, has_ranges, recorded_every } = &self.header;
        let sampled = |before: &str| {
            let sentence = self.header.sampled();
            sentence.map_or_else(String::new, |sentence| format!("{before}{sentence}\n"))
        };
        match self.format {
            Format::Table => format!("{plan}\n{}", sampled("")),
            Format::Markdown => format!("```\n{plan}\n```\n{}\n", sampled("\n")),
            Format::Csv if *has_ranges => "index,low,high\n".into(),
            Format::Csv => "index,value\n".into(),
            Format::Json => {
                let head = json!({
                    "expression": expression, "unit": unit, "memory": memory, "has_ranges": has_ranges,
                    "recorded_every": recorded_every,
                });
                let head = head.to_string();
                let head = head.strip_prefix('{').and_then(|head| head.strip_suffix('}')).unwrap_or_default();
                format!("{{\"schema\":\"{SCHEMA}\",{head},\"results\":[")
            }
        }
    }

    /// Adds results. Appends their text to `out`, if the format has a line for each.
    pub fn add(&mut self, lows: &[f64], highs: &[f64], out: &mut String) {
        for (low, high) in lows.iter().copied().zip(highs.iter().copied()) {
            match self.format {
                Format::Csv if self.header.has_ranges => *out += &record(&[&self.results, &known(low), &known(high)]),
                Format::Csv => *out += &record(&[&self.results, &known(low)]),
                Format::Json => {
                    let comma = if self.results > 0 { "," } else { "" };
                    let is_null = low.is_nan() || high.is_nan();
                    let _ = match self.header.has_ranges {
                        _ if is_null => write!(out, "{comma}null"),
                        true => write!(out, "{comma}[{},{}]", json!(low), json!(high)),
                        false => write!(out, "{comma}{}", json!(low)),
                    };
                }
                Format::Table | Format::Markdown => self.remember([low, high]),
            }
            self.results += 1;
            if low.is_nan() || high.is_nan() {
                self.nulls += 1;
            } else {
                self.infinite += u64::from(low.is_infinite() || high.is_infinite());
                self.sum += low;
                self.least = self.least.min(low);
                self.most = self.most.max(high);
            }
        }
    }

    fn remember(&mut self, result: [f64; 2]) {
        if self.first.len() < SHOWN {
            self.first.push(result);
        } else if self.last.len() < SHOWN {
            self.last.push(result);
        } else {
            let at = (self.results as usize - SHOWN) % SHOWN;
            self.last[at] = result;
        }
    }

    /// Returns the text after the last result. `undecided` is the number of values that `where` left out because its
    /// condition was null.
    #[must_use]
    pub fn end(&self, undecided: u64) -> String {
        match self.format {
            Format::Csv => String::new(),
            Format::Json => {
                let (count, nulls, infinite) = (self.results, self.nulls, self.infinite);
                let counts = json!({ "count": count, "nulls": nulls, "infinite": infinite, "undecided": undecided });
                format!("],{}\n", counts.to_string().trim_start_matches('{'))
            }
            Format::Table => {
                "\n".to_string()
                    + &parted(self.elements(undecided).iter().map(|element| match element {
                        Element::Table(grid) => self.style.table(grid),
                        Element::Sentences(all) | Element::Paragraph(all) => self.style.paragraph(&all.join(" ")),
                        _ => String::new(),
                    }))
            }
            Format::Markdown => parted(self.elements(undecided).iter().map(|element| match element {
                Element::Table(grid) => crate::markdown::table(grid),
                Element::Sentences(all) | Element::Paragraph(all) => crate::markdown::paragraph(&all.join(" ")),
                _ => String::new(),
            })),
        }
    }

    fn elements(&self, undecided: u64) -> Vec<Element> {
        let unit = self.header.unit;
        let known = self.results - self.nulls;
        let mut sentences = vec![match (self.results, known) {
            (0, _) => "There are no results: the evidence ends before the first one.".to_string(),
            (1, 0) => "The only result is null.".to_string(),
            (results, 0) => format!("All {} results are null.", grouped(results)),
            (results, _) => {
                let results = grouped_count(results, "result");
                let nulls = match self.nulls {
                    0 => String::new(),
                    1 => ", of which 1 is null".to_string(),
                    nulls => format!(", of which {} are null", grouped(nulls)),
                };
                let (least, most) = (unit.human(self.least), unit.human(self.most));
                match self.header.has_ranges {
                    true => format!("{results}{nulls}, from {least} to {most}."),
                    false => {
                        let mean = unit.human(self.sum / known as f64);
                        format!("{results}{nulls}, from {least} to {most}, with a mean of {mean}.")
                    }
                }
            }
        }];
        if undecided > 0 {
            let (values, them) = (grouped_count(undecided, "value"), if undecided == 1 { "it" } else { "them" });
            sentences.push(format!("`where` left out {values}, because its condition was null for {them}."));
        }
        let mut grid = Grid::new(&["Index", "Result"]).kind(ColumnKind::Number, &["Index", "Result"]);
        let row = |index: u64, [low, high]: [f64; 2]| -> Vec<Cell> {
            let shown = |value: f64| if value.is_nan() { significant(value) } else { unit.human(value) };
            let text =
                if low == high || low.is_nan() { shown(low) } else { format!("{} to {}", shown(low), shown(high)) };
            vec![grouped(index).into(), text.into()]
        };
        grid.rows.extend((0..).zip(&self.first).map(|(index, result)| row(index, *result)));
        let after_first = self.results - self.first.len() as u64;
        if after_first > self.last.len() as u64 {
            grid.rows.push(vec!["…".to_string().into(), "…".to_string().into()]);
        }
        let last = self.results - self.last.len() as u64..self.results;
        grid.rows.extend(last.map(|index| row(index, self.last[(index as usize - SHOWN) % SHOWN])));
        let table = if grid.rows.is_empty() { None } else { Some(Element::Table(grid)) };
        table.into_iter().chain([Element::Sentences(sentences)]).collect()
    }
}

/// Returns a number, or `None` for a null.
fn known(value: f64) -> Option<f64> {
    Some(value).filter(|value| !value.is_nan())
}
