//! The tables of a run as cells of text. The terminal, Markdown and the HTML page draw the same cells.

pub(crate) mod points;
pub(crate) mod scan;

use ascertain_engine::claim::{Judging, Measure, Test};
use ascertain_engine::command;
use ascertain_engine::experiment::Arm;
use ascertain_engine::outcome::{ClaimResult, Decision, Outcome, PointSummary, Verdict};
use ascertain_engine::predicate::Condition;
use ascertain_engine::unit::{Unit, significant};

use crate::amount::{self, Amount};
use crate::clause::{ArmComparison, ClaimFigure, arm_label, rate_figure, ratio_figure};
use crate::figure::{AT_LEAST, Figure, below, percent};
use crate::finding;
use crate::options::{Order, TableLayout};
use crate::text::{capitalised, distinct, escape_controls, gathered, sorted};
pub(crate) use points::{by_key, experiment_table, in_tables, points};

/// A table of text: columns with headings, and rows of cells.
pub struct Grid {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

/// The heading and the layout of a column.
pub struct Column {
    pub heading: String,
    pub kind: ColumnKind,
    /// The order in which columns are stacked if the table is too wide. The cells of a stacked column are put below the
    /// cells of the previous column. Columns with 1 are stacked first, columns with 2 only if that is not enough, and
    /// columns with 0 never.
    pub stacks: usize,
    /// `true` if the column may be left out, which happens if the table is too wide and has many rows.
    pub is_extra: bool,
}

/// The kind of content in a column, which determines how its cells are drawn.
#[derive(Clone, Copy, PartialEq)]
pub enum ColumnKind {
    /// Sentences and names, which are wrapped if necessary.
    Prose,
    /// Texts to copy, which are never broken.
    Id,
    /// Numbers, which are aligned to the right and never broken.
    Number,
    /// Single words such as verdicts, each in its colour and never broken.
    Word,
}

/// The content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text of the program, or a statement written by a user.
    Text(String),
    /// A command or another name, shown as code if the format allows it.
    Code(String),
}

impl Grid {
    /// Creates a table with these headings. All its columns are prose until [`kind`](Self::kind) changes them.
    pub fn new(headings: &[&str]) -> Grid {
        Grid::with_kinds(headings.iter().map(|heading| (*heading, ColumnKind::Prose)))
    }

