//! hyperfine's export formats, so that what reads its files reads ours: its JSON in the form of 2.0 and in that of 1.x,
//! the others as 1.x writes them; times in seconds. Written against the output of 1.15, 1.20 and 2.0.
//!
//! Differences: of a time-out no more is known than its limit, so that it is `null` and
//! takes the mean along; and an observation that was made in another order is listed in the order of
//! its trial.

mod second;

use std::collections::BTreeMap;

use ascertain_engine::command::{CommandSet, PrintedMetric};
use ascertain_engine::unit::Unit;
pub use second::json;
use serde::Serialize;

use crate::csv::{Field, record};
use crate::exports::{ArmResults, Results};
use crate::json::object;
use crate::layout::{Order, TableLayout, TimeUnit};
use crate::markdown::{code_cell, row};
use crate::text::escape_controls;

/// Everything that was observed of one command, by trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandTimes {
    /// Its name, or its command line.
    pub command: String,
    /// Its command line; empty where it has none.
    pub line: String,
    /// The environment variables that were set for it, if their values are recorded.
    pub environment: Vec<(String, String)>,
    /// The parameters that it was started with.
    pub parameters: Vec<(String, String)>,
    /// Wall-clock times in seconds.
    pub wall_s: Vec<f64>,
    /// User times in seconds.
    pub user_s: Vec<f64>,
    /// System times in seconds.
    pub system_s: Vec<f64>,
    /// Peak memory in bytes; empty where it is not known.
    pub memory_bytes: Vec<f64>,
    /// What was counted, by hyperfine's names.
    pub counts: Vec<(&'static str, Vec<f64>)>,
    /// Figures that the commands print: name, unit and values.
    pub printed: Vec<(String, Option<&'static str>, Vec<f64>)>,
    /// Exit codes; `None` where a signal ended it.
    pub exit_codes: Vec<Option<i32>>,
}

/// What is counted of commands, and what hyperfine calls it.
const COUNTERS: [(&str, &str); 5] = [
    ("cycles", "cpu_cycles"),
    ("instructions", "instructions"),
    ("cache_references", "cache_references"),
    ("cache_misses", "cache_misses"),
    ("branch_misses", "branch_misses"),
];

impl CommandTimes {
    /// Those of each arm that has any times. What was not measured (the processor time of a function, its exit code) is
    /// empty.
    pub(crate) fn of(results: &Results) -> Vec<CommandTimes> {
        results.arms().iter().filter_map(|arm| CommandTimes::of_arm(arm, &results.purpose.commands)).collect()
    }

    fn of_arm(arm: &ArmResults, sets: &[CommandSet]) -> Option<CommandTimes> {
        let (_, wall_ns) = arm.time()?;
        let values = |name: &str| arm.metric(name).map_or(&[][..], |(_, values)| values);
        let seconds = |ns: &[f64]| ns.iter().map(|ns| ns / 1e9).collect();
        let set = sets.iter().find(|set| set.id == arm.experiment);
        let command = set.and_then(|set| set.at(arm.variant, arm.at)).unwrap_or_default();
        let records_env = set.is_some_and(|set| set.records_env);
        let variables = command.variables().filter(|_| records_env);
        let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Some(CommandTimes {
            command: arm.label(),
            line: command.line,
            environment,
            parameters: arm.at.0.iter().map(|(name, level)| (name.clone(), level.to_string())).collect(),
            wall_s: seconds(wall_ns),
            user_s: seconds(values("user")),
            system_s: seconds(values("system")),
            memory_bytes: values("memory_peak").to_vec(),
            counts: COUNTERS.map(|(name, theirs)| (theirs, values(name).to_vec())).into(),
            printed: set.map_or_else(Vec::new, |set| {
                set.printed.iter().map(|metric| printed(metric, values(&metric.name))).collect()
            }),
            exit_codes: values("exit").iter().map(|&code| code.is_finite().then_some(code as i32)).collect(),
        })
    }
}

/// A printed metric with its unit, as hyperfine names and scales those of its own.
fn printed(metric: &PrintedMetric, values: &[f64]) -> (String, Option<&'static str>, Vec<f64>) {
    let (unit, scale) = match metric.unit {
        Unit::Nanosecond => (Some("second"), 1e-9),
        Unit::Byte => (Some("byte"), 1.0),
        Unit::BytePerSecond => (Some("byte/second"), 1.0),
        Unit::PerSecond => (Some("1/second"), 1.0),
        Unit::One => (None, 1.0),
    };
    (metric.name.clone(), unit, values.iter().map(|value| value * scale).collect())
}

/// One entry of `results`.
#[derive(Serialize)]
struct Entry<'a> {
    command: &'a str,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: &'a [f64],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    memory_usage_byte: Vec<Option<u64>>,
    exit_codes: &'a [Option<i32>],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<&'a str, &'a str>,
}

