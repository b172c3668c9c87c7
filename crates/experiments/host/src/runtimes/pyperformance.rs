//! The workloads of pyperformance, if it is installed for any Python of this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use ascertain_engine::experiment::Arm;
use ascertain_engine::finding::Remark;
use ascertain_sys::interrupt::Stop;

use super::discover::{installed, on_path};
use super::languages::{Language, named};
use super::launch::{self, Program};
use super::levels;
use super::workloads::{Folder, PYPERFORMANCE};
use super::{OWN, PYTHON, WORKLOADS};

/// Prints the folders of the packages pyperformance and pyperf.
const FIND: &str = "import os, pyperf, pyperformance\nprint(os.path.dirname(os.path.abspath(pyperformance.__file__)))\n\
                    print(os.path.dirname(os.path.abspath(pyperf.__file__)))\n";
/// The only dependency of the workloads that are offered.
const ONLY_DEPENDENCY: &str = "dependencies = [\"pyperf\"]";

/// An installation of pyperformance.
#[derive(Debug)]
pub struct Installed {
    /// The folder that contains one folder per workload.
    benchmarks: PathBuf,
    /// The package pyperf, which the workloads import.
    pub pyperf: PathBuf,
}

/// Returns the installation; `None` if there is none. Searches only once per process: in the Python that the command
/// `pyperformance` names, and in every Python of this machine.
pub fn installation() -> Option<&'static Installed> {
    static FOUND: OnceLock<Option<Installed>> = OnceLock::new();
    FOUND.get_or_init(find).as_ref()
}

fn find() -> Option<Installed> {
    let folder = Folder::new().ok()?;
    let file = folder.write("find.py", FIND).ok()?;
    let interpreters = on_path(PYPERFORMANCE).into_iter().filter_map(|script| interpreter(&script));
    let programs = interpreters.chain(installed(named(PYTHON)).into_iter().map(|runtime| runtime.program.path.clone()));
    programs.collect::<Vec<_>>().into_iter().find_map(|path| {
        let program = Program { path, options: Vec::new(), environment: Vec::new() };
        let limits = (folder.path(), Duration::from_secs(20), &Stop::default());
        let ran = launch::run(&program, &[file.clone().into()], &[], limits).ok()?;
        let mut lines = ran.output.lines().map(PathBuf::from);
        let (package, pyperf) = (lines.next()?, lines.next()?);
        let benchmarks = package.join("data-files/benchmarks");
        (benchmarks.is_dir() && pyperf.is_dir()).then_some(Installed { benchmarks, pyperf })
    })
}

/// Returns the interpreter in the first line of a script.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let text = fs::read(script).ok()?;
    let line = text.split(|byte| *byte == b'\n').next()?;
    let path = std::str::from_utf8(line).ok()?.strip_prefix("#!")?.trim();
    Some(PathBuf::from(path)).filter(|path| path.is_file())
}

/// Returns the names and scripts of the workloads that need only pyperf: all such workloads, or only the workload with
/// this name.
///
/// # Errors
/// The reason, for the user, if pyperformance is not installed, or has no such workload.
pub fn scripts(name: Option<&str>) -> Result<Vec<(String, PathBuf)>, String> {
    let installed = installation().ok_or(
        "pyperformance is not installed for any Python of this machine; install it with `pip install pyperformance`",
    )?;
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for entry in fs::read_dir(&installed.benchmarks).into_iter().flatten().flatten() {
        let file_name = entry.file_name().to_string_lossy().into_owned();
        let Some(of_folder) = file_name.strip_prefix("bm_") else { continue };
        let project = fs::read_to_string(entry.path().join("pyproject.toml")).unwrap_or_default();
        let script = entry.path().join("run_benchmark.py");
        let is_asked = name.is_none_or(|name| name == of_folder);
        if is_asked && project.contains(ONLY_DEPENDENCY) && script.is_file() {
            found.push((of_folder.to_string(), script));
        }
    }
    found.sort();
    match (found.is_empty(), name) {
        (false, _) => Ok(found),
        (true, None) => Err(format!("{} has no workloads that need only pyperf", installed.benchmarks.display())),
        (true, Some(name)) => Err(format!(
            "pyperformance has no workload `{name}` that needs only pyperf; `pyperformance list` prints all names"
        )),
    }
}

/// Returns a notice that pyperformance is installed, if the arms do not use it.
pub fn notice(arms: &[Arm]) -> Option<Remark> {
    let is_own = |arm: &Arm| arm.variant == PYTHON && levels::text(arm, WORKLOADS) == OWN;
    let is_python = arms.iter().all(is_own) && !arms.is_empty();
    let count = if is_python && installation().is_some() { scripts(None).ok()?.len() } else { 0 };
    (count > 0).then_some(Remark::MoreWorkloads { count: count as u64 })
}

/// Returns the arguments that run one pass of a script, or two passes of which only the second is timed, and write the
/// time to a file.
pub fn arguments(script: &Path, is_warm: bool, loops: u64, output: &Path) -> Vec<std::ffi::OsString> {
    let warm = if is_warm { "1" } else { "0" };
    let words = ["--worker", "--worker-task", "0", "--warmups", warm, "--values", "1", "--loops"];
    let mut arguments: Vec<std::ffi::OsString> = vec![script.into()];
    arguments.extend(words.map(Into::into));
    arguments.push(loops.to_string().into());
    arguments.extend(["--output".into(), output.into()]);
    arguments
}

/// Makes a folder in which Python finds pyperf, and no other package of its installation.
pub fn library(language: &Language, folder: &Folder) -> Result<PathBuf, String> {
    let installed = installation().ok_or("pyperformance is not installed")?;
    let packages = folder.path().join(language.name).join("packages");
    let failed = |error: std::io::Error| format!("could not link pyperf into {}: {error}", packages.display());
    fs::create_dir_all(&packages).map_err(failed)?;
    let link = packages.join("pyperf");
    if !link.exists() {
        std::os::unix::fs::symlink(&installed.pyperf, link).map_err(failed)?;
    }
    Ok(packages)
}