    pub fn with_kinds<'a>(columns: impl IntoIterator<Item = (&'a str, ColumnKind)>) -> Grid {
        let column = |(heading, kind): (&str, _)| Column { heading: heading.into(), kind, stacks: 0, is_extra: false };
        Grid { columns: columns.into_iter().map(column).collect(), rows: Vec::new() }
    }

    /// Returns the table in which the columns with these headings have cells of this kind.
    pub fn kind(self, kind: ColumnKind, headings: &[&str]) -> Grid {
        self.with(headings, |column| column.kind = kind)
    }

    /// Returns the table with `stacks` 1 for the columns with these headings: they are stacked first.
    pub fn stacking(self, headings: &[&str]) -> Grid {
        self.with(headings, |column| column.stacks = 1)
    }

    /// Returns the table with `stacks` 2 for the columns with these headings: they are stacked only if stacking other
    /// columns is not enough.
    pub fn stacking_last(self, headings: &[&str]) -> Grid {
        self.with(headings, |column| column.stacks = 2)
    }

    fn with(mut self, headings: &[&str], change: impl Fn(&mut Column)) -> Grid {
        self.columns.iter_mut().filter(|column| headings.contains(&column.heading.as_str())).for_each(change);
        self
    }

    /// Returns the table in which the columns from index `first` on may be left out.
    pub fn with_extras_from(mut self, first: usize) -> Grid {
        self.columns.iter_mut().skip(first).for_each(|column| column.is_extra = true);
        self
    }

    /// Returns whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.columns.is_empty()
    }

    /// Returns the table without its first column, because its content is already shown elsewhere.
    pub fn without_first_column(mut self) -> Grid {
        self.columns.remove(0);
        self.rows.iter_mut().for_each(|row| drop(row.remove(0)));
        self
    }

    /// Returns the table without the columns that have no text in any row.
    pub fn without_empty_columns(mut self) -> Grid {
        let has_text = |index: usize| self.rows.iter().any(|row| !row[index].text().is_empty());
        let kept: Vec<bool> = (0..self.columns.len()).map(has_text).collect();
        self.keep(&kept);
        self
    }

    /// Removes the columns that have the same text in all rows, if there are several rows. A column stays if `may_go`
    /// returns `false` for its index and heading. Returns the heading and the text of each removed column: "exit 0".
    pub fn without_constant_columns(&mut self, may_go: impl Fn(usize, &str) -> bool) -> Vec<String> {
        let Some((first, others @ [_, ..])) = self.rows.split_first() else { return Vec::new() };
        let is_constant = |index: usize| others.iter().all(|row| row[index] == first[index]);
        let goes = |index: usize| {
            let heading = &self.columns[index].heading;
            may_go(index, heading) && is_constant(index) && !first[index].text().is_empty()
        };
        let kept: Vec<bool> = (0..self.columns.len()).map(|index| !goes(index)).collect();
        let gone = (0..kept.len()).filter(|index| !kept[*index]);
        let values = gone.map(|index| format!("{} {}", self.columns[index].heading, first[index].text())).collect();
        self.keep(&kept);
        values
    }

    fn keep(&mut self, kept: &[bool]) {
        let mut flags = kept.iter().cycle();
        let mut is_kept = || *flags.next().unwrap_or(&true);
        self.columns.retain(|_| is_kept());
        self.rows.iter_mut().for_each(|row| row.retain(|_| is_kept()));
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

/// Returns the table of claims. Its columns are the statement, the id, the source, the value stated by the source, the
/// value measured here, and the verdict.
pub(crate) fn claims(outcome: &Outcome) -> Grid {
    let mut grid = Grid::new(&["Claim", "Id", "By", "Said", "Here", "Verdict"])
        .kind(ColumnKind::Id, &["Id"])
        .kind(ColumnKind::Word, &["Verdict"])
        .stacking(&["Id", "By"]);
    for claim in &outcome.claims {
        let (says, id) = match claim.says.as_str() {
            "" => (claim.id.as_str(), ""),
            says => (says, claim.id.as_str()),
        };
        let by = claim.source.strip_suffix(".txt").unwrap_or(&claim.source);
        let row = [says, id, by, &claim.source_value, &here(claim), answer(claim)];
        grid.rows.push(row.map(Cell::from).into());
    }
    grid.without_empty_columns()
}

/// Returns the value of a claim that was measured in this run, or the reason why there is none.
pub(crate) fn here(claim: &ClaimResult) -> String {
    if !is_judged(claim) {
        return finding::reasons(claim).unwrap_or_default();
    }
    judged_briefly(claim).map_or_else(|| "-".into(), |figure| figure.to_string())
}

/// Returns the number of trials that have no outcome because they were stopped: " (7 left open)". Empty if there are
/// none.
pub(crate) fn left_open(claim: &ClaimResult) -> String {
    if claim.unknown > 0 { format!(" ({} left open)", claim.unknown) } else { String::new() }
}

/// Returns the value that decides a claim, with its interval; `None` if nothing was measured. For a claim about a rate,
/// the value is the median of the predicate's metric, followed by the rate. A rate of 0 or 1 is written as a count: "0
/// of 143".
pub(crate) fn judged_briefly(claim: &ClaimResult) -> Option<Figure> {
    judged_with(claim, median(claim))
}

/// Returns the same as [`judged_briefly`], but with the given text for the median. If `median` is `None`, the result
/// has no median.
pub(crate) fn judged_with(claim: &ClaimResult, median: Option<String>) -> Option<Figure> {
    let figure = ClaimFigure::new(claim).map(|figure| figure.figure);
    let rate = claim.rate.filter(|_| claim.asked.judging != Judging::Exact).map(|_| rate_figure(claim));
    match (figure, rate) {
        (Some(figure), _) if claim.asked.is_comparison() => Some(figure),
        (_, Some(rate)) => {
            let range = rate.range_in_words();
            let counted = claim.trials.saturating_sub(claim.ties);
            let is_all_or_none = claim.successes == 0 || claim.successes == counted;
            let value = match (is_all_or_none, median) {
                (true, Some(median)) => {
                    format!("{median}, {} of {counted} true{}", claim.successes, left_open(claim))
                }
                (true, None) if claim.successes == 0 => format!("0 of {counted} trials{}", left_open(claim)),
                (false, Some(median)) => format!("{median}, {} true", rate.value),
                (_, None) => rate.value,
            };
            Some(Figure { value, range })
        }
        (figure, None) => figure,
    }
}

/// Returns the median of the predicate's metric: "8.2 ms", "0.41 %", "1,200". It is in percent if the predicate states
/// a percentage. `None` for exit codes, whose median is meaningless.
pub(crate) fn median(claim: &ClaimResult) -> Option<String> {
    let (measure, in_percent) = spoken_of(claim)?;
    claim.median.map(|median| if in_percent { percent(median) } else { measure.unit.human(median) })
}

/// Returns the metric of the predicate, and `true` if the predicate states a percentage. `None` if the metric is an
/// exit code, or if there are several metrics.
pub(crate) fn spoken_of(claim: &ClaimResult) -> Option<(&Measure, bool)> {
    match claim.asked.tests.as_slice() {
        [Test::Predicate { measure: Some(measure), conditions, .. }] if measure.metric != "exit" => {
            let of_metric = |condition: &&Condition| condition.measure.metric == measure.metric;
            Some((measure, conditions.iter().find(of_metric).is_some_and(|condition| condition.in_percent)))
        }
        _ => None,
    }
}

/// Returns the word for the verdict of a claim, or for the answer of a comparison.
pub(crate) fn answer(claim: &ClaimResult) -> &'static str {
    match claim.decision.filter(|_| is_judged(claim)) {
        // If every pair is a tie, the two sides are equal. For times, ties don't show this, because times are never
        // exactly equal.
        Some(Decision::Undecided)
            if claim.trials > 0
                && claim.ties == claim.trials
                && ArmComparison::new(claim).is_some_and(|one| !amount::is_time(one.measure)) =>
        {
            "equal"
        }
        Some(decision) => Amount::of_order(claim).map_or(decision.word(), |amount| amount.answer(decision)),
        None if claim.drifted && claim.verdict == Verdict::Holds => "holds, but changed",
        None if claim.drifted => "refuted, but changed",
        None => claim.verdict.word(),
    }
}

