//! Reads one row of a file with figures that other people recorded.

use ascertain_engine::experiment::{Better, Metric};
use ascertain_engine::samples::Table;
use ascertain_engine::unit::Unit;

use super::measured::WorkUnit;
use super::prices::{CORES, CPUS, SOURCE, TYPE, count};
use crate::error::{Error, refused};

/// A figure of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FigureRow {
    pub(super) machine_type: String,
    pub(super) cpus: Option<u64>,
    pub(super) cores: Option<u64>,
    pub(super) workload: String,
    pub(super) threads: Option<u64>,
    pub(super) is_processes: bool,
    pub(super) metric: FigureMetric,
    pub(super) value: f64,
    pub(super) machine: String,
    pub(super) source: String,
    pub(super) line: u64,
}

/// The quantity of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FigureMetric {
    /// A time in nanoseconds.
    Time,
    /// A rate in bytes per second.
    Bytes,
    /// A rate of these units per second.
    Rate(String),
}

const WORKLOAD: &[&str] = &["workload", "benchmark", "test"];
const MACHINE: &[&str] = &["machine", "host", "commit"];
/// Headings of times, each with the unit of its values.
const TIMES: &[(&str, &str)] = &[("seconds", "s"), ("time_s", "s"), ("time_ms", "ms"), ("time_ns", "ns")];

impl FigureRow {
    /// Returns the name of the workload. A file without names has a single workload.
    pub(super) fn workload(&self) -> &str {
        if self.workload.is_empty() { "the workload" } else { &self.workload }
    }

    pub(super) fn factor(&self) -> &'static str {
        if self.is_processes { "processes" } else { "threads" }
    }

    pub(super) fn unit(&self) -> WorkUnit {
        match &self.metric {
            FigureMetric::Time => WorkUnit::Runs(self.threads.filter(|_| self.is_processes).unwrap_or(1)),
            FigureMetric::Bytes => WorkUnit::Gigabytes,
            FigureMetric::Rate(name) => WorkUnit::PerSecond(name.clone()),
        }
    }
}

impl FigureMetric {
    /// Returns the quantity that a unit such as `ms`, `MB/s` or `request/s` measures, and the factor that converts
    /// figures to the unit of [`FigureMetric`]. `None` if the unit is neither a time nor a rate.
    fn of(unit: &str) -> Option<(FigureMetric, f64)> {
        match Unit::of_spelling(unit) {
            Some((Unit::Nanosecond, scale)) => return Some((FigureMetric::Time, scale)),
            Some((Unit::BytePerSecond, scale)) => return Some((FigureMetric::Bytes, scale)),
            Some((Unit::PerSecond, scale)) => return Some((FigureMetric::Rate("event".into()), scale)),
            _ => {}
        }
        let name = unit.strip_suffix("/s").filter(|name| !name.is_empty())?;
        Some((FigureMetric::Rate(name.into()), 1.0))
    }

    /// Returns the metric under which evidence stores such figures. A rate keeps the file's unit in the metric's name,
    /// because evidence has no unit for arbitrary rates.
    pub(super) fn described(&self) -> Metric {
        match self {
            FigureMetric::Time => Metric::time("time", "time, as recorded by others"),
            FigureMetric::Bytes => {
                Metric::new("throughput", "rate, as recorded by others", Unit::BytePerSecond, Better::Higher)
            }
            FigureMetric::Rate(name) => {
                let about = format!("rate in {name}/s, as other people recorded it");
                Metric::new(&format!("{name}/s"), &about, Unit::One, Better::Higher)
            }
        }
    }
}

/// The indices of the columns of a file of figures.
pub(super) struct Columns {
    machine_type: usize,
    pub(super) value: usize,
    /// `Ok`: the column of the unit. `Err`: the unit, from the heading of the value column.
    unit: Result<usize, &'static str>,
    workload: Option<usize>,
    threads: Option<usize>,
    processes: Option<usize>,
    cpus: Option<usize>,
    cores: Option<usize>,
    better: Option<usize>,
    machine: Option<usize>,
    date: Option<usize>,
    source: Option<usize>,
    licence: Option<usize>,
}

