//! Files in hyperfine's export formats, for tools that read such files. JSON is written in the formats of version 2.0
//! and of version 1.x, any other format only in that of version 1.x. Times are in seconds. The files were compared with
//! the output of versions 1.15, 1.20 and 2.0.
//!
//! There are two differences. A time that was stopped at its limit is `null`, because only the limit is known; the mean
//! is then `null` too. Observations are sorted by trial, not by the time at which they were measured.

mod second;

use ascertain_engine::command::{CommandSet, PrintedMetric};
use ascertain_engine::unit::Unit;
pub use second::json;
use serde::Serialize;
use serde_json::json;

use crate::csv::{Field, record};
use crate::exports::{ArmResults, Results};
use crate::json::object;
use crate::markdown::{code_cell, row};
use crate::options::{Order, TableLayout, TimeUnit};
use crate::text::{distinct, escape_controls};

/// All observations of one command, in the order of trials.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandTimes {
    /// The command's name if it has one, otherwise its command line.
    pub command: String,
    /// The command line; empty for a function.
    pub line: String,
    /// The environment variables that were set for the command, if their values are recorded.
    pub environment: Vec<(String, String)>,
    /// The parameters of the command and their values.
    pub parameters: Vec<(String, String)>,
    /// Wall-clock times in seconds.
    pub wall_s: Vec<f64>,
    /// User times in seconds.
    pub user_s: Vec<f64>,
    /// System times in seconds.
    pub system_s: Vec<f64>,
    /// Peak memory in bytes; empty if it is unknown.
    pub memory_bytes: Vec<f64>,
    /// The values of each hardware counter, with hyperfine's name for the counter.
    pub counts: Vec<(&'static str, Vec<f64>)>,
    /// The metrics that the command printed: name, unit and values.
    pub printed: Vec<(String, Option<&'static str>, Vec<f64>)>,
    /// Exit codes; `None` if a signal ended the command.
    pub exit_codes: Vec<Option<i32>>,
}

/// The metric of each hardware counter, and hyperfine's name for it.
const COUNTERS: [(&str, &str); 5] = [
    ("cycles", "cpu_cycles"),
    ("instructions", "instructions"),
    ("cache_references", "cache_references"),
    ("cache_misses", "cache_misses"),
    ("branch_misses", "branch_misses"),
];

impl CommandTimes {
    /// Returns the observations of all arms that have times.
    pub(crate) fn all(results: &Results) -> Vec<CommandTimes> {
        results.arms().iter().filter_map(|arm| CommandTimes::new(arm, &results.plan.commands)).collect()
    }

    /// Returns the observations of an arm; `None` if it has no times. `sets` has the commands of the run. The vector of
    /// a metric that was not measured is empty. For example, a function has no processor times.
    fn new(arm: &ArmResults, sets: &[CommandSet]) -> Option<CommandTimes> {
        let (_, wall_ns) = arm.time()?;
        let values = |name: &str| arm.metric(name).map_or(&[][..], |(_, values)| values);
        let seconds = |ns: &[f64]| ns.iter().map(|ns| ns / 1e9).collect();
        let set = sets.iter().find(|set| set.id == arm.experiment);
        let command = set.and_then(|set| set.at(arm.arm)).unwrap_or_default();
        let records_env = set.is_some_and(|set| set.records_env);
        let variables = command.variables().filter(|_| records_env);
        let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Some(CommandTimes {
            command: arm.arm.to_string(),
            line: command.line,
            environment,
            parameters: arm.arm.point.0.iter().map(|(name, level)| (name.clone(), level.to_string())).collect(),
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

/// Returns a metric that the command printed: its name, hyperfine's word for its unit, and its values in that unit.
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

/// The statistics that hyperfine's files have for the values of a metric.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Stats {
    pub count: usize,
    /// The arithmetic mean; NaN if there are no values.
    pub mean: f64,
    /// The sample standard deviation; `None` if there are fewer than two values.
    pub stddev: Option<f64>,
    /// The median; NaN if there are no values.
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Stats {
    pub fn new(values: &[f64]) -> Stats {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Stats {
            count,
            mean,
            stddev: (count > 1).then(|| (squares / (count - 1) as f64).sqrt()),
            // Both values are halved before they are added, because the sum of two large ones may overflow.
            median: if count == 0 { f64::NAN } else { sorted[(count - 1) / 2] / 2.0 + sorted[count / 2] / 2.0 },
            min: values.iter().copied().fold(f64::NAN, f64::min),
            max: values.iter().copied().fold(f64::NAN, f64::max),
        }
    }
}

/// Returns the content of the file for `--export-json-1`: JSON as written by hyperfine 1.
pub fn json_1(commands: &[CommandTimes]) -> String {
    let entry = |times: &CommandTimes| {
        let Stats { mean, stddev, median, min, max, .. } = Stats::new(&times.wall_s);
        let [user, system] = [&times.user_s, &times.system_s].map(|seconds| Stats::new(seconds).mean);
        let mut entry = json!({
            "command": times.command, "mean": mean, "stddev": stddev, "median": median, "user": user,
            "system": system, "min": min, "max": max, "times": times.wall_s,
        });
        if !times.memory_bytes.is_empty() {
            // In hyperfine's files, the number of bytes is an integer.
            let whole = times.memory_bytes.iter().map(|bytes| bytes.is_finite().then_some(*bytes as u64));
            entry["memory_usage_byte"] = whole.collect();
        }
        entry["exit_codes"] = json!(times.exit_codes);
        if !times.parameters.is_empty() {
            entry["parameters"] = times.parameters.iter().cloned().collect();
        }
        entry
    };
    object(&json!({ "results": commands.iter().map(entry).collect::<Vec<_>>() }))
}

/// Returns the content of the file for `--export-csv`: a line per command, with a column `parameter_NAME` for each
/// parameter.
pub fn csv(commands: &[CommandTimes]) -> String {
    let names = distinct(commands.iter().flat_map(|command| &command.parameters).map(|(name, _)| name));
    let named: Vec<String> = names.iter().map(|name| format!("parameter_{name}")).collect();
    let mut heading: Vec<&dyn Field> =
        vec![&"command", &"mean", &"stddev", &"median", &"user", &"system", &"min", &"max"];
    heading.extend(named.iter().map(|name| name as &dyn Field));
    let mut text = record(&heading);
    for CommandTimes { command, wall_s, user_s, system_s, parameters, .. } in commands {
        let Stats { mean, stddev, median, min, max, .. } = Stats::new(wall_s);
        let [user, system] = [user_s, system_s].map(|seconds| Stats::new(seconds).mean);
        let stddev = stddev.unwrap_or(0.0);
        let level =
            |name: &&String| parameters.iter().find(|(known, _)| known == *name).map(|(_, level)| level.clone());
        let levels: Vec<Option<String>> = names.iter().map(level).collect();
        let mut fields: Vec<&dyn Field> = vec![command, &mean, &stddev, &median, &user, &system, &min, &max];
        fields.extend(levels.iter().map(|level| level as &dyn Field));
        text += &record(&fields);
    }
    text
}

/// Returns the content of the file for `--export-markdown`. The columns are the mean with its standard deviation, the
/// minimum, the maximum, and the mean divided by the mean of the fastest command.
pub fn markdown(commands: &[CommandTimes], layout: TableLayout) -> String {
    let summary = Summary::new(commands, layout);
    let mut text = row(summary.heading.iter().cloned());
    text += "|:---|---:|---:|---:|---:|\n";
    for (command, cells) in &summary.rows {
        text += &row(std::iter::once(code_cell(command)).chain(cells.iter().cloned()));
    }
    text
}

/// Returns the content of the file for `--export-asciidoc`, with the same columns as [`markdown`].
pub fn asciidoc(commands: &[CommandTimes], layout: TableLayout) -> String {
    let summary = Summary::new(commands, layout);
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

/// Escapes a name for AsciiDoc: markup becomes character references, and a vertical bar gets a backslash before it.
fn in_asciidoc(name: &str) -> String {
    let character = |c: char| match c {
        '|' => "\\|".into(),
        '`' | '*' | '_' | '#' | '^' | '~' | '+' | '{' | '\\' | '&' => format!("&#{};", u32::from(c)),
        c => c.to_string(),
    };
    escape_controls(name).chars().map(character).collect()
}

/// Returns the content of the file for `--export-orgmode`, with the same columns as [`markdown`].
pub fn orgmode(commands: &[CommandTimes], layout: TableLayout) -> String {
    let summary = Summary::new(commands, layout);
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = row(&summary.heading) + "|--+--+--+--+--|\n";
    for (command, cells) in &summary.rows {
        let name = escape_controls(command);
        // A vertical bar ends a cell even in verbatim text, and the entity `\vert{}` is not replaced there. So a name
        // with a bar is not written as verbatim text.
        let name = if name.contains('|') { name.replace('|', "\\vert{}") } else { format!("={name}=") };
        text += &row(&[&[name], cells.as_slice()].concat());
    }
    text
}

/// The headings and cells that all tables have; each row has the name of its command.
struct Summary<'a> {
    heading: [String; 5],
    rows: Vec<(&'a str, [String; 4])>,
}

impl<'a> Summary<'a> {
    fn new(commands: &'a [CommandTimes], layout: TableLayout) -> Summary<'a> {
        let stats = commands.iter().map(|times| (times.command.as_str(), Stats::new(&times.wall_s)));
        let mut stats: Vec<(&str, Stats)> = stats.collect();
        // The mean of the first command determines the unit, as in hyperfine.
        let in_seconds = stats.first().is_some_and(|(_, stats)| stats.mean >= 1.0);
        let (unit, factor, decimals) = match layout.time_unit {
            Some(TimeUnit::Microsecond) => ("µs", 1e6, 1),
            Some(TimeUnit::Millisecond) => ("ms", 1e3, 1),
            Some(TimeUnit::Second) => ("s", 1.0, 3),
            None if in_seconds => ("s", 1.0, 3),
            None => ("ms", 1e3, 1),
        };
        let by_mean = |(_, one): &(&str, Stats), (_, other): &(&str, Stats)| one.mean.total_cmp(&other.mean);
        if layout.order == Order::Time {
            stats.sort_by(by_mean);
        }
        let fastest = (0..stats.len()).min_by(|&one, &other| by_mean(&stats[one], &stats[other])).unwrap_or(0);
        let number = |seconds: f64| shown(seconds * factor, decimals);
        let row = |(index, (command, of_command)): (usize, &(&'a str, Stats))| {
            let Stats { mean, stddev, min, max, .. } = *of_command;
            let deviation = stddev.map_or_else(String::new, |std| format!(" ± {}", number(std)));
            let relative = if index == fastest { "1.00".into() } else { relative(of_command, &stats[fastest].1) };
            (*command, [format!("{}{deviation}", number(mean)), number(min), number(max), relative])
        };
        let [mean, min, max] = ["Mean", "Min", "Max"].map(|heading| format!("{heading} [{unit}]"));
        let heading = ["Command".into(), mean, min, max, "Relative".into()];
        Summary { heading, rows: stats.iter().enumerate().map(row).collect() }
    }
}

/// Returns the mean divided by the mean of the fastest command, with the standard deviation of this quotient. The
/// deviation is a first-order approximation for independent means.
fn relative(stats: &Stats, fastest: &Stats) -> String {
    let ratio = stats.mean / fastest.mean;
    match (stats.stddev, fastest.stddev) {
        (Some(std), Some(fastest_std)) => {
            let deviation = ratio * (std / stats.mean).hypot(fastest_std / fastest.mean);
            format!("{} ± {}", shown(ratio, 2), shown(deviation, 2))
        }
        _ => shown(ratio, 2),
    }
}

fn shown(value: f64, decimals: usize) -> String {
    if value.is_finite() { format!("{value:.decimals$}") } else { "-".into() }
}
