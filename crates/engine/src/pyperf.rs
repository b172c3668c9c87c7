//! Files of pyperf, the benchmark tool of Python: reading, comparing and writing them.
//!
//! A file has benchmarks, a benchmark has runs, and a run is one process with one or more values. The values of a
//! process depend on one another, so comparisons use one number for each process: the mean of its values.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::experiment::Plot;
use crate::observations::KeyValues;
use crate::recorded::RecordedRun;
use crate::suite::{
    LeftOutWorkload, Samples, SuiteComparison, WorkloadLack, WorkloadRatio, compare_samples, split_name,
};

/// The unit of times, which is also the unit of a benchmark that names no unit.
const SECOND: &str = "second";

/// The benchmarks of one runtime.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PyperfSuite {
    /// Name of the runtime: the name of the file, or the name of the arm.
    pub name: String,
    /// The conditions of the measurement, such as `phase=start`, if a run has several. Empty for a file. Only suites
    /// with the same conditions are compared.
    pub conditions: String,
    /// Names of the workloads of a run that are left out because a process of them was stopped or failed. Empty for a
    /// file.
    pub incomplete: Vec<String>,
    /// The benchmarks, in the order of the file.
    pub benchmarks: Vec<PyperfBenchmark>,
}

/// A benchmark with its values.
#[derive(Clone, Debug, PartialEq)]
pub struct PyperfBenchmark {
    /// Name of the benchmark.
    pub name: String,
    /// Unit of the values: `second`, `byte`, or `integer`.
    pub unit: String,
    /// The values of each process. A process without values, which only calibrated its loops, is left out.
    pub runs: Vec<Vec<f64>>,
}

/// The error of a file that cannot be read as a file of pyperf.
#[derive(Debug, thiserror::Error)]
pub enum PyperfError {
    /// The file cannot be read.
    #[error("could not read {path}: {error}")]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is compressed.
    #[error("{path} is compressed; unpack it with `gunzip`")]
    Compressed {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file is not JSON.
    #[error("{path} is not valid JSON: {error}")]
    Json {
        /// The path of the file.
        path: PathBuf,
        /// The reason, with line and column.
        error: serde_json::Error,
    },
    /// The file is JSON, but not in pyperf's format.
    #[error("{path} is not a file of pyperf: {why}")]
    Other {
        /// The path of the file.
        path: PathBuf,
        /// The reason why the file is not in pyperf's format.
        why: String,
    },
}

/// The comparison of two suites of pyperf.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PyperfComparison {
    /// The comparison of the times. Its mean covers only benchmarks whose unit is the second.
    pub times: SuiteComparison,
    /// The benchmarks with another unit, such as memory. They are never part of the mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherUnit>,
    /// Names of benchmarks whose ratio suggests that the two files use different units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspicious: Vec<(String, f64)>,
    /// The numbers of values of each benchmark that was compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<ValueCounts>,
}

/// The numbers of values of a benchmark. The values of a process are not independent, so a comparison uses their mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueCounts {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Number of values of the candidate and of the baseline, over all processes.
    pub values: [u64; 2],
}

/// A benchmark that measures something other than time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherUnit {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Unit of its values.
    pub unit: String,
    /// The candidate's values divided by the baseline's values: above 1 if the candidate needs more.
    pub ratio: WorkloadRatio,
}

impl PyperfSuite {
    /// Reads a file.
    ///
    /// # Errors
    /// [`PyperfError`], if the file cannot be read, or is not a file of pyperf.
    pub fn read(path: &Path) -> Result<PyperfSuite, PyperfError> {
        let bytes = fs::read(path).map_err(|error| PyperfError::Read { path: path.into(), error })?;
        if bytes.starts_with(b"\x1f\x8b") {
            return Err(PyperfError::Compressed { path: path.into() });
        }
        let value = serde_json::from_slice(&bytes).map_err(|error| PyperfError::Json { path: path.into(), error })?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        PyperfSuite::parse(&name, &value).map_err(|why| PyperfError::Other { path: path.into(), why })
    }

