//! Reads a file of figures that others recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use ascertain_engine::experiment::{Arm, Better, Factor, Level, Metric, Point, Spec, Variant};
use ascertain_engine::names::suggestion;
use ascertain_engine::recorded::figures::{EXPERIMENT, Figure, Figures};
use ascertain_engine::samples::{Table, read_table};
use ascertain_engine::unit::Unit;
use ascertain_report::cost::Recorded;
use ascertain_stats::median_sorted;

use super::measured::{MachineValue, Machines, MeasuredType, Series, WorkUnit};
use super::prices::{CORES, CPUS, SOURCE, TYPE, count, has_prices};
use crate::error::{Error, refused};
use crate::runs;

/// A file of figures that others recorded, without the copies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FigureFile {
    /// Name of the file, for messages.
    pub file: String,
    rows: Vec<FigureRow>,
    /// Number of figures that were dropped because they were copies of others.
    pub copies: u64,
}

/// A figure of the file.
#[derive(Clone, Debug, PartialEq)]
struct FigureRow {
    machine_type: String,
    cpus: Option<u64>,
    cores: Option<u64>,
    workload: String,
    threads: Option<u64>,
    is_processes: bool,
    metric: FigureMetric,
    value: f64,
    machine: String,
    source: String,
    line: u64,
}

/// The quantity of a figure.
#[derive(Clone, Debug, PartialEq)]
enum FigureMetric {
    /// A time in nanoseconds.
    Time,
    /// A rate in bytes per second.
    Bytes,
    /// A rate of these units per second.
    Rate(String),
}

/// Maximum number of figures in a file.
const MOST_ROWS: usize = 200_000;

/// Number of significant digits from which equal figures are copies. Figures with fewer digits can be equal by rounding.
const DIGITS_OF_COPIES: usize = 6;

const WORKLOAD: &[&str] = &["workload", "benchmark", "test"];
const MACHINE: &[&str] = &["machine", "host", "commit"];
/// Headings of times, each with the unit of its values.
const TIMES: &[(&str, &str)] = &[("seconds", "s"), ("time_s", "s"), ("time_ms", "ms"), ("time_ns", "ns")];

/// Returns whether a CSV file has prices and not figures.
///
/// # Errors
/// If the file is not CSV.
pub fn is_price_file(input: impl Read, file: &str) -> Result<bool, Error> {
    Ok(has_prices(&read_table(input, file, MOST_ROWS)?))
}

impl FigureFile {
    /// Reads figures from CSV. The column `type` is required, and either `value` with `unit`, or `seconds`. These
    /// columns are optional: `workload`, `threads` or `processes`, `cpus`, `cores`, `better`, `machine` (or `commit`),
    /// `date`, `source` and `licence`. Other columns are ignored. `file` is the file's name for errors.
    ///
    /// A time with `processes` is the time in which that many executions ended. Equal figures of one workload and type
    /// with six digits or more are copies, and count once.
    ///
    /// # Errors
    /// The message names the line: if a value is missing, zero, negative or not a number; if its unit is neither a time
    /// nor a rate, contradicts `better`, or differs from that of another figure of the workload; or if two lines differ
    /// in the number of CPUs of a type.
    pub fn read(input: impl Read, file: &str) -> Result<FigureFile, Error> {
        let table = read_table(input, file, MOST_ROWS)?;
        let columns = Columns::of(&table, file)?;
        let (mut rows, mut copies) = (Vec::<FigureRow>::new(), 0);
        let (mut known, mut units) = (BTreeSet::new(), BTreeMap::new());
        let mut sizes: BTreeMap<String, (u64, [Option<u64>; 2])> = BTreeMap::new();
        for row in &table.rows {
            let figure = columns.figure(&row.fields, row.line, file)?;
            let FigureRow { machine_type, workload, threads, metric, line, .. } = &figure;
            let (first, unit) = units.entry(workload.clone()).or_insert((*line, metric.clone()));
            if unit != metric {
                return refused(format!(
                    "{file}:{line}: `{workload}` has another unit here than in line {first}; give both figures in one unit"
                ));
            }
            let (first, size) = sizes.entry(machine_type.clone()).or_insert((*line, [figure.cpus, figure.cores]));
            if *size != [figure.cpus, figure.cores] {
                return refused(format!(
                    "{file}:{line}: `{machine_type}` has another number of CPUs or cores here than in line {first}; \
                     correct one of them, or give the sizes different types"
                ));
            }
            let text = &row.fields[columns.value];
            let is_new = known.insert((machine_type.clone(), workload.clone(), *threads, figure.value.to_bits()));
            match !is_new && digits(text) >= DIGITS_OF_COPIES {
                true => copies += 1,
                false => rows.push(figure),
            }
        }
        if rows.is_empty() {
            return refused(format!("{file} contains no figures; add a row for each type and workload"));
        }
        Ok(FigureFile { file: file.into(), rows, copies })
    }

