//! The tables of a run, as cells before they are drawn: the terminal, Markdown and the page show the same.

pub(crate) mod points;
pub(crate) mod scan;

use ascertain_engine::claim::Judging;
use ascertain_engine::command;
use ascertain_engine::experiment::{Arm, Point};
use ascertain_engine::outcome::{ClaimResult, Condition, Decision, Measure, Outcome, PointSummary, TestSpec, Verdict};
use ascertain_engine::unit::{Unit, significant};

use crate::amount::{self, Amount};
use crate::clause::{ClaimFigure, adjective, arm_label, ordered, rate_figure, ratio_figure};
use crate::figure::{Figure, below, percent};
use crate::finding;
use crate::layout::{Order, TableLayout};
use crate::text::{escape_controls, gathered, sorted};
pub(crate) use points::{by_key, experiment_table, in_tables, points};

/// A table of text.
pub(crate) struct Grid {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

/// A column's heading and how it is laid out.
pub(crate) struct Column {
    pub heading: String,
    pub kind: ColumnKind,
    /// Where the table would be too wide, its cells stand below those of the column before it: those at 1 first, and
    /// those at 2 where that is not enough; at 0 they never do.
    pub stacks: usize,
    /// Whether a table of many rows does without it where it would be too wide.
    pub is_extra: bool,
}

/// How a column's cells are laid out.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ColumnKind {
    /// Sentences and names: wrapped where the width asks for it.
    Prose,
    /// What somebody will want to copy: kept whole.
    Id,
    /// Numbers: to the right, kept whole.
    Number,
    /// One of a few words, in its colour; kept whole.
    Word,
}

/// What stands in a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// Our own words and figures, or a sentence of somebody's.
    Text(String),
    /// A command, or another name that is shown as code where that can be done.
    Code(String),
}

impl Grid {
    pub fn new(columns: &[(&str, ColumnKind)]) -> Grid {
        let column = |&(heading, kind): &(&str, ColumnKind)| Column {
            heading: heading.into(),
            kind,
            stacks: 0,
            is_extra: false,
        };
        Grid { columns: columns.iter().map(column).collect(), rows: Vec::new() }
    }

    /// The table with these columns allowed to stand below the ones before them.
    pub fn stacking(self, headings: &[&str]) -> Grid {
        self.stacking_at(1, headings)
    }

    /// The same at a level: what is at 1 stands below first, what is at 2 where that is not enough.
    pub fn stacking_at(mut self, level: usize, headings: &[&str]) -> Grid {
        for column in self.columns.iter_mut().filter(|column| headings.contains(&column.heading.as_str())) {
            column.stacks = level;
        }
        self
    }

    /// The table with the columns from this one on as what it can do without.
    pub fn with_extras_from(mut self, first: usize) -> Grid {
        self.columns.iter_mut().skip(first).for_each(|column| column.is_extra = true);
        self
    }

    /// Whether there is nothing in it to draw.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.columns.is_empty()
    }

    /// The table without its first column: what stands in that is said beside it.
    pub fn without_first_column(mut self) -> Grid {
        self.columns.remove(0);
        self.rows.iter_mut().for_each(|row| drop(row.remove(0)));
        self
    }

    /// The table without the columns of which no row has anything to say.
    pub fn without_empty_columns(mut self) -> Grid {
        let empty = |index: usize| self.rows.iter().all(|row| row[index].text().is_empty());
        let kept: Vec<bool> = (0..self.columns.len()).map(|index| !empty(index)).collect();
        self.keep(&kept);
        self
    }

    /// Takes away those of the columns that `may_go` that are the same in each of several rows. Returns them as
    /// headings with their one value: "exit 0".
    pub fn without_constant_columns(&mut self, may_go: impl Fn(usize, &str) -> bool) -> Vec<String> {
        let Some((first, others @ [_, ..])) = self.rows.split_first() else { return Vec::new() };
        let is_constant = |index: usize| others.iter().all(|row| row[index] == first[index]);
        let goes = |index: usize| {
            let heading = &self.columns[index].heading;
            may_go(index, heading) && is_constant(index) && !first[index].text().is_empty()
        };
        let kept: Vec<bool> = (0..self.columns.len()).map(|index| !goes(index)).collect();
        let said = kept.iter().enumerate().filter(|(_, is_kept)| !**is_kept);
        let said = said.map(|(index, _)| format!("{} {}", self.columns[index].heading, first[index].text())).collect();
        self.keep(&kept);
        said
    }

    fn keep(&mut self, kept: &[bool]) {
        let mut flags = kept.iter().cycle();
        self.columns.retain(|_| *flags.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut flags = kept.iter();
            row.retain(|_| *flags.next().unwrap_or(&true));
        }
    }
}