    /// Reads the contents of a file. `name` is the name of the runtime.
    ///
    /// # Errors
    /// Returns the reason if the contents are not in pyperf's format.
    pub fn parse(name: &str, file: &Value) -> Result<PyperfSuite, String> {
        let of_file = &file["metadata"];
        let benchmarks = file["benchmarks"].as_array().ok_or("it has no list `benchmarks`")?;
        let mut suite = PyperfSuite { name: name.into(), ..PyperfSuite::default() };
        for (index, benchmark) in benchmarks.iter().enumerate() {
            let text = |key: &str| benchmark["metadata"][key].as_str().or_else(|| of_file[key].as_str());
            let name = text("name").map_or_else(|| format!("benchmark {}", index + 1), String::from);
            if suite.benchmarks.iter().any(|other| other.name == name) {
                return Err(format!("two of its benchmarks have the name `{name}`"));
            }
            let runs = benchmark["runs"].as_array().ok_or_else(|| format!("`{name}` has no list `runs`"))?;
            let runs = runs.iter().map(|run| values(&name, run)).collect::<Result<Vec<_>, _>>()?;
            let runs = runs.into_iter().filter(|values| !values.is_empty()).collect();
            suite.benchmarks.push(PyperfBenchmark { unit: text("unit").unwrap_or(SECOND).into(), name, runs });
        }
        match suite.benchmarks.is_empty() {
            true => Err("it has no benchmarks".into()),
            false => Ok(suite),
        }
    }

    /// Returns the suites of a recorded run: one for each arm of an experiment whose workloads have times.
    pub fn of_run(run: &RecordedRun) -> Vec<PyperfSuite> {
        let mut suites = Vec::new();
        for of_run in &run.outcome.suites {
            for values in run.observations.arms().iter().filter(|of| of_run.has(&of.experiment, &of.arm)) {
                let spec = run.header.experiments.iter().find(|spec| spec.id == of_run.experiment);
                let Some(spec) = spec else { continue };
                let Some(metric) = spec.metric(&of_run.metric) else { continue };
                let control = spec.plots.iter().find_map(|plot| match plot {
                    Plot::Forest { control, .. } => Some(control.as_str()),
                    _ => None,
                });
                // pyperf cannot store the time of a process that was stopped, and a part of the sample would be too
                // fast. So a workload needs the times of all processes.
                let is_complete = |of: &KeyValues| of.by_trial().all(|(_, bounds)| bounds.value().is_some());
                let level = values.arm.point.get(&of_run.factor).map(ToString::to_string).unwrap_or_default();
                let benchmark = |(name, of_key): (&str, &KeyValues)| {
                    let known = of_key.by_trial().filter_map(|(_, bounds)| bounds.value());
                    let runs: Vec<Vec<f64>> = known.filter(|ns| *ns > 0.0).map(|ns| vec![ns / 1e9]).collect();
                    PyperfBenchmark { name: name.into(), unit: SECOND.into(), runs }
                };
                let workloads = values.of_keys(metric).filter(|(name, _)| Some(*name) != control);
                let (complete, incomplete): (Vec<_>, Vec<_>) = workloads.partition(|(_, of)| is_complete(of));
                let incomplete = incomplete.into_iter().map(|(name, _)| name.to_string()).collect();
                let benchmarks = complete.into_iter().map(benchmark).filter(|of| !of.runs.is_empty()).collect();
                let conditions = of_run.conditions.to_string();
                let name = split_name(&level).0.unwrap_or(&level);
                let name = if conditions.is_empty() { name.to_string() } else { format!("{name} ({conditions})") };
                suites.push(PyperfSuite { name, conditions, incomplete, benchmarks });
            }
        }
        suites
    }

    /// Returns the contents of a file that pyperf reads.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let benchmark = |benchmark: &PyperfBenchmark| {
            let runs: Vec<Value> = benchmark.runs.iter().map(|values| json!({ "values": values })).collect();
            json!({ "metadata": { "name": benchmark.name, "unit": benchmark.unit }, "runs": runs })
        };
        let mut file = Map::new();
        file.insert("version".into(), "1.0".into());
        file.insert("metadata".into(), json!({ "description": format!("{}, written by Ascertain", self.name) }));
        file.insert("benchmarks".into(), self.benchmarks.iter().map(benchmark).collect());
        Value::Object(file)
    }

    fn benchmark(&self, name: &str) -> Option<&PyperfBenchmark> {
        self.benchmarks.iter().find(|benchmark| benchmark.name == name)
    }
}

