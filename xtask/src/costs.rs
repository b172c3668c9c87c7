//! The time that each part of the tests takes: a table for the end of a run, and a file that records the slow parts.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context;

use crate::part::{self, Part};
use crate::tools;

/// The time that one part of the tests took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    pub build_s: f64,
    pub run_s: f64,
}

impl Cost {
    fn total_s(self) -> f64 {
        self.build_s + self.run_s
    }
}

/// The file in which the costs of the slow parts are recorded.
const FILE: &str = "xtask/costs.toml";
const HEAD: &str = "\
# Seconds that each slow part of the tests takes in `cargo xtask test --all`: the longest of its builds, and its last run.
# `--changed-since` chooses parts by these figures. Only `--all` writes them; to measure a part anew, delete its line.
";

/// Limit on the total recorded cost of the slow parts of the tests that `--changed-since` adds, in seconds.
const LIMIT_S: f64 = 12.0 * 60.0;

/// The recorded costs of the slow parts, by the name of the part.
#[derive(Debug, Default)]
pub struct Costs(BTreeMap<String, Cost>);

impl Costs {
    /// Reads the recorded costs from [`FILE`].
    pub fn read() -> anyhow::Result<Costs> {
        let text = fs::read_to_string(tools::in_root(FILE)).with_context(|| format!("could not read {FILE}"))?;
        Costs::parse(&text).with_context(|| FILE.to_owned())
    }

    fn parse(text: &str) -> anyhow::Result<Costs> {
        let table: toml::Table = toml::from_str(text)?;
        let costs = table.into_iter().map(|(name, value)| {
            let seconds = |key| value.get(key).and_then(toml::Value::as_integer).map(|seconds| seconds as f64);
            let cost = seconds("build_s").zip(seconds("run_s"));
            let (build_s, run_s) = cost.with_context(|| format!("`{name}` needs whole numbers build_s and run_s"))?;
            Ok((name, Cost { build_s, run_s }))
        });
        costs.collect::<anyhow::Result<_>>().map(Costs)
    }

    /// Records the cost of a part that passed. Keeps the longest build time of all runs.
    pub fn record(&mut self, name: &str, cost: Cost) {
        // The build takes no time if an earlier run has built the same.
        let recorded = self.0.entry(name.to_owned()).or_default();
        *recorded = Cost { build_s: recorded.build_s.max(cost.build_s), run_s: cost.run_s };
    }

    /// Writes the costs to [`FILE`], without parts that no longer exist.
    pub fn write(&mut self) -> anyhow::Result<()> {
        let names: Vec<&str> = part::all().map(|part| part.name).collect();
        self.0.retain(|name, _| names.contains(&&**name));
        fs::write(tools::in_root(FILE), self.to_toml()).with_context(|| format!("could not write {FILE}"))
    }

    fn to_toml(&self) -> String {
        let lines = self.0.iter().map(|(name, cost)| {
            format!("{name:?} = {{ build_s = {:.0}, run_s = {:.0} }}\n", cost.build_s.ceil(), cost.run_s.ceil())
        });
        HEAD.chars().chain(['\n']).collect::<String>() + &lines.collect::<String>()
    }