impl Cell {
    pub fn text(&self) -> &str {
        match self {
            Cell::Text(text) | Cell::Code(text) => text,
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell::Text(text.into())
    }
}

/// What is claimed, what it is called, by whom, the source's figure, the figure here, the verdict.
pub(crate) fn claims(outcome: &Outcome) -> Grid {
    let mut grid = Grid::new(&[
        ("Claim", ColumnKind::Prose),
        ("Id", ColumnKind::Id),
        ("By", ColumnKind::Prose),
        ("Said", ColumnKind::Prose),
        ("Here", ColumnKind::Prose),
        ("Verdict", ColumnKind::Word),
    ])
    .stacking(&["Id", "By"]);
    for claim in &outcome.claims {
        let (says, id) = match claim.says.as_str() {
            "" => (claim.id.as_str(), ""),
            says => (says, claim.id.as_str()),
        };
        let by = claim.source.strip_suffix(".txt").unwrap_or(&claim.source);
        grid.rows.push(vec![
            says.into(),
            id.into(),
            by.into(),
            claim.source_value.as_str().into(),
            here(claim).into(),
            answer(claim).into(),
        ]);
    }
    grid.without_empty_columns()
}

/// The figure that a claim came to here, or why there is none.
pub(crate) fn here(claim: &ClaimResult) -> String {
    if !is_judged(claim) {
        return finding::reasons(claim).unwrap_or_default();
    }
    judged_briefly(claim).map_or_else(|| "-".into(), |figure| figure.to_string())
}

/// " (7 left open)": of trials that were cut off nobody knows.
pub(crate) fn left_open(claim: &ClaimResult) -> String {
    if claim.unknown > 0 { format!(" ({} left open)", claim.unknown) } else { String::new() }
}

/// The figure that was judged, with its interval. Where a rate was judged, that is the rate, beside the median of the
/// metric that the claim's predicate speaks of; a rate of 0 or 1 is said as a count, "0 of 143". `None` where nothing
/// was seen.
pub(crate) fn judged_briefly(claim: &ClaimResult) -> Option<Figure> {
    judged_with(claim, median(claim))
}

/// The same with that median as it is to be said.
pub(crate) fn judged_with(claim: &ClaimResult, median: Option<String>) -> Option<Figure> {
    let figure = ClaimFigure::of(claim).map(|figure| figure.figure);
    let rate = claim.rate.filter(|_| claim.asked.judging != Judging::Exact).map(|_| rate_figure(claim));
    match (figure, rate) {
        (Some(figure), _) if claim.asked.is_comparison() => Some(figure),
        (_, Some(rate)) => {
            let range = rate.range_in_words();
            let counted = claim.trials.saturating_sub(claim.ties);
            let is_all_or_none = claim.successes == 0 || claim.successes == counted;
            let value = match (is_all_or_none, median) {
                (true, Some(median)) => format!("{} of {counted}{}, {median}", claim.successes, left_open(claim)),
                (true, None) if claim.successes == 0 => format!("0 of {counted} trials{}", left_open(claim)),
                (false, Some(median)) => format!("{}, {median}", rate.value),
                (_, None) => rate.value,
            };
            Some(Figure::said(value, range))
        }
        (figure, None) => figure,
    }
}

/// The median of what a claim's predicate speaks of, in percent where that does: "8.2 ms", "0.41 %", "1,200". An exit
/// code has none that says anything.
pub(crate) fn median(claim: &ClaimResult) -> Option<String> {
    let (measure, in_percent) = spoken_of(claim)?;
    claim.median.map(|median| if in_percent { percent(median) } else { measure.unit.human(median) })
}

/// The one metric of a claim's predicate, and whether that speaks of it in percent.
pub(crate) fn spoken_of(claim: &ClaimResult) -> Option<(&Measure, bool)> {
    match claim.asked.tests.as_slice() {
        [TestSpec::Predicate { measure: Some(measure), conditions, .. }] if measure.metric != "exit" => {
            let of_metric = |condition: &&Condition| condition.measure.metric == measure.metric;
            Some((measure, conditions.iter().find(of_metric).is_some_and(|condition| condition.in_percent)))
        }
        _ => None,
    }
}

/// The word for a claim's verdict, or for `compare`'s decision.
pub(crate) fn answer(claim: &ClaimResult) -> &'static str {
    match claim.decision.filter(|_| is_judged(claim)) {
        // Not one pair had a winner.
        Some(Decision::Undecided)
            if claim.trials > 0
                && claim.ties == claim.trials
                && ordered(claim).is_some_and(|(measure, ..)| !amount::is_time(measure)) =>
        {
            "equal"
        }
        Some(decision) => Amount::of_order(claim).map_or(decision.word(), |amount| amount.answer(decision)),
        None if claim.drifted && claim.verdict == Verdict::Holds => "holds, but changed",
        None if claim.drifted => "refuted, but changed",
        None => claim.verdict.word(),
    }
}

