//! The parameters of compared commands, and the levels with the best medians.

use std::collections::BTreeMap;

use ascertain_engine::claim::Measure;
use ascertain_engine::experiment::{Arm, Better, Level};
use ascertain_engine::outcome::{Outcome, PointSummary};

use super::median_cells;
use crate::amount::Amount;
use crate::clause::ArmComparison;
use crate::options::TableLayout;
use crate::text::{counted, distinct, gathered, quoted};

/// The largest number of other levels that are listed after the best one.
const MOST_NEXT: usize = 4;

/// Returns the parameters of the commands that have more than one level, each with its levels. Empty if functions were
/// measured instead of commands.
pub(crate) fn parameters(points: &[PointSummary]) -> Vec<(&str, Vec<&Level>)> {
    let mut levels: BTreeMap<&str, Vec<&Level>> = BTreeMap::new();
    for (factor, level) in points.iter().filter(|point| point.metric == "wall").flat_map(|point| &point.arm.point.0) {
        levels.entry(factor).or_default().push(level);
    }
    let levels = levels.into_iter().map(|(factor, levels)| (factor, distinct(levels)));
    levels.filter(|(_, levels)| levels.len() > 1).collect()
}

/// Returns the level as a number; `None` if it is not one. The levels of a scan are stored as texts such as `0.5`.
pub(crate) fn number(level: &Level) -> Option<f64> {
    match level {
        Level::Integer(value) => Some(*value as f64),
        Level::Text(text) => text.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}

/// Returns a text about the levels of each command: the level with the best median, then the next best levels. Names
/// are marked as in [`quoted`](crate::text::quoted).
///
/// ```text
/// `sort --parallel={threads}`: `threads=4` has the best median time of 4 levels: 12.1 ms (11.9 to 12.3). Next are
/// `threads=8` (12.4 ms) and …
/// ```
pub(crate) fn best_levels(outcome: &Outcome, layout: &TableLayout) -> Vec<String> {
    best_of_points(&outcome.points, outcome.claims.iter().find_map(ArmComparison::new).map(|one| one.measure), layout)
}

fn best_of_points(points: &[PointSummary], judged: Option<&Measure>, layout: &TableLayout) -> Vec<String> {
    let parameters = parameters(points);
    if parameters.is_empty() {
        return Vec::new();
    }
    let metric = judged.map_or("wall", |measure| measure.metric.as_str());
    let noun = judged.map_or_else(|| "time".into(), noun);
    let measured = points.iter().filter(|point| point.metric == metric && point.median.is_some());
    let of_commands = gathered(measured.map(|point| (point.arm.variant.as_str(), point)));
    let best = of_commands.into_iter().filter_map(|(command, mut points)| {
        points.sort_by(|one, other| one.median.unwrap_or(f64::NAN).total_cmp(&other.median.unwrap_or(f64::NAN)));
        if points.first()?.better == Better::Higher {
            points.reverse();
        }
        let sentences = best_of(&points, &parameters, &noun, layout)?;
        Some(format!("{}: {sentences}", quoted(command)))
    });
    best.collect()
}

/// Returns the sentence about the best levels of one command; `None` if there are fewer than two points. `points` must
/// be sorted, the best median first.
fn best_of(
    points: &[&PointSummary],
    parameters: &[(&str, Vec<&Level>)],
    noun: &str,
    layout: &TableLayout,
) -> Option<String> {
    let [best, second, ..] = points else { return None };
    let name = |point: &PointSummary| {
        let at = point.arm.point.only(|factor, _| parameters.iter().any(|(known, _)| known == factor));
        quoted(&at.to_string())
    };
    let next: Vec<String> = points[1..]
        .iter()
        .take(MOST_NEXT)
        .map(|point| format!("{} ({})", name(point), median_cells(point, layout).value))
        .collect();
    let others = points.len() - 1 - next.len();
    let others = (others > 0).then(|| counted(others, "other"));
    let next: Vec<String> = next.into_iter().chain(others).collect();
    let (last, before) = next.split_last()?;
    let next = match before {
        [] => format!("Next is {last}"),
        before => format!("Next are {} and {last}", before.join(", ")),
    };
    let order = match (ends(best).0, ends(second).1) {
        (Some(worst), Some(best)) if worst < best => "",
        (Some(_), Some(_)) => " The intervals of the first two overlap, so more trials may change their order.",
        _ => " There are too few trials for intervals, so more trials may change this order.",
    };
    let of = if parameters.len() > 1 { "combinations" } else { "levels" };
    let median = median_cells(best, layout);
    let median = if best.median_low.is_some() { median.to_string() } else { median.value };
    let (name, count) = (name(best), points.len());
    Some(format!("{name} has the best median {noun} of {count} {of}: {median}. {next}.{order}"))
}

/// Returns the two ends of the interval of a median, the worse one first. They are negated if more is better, so that
/// less is always better.
fn ends(point: &PointSummary) -> (Option<f64>, Option<f64>) {
    match point.better {
        Better::Lower => (point.median_high, point.median_low),
        Better::Higher => (point.median_low.map(|low| -low), point.median_high.map(|high| -high)),
    }
}

/// Returns the word by which a sentence names the metric, such as "time".
fn noun(measure: &Measure) -> String {
    match Amount::new(measure) {
        Some(amount) => amount.noun().to_string(),
        None if measure.metric == "wall" => "time".to_string(),
        None => quoted(&measure.metric),
    }
}

/// Returns an arm as it is named in a table that has a column for each parameter. The levels are filled into the arm's
/// command line. The arm keeps only those levels that neither the command line nor a column shows.
pub(super) fn without_columns(arm: &Arm, parameters: &[(&str, Vec<&Level>)]) -> Arm {
    let is_beside =
        |factor: &String, _: &Level| !arm.shows(factor) && parameters.iter().all(|(known, _)| known != factor);
    Arm { variant: arm.point.fill(&arm.variant), point: arm.point.only(is_beside) }
}

#[cfg(test)]
mod tests {
    use ascertain_engine::experiment::Point;
    use ascertain_engine::unit::Unit;

    use super::*;
    use crate::text::plain;

    /// Returns a summary of `wall` for each entry of `medians`. An entry has a level of the parameter `n`, the median
    /// at this level, and the interval of the median.
    fn points(better: Better, command: &str, medians: &[(&str, f64, Option<[f64; 2]>)]) -> Vec<PointSummary> {
        let point = |&(level, median, interval): &(&str, f64, Option<[f64; 2]>)| PointSummary {
            experiment: "compare".into(),
            arm: Arm { variant: command.into(), point: Point::default().with("n", level).with("mode", "x") },
            metric: "wall".into(),
            key: String::new(),
            unit: Unit::Nanosecond,
            better,
            is_share: false,
            n: 50,
            median: Some(median),
            median_low: interval.map(|[low, _]| low),
            median_high: interval.map(|[_, high]| high),
            p90: None,
            p99: None,
            mean: None,
            std: None,
            min: None,
            max: None,
            censored: 0,
            limit: None,
            seen: None,
        };
        medians.iter().map(point).collect()
    }

    fn sentences(points: Vec<PointSummary>) -> Vec<String> {
        best_of_points(&points, None, &TableLayout::default()).iter().map(|sentences| plain(sentences)).collect()
    }

    #[test]
    fn inputs_of_a_function_are_not_ranked() {
        let mut inputs = points(Better::Lower, "hash", &[("10", 1e3, None), ("1000", 1e5, None)]);
        for point in &mut inputs {
            (point.experiment, point.metric) = ("sums".into(), "time".into());
        }
        let measure =
            Measure { metric: "time".into(), unit: Unit::Nanosecond, better: Better::Lower, inputs: Vec::new() };
        assert!(best_of_points(&inputs, Some(&measure), &TableLayout::default()).is_empty());
    }

    #[test]
    fn the_best_level_comes_first() {
        let apart = |median: f64| Some([median - 1.0, median + 1.0]);
        let medians: Vec<_> =
            [("1", 90.0), ("2", 50.0), ("4", 30.0)].map(|(level, median)| (level, median, apart(median))).into();
        assert_eq!(
            sentences(points(Better::Lower, "sort -{n}", &medians)),
            [
                "`sort -{n}`: `n=4` has the best median time of 3 levels: 30 ns (29 to 31). Next are `n=2` (50 ns) and `n=1` \
              (90 ns)."
            ]
        );
        let higher = sentences(points(Better::Higher, "sort -{n}", &medians)).concat();
        assert!(higher.starts_with("`sort -{n}`: `n=1` has the best median time of 3 levels: 90 ns"), "{higher}");
        let both = [points(Better::Lower, "a {n}", &medians), points(Better::Lower, "b {n}", &medians[..2])].concat();
        let both = sentences(both);
        assert!(both[0].starts_with("`a {n}`: `n=4` has the best"), "{both:?}");
        assert!(both[1].starts_with("`b {n}`: `n=2` has the best median time of 2 levels: 50 ns"), "{both:?}");
        assert!(both[1].contains("Next is `n=1` (90 ns)."), "{both:?}");
    }

    #[test]
    fn an_order_that_may_change_is_reported() {
        let near = [("1", 50.0, Some([49.0, 52.0])), ("2", 51.0, Some([50.0, 53.0]))];
        let said_of = |medians: &[_]| sentences(points(Better::Lower, "sort -{n}", medians)).concat();
        assert!(
            said_of(&near).ends_with("The intervals of the first two overlap, so more trials may change their order.")
        );
        let few = [("1", 50.0, None), ("2", 90.0, None)];
        assert!(said_of(&few).contains(" of 2 levels: 50.00 ns. Next"), "{}", said_of(&few));
        assert!(
            said_of(&few).ends_with("There are too few trials for intervals, so more trials may change this order.")
        );
        let many: Vec<_> =
            ["1", "2", "3", "4", "5", "6", "7"].map(|level| (level, level.parse().unwrap(), None)).into();
        assert!(said_of(&many).contains(", `n=5` (5.000 ns) and 2 others."), "{}", said_of(&many));
        assert_eq!(said_of(&near[..1]), "", "a scan needs two levels");
    }

    #[test]
    fn levels_are_numbers_where_they_read_as_such() {
        assert_eq!(number(&Level::Integer(4)), Some(4.0));
        assert_eq!(
            ["0.5", "-1", "1e3", "inf", "4 ms", ""].map(|text| number(&text.into())),
            [Some(0.5), Some(-1.0), Some(1e3), None, None, None]
        );
    }
}