/// Returns the CSS class for colours and shapes: the verdict, or `changed` if the rate changed during the run.
pub(crate) fn class(claim: &ClaimResult) -> &'static str {
    if claim.drifted { "changed" } else { claim.verdict.word() }
}

/// Returns whether the trials of a claim were judged, even if the verdict is *undecided*.
pub(crate) fn is_judged(claim: &ClaimResult) -> bool {
    matches!(claim.verdict, Verdict::Holds | Verdict::Refuted | Verdict::Undecided)
}

/// The metrics of commands and functions in addition to the main one, with the headings of their columns.
const OTHERS: [(&str, &str); 7] = [
    ("wall", "Wall"),
    ("user", "User"),
    ("system", "System"),
    ("memory_peak", "Memory"),
    ("throughput", "Throughput"),
    ("allocations", "Allocations"),
    ("allocated_bytes", "Allocated"),
];

/// Returns the metrics whose values the commands print themselves, in the order of the outcome's points.
fn printed_metrics(outcome: &Outcome) -> Vec<&str> {
    let (usual, counters) = (command::metrics(), command::counters());
    let is_ours = |name: &str| usual.iter().chain(&counters).any(|metric| metric.name == name);
    distinct(outcome.points.iter().map(|point| point.metric.as_str()).filter(|name| !is_ours(name)))
}

/// The heading of the column that compares each command with its reference.
pub(crate) const VS_REFERENCE: &str = "vs. reference";

/// Returns the heading for the intervals of the claims' ratios, with their confidence level: "99.9 % interval". The
/// level is left out if the claims have different ones.
pub(crate) fn interval_heading(claims: &[ClaimResult]) -> String {
    capitalised(&amount::interval_name(claims))
}

/// Returns an interval with a unit behind it: "947 to 1008 µs". An interval that has units, and a text in place of an
/// interval, stay unchanged.
fn with_unit(range: String, unit: &str) -> String {
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    let is_bare = |word: &str| is_number(word) || ["to", "at", "least", "most", "over", "under"].contains(&word);
    match !unit.is_empty() && range.split(' ').any(is_number) && range.split(' ').all(is_bare) {
        true => format!("{range} {unit}"),
        false => range,
    }
}

