//! The workloads: the ones of this experiment, the ones of pyperformance, and files of the user.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ascertain_engine::experiment::Arm;

use super::languages::{LANGUAGES, Language, RESULTS};
use super::{CONTROL, OWN, WORKLOADS, levels, pyperformance};

/// A workload of an arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pub name: String,
    pub source: Source,
}

/// The origin of a workload, which determines how it is run.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A source with a function `run`, which a small program calls in passes.
    Driven { text: &'static str, result: Option<&'static str> },
    /// A file that is run as a whole.
    File(PathBuf),
    /// A script of pyperformance.
    Pyperformance(pyperformance::Script),
}

/// The word that selects all workloads of pyperformance. It is also the prefix of the name of a single one.
pub const PYPERFORMANCE: &str = "pyperformance";

/// Returns whether a word in the list of workloads is a file of the user.
pub fn is_file(word: &str) -> bool {
    word.contains('/') || word.contains('.')
}

/// Checks a word in the list of workloads. If the word is a path, returns the absolute path.
pub fn settled(word: &str) -> Result<String, String> {
    let word = word.trim();
    if is_file(word) {
        let path = std::path::absolute(word).map_err(|error| format!("`{word}`: {error}"))?;
        return match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => Ok(path.display().to_string()),
            Ok(_) => Err(format!("`{word}` is not a file; name the file of a workload")),
            Err(error) => Err(format!("`{word}`: {error}; name the file of a workload")),
        };
    }
    let is_own = word == OWN || RESULTS.iter().any(|(name, _)| *name == word);
    let is_pyperformance = word == PYPERFORMANCE || word.starts_with(&format!("{PYPERFORMANCE}:"));
    match is_own || is_pyperformance {
        true => Ok(word.into()),
        false => Err(format!(
            "there is no workload `{word}`; give `{OWN}`, `{PYPERFORMANCE}`, a file, or one of {}",
            RESULTS.map(|(name, _)| name).join(", ")
        )),
    }
}

/// Returns the workloads of an arm.
///
/// # Errors
/// The reason, for the user, if a workload does not exist in this language, or if the workloads cannot be combined.
pub fn select(arm: &Arm, language: &Language) -> Result<Vec<Workload>, String> {
    let list = levels::text(arm, WORKLOADS);
    let mut found: Vec<Workload> = Vec::new();
    let words: Vec<&str> = list.split(',').filter(|word| !word.is_empty()).collect();
    for word in &words {
        if is_file(word) {
            found.push(Workload { name: short_name(word, &words), source: Source::File(word.into()) });
        } else if *word == PYPERFORMANCE || word.starts_with(&format!("{PYPERFORMANCE}:")) {
            if language.name != super::PYTHON {
                return Err("pyperformance needs Python; choose other workloads".into());
            }
            let name = word.strip_prefix(PYPERFORMANCE).unwrap_or_default().strip_prefix(':');
            let scripts = pyperformance::scripts(name)?.into_iter();
            found.extend(scripts.map(|script| Workload {
                name: name_beside_own(script.name.clone(), language),
                source: Source::Pyperformance(script),
            }));
        } else {
            let of_word = language.workloads.iter().filter(|(name, _)| *word == OWN || name == word);
            let before = found.len();
            found.extend(of_word.map(|(name, text)| {
                let result = RESULTS.iter().find(|(known, _)| known == name).map(|(_, result)| *result);
                Workload { name: name.to_string(), source: Source::Driven { text, result } }
            }));
            if found.len() == before {
                return Err(format!("the workload `{word}` needs one of the known languages; name your own files"));
            }
        }
    }
    let kinds: BTreeSet<bool> = found.iter().map(|workload| matches!(workload.source, Source::File(_))).collect();
    let mut names = BTreeSet::new();
    if let Some(twice) = found.iter().find(|workload| !names.insert(workload.name.clone())) {
        return Err(format!("the workload `{}` is listed twice; list each workload once", twice.name));
    }
    match () {
        () if found.is_empty() => Err("there are no workloads; name at least one".into()),
        () if kinds.len() > 1 => {
            Err("your own files are timed as whole processes, and other workloads by passes; measure them separately"
                .into())
        }
        () => Ok(found),
    }
}

/// Returns the name of a workload of pyperformance. It has a prefix if a workload of this experiment has the same name.
pub fn name_beside_own(name: String, language: &Language) -> String {
    match language.workloads.iter().any(|(own, _)| *own == name) {
        true => format!("{PYPERFORMANCE}:{name}"),
        false => name,
    }
}

/// Returns the file name of a path without its extension. If two files have the same name, returns the path.
fn short_name(word: &str, words: &[&str]) -> String {
    let stem = |word: &str| Path::new(word).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_shared = words.iter().filter(|other| stem(other) == stem(word)).count() > 1;
    let name = if is_shared { word.to_string() } else { stem(word) };
    // The name of the control is taken.
    if name == CONTROL { format!("./{name}") } else { name }
}

/// A new folder for sources, which is removed when it is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Result<Folder, String> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let parent = std::env::temp_dir();
        for _ in 0..1000 {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("ascertain-runtimes-{}-{number}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Folder(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("could not create a folder in {}: {error}", parent.display())),
            }
        }
        Err(format!("could not create a folder in {}: all names are taken", parent.display()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into the folder, and returns its path.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.0.join(name);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        written.map(|()| path.clone()).map_err(|error| format!("could not write {}: {error}", path.display()))
    }

    /// Writes the programs that drive workloads, and the sources of all workloads of this experiment.
    pub fn write_all(&self) -> Result<(), String> {
        for language in LANGUAGES.iter().filter(|language| !language.drive.is_empty()) {
            let Language { name, extension, .. } = language;
            self.write(&format!("{name}/drive.{extension}"), language.drive)?;
            for (workload, text) in language.workloads {
                self.write(&format!("{name}/{workload}.{extension}"), text)?;
            }
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}
