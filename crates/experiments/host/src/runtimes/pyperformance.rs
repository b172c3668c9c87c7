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
/// A file in the folder of a workload that names further packages.
const REQUIREMENTS: &str = "requirements.txt";
/// The name of the options that a script needs, in the file that describes a workload.
const OPTIONS: &str = "extra_opts = [";

/// A workload of pyperformance.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Name of the workload.
    pub name: String,
    path: PathBuf,
    /// The options that select the workload, if the script has several.
    options: Vec<String>,
}

impl Script {
    /// Returns the path of the script.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

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
        let program = Program::plain(&path);
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

/// Returns the workloads that need only pyperf: one for each script, or only the workload with this name. A variant of
/// a workload, such as `unpickle`, is found by its name.
///
/// # Errors
/// The reason, for the user, if pyperformance is not installed, or has no such workload.
pub fn scripts(name: Option<&str>) -> Result<Vec<Script>, String> {
    let installed = installation().ok_or(
        "pyperformance is not installed for any Python of this machine; install it with `pip install pyperformance`",
    )?;
    scripts_in(&installed.benchmarks, name)
}

/// Returns the workloads in the folder `benchmarks`.
pub fn scripts_in(benchmarks: &Path, name: Option<&str>) -> Result<Vec<Script>, String> {
    let mut found: Vec<Script> = Vec::new();
    for entry in fs::read_dir(benchmarks).into_iter().flatten().flatten() {
        let file_name = entry.file_name().to_string_lossy().into_owned();
        let Some(of_folder) = file_name.strip_prefix("bm_") else { continue };
        let project = fs::read_to_string(entry.path().join("pyproject.toml")).unwrap_or_default();
        let path = entry.path().join("run_benchmark.py");
        let needs_more = !project.contains(ONLY_DEPENDENCY) || entry.path().join(REQUIREMENTS).exists();
        if needs_more || !path.is_file() {
            continue;
        }
        if name.is_none_or(|name| name == of_folder) {
            found.push(Script { name: of_folder.to_string(), path, options: options(&project) });
        } else if let Some(name) = name.filter(|name| !name.contains('/')) {
            let variant = fs::read_to_string(entry.path().join(format!("bm_{name}.toml")));
            found.extend(variant.ok().map(|text| Script { name: name.into(), path, options: options(&text) }));
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    match (found.is_empty(), name) {
        (false, _) => Ok(found),
        (true, None) => Err(format!("{} has no workloads that need only pyperf", benchmarks.display())),
        (true, Some(name)) => Err(format!(
            "pyperformance has no workload `{name}` that needs only pyperf; `pyperformance list` prints all names"
        )),
    }
}

/// Returns the options in a file that describes a workload.
fn options(text: &str) -> Vec<String> {
    let list = text.lines().find_map(|line| line.trim().strip_prefix(OPTIONS)?.strip_suffix(']'));
    list.unwrap_or_default().split('"').skip(1).step_by(2).map(String::from).collect()
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
pub fn arguments(script: &Script, is_warm: bool, loops: u64, output: &Path) -> Vec<std::ffi::OsString> {
    let warm = if is_warm { "1" } else { "0" };
    let words = ["--worker", "--worker-task", "0", "--warmups", warm, "--values", "1", "--loops"];
    let mut arguments: Vec<std::ffi::OsString> = vec![script.path.clone().into()];
    arguments.extend(words.map(Into::into));
    arguments.push(loops.to_string().into());
    arguments.extend(["--output".into(), output.into()]);
    arguments.extend(script.options.iter().map(Into::into));
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

#[cfg(test)]
mod tests {
    use super::*;

    const PROJECT: &str = "[project]\ndependencies = [\"pyperf\"]\n\n[tool.pyperformance]\n";

    /// Some scripts contain several workloads, of which their options select one. Other scripts need more packages.
    #[test]
    fn scripts_have_their_options_and_need_no_other_package() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (name, more) in [("nbody", ""), ("pickle", "extra_opts = [\"pickle\"]\n"), ("dask", ""), ("docutils", "")] {
            write(&format!("bm_{name}/run_benchmark.py"), "");
            write(&format!("bm_{name}/pyproject.toml"), &format!("{PROJECT}name = \"{name}\"\n{more}"));
        }
        write("bm_dask/requirements.txt", "dask[distributed]==2024.10.0\n");
        write("bm_docutils/pyproject.toml", "[project]\ndependencies = [\"pyperf\", \"docutils\"]\n");
        write("bm_pickle/bm_unpickle_pure_python.toml", "extra_opts = [\"--pure-python\", \"unpickle\"]\n");
        let find = |name: Option<&str>| {
            let found = scripts_in(folder.path(), name);
            found.map(|all| all.into_iter().map(|of| (of.name.clone(), of.options)).collect::<Vec<_>>())
        };
        let script = |name: &str, options: &[&str]| {
            (name.to_string(), options.iter().map(ToString::to_string).collect::<Vec<String>>())
        };
        assert_eq!(find(None).unwrap(), [script("nbody", &[]), script("pickle", &["pickle"])]);
        let unpickle = find(Some("unpickle_pure_python")).unwrap();
        assert_eq!(unpickle, [script("unpickle_pure_python", &["--pure-python", "unpickle"])]);
        for name in ["dask", "docutils", "unpickle", "../pickle"] {
            let error = find(Some(name)).unwrap_err();
            assert!(error.starts_with(&format!("pyperformance has no workload `{name}`")), "{error}");
        }
        let [pickle] = &scripts_in(folder.path(), Some("pickle")).unwrap()[..] else { panic!() };
        let arguments = arguments(pickle, true, 3, Path::new("/tmp/times.json"));
        assert_eq!(arguments.first().unwrap(), folder.path().join("bm_pickle/run_benchmark.py").as_os_str());
        assert_eq!(arguments.last().unwrap(), "pickle");
    }
}
