//! Reads the speeds of machines from recorded runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ascertain_engine::evidence::{self, Header};
use ascertain_engine::experiment::{Arm, Point};
use ascertain_engine::finding::Threat;
use ascertain_engine::outcome::PointSummary;
use ascertain_engine::suite::Suite;
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;
use serde_json::{Value, json};

use super::figures::{grouped, threads_of, unit_of_metric};
use super::measured::{MachineValue, Machines, MeasuredType, Series};
use crate::error::{Error, refused};
use crate::runs::Loaded;

/// A recorded run, and the type of the machine that was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedRun {
    /// Folder of the run.
    pub folder: PathBuf,
    /// Type of the machine. `None` for a run that was written from other people's figures, because such a run contains
    /// the type.
    pub machine_type: Option<String>,
}

/// Maximum number of differences between two runs that an error lists.
const LISTED: usize = 6;

/// Reads the speeds of machines from recorded runs. Each run counts as one machine. Only evidence of figures that other
/// people recorded names the machines. `metric` is the metric to price: a time or a rate. By default it is the first
/// metric of each experiment, or the metric of the workloads if runtimes were compared.
///
/// # Errors
/// - A run cannot be read, or is given twice.
/// - The type of a machine is not known, or contradicts the evidence.
/// - The runs did not measure the same thing: the error names the differences.
/// - Runs of one type come from machines with other processors or another number of CPUs, or both have figures of one
///   workload on the same machine.
/// - The metric is neither a time nor a rate.
pub fn read_runs(runs: &[TypedRun], metric: Option<&str>) -> Result<Machines, Error> {
    let mut machines = Machines::default();
    let mut known: Vec<(String, Loaded)> = Vec::new();
    for TypedRun { folder, machine_type } in runs {
        let run = Loaded::read(folder)?;
        if known.iter().any(|(_, other)| other.header.run_id == run.header.run_id) {
            return refused(format!("run {} is given twice; give each run once", run.id));
        }
        let machine_type = type_of(&run, machine_type.as_deref())?;
        if let Some((_, first)) = known.first() {
            check_same_work(first, &run)?;
            for difference in unlike_builds(first, &run) {
                if !machines.unlike_builds.contains(&difference) {
                    machines.unlike_builds.push(difference);
                }
            }
        }
        if let Some((_, other)) = known.iter().find(|(other, _)| *other == machine_type) {
            check_same_type(other, &run, &machine_type)?;
        }
        let of_others = others(&run);
        let series = match of_others {
            Some(_) => series_of_others(folder)?,
            None => series_of_run(&run, metric)?,
        };
        let machine = &run.outcome.machine;
        if of_others.is_none() {
            machines.busy_cpus = machines.busy_cpus.into_iter().chain(busy_cpus(&run.outcome.points)).reduce(f64::max);
        }
        let index = machines.types.iter().position(|known| known.machine_type == machine_type);
        let measured = match index {
            Some(index) => &mut machines.types[index],
            None => {
                machines.types.push(MeasuredType {
                    machine_type: machine_type.clone(),
                    cpus: Some(machine.cpus_online as u64).filter(|cpus| *cpus > 0),
                    cores: of_others.map_or_else(|| cores(machine), |(_, cores, _)| cores),
                    recorded_by_others: of_others.map(|(.., source)| source.to_string()),
                    looks: if of_others.is_some() { String::new() } else { looks(machine) },
                    series: Vec::new(),
                });
                machines.types.last_mut().expect("a type was just added")
            }
        };
        merge(&mut measured.series, series, &run.id)?;
        known.push((machine_type, run));
    }
    Ok(machines)
}

/// Returns the type of the machines, the number of cores and the source, if other people recorded the figures of the
/// run.
fn others(run: &Loaded) -> Option<(&str, Option<u64>, &str)> {
    run.outcome.threats.iter().find_map(|threat| match threat {
        Threat::RecordedByOthers { machine_type, cores, source } => {
            Some((machine_type.as_str(), *cores, source.as_str()))
        }
        _ => None,
    })
}

fn type_of(run: &Loaded, given: Option<&str>) -> Result<String, Error> {
    match (given, others(run)) {
        (Some(given), Some((recorded, ..))) if given != recorded => refused(format!(
            "run {} has figures of `{recorded}`, not of `{given}`; leave the type out, or give the run of `{given}`",
            run.id
        )),
        (Some(given), _) => Ok(given.to_string()),
        (None, Some((recorded, ..))) => Ok(recorded.to_string()),
        (None, None) => Err(Error::NoMachineType { run: run.id.clone() }),
    }
}

