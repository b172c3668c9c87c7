//! Reads a file with figures that other people recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use ascertain_engine::experiment::{Arm, Factor, Level, Metric, Point, Spec, Variant};
use ascertain_engine::names::suggestion;
use ascertain_engine::recorded::figures::{EXPERIMENT, Figure, Figures};
use ascertain_engine::samples::read_table;
use ascertain_engine::unit::Unit;
use ascertain_report::cost::Recorded;
use ascertain_stats::median_sorted;

use super::figure_row::{Columns, FigureRow};
use super::measured::{MachineValue, Machines, MeasuredType, Series, WorkUnit};
use super::prices::has_prices;
use crate::error::{Error, refused};
use crate::runs;

/// The figures in a file that other people recorded, without the copies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FigureFile {
    /// Name of the file, for messages.
    pub file: String,
    rows: Vec<FigureRow>,
    /// Number of figures that were dropped because they were copies of other figures.
    pub copies: u64,
}

/// Maximum number of figures in a file.
const MOST_ROWS: usize = 200_000;

/// Number of significant digits from which equal figures are copies. Figures with fewer digits can be equal by
/// rounding.
const DIGITS_OF_COPIES: usize = 6;

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
    /// In a row with `processes`, the time is the time in which that many executions ended. Equal figures of one
    /// workload and type that have six digits or more are copies, and count only once.
    ///
    /// # Errors
    /// The message names the line. There are these errors:
    /// - A value is missing, zero, negative or not a number.
    /// - The unit of a value is neither a time nor a rate, contradicts `better`, or differs from the unit of another
    ///   figure of the workload.
    /// - Two lines differ in the number of CPUs of a type.
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
                    "{file}:{line}: `{workload}` has another unit than in line {first}; give both figures in one unit"
                ));
            }
            let (first, size) = sizes.entry(machine_type.clone()).or_insert((*line, [figure.cpus, figure.cores]));
            if *size != [figure.cpus, figure.cores] {
                return refused(format!(
                    "{file}:{line}: `{machine_type}` has another number of CPUs or cores than in line {first}; \
                     correct one of the \
                 lines, or give the sizes different types"
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

    /// Writes the figures of each type as a run below `runs`. The evidence records that other people measured the
    /// figures. `known` is the folder that lists this user's runs; `None` if the runs are not to be listed.
    ///
    /// # Errors
    /// If a folder cannot be written.
    pub fn record(&self, runs: &Path, known: Option<&Path>, command_line: &[String]) -> Result<Vec<Recorded>, Error> {
        let record = |machine_type: &str| {
            let evidence = self.evidence(machine_type, command_line);
            let folder = evidence.record(runs, known)?;
            let measured = self.measured(machine_type);
            Ok(Recorded {
                machine_type: machine_type.into(),
                run_id: runs::name(&folder),
                workloads: evidence.spec.variants.len() as u64,
                figures: evidence.figures.len() as u64,
                machines: measured.machines(),
                fewest_machines: measured.fewest_machines(),
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

    /// Groups the figures of a type by workload, number of threads and machine.
    fn measured(&self, machine_type: &str) -> MeasuredType {
        let rows = self.of_type(machine_type);
        let first = rows.first();
        let figure =
            |row: &&FigureRow| (row.workload().to_string(), row.threads, row.unit(), row.machine.clone(), row.value);
        MeasuredType {
            machine_type: machine_type.into(),
            cpus: first.and_then(|row| row.cpus),
            cores: first.and_then(|row| row.cores),
            recorded_by_others: Some(self.source(&rows)),
            looks: String::new(),
            series: grouped(rows.iter().map(figure)),
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
            format!("Figures of {machine_type} that other people recorded ({source}). Ascertain did not measure them.");
        let title = format!("figures of {machine_type} that other people recorded");
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
    fn from(file: FigureFile) -> Machines {
        let types = file.types().into_iter().map(|machine_type| file.measured(machine_type)).collect();
        Machines { types, copies: file.copies, ..Machines::default() }
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

/// Returns the number of significant digits of a number that is written as text.
fn digits(text: &str) -> usize {
    let number = text.split(['e', 'E']).next().unwrap_or_default();
    let digits: Vec<char> = number.chars().filter(char::is_ascii_digit).skip_while(|digit| *digit == '0').collect();
    let zeros = digits.iter().rev().take_while(|digit| **digit == '0').count();
    digits.len() - zeros
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

/// Returns the number of threads of an arm, and the number of processes. The number of processes is 1 unless the arm
/// has the factor `processes`.
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