/// The kind of answer that colours and shapes go by: the verdict, or `changed` if that changed while it was measured.
pub(crate) fn class(claim: &ClaimResult) -> &'static str {
    if claim.drifted { "changed" } else { claim.verdict.word() }
}

/// Whether its trials were judged, with or without a result.
pub(crate) fn is_judged(claim: &ClaimResult) -> bool {
    matches!(claim.verdict, Verdict::Holds | Verdict::Refuted | Verdict::Undecided)
}

/// An arm's key in tables: where several metrics of it stand in one row.
pub(crate) type ArmKey<'a> = (&'a str, &'a Point);

/// What is measured of commands and functions beside what they are compared by, and what its column is called.
const OTHERS: [(&str, &str); 7] = [
    ("wall", "Wall"),
    ("user", "User"),
    ("system", "System"),
    ("memory_peak", "Memory"),
    ("throughput", "Throughput"),
    ("allocations", "Allocations"),
    ("allocated_bytes", "Allocated"),
];

/// The metrics of commands that these print, in the order of the points.
fn printed(outcome: &Outcome) -> Vec<&str> {
    let (usual, counters) = (command::metrics(), command::counters());
    let is_ours = |name: &str| usual.iter().chain(&counters).any(|metric| metric.name == name);
    let names = outcome.points.iter().map(|point| (point.metric.as_str(), ()));
    gathered(names).into_iter().map(|(name, _)| name).filter(|name| !is_ours(name)).collect()
}

/// A row for each command or function: the metric that it is about, its time as a rule, with interval and range, what
/// else was measured, ratio and decision. `interval` is the heading of the ratio's.
pub(crate) fn compared(outcome: &Outcome, layout: &TableLayout, interval: &str) -> Grid {
    let are_commands = outcome.points.iter().any(|point| point.metric == "wall");
    let judged = outcome.claims.iter().find_map(ordered).map(|(measure, ..)| measure);
    let amount = judged.and_then(Amount::of);
    // The one that it is about has the first columns.
    let is_first = |metric: &str| judged.map_or("wall", |measure| &measure.metric) == metric;
    let printed = if are_commands { printed(outcome) } else { Vec::new() };
    let printed_first = judged.filter(|measure| printed.contains(&measure.metric.as_str()));
    let beside = OTHERS.into_iter().filter(|(metric, _)| !printed.contains(metric));
    let beside = printed.iter().map(|metric| (*metric, *metric)).chain(beside);
    let others: Vec<(&str, &str)> = beside.filter(|(metric, _)| !is_first(metric)).collect();
    let heading = match (&amount, printed_first) {
        (Some(amount), _) => format!("Median {}", amount.noun()),
        (None, Some(measure)) => format!("Median {}", measure.metric),
        (None, None) => "Median".into(),
    };
    let times_as = match (&amount, printed_first) {
        (Some(amount), _) => format!("Times {}", amount.as_much()),
        (None, Some(measure)) => format!("Times as {}", adjective(measure).0),
        (None, None) => "Times as fast".into(),
    };
    let numbers = [&heading, "95 % interval", "Min to max", "Mean ± σ"].into_iter();
    let numbers = numbers.chain(others.iter().map(|(_, heading)| *heading)).chain(["Trials", &times_as, interval]);
    let parameters = scan::parameters(&outcome.points);
    // The levels of a single command tell its rows apart.
    let has_labels = parameters.is_empty() || outcome.points.iter().any(|p| p.variant != outcome.points[0].variant);
    let label = (if are_commands { "Command" } else { "Function" }, ColumnKind::Prose);
    let mut columns: Vec<(&str, ColumnKind)> = has_labels.then_some(label).into_iter().collect();
    columns.extend(parameters.iter().map(|(parameter, levels)| {
        let are_numbers = levels.iter().all(|level| scan::number(level).is_some());
        (*parameter, if are_numbers { ColumnKind::Number } else { ColumnKind::Prose })
    }));
    columns.extend(numbers.map(|heading| (heading, ColumnKind::Number)));
    columns.push(("Answer", ColumnKind::Word));
    let mut grid = Grid::new(&columns)
        .stacking(&["95 % interval", "System", interval])
        .stacking_at(2, &["Min to max", "Mean ± σ", "Memory"]);
    for (key, of_arm) in arms_in_order(outcome, layout.order) {
        let point = |metric: &str| of_arm.iter().copied().find(|point| point.metric == metric);
        let median = |metric: &str| {
            let found = point(metric).filter(|point| point.n > 0);
            found.and_then(|point| Some((point.unit, point.median?))).map_or_else(String::new, |(unit, value)| {
                let (factor, symbol) = layout.prefix(unit, value);
                let is_count = factor == 1.0 && unit.is_count(value);
                let number = if is_count { value.to_string() } else { significant(value / factor) };
                format!("{number} {symbol}").trim_end().to_string()
            })
        };
        let first = judged.and_then(|measure| point(&measure.metric)).unwrap_or(of_arm[0]);
        let [value, interval, range] = time_cells(first, layout);
        let mean = if layout.mean { mean(first, layout) } else { String::new() };
        let (label, beside) = match parameters.is_empty() {
            true => (key.0.to_string(), key.1.clone()),
            false => scan::label_beside(key.0, key.1, &parameters),
        };
        let label = has_labels.then(|| Cell::Code(arm_label(&label, &beside)));
        let mut row: Vec<Cell> = label.into_iter().collect();
        row.extend(parameters.iter().map(|(parameter, _)| {
            Cell::from(key.1.get(parameter).map_or_else(String::new, |level| escape_controls(&level.to_string())))
        }));
        row.extend([value, interval, range, mean].map(Cell::from));
        row.extend(others.iter().map(|(metric, _)| Cell::from(median(metric))));
        row.push(first.n.to_string().into());
        row.extend(comparison_cells(outcome, key).map(Cell::from));
        grid.rows.push(row);
    }
    grid.without_empty_columns()
}

