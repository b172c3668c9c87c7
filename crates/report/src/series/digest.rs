//! A derived series in a report: a picture, a table and the plan. The memory does not depend on the number of results.

use ascertain_engine::unit::Unit;

use super::SeriesHeader;
use crate::markdown;
use crate::pictures::Picture;
use crate::terminal::Style;
use crate::text::{grouped, grouped_count, parted, plain, quoted};

/// Most sections into which the results are divided. If there are more, each two neighbours become one.
const MOST_SECTIONS: usize = 512;

/// A summary of a derived series, computed while its results come.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesDigest {
    header: SeriesHeader,
    sections: Vec<Section>,
    /// Number of results in each section but the last.
    per_section: u64,
    /// Number of values that `where` left out because its condition was null.
    undecided: u64,
}

/// A part of the results: consecutive ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Section {
    /// Number of results.
    pub results: u64,
    /// Number of results that are null.
    pub nulls: u64,
    /// Number of results with a bound that is not finite.
    pub infinite: u64,
    /// The least lower bound of the finite results.
    pub low: f64,
    /// The greatest upper bound of the finite results.
    pub high: f64,
    /// Sum of the middles of the finite results.
    sum: f64,
}

impl Section {
    const EMPTY: Section =
        Section { results: 0, nulls: 0, infinite: 0, low: f64::INFINITY, high: f64::NEG_INFINITY, sum: 0.0 };

    fn add(&mut self, low: f64, high: f64) {
        self.results += 1;
        if low.is_nan() || high.is_nan() {
            self.nulls += 1;
        } else if low.is_infinite() || high.is_infinite() {
            self.infinite += 1;
        } else {
            (self.low, self.high) = (self.low.min(low), self.high.max(high));
            self.sum += low + (high - low) / 2.0;
        }
    }

    fn merge(&mut self, other: &Section) {
        self.results += other.results;
        self.nulls += other.nulls;
        self.infinite += other.infinite;
        (self.low, self.high) = (self.low.min(other.low), self.high.max(other.high));
        self.sum += other.sum;
    }

    /// Returns the mean of the finite results, if there are any.
    pub fn mean(&self) -> Option<f64> {
        let finite = self.results - self.nulls - self.infinite;
        (finite > 0).then(|| self.sum / finite as f64)
    }
}

impl SeriesDigest {
    /// Makes the summary of a series without results.
    #[must_use]
    pub fn new(header: SeriesHeader) -> SeriesDigest {
        SeriesDigest { header, sections: Vec::with_capacity(MOST_SECTIONS), per_section: 1, undecided: 0 }
    }

    /// Adds results: their lower and upper bounds.
    pub fn add(&mut self, lows: &[f64], highs: &[f64]) {
        for (low, high) in lows.iter().zip(highs) {
            let is_full = self.sections.last().is_none_or(|last| last.results == self.per_section);
            if is_full && self.sections.len() == MOST_SECTIONS {
                for index in 0..MOST_SECTIONS / 2 {
                    let mut merged = self.sections[2 * index];
                    merged.merge(&self.sections[2 * index + 1]);
                    self.sections[index] = merged;
                }
                self.sections.truncate(MOST_SECTIONS / 2);
                self.per_section *= 2;
            }
            if is_full {
                self.sections.push(Section::EMPTY);
            }
            if let Some(last) = self.sections.last_mut() {
                last.add(*low, *high);
            }
        }
    }

    /// Ends the series. `undecided` is the number of values that `where` left out because its condition was null.
    pub fn end(&mut self, undecided: u64) {
        self.undecided = undecided;
    }

    /// Returns the description of the series.
    #[must_use]
    pub fn header(&self) -> &SeriesHeader {
        &self.header
    }

    /// Returns the sections, each with the index of its first result.
    pub(crate) fn sections(&self) -> impl Iterator<Item = (u64, &Section)> {
        self.sections.iter().enumerate().map(|(index, section)| (index as u64 * self.per_section, section))
    }

    /// Returns at most this many groups of sections, each with the index of its first result.
    pub(crate) fn groups(&self, most: usize) -> Vec<(u64, Section)> {
        let chunks = self.sections.chunks(self.sections.len().div_ceil(most).max(1));
        let mut first = 0;
        let group = |chunk: &[Section]| {
            let mut group = Section::EMPTY;
            chunk.iter().for_each(|section| group.merge(section));
            first += group.results;
            (first - group.results, group)
        };
        chunks.map(group).collect()
    }

    fn whole(&self) -> Section {
        self.groups(1).first().map_or(Section::EMPTY, |(_, all)| *all)
    }