/// Returns a table with a row for each command or function. It begins with the main metric (usually time), its interval
/// and its range. The other metrics follow, then the size of the difference from the reference with its interval, and
/// the answer.
pub(crate) fn compared(outcome: &Outcome, layout: &TableLayout) -> Grid {
    compared_with(outcome, layout, true)
}

/// Returns the same as [`compared`]. Without `has_units`, intervals and ranges have no units, so the table is narrower.
pub(crate) fn compared_with(outcome: &Outcome, layout: &TableLayout, has_units: bool) -> Grid {
    let interval = &interval_heading(&outcome.claims);
    let are_commands = outcome.points.iter().any(|point| point.metric == "wall");
    let judged = outcome.claims.iter().find_map(ArmComparison::new).map(|one| one.measure);
    let amount = judged.and_then(Amount::new);
    // The main metric has its own columns before the others.
    let is_first = |metric: &str| judged.map_or("wall", |measure| &measure.metric) == metric;
    let printed = if are_commands { printed_metrics(outcome) } else { Vec::new() };
    let printed_first = judged.filter(|measure| printed.contains(&measure.metric.as_str()));
    let beside = OTHERS.into_iter().filter(|(metric, _)| !printed.contains(metric));
    let beside = printed.iter().map(|metric| (*metric, *metric)).chain(beside);
    let others: Vec<(&str, &str)> = beside.filter(|(metric, _)| !is_first(metric)).collect();
    let heading = match (&amount, printed_first) {
        (Some(amount), _) => format!("Median {}", amount.noun()),
        (None, Some(first)) => format!("Median {}", first.metric),
        (None, None) => "Median".into(),
    };
    let numbers = [&heading, "95 % interval", "Min to max", "Mean ± σ"].into_iter();
    let numbers = numbers.chain(others.iter().map(|(_, heading)| *heading)).chain(["Trials", VS_REFERENCE, interval]);
    let parameters = scan::parameters(&outcome.points);
    // Rows of a single command differ only in their levels, which have their own columns.
    let has_labels =
        parameters.is_empty() || outcome.points.iter().any(|p| p.arm.variant != outcome.points[0].arm.variant);
    let label = (if are_commands { "Command" } else { "Function" }, ColumnKind::Prose);
    let mut columns: Vec<(&str, ColumnKind)> = has_labels.then_some(label).into_iter().collect();
    columns.extend(parameters.iter().map(|(parameter, levels)| {
        let are_numbers = levels.iter().all(|level| scan::number(level).is_some());
        (*parameter, if are_numbers { ColumnKind::Number } else { ColumnKind::Prose })
    }));
    columns.extend(numbers.map(|heading| (heading, ColumnKind::Number)));
    columns.push(("Answer", ColumnKind::Word));
    let mut grid = Grid::with_kinds(columns).stacking(&["95 % interval", "System", interval]).stacking_last(&[
        "Min to max",
        "Mean ± σ",
        "Memory",
    ]);
    for (arm, of_arm) in arms_in_order(outcome, layout.order) {
        let point = |metric: &str| of_arm.iter().copied().find(|point| point.metric == metric);
        let median = |metric: &str| {
            let found = point(metric).filter(|point| point.n > 0);
            found.and_then(|found| Some(quantity(found.unit, found.median?, layout))).unwrap_or_default()
        };
        let first = judged.and_then(|measure| point(&measure.metric)).unwrap_or(of_arm[0]);
        let [value, interval, range] = time_cells(first, layout, has_units);
        let mean = if layout.mean { mean(first, layout) } else { String::new() };
        let label = has_labels.then(|| match parameters.is_empty() {
            true => Cell::Code(arm_label(arm)),
            false => Cell::Code(arm_label(&scan::without_columns(arm, &parameters))),
        });
        let mut row: Vec<Cell> = label.into_iter().collect();
        row.extend(parameters.iter().map(|(parameter, _)| {
            Cell::from(arm.point.get(parameter).map_or_else(String::new, |level| escape_controls(&level.to_string())))
        }));
        row.extend([value, interval, range, mean].map(Cell::from));
        row.extend(others.iter().map(|(metric, _)| Cell::from(median(metric))));
        row.push(first.n.to_string().into());
        row.extend(comparison_cells(outcome, arm, has_units).map(Cell::from));
        grid.rows.push(row);
    }
    grid.without_empty_columns()
}