impl Columns {
    pub(super) fn of(table: &Table, file: &str) -> Result<Columns, Error> {
        let need = |names: &[&str]| match table.column(names) {
            Some(index) => Ok(index),
            None => refused(format!(
                "{file} has no column `{}`; a file of figures has the columns type, workload, threads, value and unit",
                names[0]
            )),
        };
        let time = TIMES.iter().find_map(|(heading, unit)| Some((table.column(&[heading])?, *unit)));
        let (value, unit) = match time.filter(|_| table.column(&["value"]).is_none()) {
            Some((index, unit)) => (index, Err(unit)),
            None => (need(&["value"])?, Ok(need(&["unit"])?)),
        };
        Ok(Columns {
            machine_type: need(TYPE)?,
            value,
            unit,
            workload: table.column(WORKLOAD),
            threads: table.column(&["threads"]),
            processes: table.column(&["processes"]),
            cpus: table.column(CPUS),
            cores: table.column(CORES),
            better: table.column(&["better"]),
            machine: table.column(MACHINE),
            date: table.column(&["date"]),
            source: table.column(SOURCE),
            licence: table.column(&["licence", "license"]),
        })
    }

    pub(super) fn figure(&self, fields: &[String], line: u64, file: &str) -> Result<FigureRow, Error> {
        let wrong = |problem: String| -> Result<FigureRow, Error> { refused(format!("{file}:{line}: {problem}")) };
        let optional = |column: Option<usize>| column.map(|index| fields[index].as_str()).unwrap_or_default();
        let machine_type = fields[self.machine_type].clone();
        if machine_type.is_empty() {
            return wrong("the type of the machine is empty; name it, or remove the line".into());
        }
        let text = &fields[self.value];
        let value = match text.parse::<f64>() {
            _ if text.is_empty() => return wrong("the value is missing; add it, or remove the line".into()),
            Ok(value) if value > 0.0 && value.is_finite() => value,
            Ok(_) => return wrong(format!("`{text}` is not a figure above zero; correct or remove the line")),
            Err(_) => return wrong(format!("`{text}` is not a number; correct or remove the line")),
        };
        let unit = match self.unit {
            Ok(column) => fields[column].as_str(),
            Err(unit) => unit,
        };
        let Some((metric, scale)) = FigureMetric::of(unit) else {
            return wrong(format!(
                "`{unit}` is neither a time, such as s or ms, nor a rate, such as MB/s or request/s"
            ));
        };
        let better = optional(self.better);
        let expected = if metric == FigureMetric::Time { "lower" } else { "higher" };
        if !better.is_empty() && better != expected {
            return wrong(format!(
                "`better` is `{better}`, but for figures in {unit}, {expected} values are better; correct one of \
                 them"
            ));
        }
        let number = |column: Option<usize>, what: &str| {
            count(optional(column), what).or_else(|problem| refused(format!("{file}:{line}: {problem}")))
        };
        let processes = number(self.processes, "processes")?;
        let threads = if processes.is_some() { processes } else { number(self.threads, "threads")? };
        let machine = [optional(self.machine), optional(self.date)];
        let (cpus, cores) = (number(self.cpus, "CPUs")?, number(self.cores, "cores")?);
        if let (Some(cpus), Some(cores)) = (cpus, cores)
            && cores > cpus
        {
            return wrong(format!("`{machine_type}` has {cores} cores but only {cpus} CPUs; correct one of them"));
        }
        // A date alone does not identify a machine.
        let machine = if machine[0].is_empty() { String::new() } else { machine.join(" ").trim().to_string() };
        let source = [optional(self.source), optional(self.licence)];
        let source: Vec<&str> = source.into_iter().filter(|text| !text.is_empty()).collect();
        Ok(FigureRow {
            machine_type,
            cpus,
            cores,
            workload: optional(self.workload).into(),
            threads,
            is_processes: processes.is_some(),
            metric,
            value: value * scale,
            machine,
            source: source.join(", "),
            line,
        })
    }
}