    /// Chooses parts, those nearest to a change first, as long as their costs fit into the limit. Returns the chosen
    /// parts, and a message about each part that was not chosen.
    pub fn within_limit(&self, affected: Vec<(usize, &'static Part)>) -> (Vec<&'static Part>, Vec<String>) {
        let cost_s = |part: &Part| self.0.get(part.name).map_or(f64::INFINITY, |cost| cost.total_s());
        let mut affected = affected;
        affected.sort_by(|a, b| a.0.cmp(&b.0).then(cost_s(a.1).total_cmp(&cost_s(b.1))));
        let (mut total_s, mut chosen, mut not_run) = (0.0, Vec::new(), Vec::new());
        for (_, part) in affected {
            let part_s = cost_s(part);
            if total_s + part_s <= LIMIT_S {
                total_s += part_s;
                chosen.push(part);
            } else {
                let reason = if part_s.is_finite() {
                    let minutes = LIMIT_S / 60.0;
                    format!(
                        "it takes {part_s:.0} s and the other parts take {total_s:.0} s; together they exceed the limit \
                         of {minutes:.0} minutes"
                    )
                } else {
                    "its cost is not recorded yet; run `cargo xtask test --all` to record it".to_owned()
                };
                not_run.push(format!("{}: its inputs changed, but {reason}", part.name));
            }
        }
        (chosen, not_run)
    }
}

/// Returns a table with one line per part, and a line with the total.
pub fn table<'a>(parts: impl Iterator<Item = (&'a str, Cost, &'a str)>) -> String {
    let parts: Vec<_> = parts.collect();
    let sum = |seconds: fn(&Cost) -> f64| parts.iter().map(|(_, cost, _)| seconds(cost)).sum();
    let total = Cost { build_s: sum(|cost| cost.build_s), run_s: sum(|cost| cost.run_s) };
    let width = parts.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0).max("total".len());
    let mut text = format!("{:width$}  build s  run s  result\n", "part");
    for (name, cost, result) in parts.iter().copied().chain([("total", total, "")]) {
        let line = format!("{name:width$}  {:7.0}  {:5.0}  {result}", cost.build_s, cost.run_s);
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_part_and_the_total() {
        let cost = |build_s, run_s| Cost { build_s, run_s };
        let parts = [("lints", cost(99.6, 0.0), "passed"), ("unit tests", cost(200.0, 301.4), "FAILED")];
        let expected = "\
part        build s  run s  result
lints           100      0  passed
unit tests      200    301  FAILED
total           300    301
";
        assert_eq!(table(parts.into_iter()), expected);
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut costs = Costs::default();
        costs.record("fuzzing, for new inputs", Cost { build_s: 12.0, run_s: 400.0 });
        let read = Costs::parse(&costs.to_toml()).unwrap();
        assert_eq!(read.0, costs.0);
        assert!(Costs::parse("x = { build_s = 1 }").unwrap_err().to_string().contains("`x` needs whole numbers"));
    }

    #[test]
    fn each_record_is_of_a_slow_part() {
        let slow: Vec<_> = part::all().filter(|part| part.inputs.is_some()).map(|part| part.name).collect();
        for name in Costs::read().unwrap().0.keys() {
            assert!(slow.contains(&&**name), "{FILE} has `{name}`, which is not the name of a slow part");
        }
    }

    static NEAR: Part = Part::slow("near", &[], &[], || Ok(()));
    static FAR: Part = Part::slow("far", &[], &[], || Ok(()));
    static NEW: Part = Part::slow("new", &[], &[], || Ok(()));
    static CHEAP: Part = Part::slow("cheap", &[], &[], || Ok(()));

    /// A part without a recorded cost is not chosen. Of the others, the nearest is chosen first, then each one that
    /// still fits.
    #[test]
    fn parts_are_chosen_by_distance_and_recorded_cost() {
        let mut costs = Costs::default();
        costs.record("near", Cost { build_s: 500.0, run_s: 100.0 });
        costs.record("far", Cost { build_s: 400.0, run_s: 0.0 });
        costs.record("cheap", Cost { build_s: 90.0, run_s: 0.0 });
        let (chosen, not_run) = costs.within_limit(vec![(2, &FAR), (3, &CHEAP), (0, &NEAR), (0, &NEW)]);
        assert_eq!(chosen.iter().map(|part| part.name).collect::<Vec<_>>(), ["near", "cheap"]);
        assert_eq!(not_run.len(), 2);
        assert!(not_run[0].starts_with("new: its inputs changed, but its cost is not recorded yet"), "{not_run:?}");
        let far = "far: its inputs changed, but it takes 400 s and the other parts take 600 s";
        assert!(not_run[1].starts_with(far), "{not_run:?}");
    }
}