impl<'a> Entry<'a> {
    fn of(times: &'a CommandTimes) -> Entry<'a> {
        let CommandTimes { command, parameters, wall_s, user_s, system_s, memory_bytes, exit_codes, .. } = times;
        Entry {
            command,
            mean: mean(wall_s),
            stddev: deviation(wall_s),
            median: median(wall_s),
            user: mean(user_s),
            system: mean(system_s),
            min: wall_s.iter().copied().fold(f64::NAN, f64::min),
            max: wall_s.iter().copied().fold(f64::NAN, f64::max),
            times: wall_s,
            memory_usage_byte: memory_bytes.iter().map(whole).collect(),
            exit_codes,
            parameters: parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        }
    }
}

/// Bytes are whole numbers in hyperfine's files.
fn whole(bytes: &f64) -> Option<u64> {
    bytes.is_finite().then_some(*bytes as u64)
}

/// NaN of nothing.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample standard deviation; `None` of fewer than two.
pub(crate) fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// NaN of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (n, middle) if n % 2 == 1 => sorted[middle],
        // Halved first: the sum of two large ones may overflow.
        (_, middle) => sorted[middle - 1] / 2.0 + sorted[middle] / 2.0,
    }
}

/// `--export-json-1`: the JSON of hyperfine 1.
pub fn json_1(commands: &[CommandTimes]) -> String {
    #[derive(Serialize)]
    struct Results<'a> {
        results: Vec<Entry<'a>>,
    }
    object(&Results { results: commands.iter().map(Entry::of).collect() })
}

/// `--export-csv`: a line for each command, with a column `parameter_NAME` for each parameter.
pub fn csv(commands: &[CommandTimes]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in commands.iter().flat_map(|command| &command.parameters) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let named: Vec<String> = names.iter().map(|name| format!("parameter_{name}")).collect();
    let mut heading: Vec<&dyn Field> =
        vec![&"command", &"mean", &"stddev", &"median", &"user", &"system", &"min", &"max"];
    heading.extend(named.iter().map(|name| name as &dyn Field));
    let mut text = record(&heading);
    for entry in commands.iter().map(Entry::of) {
        let Entry { command, mean, stddev, median, user, system, min, max, parameters, .. } = &entry;
        let stddev = stddev.unwrap_or(0.0);
        let levels: Vec<Option<&str>> = names.iter().map(|name| parameters.get(name).copied()).collect();
        let mut fields: Vec<&dyn Field> = vec![command, mean, &stddev, median, user, system, min, max];
        fields.extend(levels.iter().map(|level| level as &dyn Field));
        text += &record(&fields);
    }
    text
}

/// `--export-markdown`: mean with deviation, least, greatest, and how many times as long as the fastest
/// it takes.
pub fn markdown(commands: &[CommandTimes], layout: TableLayout) -> String {
    let summary = Summary::of(commands, layout);
    let mut text = row(summary.heading.iter().cloned());
    text += "|:---|---:|---:|---:|---:|\n";
    for (command, cells) in &summary.rows {
        text += &row(std::iter::once(code_cell(command)).chain(cells.iter().cloned()));
    }
    text
}