/// Returns the number of whole cores, from the number of CPUs that share a level 1 cache.
fn cores(machine: &Machine) -> Option<u64> {
    let first = machine.caches.iter().find(|cache| cache.level == 1 && cache.shared_by > 0)?;
    Some((machine.cpus_online as u64).div_ceil(first.shared_by as u64)).filter(|cores| *cores > 0)
}

/// Returns the facts by which machines of two types can be told apart.
fn looks(machine: &Machine) -> String {
    let Machine { cpu_model, architecture, cpus_online, memory_bytes, kernel, .. } = machine;
    format!("{cpu_model}, {architecture}, {cpus_online} CPUs, {memory_bytes} B, {kernel}")
}

/// Checks that two runs of one type come from machines with the same processor and number of CPUs.
fn check_same_type(one: &Loaded, other: &Loaded, machine_type: &str) -> Result<(), Error> {
    let facts = |run: &Loaded| {
        let Machine { cpu_model, architecture, cpus_online, .. } = &run.outcome.machine;
        format!("{cpu_model}, {architecture}, {cpus_online} CPUs")
    };
    let (first, second) = (facts(one), facts(other));
    match first == second {
        true => Ok(()),
        false => refused(format!(
            "runs {} ({first}) and {} ({second}) are not from machines of one type, `{machine_type}`; check which run \
             belongs to which type",
            one.id, other.id
        )),
    }
}

/// Checks that two runs measured the same arms of the same experiments. Figures that other people recorded may lack
/// workloads.
fn check_same_work(one: &Loaded, other: &Loaded) -> Result<(), Error> {
    match (others(one).is_some(), others(other).is_some()) {
        (true, true) => return Ok(()),
        (false, false) => {}
        _ => {
            return refused(format!(
                "one of runs {} and {} was measured by Ascertain, and the other run has figures that other people \
                 recorded; compare two \
             measured runs, or two runs of recorded figures",
                one.id, other.id
            ));
        }
    }
    let (first, second) = (work(one), work(other));
    let mut differences = Vec::new();
    for (what, value) in &first {
        match second.get(what) {
            None => differences.push(format!("{what} is only in {}", one.id)),
            Some(changed) if changed != value => differences.push(format!("{what}: {}", difference(value, changed))),
            Some(_) => {}
        }
    }
    let only = second.keys().filter(|what| !first.contains_key(*what));
    differences.extend(only.map(|what| format!("{what} is only in {}", other.id)));
    if differences.is_empty() {
        return Ok(());
    }
    let more = differences.len().saturating_sub(LISTED);
    differences.truncate(LISTED);
    let rest = if more > 0 { format!("; and {more} more differences") } else { String::new() };
    refused(format!(
        "runs {} and {} did not measure the same thing: {}{rest}. Measure both with the same command line",
        one.id,
        other.id,
        differences.join("; ")
    ))
}

/// Returns the facts that must be equal in two runs, so that their times are times of the same work.
fn work(run: &Loaded) -> BTreeMap<String, Value> {
    let Header { plan, experiments, ascertain_version, .. } = &run.header;
    let mut facts = BTreeMap::new();
    for (experiment, arm) in plan.arms() {
        facts.insert(format!("{experiment} `{}`{}", arm.variant, at(&arm.point)), Value::Null);
    }
    for set in &plan.commands {
        let mut settings = json!(set);
        let commands = settings.as_object_mut().and_then(|settings| settings.remove("commands"));
        for command in commands.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let name = command["name"].as_str().unwrap_or_default();
            facts.insert(format!("command `{name}`"), command.clone());
        }
        facts.insert(format!("settings of {}", set.id), settings);
    }
    for spec in experiments {
        let metrics = spec.metrics.iter().map(|metric| format!("{} in {}", metric.name, metric.unit.symbol()));
        facts.insert(format!("metrics of {}", spec.id), json!(metrics.collect::<Vec<_>>()));
    }
    for suite in &run.outcome.suites {
        for workload in workloads(suite) {
            facts.insert(format!("workload `{workload}`{}", conditions(suite)), Value::Null);
        }
    }
    for (name, level, value) in facts_of_suites(run, &WORK_FACTS) {
        facts.insert(format!("{name} of `{level}`"), json!(value));
    }
    // Commands are not part of Ascertain, so its version does not matter for them.
    if plan.commands.is_empty() {
        facts.insert("version of Ascertain".into(), json!(ascertain_version));
    }
    facts
}

/// The facts about a runtime that determine the work it does. Runs that differ in one of them are not comparable.
const WORK_FACTS: [&str; 6] = ["files", "free_threading", "implementation", "jit", "sample", "version"];

