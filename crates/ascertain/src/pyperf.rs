//! Files of pyperf: comparing them, and writing them from recorded runs.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ascertain_engine::pyperf::{PyperfComparison, PyperfSuite, compare};
use ascertain_engine::recorded;
use ascertain_report::pyperf::PyperfReport;

use crate::error::{Error, refused};
use crate::runs;

/// A request to compare suites of pyperf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pyperf {
    /// Files of pyperf, and recorded runs. A run has a suite for each of its runtimes. The first suite is the baseline.
    pub inputs: Vec<PathBuf>,
    /// Folder in which to write a file for each suite; `None` to write none.
    pub export: Option<PathBuf>,
    /// The folder of all runs, in which names of runs are looked up.
    pub runs: PathBuf,
}

/// Compares each suite with the first suite under the same conditions, and writes the requested files.
///
/// # Errors
/// If an input is neither a file of pyperf nor a run with workloads, if there is nothing to compare, or if a file
/// cannot be written.
pub fn pyperf(request: &Pyperf) -> Result<PyperfReport, Error> {
    let mut suites: Vec<PyperfSuite> = Vec::new();
    for input in &request.inputs {
        suites.extend(read(input, &request.runs)?);
    }
    told_apart(&mut suites, &request.inputs);
    let written = match &request.export {
        Some(folder) => write(&suites, folder)?,
        None => Vec::new(),
    };
    let Some(first) = suites.first() else { return refused("there is nothing to compare".into()) };
    let comparison = |(index, suite): (usize, &PyperfSuite)| {
        let baseline = suites[..index].iter().find(|other| other.conditions == suite.conditions)?;
        Some(compare(suite, baseline))
    };
    let comparisons: Vec<PyperfComparison> = suites.iter().enumerate().filter_map(comparison).collect();
    if comparisons.is_empty() && written.is_empty() {
        return refused(format!("{} has one runtime; a comparison needs another file", first.name));
    }
    let incomplete = suites.into_iter().filter(|suite| !suite.incomplete.is_empty());
    let incomplete = incomplete.map(|suite| (suite.name, suite.incomplete)).collect();
    Ok(PyperfReport::new(comparisons, written, incomplete))
}

fn read(input: &Path, all: &Path) -> Result<Vec<PyperfSuite>, Error> {
    let is_run_file = input.parent().is_some_and(|folder| folder.join("run.json").is_file());
    if input.is_file() && !is_run_file {
        return PyperfSuite::read(input).map(|suite| vec![suite]).or_else(|error| refused(error.to_string()));
    }
    if !input.exists() && input.extension().is_some_and(|extension| extension == "json") {
        return refused(format!("there is no file {}", input.display()));
    }
    let folder = runs::find(Some(input), all)?;
    let suites = PyperfSuite::of_run(&recorded::read(&folder)?);
    match suites.is_empty() {
        true => refused(format!("the run {} has no workloads whose times pyperf could store", folder.display())),
        false => Ok(suites),
    }
}

/// Makes the names of suites unique. Two files with the same name get their paths.
fn told_apart(suites: &mut [PyperfSuite], inputs: &[PathBuf]) {
    let names: Vec<String> = suites.iter().map(|suite| suite.name.clone()).collect();
    let is_per_input = suites.len() == inputs.len();
    for (index, suite) in suites.iter_mut().enumerate() {
        if names.iter().filter(|name| **name == suite.name).count() > 1 {
            suite.name = match is_per_input {
                true => inputs[index].display().to_string(),
                false => format!("{} ({})", suite.name, index + 1),
            };
        }
    }
    let names: Vec<String> = suites.iter().map(|suite| suite.name.clone()).collect();
    for (index, suite) in suites.iter_mut().enumerate() {
        let earlier = names[..index].iter().filter(|name| **name == suite.name).count();
        if earlier > 0 {
            suite.name = format!("{} (again)", suite.name);
        }
    }
}

/// Writes a file for each suite, and returns the paths.
fn write(suites: &[PyperfSuite], folder: &Path) -> Result<Vec<PathBuf>, Error> {
    fn failed<T>(path: &Path, error: &io::Error) -> Result<T, Error> {
        let way_out = if error.kind() == io::ErrorKind::AlreadyExists { "; choose another folder" } else { "" };
        refused(format!("could not write {}: {error}{way_out}", path.display()))
    }
    fs::create_dir_all(folder).or_else(|error| failed(folder, &error))?;
    let mut written: Vec<PathBuf> = Vec::new();
    for suite in suites {
        let is_plain = |c: char| c.is_alphanumeric() || "-._+".contains(c);
        let stem: String =
            suite.name.trim_end_matches(".json").chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
        let stem = stem.trim_matches(['-', '.']);
        let name = |number: usize| match number {
            0 => format!("{stem}.json"),
            number => format!("{stem}-{number}.json"),
        };
        let path = (0..)
            .map(|number| folder.join(name(number)))
            .find(|path| !written.contains(path))
            .expect("there are more numbers than suites");
        let text = serde_json::to_string(&suite.to_json()).expect("plain data is always JSON") + "\n";
        let file = File::create_new(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).or_else(|error| failed(&path, &error))?;
        written.push(path);
    }
    Ok(written)
}