/// "23.41 ± 0.52 ms", by two digits of the standard deviation; nothing where some observations were cut off.
fn mean(point: &PointSummary, layout: &TableLayout) -> String {
    let (Some(mean), Some(std)) = (point.mean, point.std) else { return String::new() };
    let (factor, symbol) = layout.prefix(point.unit, mean);
    let (mean, std) = (mean / factor, std / factor);
    let decimals = if std > 0.0 { (1.0 - std.log10().floor()).clamp(0.0, 9.0) as usize } else { 3 };
    format!("{mean:.decimals$} ± {std:.decimals$} {symbol}").trim_end().to_string()
}

/// Median, its interval, and from the least to the greatest of an arm's first metric, the one that it is about.
fn time_cells(point: &PointSummary, layout: &TableLayout) -> [String; 3] {
    if point.n == 0 {
        return ["-".into(), String::new(), String::new()];
    }
    let PointSummary { median, min, max, .. } = *point;
    let own = |end| layout.prefix(point.unit, end);
    let prefix = own(median.or(min).unwrap_or(0.0));
    let Figure { value, range, .. } = median_cells(point, layout);
    let all = Figure::with_prefix(prefix, &own, None, min, max);
    let range_of_all = match (min, max) {
        (Some(min), Some(max)) if point.unit.is_count(min) && point.unit.is_count(max) && prefix.0 == 1.0 => {
            format!("{min} to {max}")
        }
        (None, None) if point.censored > 0 => over(point.unit, point.limit),
        (_, None) if point.censored > 0 => open_above(point, all, prefix.1, min, point.seen.or(point.limit)).range,
        _ => all.range,
    };
    [value, range, range_of_all]
}

/// The median with its interval, in the unit that the layout gives it.
pub(crate) fn median_cells(point: &PointSummary, layout: &TableLayout) -> Figure {
    let PointSummary { median, median_low, median_high, .. } = *point;
    let own = |end| layout.prefix(point.unit, end);
    let prefix = own(median.or(point.min).unwrap_or(0.0));
    let figure = match prefix.0 == 1.0 && point.unit == Unit::One {
        true => Figure::of_unit(point.unit, median, median_low, median_high),
        false => Figure::with_prefix(prefix, &own, median, median_low, median_high),
    };
    censored(point, figure, prefix.1)
}