    /// Returns the types in the file, in the order in which they first appear.
    #[must_use]
    pub fn types(&self) -> Vec<&str> {
        let mut types = Vec::new();
        for row in &self.rows {
            if !types.contains(&row.machine_type.as_str()) {
                types.push(&row.machine_type);
            }
        }
        types
    }

    /// Returns the figures of these types only, in this order.
    ///
    /// # Errors
    /// If the file has no figures of a type.
    pub fn only(self, types: &[String]) -> Result<FigureFile, Error> {
        let mut rows = Vec::new();
        for machine_type in types {
            let of_type = self.of_type(machine_type);
            if of_type.is_empty() {
                let hint = suggestion(machine_type, self.types()).unwrap_or_default();
                return refused(format!("{} has no figures of `{machine_type}`{hint}", self.file));
            }
            rows.extend(of_type.into_iter().cloned());
        }
        Ok(FigureFile { rows, ..self })
    }

    /// Writes the figures of each type as a run below `runs`. The evidence says that others recorded the figures. `known` is the folder that lists this user's runs; `None` if the runs are
    /// not to be listed.
    ///
    /// # Errors
    /// If a folder cannot be written.
    pub fn record(&self, runs: &Path, known: Option<&Path>, command_line: &[String]) -> Result<Vec<Recorded>, Error> {
        let record = |machine_type: &str| {
            let evidence = self.evidence(machine_type, command_line);
            let folder = evidence.record(runs, known)?;
            let machines: BTreeSet<&str> = evidence.figures.iter().map(|figure| figure.machine.as_str()).collect();
            Ok(Recorded {
                machine_type: machine_type.into(),
                run_id: runs::name(&folder),
                workloads: evidence.spec.variants.len() as u64,
                figures: evidence.figures.len() as u64,
                machines: machines.len() as u64,
            })
        };
        self.types().into_iter().map(record).collect()
    }

    fn of_type(&self, machine_type: &str) -> Vec<&FigureRow> {
        self.rows.iter().filter(|row| row.machine_type == machine_type).collect()
    }

    /// Returns the origin of figures: the sources in the file, or else the file's name.
    fn source(&self, rows: &[&FigureRow]) -> String {
        let sources: BTreeSet<&str> =
            rows.iter().map(|row| row.source.as_str()).filter(|text| !text.is_empty()).collect();
        match sources.is_empty() {
            true => self.file.clone(),
            false => sources.into_iter().collect::<Vec<_>>().join("; "),
        }
    }