fn values(name: &str, run: &Value) -> Result<Vec<f64>, String> {
    let Some(values) = run.get("values") else { return Ok(Vec::new()) };
    let values = values.as_array().ok_or_else(|| format!("the `values` of `{name}` are not a list"))?;
    let number = |value: &Value| {
        let number = value.as_f64().ok_or_else(|| format!("`{name}` has the value {value}, which is not a number"))?;
        match number > 0.0 && number.is_finite() {
            true => Ok(number),
            false => Err(format!("`{name}` has the value {number}; values must be above 0")),
        }
    };
    values.iter().map(number).collect()
}

impl PyperfBenchmark {
    /// Returns the number of values of all processes.
    fn count(&self) -> u64 {
        self.runs.iter().map(|values| values.len() as u64).sum()
    }

    /// Returns the mean of the values of each process.
    fn means(&self) -> Vec<f64> {
        self.runs.iter().map(|values| values.iter().sum::<f64>() / values.len() as f64).collect()
    }
}

/// Compares two suites. Benchmarks with the same name are compared by the means of their processes.
#[must_use]
pub fn compare(candidate: &PyperfSuite, baseline: &PyperfSuite) -> PyperfComparison {
    let mut names: Vec<&str> = baseline.benchmarks.iter().map(|benchmark| benchmark.name.as_str()).collect();
    let known = names.clone();
    names.extend(candidate.benchmarks.iter().map(|of| of.name.as_str()).filter(|name| !known.contains(name)));
    let (mut times, mut others, mut left_out, mut counts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for name in names {
        let pair = [candidate, baseline].map(|suite| suite.benchmark(name).filter(|of| !of.runs.is_empty()));
        let names_of_suites = [&candidate.name, &baseline.name];
        match pair {
            [Some(one), Some(other)] if one.unit == other.unit => {
                counts.push(ValueCounts { benchmark: name.into(), values: [one, other].map(PyperfBenchmark::count) });
                let samples = Samples { workload: name.into(), candidate: one.means(), baseline: other.means() };
                match one.unit.as_str() {
                    SECOND => times.push(samples),
                    unit => others.push((unit.to_string(), samples)),
                }
            }
            [Some(_), Some(_)] => left_out.push(LeftOutWorkload {
                workload: name.into(),
                arms: names_of_suites.map(String::clone).into(),
                reason: WorkloadLack::OtherUnit,
            }),
            pair => {
                let lacking = names_of_suites.into_iter().zip(pair).filter(|(_, of)| of.is_none());
                left_out.push(LeftOutWorkload {
                    workload: name.into(),
                    arms: lacking.map(|(name, _)| name.clone()).collect(),
                    reason: WorkloadLack::Failed,
                });
            }
        }
    }
    let mut compared = compare_samples(&candidate.name, &baseline.name, &times);
    compared.left_out.extend(left_out);
    // More memory is not slower, so the ratio is that of the candidate to the baseline.
    let other = |(unit, samples): (String, Samples)| {
        let swapped = Samples { candidate: samples.baseline, baseline: samples.candidate, ..samples };
        let ratio = compare_samples(&candidate.name, &baseline.name, &[swapped]).workloads.into_iter().next()?;
        let ratio = WorkloadRatio { values: [ratio.values[1], ratio.values[0]], ..ratio };
        Some(OtherUnit { benchmark: ratio.workload.clone(), unit, ratio })
    };
    let others: Vec<OtherUnit> = others.into_iter().filter_map(other).collect();
    let all = compared.workloads.iter().chain(others.iter().map(|other| &other.ratio));
    let suspicious = all.filter_map(|of| Some((of.workload.clone(), of.ratio.value()?)));
    let suspicious = suspicious.filter(|(_, ratio)| is_suspicious(*ratio)).collect();
    PyperfComparison { times: compared, others, suspicious, counts }
}

/// Returns whether a ratio equals the ratio of two prefixes of a unit: a power of 1,000 or of 1,024, within 5 %.
fn is_suspicious(ratio: f64) -> bool {
    let ratio = ratio.max(1.0 / ratio);
    let is_near = |step: f64| {
        let power = (ratio.ln() / step.ln()).round();
        power >= 1.0 && (ratio.ln() - power * step.ln()).abs() < 0.05
    };
    is_near(1000.0) || is_near(1024.0)
}

#[cfg(test)]
mod tests;