/// The median with its interval, where those that met their time limit are known to be above it.
fn censored(point: &PointSummary, figure: Figure, symbol: &str) -> Figure {
    match point.median {
        _ if point.censored == 0 => figure,
        None => {
            // One that never began, since another of its trial was stopped, has no limit that it met.
            let what = if point.limit.is_some() { "stopped" } else { "lost" };
            Figure::said(over(point.unit, point.limit), format!("{what} in {} of {}", point.censored, point.n))
        }
        Some(_) => open_above(point, figure, symbol, point.median_low, point.limit),
    }
}

/// The figure where all that is known of its upper end is what that is above: `1.917 to over 3 ms`. Where the lower end
/// says as much, it is `at least` that; one of another unit than the upper has its own.
fn open_above(point: &PointSummary, figure: Figure, symbol: &str, low: Option<f64>, above: Option<f64>) -> Figure {
    match (low, above) {
        (Some(low), Some(above)) if above > 0.0 && above <= low => figure.at_least(point.unit.human(low)),
        (Some(low), Some(above)) if point.unit.prefix(above).1 != symbol => {
            figure.at_least(point.unit.human(low)).up_to(&over(point.unit, Some(above)))
        }
        _ => figure.up_to(&over(point.unit, above)),
    }
}

/// "over 3 ms": all that is known of a time that met its limit.
fn over(unit: Unit, limit: Option<f64>) -> String {
    match limit {
        None => "unknown".into(),
        // An exit code.
        Some(0.0) => "stopped".into(),
        Some(limit) => {
            // A limit is a round number; what had gone by is not.
            let exact = unit.exact(limit);
            format!("over {}", if exact.len() <= "20.25 ms".len() { exact } else { unit.human(limit) })
        }
    }
}

/// Each arm with what was measured of it: references before what is held against them, in the claims' order, or
/// the fastest first.
pub(crate) fn arms_in_order(outcome: &Outcome, order: Order) -> Vec<(ArmKey<'_>, Vec<&PointSummary>)> {
    let versus = outcome.claims.iter().flat_map(|claim| &claim.asked.tests).filter_map(|test| match test {
        TestSpec::Versus { candidate, baseline, .. } => Some([baseline, candidate]),
        TestSpec::Predicate { .. } => None,
    });
    let claimed: Vec<ArmKey> = versus.flatten().map(|arm| (arm.variant.as_str(), &arm.point)).collect();
    let place = |key: &ArmKey| claimed.iter().position(|claimed| claimed == key).unwrap_or(claimed.len()) as f64;
    let time = |points: &[&PointSummary]| match order {
        Order::Time => points[0].median.unwrap_or(f64::INFINITY),
        Order::Given => 0.0,
    };
    let arms = gathered(outcome.points.iter().map(|point| ((point.variant.as_str(), &point.at), point)));
    sorted(sorted(arms, |(key, _)| place(key)), |(_, points)| time(points))
}

/// Ratio, interval and answer of the command that is the arm; the reference says that it is. What failed says so
/// in its own row, and what is left without a partner by that, that it was not compared.
pub(crate) fn comparison_cells(outcome: &Outcome, key: ArmKey) -> [String; 3] {
    let is_key = |arm: &Arm| (arm.variant.as_str(), &arm.point) == key;
    let is_left_out = outcome.left_out.iter().any(|arm| (arm.variant.as_str(), &arm.at) == key);
    let versus = outcome.claims.iter().filter_map(|claim| {
        let (_, candidate, baseline) = ordered(claim)?;
        (is_key(candidate) || is_key(baseline)).then_some((claim, is_key(candidate)))
    });
    let first = versus.min_by_key(|(claim, _)| is_judged(claim));
    match first {
        _ if is_left_out => {
            let word = first.filter(|(claim, _)| !is_judged(claim)).map_or("failed", |(claim, _)| answer(claim));
            ["-".into(), String::new(), word.into()]
        }
        None => Default::default(),
        Some((_, false)) => ["1".into(), String::new(), "reference".into()],
        Some((claim, true)) if !is_judged(claim) => ["-".into(), String::new(), "not compared".into()],
        Some((claim, true)) => {
            let figure = match Amount::of_order(claim) {
                Some(_) => ratio_figure(&amount::inverse(claim), &[1.0]),
                None => ratio_figure(claim, &[1.0]),
            };
            let answer = match claim.difference_below.filter(|most| *most > 0.0) {
                Some(most) => format!("{}, below {}", answer(claim), below(most)),
                None => answer(claim).to_string(),
            };
            [figure.value, figure.range, answer]
        }
    }
}