    /// Returns a sentence about all results. Names are marked as in `crate::text::quoted`.
    pub(crate) fn sentence(&self) -> String {
        let Section { results, nulls, infinite, low, high, .. } = self.whole();
        let unit = self.header.unit;
        let rest = [(nulls, "null"), (infinite, "infinite or unbounded")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, kind)| format!("{} {} {kind}", grouped(count), if count == 1 { "is" } else { "are" }));
        let rest: Vec<String> = rest.collect();
        let rest = if rest.is_empty() { String::new() } else { format!(", of which {}", rest.join(" and ")) };
        let undecided = match self.undecided {
            0 => String::new(),
            count => {
                format!(
                    " {} left out {}, because its condition was null.",
                    quoted("where"),
                    grouped_count(count, "value")
                )
            }
        };
        let sampled = self.header.sampled().map_or_else(String::new, |sentence| format!(" {sentence}"));
        let undecided = format!("{undecided}{sampled}");
        match self.whole().mean() {
            _ if results == 0 => format!("There are no results: the evidence ends before the first one.{undecided}"),
            None => format!("{}{rest}.{undecided}", grouped_count(results, "result")),
            Some(mean) => {
                let [low, high, mean] = [low, high, mean].map(|value| unit.human(value));
                format!(
                    "{}{rest}, from {low} to {high}, with a mean of {mean}.{undecided}",
                    grouped_count(results, "result")
                )
            }
        }
    }

    /// Returns the plan with its memory, as lines.
    #[must_use]
    pub fn plan(&self) -> String {
        self.header.plan.clone()
    }

    /// Returns the picture of the series; `None` if fewer than two results are finite. `index` is the place of the
    /// series among those of its report.
    #[must_use]
    pub fn picture(&self, index: usize) -> Option<Picture> {
        crate::pictures::derived(self, index)
    }

    /// Returns the series in Markdown: a heading, the sentence, the table and the plan.
    #[must_use]
    pub fn markdown(&self) -> String {
        let heading = markdown::paragraph(&format!("Series {}", quoted(&self.header.expression)));
        let table = crate::pictures::table_of(self);
        parted([
            format!("### {heading}"),
            markdown::paragraph(&self.sentence()),
            markdown::table(&table.grid()),
            format!("```\n{}\n```\n", self.plan()),
        ])
    }

    /// Returns the series for the terminal.
    #[must_use]
    pub fn text(&self, style: &Style) -> String {
        parted([
            style.paragraph(&plain(&format!("Series {}: {}", quoted(&self.header.expression), self.sentence()))),
            style.table(&crate::pictures::table_of(self).grid()),
            format!("{}\n", self.plan()),
        ])
    }

    pub(crate) fn unit(&self) -> Unit {
        self.header.unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::SeriesMemory;

    fn digest() -> SeriesDigest {
        let memory =
            SeriesMemory { states_bytes: 0, in_flight_bytes: 8, steps_bytes: 0, reading_bytes: 0, total_bytes: 8 };
        let (expression, plan) = ("time".to_string(), "plan of time".to_string());
        SeriesDigest::new(SeriesHeader {
            expression,
            unit: Unit::Nanosecond,
            plan,
            memory,
            has_ranges: false,
            recorded_every: 1,
        })
    }

    #[test]
    fn sections_stay_few_and_lose_nothing() {
        for results in [0, 1, 511, 512, 513, 1024, 100_000] {
            let mut digest = digest();
            let values: Vec<f64> = (0..results).map(f64::from).collect();
            values.chunks(100).for_each(|values| digest.add(values, values));
            let sections: Vec<(u64, &Section)> = digest.sections().collect();
            assert!(sections.len() <= MOST_SECTIONS && digest.sections.capacity() == MOST_SECTIONS);
            assert_eq!(sections.iter().map(|(_, section)| section.results).sum::<u64>(), results as u64);
            for (first, section) in sections {
                let last = first + section.results - 1;
                assert_eq!((section.low, section.high), (first as f64, last as f64));
                assert_eq!(section.mean(), Some((first + last) as f64 / 2.0));
            }
            assert!(digest.groups(10).len() <= 10);
            assert_eq!(digest.groups(10).iter().map(|(_, group)| group.results).sum::<u64>(), results as u64);
        }
    }

    #[test]
    fn nulls_and_infinite_bounds_are_counted_and_not_drawn() {
        let mut digest = digest();
        digest.add(&[f64::NAN, 1.0, 2.0, 3.0], &[f64::NAN, f64::INFINITY, 4.0, 3.0]);
        let all = digest.whole();
        assert_eq!((all.results, all.nulls, all.infinite), (4, 1, 1));
        assert_eq!((all.low, all.high, all.mean()), (2.0, 4.0, Some(3.0)));
    }
}