/// Writes a value in the unit of the layout: "23.41 ms", "12.35 k"; a count as an integer.
fn quantity(unit: Unit, value: f64, layout: &TableLayout) -> String {
    let (factor, symbol) = layout.prefix(unit, value);
    let is_count = factor == 1.0 && unit.is_count(value);
    let number = if is_count { value.to_string() } else { significant(value / factor) };
    format!("{number} {symbol}").trim_end().to_string()
}

/// Writes mean and standard deviation: "23.41 ± 0.52 ms". The deviation has two significant digits. Empty if
/// observations were stopped at the time limit, because their mean is then unknown.
fn mean(point: &PointSummary, layout: &TableLayout) -> String {
    let (Some(mean), Some(std)) = (point.mean, point.std) else { return String::new() };
    let (factor, symbol) = layout.prefix(point.unit, mean);
    let (mean, std) = (mean / factor, std / factor);
    let decimals = if std > 0.0 { (1.0 - std.log10().floor()).clamp(0.0, 9.0) as usize } else { 3 };
    format!("{mean:.decimals$} ± {std:.decimals$} {symbol}").trim_end().to_string()
}

/// Returns the main metric of an arm in three cells: the median, its interval, and the range of all values. With
/// `has_units`, the interval and the range have the unit of the median.
pub(crate) fn time_cells(point: &PointSummary, layout: &TableLayout, has_units: bool) -> [String; 3] {
    if point.n == 0 {
        return ["-".into(), String::new(), String::new()];
    }
    let PointSummary { unit, min, max, .. } = *point;
    let own = |end| layout.prefix(unit, end);
    let prefix = own(point.median.or(min).unwrap_or(0.0));
    let Figure { value, range, .. } = median_cells(point, layout);
    let all = Figure::with_prefix(prefix, &own, [None, min, max]);
    let range_of_all = match (min, max) {
        (Some(min), Some(max)) if unit.is_count(min) && unit.is_count(max) && prefix.0 == 1.0 => {
            format!("{min} to {max}")
        }
        (None, None) if point.censored > 0 => over(unit, point.limit),
        (_, None) if point.censored > 0 => open_above(point, all, prefix.1, min, point.seen.or(point.limit)).range,
        _ => all.range,
    };
    let unit = if has_units { prefix.1 } else { "" };
    [value, with_unit(range, unit), with_unit(range_of_all, unit)]
}

/// Returns the median of a point with its interval, in the unit of the layout.
pub(crate) fn median_cells(point: &PointSummary, layout: &TableLayout) -> Figure {
    let PointSummary { unit, median, median_low: low, median_high: high, .. } = *point;
    let own = |end| layout.prefix(unit, end);
    let prefix = own(median.or(point.min).unwrap_or(0.0));
    let figure = match prefix.0 == 1.0 && unit == Unit::One {
        true => Figure::of_unit(unit, median, low, high),
        false => Figure::with_prefix(prefix, &own, [median, low, high]),
    };
    censored(point, figure, prefix.1)
}

/// Returns the median of a point with its interval. `figure` has both, computed as if no value had been stopped at the
/// time limit. If values were stopped, it may only be known that the median or the upper end is over the limit.
fn censored(point: &PointSummary, figure: Figure, symbol: &str) -> Figure {
    match point.median {
        _ if point.censored == 0 => figure,
        None => {
            // Without a limit, the observation was not stopped. It never began, because another observation of the same
            // trial was stopped.
            let what = if point.limit.is_some() { "stopped" } else { "lost" };
            let range = format!("{what} in {} of {}", point.censored, point.n);
            Figure { value: over(point.unit, point.limit), range }
        }
        Some(_) => open_above(point, figure, symbol, point.median_low, point.limit),
    }
}