/// `--export-asciidoc`: the table of [`markdown`].
pub fn asciidoc(commands: &[CommandTimes], layout: TableLayout) -> String {
    let summary = Summary::of(commands, layout);
    let cell = |text: &str| format!("| {text} \n");
    let mut text = String::from("[cols=\"<,>,>,>,>\"]\n|===\n");
    text.extend(summary.heading.iter().map(|heading| cell(heading)));
    for (command, cells) in &summary.rows {
        let name = in_asciidoc(command);
        text += "\n";
        text += &cell(&format!("`{name}`"));
        text.extend(cells.iter().map(|number| cell(number)));
    }
    text + "|===\n"
}

/// A name as it is: what AsciiDoc would take for markup is a character reference, and a bar has a backslash.
fn in_asciidoc(name: &str) -> String {
    let character = |c: char| match c {
        '|' => "\\|".into(),
        '`' | '*' | '_' | '#' | '^' | '~' | '+' | '{' | '\\' | '&' => format!("&#{};", u32::from(c)),
        c => c.to_string(),
    };
    escape_controls(name).chars().map(character).collect()
}

/// `--export-orgmode`: the table of [`markdown`].
pub fn orgmode(commands: &[CommandTimes], layout: TableLayout) -> String {
    let summary = Summary::of(commands, layout);
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = row(&summary.heading) + "|--+--+--+--+--|\n";
    for (command, cells) in &summary.rows {
        let name = escape_controls(command);
        // A bar ends a cell even in verbatim text, where the entity for one would not be replaced.
        let name = if name.contains('|') { name.replace('|', "\\vert{}") } else { format!("={name}=") };
        text += &row(&[&[name], cells.as_slice()].concat());
    }
    text
}

/// The cells of the tables, each row with its command.
struct Summary<'a> {
    heading: [String; 5],
    rows: Vec<(&'a str, [String; 4])>,
}

impl<'a> Summary<'a> {
    fn of(commands: &'a [CommandTimes], layout: TableLayout) -> Summary<'a> {
        let mut entries: Vec<Entry> = commands.iter().map(Entry::of).collect();
        // The first command's mean decides, as in hyperfine.
        let in_seconds = entries.first().is_some_and(|entry| entry.mean >= 1.0);
        let (unit, factor, decimals) = match layout.time_unit {
            Some(TimeUnit::Microsecond) => ("µs", 1e6, 1),
            Some(TimeUnit::Millisecond) => ("ms", 1e3, 1),
            Some(TimeUnit::Second) => ("s", 1.0, 3),
            None if in_seconds => ("s", 1.0, 3),
            None => ("ms", 1e3, 1),
        };
        if layout.order == Order::Time {
            entries.sort_by(|a, b| a.mean.total_cmp(&b.mean));
        }
        let fastest = entries.iter().min_by(|a, b| a.mean.total_cmp(&b.mean));
        let number = |seconds: f64| shown(seconds * factor, decimals);
        let cells = |entry: &Entry<'a>| {
            let deviation = entry.stddev.map_or_else(String::new, |std| format!(" ± {}", number(std)));
            let relative = fastest.map_or_else(String::new, |fastest| relative(entry, fastest));
            (
                entry.command,
                [format!("{}{deviation}", number(entry.mean)), number(entry.min), number(entry.max), relative],
            )
        };
        let heading = [
            "Command".into(),
            format!("Mean [{unit}]"),
            format!("Min [{unit}]"),
            format!("Max [{unit}]"),
            "Relative".into(),
        ];
        Summary { heading, rows: entries.iter().map(cells).collect() }
    }
}

/// How many times as long as the fastest, with the deviation that follows from both (of a quotient of
/// independent numbers, to first order).
fn relative(entry: &Entry, fastest: &Entry) -> String {
    if std::ptr::eq(entry, fastest) {
        return "1.00".into();
    }
    let ratio = entry.mean / fastest.mean;
    match (entry.stddev, fastest.stddev) {
        (Some(std), Some(fastest_std)) => {
            let deviation = ratio * (std / entry.mean).hypot(fastest_std / fastest.mean);
            format!("{} ± {}", shown(ratio, 2), shown(deviation, 2))
        }
        _ => shown(ratio, 2),
    }
}

fn shown(value: f64, decimals: usize) -> String {
    if value.is_finite() { format!("{value:.decimals$}") } else { "-".into() }
}