/// The other facts about how a runtime was built. They often differ between machines.
const BUILD_FACTS: [&str; 6] = ["allocator", "compiler", "lto", "optimisation", "pgo", "tail_calls"];

/// Returns these facts about the arms of all suites: the name of the fact, the level of the arm, and the value.
fn facts_of_suites<'a>(run: &'a Loaded, names: &'a [&str]) -> impl Iterator<Item = (&'a str, String, String)> {
    let arms = run.outcome.suites.iter().flat_map(|suite| {
        let of_suite = run.outcome.facts.iter().filter(|of| suite.has(&of.experiment, &of.arm));
        of_suite.map(move |of| (suite, of))
    });
    arms.flat_map(move |(suite, of)| {
        let level = of.arm.point.get(&suite.factor).map(ToString::to_string).unwrap_or_default();
        let level = level + &conditions(suite);
        names.iter().filter_map(move |name| Some((*name, level.clone(), of.facts.get(name)?.to_string())))
    })
}

/// Returns the differences between the builds that two runs measured.
fn unlike_builds(one: &Loaded, other: &Loaded) -> Vec<String> {
    let known: Vec<_> = facts_of_suites(one, &BUILD_FACTS).collect();
    let difference = |(name, level, value): (&str, String, String)| {
        let (.., first) = known.iter().find(|(known, of, _)| *known == name && *of == level)?;
        let fact = name.replace('_', " ");
        (*first != value).then(|| format!("{fact} of `{level}`: {first} and {value}"))
    };
    facts_of_suites(other, &BUILD_FACTS).filter_map(difference).collect()
}

/// Returns the workloads that all arms of a suite completed.
fn workloads(suite: &Suite) -> Vec<&str> {
    let is_complete = |name: &&str| {
        suite.comparisons.iter().all(|comparison| comparison.workloads.iter().any(|of| of.workload == *name))
    };
    let first = suite.comparisons.first().map(|comparison| comparison.workloads.iter());
    first.into_iter().flatten().map(|of| of.workload.as_str()).filter(is_complete).collect()
}

/// Returns the conditions of a suite in parentheses, if the run has several suites.
fn conditions(suite: &Suite) -> String {
    if suite.conditions.is_empty() { String::new() } else { format!(" ({})", suite.conditions) }
}

/// Returns the two values of a fact for an error message. If the values are objects, returns only the keys that differ.
fn difference(one: &Value, other: &Value) -> String {
    match (one.as_object(), other.as_object()) {
        (Some(first), Some(second)) => {
            let keys = first.iter().filter(|(key, value)| second.get(*key) != Some(value));
            let texts =
                keys.map(|(key, value)| format!("{key} {value} and {}", second.get(key).unwrap_or(&Value::Null)));
            texts.collect::<Vec<_>>().join(", ")
        }
        _ => format!("{one} and {other}"),
    }
}

/// Returns a point in parentheses, without the factors for the numbers of threads and processes. Empty if no levels
/// remain.
fn at(point: &Point) -> String {
    let mut point = point.clone();
    point.0.remove("threads");
    point.0.remove("processes");
    if point.0.is_empty() { String::new() } else { format!(" ({point})") }
}

/// Returns the figures that other people recorded, with the machines that the evidence names.
fn series_of_others(folder: &Path) -> Result<Vec<Series>, Error> {
    let mut figures = Vec::new();
    for row in evidence::read_rows(folder)? {
        let row = row?;
        let point: Point = serde_json::from_str(&row.point).unwrap_or_default();
        let (threads, processes) = threads_of(&point);
        let Some(unit) = unit_of_metric(&row.metric, row.unit, processes) else { continue };
        figures.push((row.variant.to_string(), threads, unit, row.worker.to_string(), row.value));
    }
    Ok(grouped(figures.into_iter()))
}