/// Returns the median and its interval, whose upper end is only known to be above the limit `above`: `1.917 to over 3
/// ms`. If the lower end `low` is above the limit too, there is no upper end: `at least 3.2 ms`. Both ends have units
/// if the units differ.
fn open_above(point: &PointSummary, figure: Figure, symbol: &str, low: Option<f64>, above: Option<f64>) -> Figure {
    let Some(written) = figure.range.strip_prefix(AT_LEAST) else { return figure };
    let unit = point.unit;
    let range = match (low, above) {
        (Some(low), Some(above)) if above > 0.0 && above <= low => format!("{AT_LEAST}{}", unit.human(low)),
        (Some(low), Some(above)) if unit.prefix(above).1 != symbol => {
            format!("{} to {}", unit.human(low), over(unit, Some(above)))
        }
        _ => format!("{written} to {}", over(unit, above)),
    };
    Figure { value: figure.value, range }
}

/// Writes a time that was stopped at its limit: "over 3 ms".
fn over(unit: Unit, limit: Option<f64>) -> String {
    match limit {
        None => "unknown".into(),
        // The metric is an exit code, which a stopped command doesn't have.
        Some(0.0) => "stopped".into(),
        Some(limit) => {
            // All digits of a limit are written, because it is usually a round number. An elapsed time is rounded.
            let exact = unit.exact(limit);
            format!("over {}", if exact.len() <= "20.25 ms".len() { exact } else { unit.human(limit) })
        }
    }
}

/// Returns each arm with its summaries, one for each metric. With [`Order::Time`], arms are in ascending order of their
/// medians. Otherwise they are in the order of the claims, with each reference before its candidates.
pub(crate) fn arms_in_order(outcome: &Outcome, order: Order) -> Vec<(&Arm, Vec<&PointSummary>)> {
    let versus = outcome.claims.iter().flat_map(|claim| &claim.asked.tests).filter_map(|test| match test {
        Test::Versus { candidate, baseline, .. } => Some([baseline, candidate]),
        Test::Predicate { .. } => None,
    });
    let claimed: Vec<&Arm> = versus.flatten().collect();
    let place = |arm: &Arm| claimed.iter().position(|claimed| *claimed == arm).unwrap_or(claimed.len()) as f64;
    let time = |points: &[&PointSummary]| match order {
        Order::Time => points[0].median.unwrap_or(f64::INFINITY),
        Order::Given => 0.0,
    };
    let arms = gathered(outcome.points.iter().map(|point| (&point.arm, point)));
    sorted(sorted(arms, |(arm, _)| place(arm)), |(_, points)| time(points))
}

/// Returns three cells for a command: the size of its difference from the reference, the interval of the size, and the
/// answer. The answer is "reference" in the reference's row, and "failed" for a failed command. It is "not compared" if
/// the reference failed. With `has_units`, an interval of multiples ends with "times".
pub(crate) fn comparison_cells(outcome: &Outcome, arm: &Arm, has_units: bool) -> [String; 3] {
    let is_left_out = outcome.left_out.iter().any(|left_out| left_out.arm == *arm);
    let versus = outcome.claims.iter().filter_map(|claim| {
        let ArmComparison { candidate, reference, .. } = ArmComparison::new(claim)?;
        (candidate == arm || reference == arm).then_some((claim, candidate == arm))
    });
    let first = versus.min_by_key(|(claim, _)| is_judged(claim));
    match first {
        _ if is_left_out => {
            let word = first.filter(|(claim, _)| !is_judged(claim)).map_or("failed", |(claim, _)| answer(claim));
            ["-".into(), String::new(), word.into()]
        }
        None => Default::default(),
        Some((_, false)) => [String::new(), String::new(), "reference".into()],
        Some((claim, true)) if !is_judged(claim) => ["-".into(), String::new(), "not compared".into()],
        Some((claim, true)) => {
            let figure = match ArmComparison::new(claim) {
                Some(comparison) => amount::size_cells(claim, comparison.measure),
                None => ratio_figure(claim, &[1.0]),
            };
            let answer = match claim.difference_below.filter(|most| *most > 0.0) {
                Some(most) => format!("{}, below {}", answer(claim), below(most)),
                None => answer(claim).to_string(),
            };
            [figure.value, with_unit(figure.range, if has_units { "times" } else { "" }), answer]
        }
    }
}