    fn evidence(&self, machine_type: &str, command_line: &[String]) -> Figures {
        let rows = self.of_type(machine_type);
        let (mut variants, mut metrics) = (Vec::<Variant>::new(), Vec::<Metric>::new());
        let mut figures = Vec::new();
        for row in &rows {
            let name = row.workload();
            if variants.iter().all(|variant| variant.name != name) {
                variants.push((name, "recorded by others").into());
            }
            let metric = row.metric.described();
            let known = metrics.iter().position(|known| known.name == metric.name);
            let metric = known.unwrap_or_else(|| {
                metrics.push(metric);
                metrics.len() - 1
            });
            let point = row.threads.map(|threads| Point::default().with(row.factor(), threads)).unwrap_or_default();
            let (arm, machine) = (Arm { variant: name.into(), point }, row.machine.clone());
            figures.push(Figure { arm, metric, value: row.value, machine });
        }
        let factors: BTreeSet<&str> = rows.iter().filter(|row| row.threads.is_some()).map(|row| row.factor()).collect();
        let about = |factor: &str| format!("number of {factor} at the same time");
        let factors = factors.into_iter().map(|factor| Factor::integer(factor, &about(factor), 1, 1..=1_000_000));
        let source = self.source(&rows);
        let readme =
            format!("Figures of {machine_type} that others recorded ({source}). Ascertain did not measure them.");
        let title = format!("figures of {machine_type} that others recorded");
        let spec = Spec { title, variants, factors: factors.collect(), metrics, ..Spec::new(EXPERIMENT, &readme) };
        let first = rows.first();
        Figures {
            machine_type: machine_type.into(),
            cpus: first.and_then(|row| row.cpus).unwrap_or(0) as usize,
            cores: first.and_then(|row| row.cores),
            source,
            spec,
            figures,
            command_line: command_line.to_vec(),
        }
    }
}

impl From<FigureFile> for Machines {
    /// Groups the figures by type, workload, number of threads and machine.
    fn from(file: FigureFile) -> Machines {
        let measured =
            |machine_type: &str| {
                let rows = file.of_type(machine_type);
                let first = rows.first();
                MeasuredType {
                    machine_type: machine_type.into(),
                    cpus: first.and_then(|row| row.cpus),
                    cores: first.and_then(|row| row.cores),
                    recorded_by_others: Some(file.source(&rows)),
                    looks: String::new(),
                    series: grouped(rows.iter().map(|row| {
                        (row.workload().to_string(), row.threads, row.unit(), row.machine.clone(), row.value)
                    })),
                }
            };
        Machines { types: file.types().into_iter().map(measured).collect(), copies: file.copies, busy_cpus: None }
    }
}

/// Groups figures by workload, number of threads and machine. If a machine has several figures, their median counts.
pub(super) fn grouped(figures: impl Iterator<Item = (String, Option<u64>, WorkUnit, String, f64)>) -> Vec<Series> {
    let mut all: Vec<(Series, Vec<Vec<f64>>)> = Vec::new();
    for (workload, threads, unit, machine, value) in figures {
        let is_it = |series: &Series| (&series.workload, &series.threads, &series.unit) == (&workload, &threads, &unit);
        let index = all.iter().position(|(series, _)| is_it(series)).unwrap_or_else(|| {
            all.push((Series { workload, threads, unit, machines: Vec::new() }, Vec::new()));
            all.len() - 1
        });
        let (series, values) = &mut all[index];
        match series.machines.iter().position(|known| known.machine == machine) {
            Some(place) => values[place].push(value),
            None => {
                series.machines.push(MachineValue { machine, value, low: None, high: None });
                values.push(vec![value]);
            }
        }
    }
    let median = |(mut series, values): (Series, Vec<Vec<f64>>)| {
        for (machine, mut values) in series.machines.iter_mut().zip(values) {
            values.sort_by(f64::total_cmp);
            machine.value = median_sorted(&values).unwrap_or(machine.value);
        }
        series
    };
    all.into_iter().map(median).collect()
}

impl FigureRow {
    /// Returns the name of the workload. A file without names has a single workload.
    fn workload(&self) -> &str {
        if self.workload.is_empty() { "the workload" } else { &self.workload }
    }