/// Returns the medians of a run that Ascertain measured. If runtimes were compared over a suite of workloads, each
/// workload has the geometric mean of the medians of all runtimes. Several runtimes are not several workloads.
fn series_of_run(run: &Loaded, metric: Option<&str>) -> Result<Vec<Series>, Error> {
    let mut all = Vec::new();
    let several = run.header.experiments.len() > 1;
    for spec in &run.header.experiments {
        let suites = || run.outcome.suites.iter().filter(|suite| suite.experiment == spec.id);
        // A mean over workloads cannot name the workload that reverses an answer.
        let of_workloads = suites().next().map(|suite| suite.metric.as_str());
        let wanted = match metric.or(of_workloads) {
            None => spec.metrics.first(),
            Some(name) => spec.metrics.iter().find(|metric| metric.name == name),
        };
        let Some(wanted) = wanted else {
            let known: Vec<&str> = spec.metrics.iter().map(|metric| metric.name.as_str()).collect();
            let (name, known) = (metric.unwrap_or_default(), known.join(", "));
            return refused(format!("run {}: `{}` has no metric `{name}`; it has {known}", run.id, spec.id));
        };
        let is_it = |point: &&PointSummary| point.experiment == spec.id && point.metric == wanted.name;
        let before = if several { format!("{} ", spec.id) } else { String::new() };
        for suite in suites().filter(|_| wanted.is_by_key) {
            let Some(unit) = unit_of_metric(&wanted.name, wanted.unit, 1) else {
                return refused(no_cost(run, &wanted.name));
            };
            let of_suite: Vec<&PointSummary> = run
                .outcome
                .by_key
                .iter()
                .filter(is_it)
                .filter(|point| suite.has(&point.experiment, &point.arm))
                .collect();
            for workload in workloads(suite) {
                let medians = of_suite.iter().filter(|point| point.key == workload).map(|point| point.median);
                let medians: Option<Vec<f64>> = medians.map(|median| median.filter(|median| *median > 0.0)).collect();
                let Some(medians) = medians.filter(|medians| !medians.is_empty()) else { continue };
                let value = (medians.iter().map(|median| median.ln()).sum::<f64>() / medians.len() as f64).exp();
                all.push(Series {
                    workload: format!("{before}{workload}{}", conditions(suite)),
                    threads: None,
                    unit: unit.clone(),
                    machines: vec![MachineValue { machine: run.id.clone(), value, low: None, high: None }],
                });
            }
        }
        for point in run.outcome.points.iter().filter(is_it) {
            let Arm { variant, point: levels } = &point.arm;
            let (threads, processes) = threads_of(levels);
            let Some(unit) = unit_of_metric(&point.metric, point.unit, processes) else {
                return refused(no_cost(run, &wanted.name));
            };
            let Some(value) = point.median.filter(|median| *median > 0.0) else { continue };
            let PointSummary { median_low: low, median_high: high, .. } = *point;
            all.push(Series {
                workload: format!("{before}{variant}{}", at(levels)),
                threads,
                unit,
                machines: vec![MachineValue {
                    machine: run.id.clone(),
                    value,
                    low: low.filter(|low| *low > 0.0),
                    high,
                }],
            });
        }
    }
    if all.is_empty() {
        return refused(format!(
            "run {} has no values that can be priced; measure again, or choose another run",
            run.id
        ));
    }
    Ok(all)
}

fn no_cost(run: &Loaded, metric: &str) -> String {
    format!("run {}: `{metric}` is neither a time nor a rate, so it has no cost; choose another metric", run.id)
}

/// Returns the largest number of CPUs that a command kept busy on average: its CPU time divided by its elapsed time.
fn busy_cpus(points: &[PointSummary]) -> Option<f64> {
    let median = |of: &PointSummary, metric: &str| {
        let same = points.iter().find(|point| point.metric == metric && point.is_of(&of.experiment, &of.arm))?;
        same.median.filter(|_| same.unit == Unit::Nanosecond)
    };
    let walls = points.iter().filter(|point| point.metric == "wall");
    let busy = walls.filter_map(|wall| {
        let elapsed_ns = median(wall, "wall").filter(|elapsed_ns| *elapsed_ns > 0.0)?;
        Some((median(wall, "user")? + median(wall, "system")?) / elapsed_ns)
    });
    busy.reduce(f64::max)
}

/// Adds the machines of another run of the type to the workloads.
///
/// # Errors
/// If a machine already has a figure of the workload. The copy would count as another machine.
fn merge(known: &mut Vec<Series>, new: Vec<Series>, run: &str) -> Result<(), Error> {
    for series in new {
        let is_it = |old: &&mut Series| {
            (&old.workload, old.threads, &old.unit) == (&series.workload, series.threads, &series.unit)
        };
        let Some(old) = known.iter_mut().find(is_it) else {
            known.push(series);
            continue;
        };
        let is_known = |one: &&MachineValue| old.machines.iter().any(|other| other.machine == one.machine);
        if let Some(MachineValue { machine, .. }) = series.machines.iter().find(is_known) {
            let (name, workload) = (if machine.is_empty() { "without a name" } else { machine }, &series.workload);
            return refused(format!(
                "run {run} and an earlier run have a figure of `{workload}` on the same machine ({name}); give one of \
                 the runs, or name the machines"
            ));
        }
        old.machines.extend(series.machines);
    }
    Ok(())
}