    fn factor(&self) -> &'static str {
        if self.is_processes { "processes" } else { "threads" }
    }

    fn unit(&self) -> WorkUnit {
        match &self.metric {
            FigureMetric::Time => WorkUnit::Runs(self.threads.filter(|_| self.is_processes).unwrap_or(1)),
            FigureMetric::Bytes => WorkUnit::Gigabytes,
            FigureMetric::Rate(name) => WorkUnit::PerSecond(name.clone()),
        }
    }
}

impl FigureMetric {
    /// Returns the quantity and the factor for a unit such as `ms`, `MB/s` or `request/s`; `None` if the unit is neither
    /// a time nor a rate.
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

    /// Returns the metric under which evidence has such figures. A rate keeps the unit of the file in its name, because
    /// evidence has no units for it.
    fn described(&self) -> Metric {
        match self {
            FigureMetric::Time => Metric::time("time", "time, as recorded by others"),
            FigureMetric::Bytes => {
                Metric::new("throughput", "rate, as recorded by others", Unit::BytePerSecond, Better::Higher)
            }
            FigureMetric::Rate(name) => {
                let about = format!("rate in {name}/s, as recorded by others");
                Metric::new(&format!("{name}/s"), &about, Unit::One, Better::Higher)
            }
        }
    }
}

/// Returns the number of significant digits of a number that is written as text.
fn digits(text: &str) -> usize {
    let number = text.split(['e', 'E']).next().unwrap_or_default();
    let digits: Vec<char> = number.chars().filter(char::is_ascii_digit).skip_while(|digit| *digit == '0').collect();
    let zeros = digits.iter().rev().take_while(|digit| **digit == '0').count();
    digits.len() - zeros
}

/// The indices of the columns of a file of figures.
struct Columns {
    machine_type: usize,
    value: usize,
    /// The column with the unit; `Err` has the unit that the heading of the value contains.
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
    fn of(table: &Table, file: &str) -> Result<Columns, Error> {
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

    fn figure(&self, fields: &[String], line: u64, file: &str) -> Result<FigureRow, Error> {
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
            return wrong(format!("`better` is `{better}`, but of figures in {unit} the {expected} ones are better"));
        }
        let number = |column: Option<usize>, what: &str| {
            count(optional(column), what).or_else(|problem| refused(format!("{file}:{line}: {problem}")))
        };
        let processes = number(self.processes, "processes")?;
        let threads = if processes.is_some() { processes } else { number(self.threads, "threads")? };
        let machine = [optional(self.machine), optional(self.date)];
        // A date alone does not identify a machine.
        let machine = if machine[0].is_empty() { String::new() } else { machine.join(" ").trim().to_string() };
        let source = [optional(self.source), optional(self.licence)];
        let source: Vec<&str> = source.into_iter().filter(|text| !text.is_empty()).collect();
        Ok(FigureRow {
            machine_type,
            cpus: number(self.cpus, "CPUs")?,
            cores: number(self.cores, "cores")?,
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

/// Returns the unit of work of a metric in evidence, and `None` if its values are neither times nor rates. `processes`
/// is the number of executions at the same time.
pub(super) fn unit_of_metric(name: &str, unit: Unit, processes: u64) -> Option<WorkUnit> {
    match (unit, name.strip_suffix("/s")) {
        (Unit::Nanosecond, _) => Some(WorkUnit::Runs(processes)),
        (Unit::BytePerSecond, _) => Some(WorkUnit::Gigabytes),
        (Unit::PerSecond, _) => Some(WorkUnit::PerSecond("event".into())),
        (Unit::One, Some(of)) => Some(WorkUnit::PerSecond(of.into())),
        _ => None,
    }
}

/// Returns the number of threads of an arm, and the number of processes if its level has that name.
pub(super) fn threads_of(point: &Point) -> (Option<u64>, u64) {
    let level = |name: &str| match point.get(name) {
        Some(Level::Integer(count)) => Some(*count),
        _ => None,
    };
    match level("processes") {
        Some(processes) => (Some(processes), processes),
        None => (level("threads"), 1),
    }
}
