//! Finds recorded runs, and reads their summaries.

use std::fs;
use std::path::{Path, PathBuf};

use ascertain_engine::evidence::{self, Header, Revision};
use ascertain_engine::names::suggestion;
use ascertain_engine::outcome::{Decision, Outcome, Verdict};
use ascertain_engine::recorded::{self, State};
use ascertain_sys::files;
use serde::Deserialize;

use crate::error::{Error, refused};

/// Returns the folder of a run. `run` is a folder, a file in it, the run's name, a unique beginning or end of its name,
/// or a unique label. If `run` is `None` or `latest`, returns the latest run. `runs` is the folder that contains all
/// runs.
///
/// # Errors
/// If there is no such run, or if the name or label matches several runs.
pub fn find(run: Option<&Path>, runs: &Path) -> Result<PathBuf, Error> {
    let all = all(runs);
    let Some(run) = run.filter(|run| *run != Path::new("latest")) else {
        return all.last().cloned().ok_or_else(|| Error::NoRun { folder: runs.into() });
    };
    if run.is_dir() {
        return Ok(run.to_path_buf());
    }
    let is_of_run = |folder: &&Path| run.is_file() && folder.join("run.json").is_file();
    if let Some(folder) = run.parent().filter(is_of_run) {
        return Ok(if folder == Path::new("") { ".".into() } else { folder.to_path_buf() });
    }
    let asked = run.to_string_lossy();
    if let Some(exactly) = all.iter().find(|folder| name(folder) == asked) {
        return Ok(exactly.clone());
    }
    let fits = |folder: &&PathBuf| name(folder).starts_with(&*asked) || name(folder).ends_with(&*asked);
    let fitting: Vec<&PathBuf> = all.iter().filter(fits).collect();
    if let [one] = fitting.as_slice() {
        return Ok((*one).clone());
    }
    // Try labels last, because this reads the `run.json` of every run.
    let labelled: Vec<&PathBuf> = all.iter().filter(|folder| label(folder).as_deref() == Some(&*asked)).collect();
    let newest_of = |several: &[&PathBuf]| {
        let names: Vec<String> = several.iter().rev().take(5).map(|folder| name(folder)).collect();
        names.join(", ")
    };
    match (labelled.as_slice(), fitting.as_slice()) {
        ([one], _) => Ok((*one).clone()),
        ([_, ..], _) => {
            let (count, names) = (labelled.len(), newest_of(&labelled));
            refused(format!("`{asked}` is the label of {count} runs: {names}; give one of these names"))
        }
        ([], []) => {
            let names: Vec<String> = all.iter().map(|folder| name(folder)).collect();
            let latest = || names.last().map(|latest| format!("; the latest is `{latest}`"));
            let hint = suggestion(&asked, names.iter().map(String::as_str)).or_else(latest).unwrap_or_default();
            refused(format!("there is no run `{asked}` in {}{hint}", runs.display()))
        }
        ([], several) => {
            let (count, names) = (several.len(), newest_of(several));
            refused(format!("`{asked}` matches {count} runs: {names}; give a longer part of the name"))
        }
    }
}

/// Returns the label of a run; `None` if it has none or can't be read.
fn label(folder: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Labelled {
        label: Option<String>,
    }
    let text = files::read_regular(&folder.join("run.json"), u64::MAX).ok()?;
    serde_json::from_slice::<Labelled>(&text).ok()?.label
}

/// Returns the folders of all runs. Folders that were renamed come first, then the other runs from the oldest to the
/// latest.
#[must_use]
pub fn all(runs: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.join("run.json").is_file()).collect();
    // The names of runs begin with the time; names of renamed folders do not.
    all.sort_by_cached_key(|folder| (evidence::is_run_id(&name(folder)), folder.clone()));
    all
}

/// Returns the name of a run, which is the name of its folder.
#[must_use]
pub fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The keys of `run.json` that are needed for lists of runs. Reading only these is fast, even for thousands of runs.
#[derive(Deserialize)]
pub(crate) struct Brief {
    schema: String,
    pub(crate) started: String,
    pub(crate) command_line: Vec<String>,
    pub(crate) label: Option<String>,
    pub(crate) revision: Option<Revision>,
    #[cfg(feature = "plot")]
    pub(crate) experiments: Vec<ExperimentBrief>,
    pub(crate) outcome: Option<OutcomeBrief>,
    lines_bytes: Option<u64>,
    lines_checksum: Option<String>,
}

#[cfg(feature = "plot")]
#[derive(Deserialize)]
pub(crate) struct ExperimentBrief {
    pub(crate) id: String,
}

#[derive(Deserialize)]
pub(crate) struct OutcomeBrief {
    interrupted: bool,
    pub(crate) claims: Vec<ClaimBrief>,
}

#[derive(Deserialize)]
pub(crate) struct ClaimBrief {
    pub(crate) verdict: Verdict,
    pub(crate) decision: Option<Decision>,
}

impl Brief {
    /// Reads the keys that lists need from a run's `run.json`, and determines the run's state. On failure, returns the
    /// reason.
    pub(crate) fn read(folder: &Path) -> Result<(Brief, State), String> {
        let is_going_on = evidence::is_going_on(folder);
        let text = files::read_regular(&folder.join("run.json"), u64::MAX).unwrap_or_default();
        match serde_json::from_slice::<Brief>(&text) {
            Ok(brief) if brief.schema == evidence::SCHEMA => {
                let interrupted = brief.outcome.as_ref().map(|outcome| outcome.interrupted);
                let checksum = brief.lines_checksum.as_deref();
                let state = State::new(folder, is_going_on, interrupted, brief.lines_bytes, checksum);
                Ok((brief, state))
            }
            // Reading the whole header gives a better error message.
            other => Err(match (evidence::read_header(folder), other) {
                (Err(error), _) => error.to_string(),
                (Ok(_), Err(error)) => error.to_string(),
                (Ok(_), Ok(_)) => "run.json changed while it was read; try again".into(),
            }),
        }
    }
}

/// Returns the folders of all runs, from the oldest to the latest.
///
/// # Errors
/// If there are no runs, or the folder can't be read.
pub(crate) fn listed(below: &Path) -> Result<Vec<PathBuf>, Error> {
    if let Err(source) = fs::read_dir(below)
        && source.kind() != std::io::ErrorKind::NotFound
    {
        return Err(Error::Read { path: below.into(), source });
    }
    let all = all(below);
    if all.is_empty() { Err(Error::NoRun { folder: below.into() }) } else { Ok(all) }
}

/// Returns the total size of all runs in a folder of runs, in bytes.
#[must_use]
pub fn total_bytes(runs: &Path) -> u64 {
    all(runs).iter().map(|folder| size_bytes(folder)).sum()
}

/// Returns the total size of the files in a run's folder, in bytes. Skips files that another process deletes at the
/// same time.
pub(crate) fn size_bytes(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).filter(|metadata| metadata.is_file()).map(|file| file.len()).sum()
}

/// A recorded run with its outcome: the recorded outcome, or one that is computed from the recorded rows.
pub(crate) struct Loaded {
    pub(crate) id: String,
    pub(crate) header: Header,
    pub(crate) outcome: Outcome,
    pub(crate) state: State,
}

impl Loaded {
    /// Reads a run's folder. Reads the rows only if there is no final outcome.
    pub(crate) fn read(folder: &Path) -> Result<Loaded, Error> {
        let id = name(folder);
        // Checked before the files are read. A run that is not in progress now has already written all of its files.
        let is_going_on = evidence::is_going_on(folder);
        let mut header = evidence::read_header(folder)?;
        let interrupted = header.outcome.as_ref().map(|outcome| outcome.interrupted);
        let checksum = header.lines_checksum.as_deref();
        let state = State::new(folder, is_going_on, interrupted, header.lines_bytes, checksum);
        match header.outcome.take().filter(|_| matches!(state, State::Finished | State::Interrupted)) {
            Some(outcome) => Ok(Loaded { id, header, outcome, state }),
            None => {
                let run = recorded::read(folder)?;
                Ok(Loaded { id, header: run.header, outcome: run.outcome, state: run.state })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_by_what_only_it_has() {
        let runs = tempfile::tempdir().unwrap();
        for id in ["20261121T093000000Z-aaaa", "20261121T093000000Z-bbbb", "20261122T093000000Z-cccc"] {
            std::fs::create_dir(runs.path().join(id)).unwrap();
            std::fs::write(runs.path().join(id).join("run.json"), "{}").unwrap();
        }
        std::fs::create_dir(runs.path().join("30000101T000000000Z-none")).unwrap();
        let find = |run: Option<&str>| super::find(run.map(Path::new), runs.path());
        for (asked, found) in [
            (None, "cccc"),
            (Some("latest"), "cccc"),
            (Some("bbbb"), "bbbb"),
            (Some("20261122"), "cccc"),
            (Some("20261121T093000000Z-aaaa"), "aaaa"),
        ] {
            assert!(name(&find(asked).unwrap()).ends_with(found), "{asked:?}");
        }
        std::fs::create_dir(runs.path().join("named")).unwrap();
        std::fs::write(runs.path().join("named/run.json"), "{}").unwrap();
        assert_eq!(name(&find(None).unwrap()), "20261122T093000000Z-cccc", "a name of somebody's says no time");
        assert_eq!(name(&find(Some("named")).unwrap()), "named");
        let message = |asked| find(Some(asked)).unwrap_err().to_string();
        assert!(message("20261121").contains("matches 2 runs"), "{}", message("20261121"));
        assert!(message("20261121T093000000Z-aaab").contains("did you mean `20261121T093000000Z-aaaa`?"));
        assert!(message("zebra").contains("the latest is `20261122T093000000Z-cccc`"), "{}", message("zebra"));
        let folder = runs.path().join("30000101T000000000Z-none");
        assert_eq!(
            find(folder.to_str()).unwrap(),
            folder,
            "a folder is taken as it is; an error when reading it names the problem"
        );
        let named = runs.path().join("named");
        assert_eq!(find(named.join("run.json").to_str()).unwrap(), named, "a file of a run is as good");
        for (id, label) in [("aaaa", "v1.2"), ("cccc", "2026")] {
            let text = format!("{{\"label\": \"{label}\"}}");
            let run = super::find(Some(Path::new(id)), runs.path()).unwrap();
            std::fs::write(run.join("run.json"), text).unwrap();
        }
        assert!(name(&find(Some("v1.2")).unwrap()).ends_with("aaaa"));
        assert!(name(&find(Some("2026")).unwrap()).ends_with("cccc"), "the names of three runs begin so");
        std::fs::copy(find(Some("aaaa")).unwrap().join("run.json"), named.join("run.json")).unwrap();
        assert!(
            message("v1.2").contains("is the label of 2 runs: 20261121T093000000Z-aaaa, named; give"),
            "{}",
            message("v1.2")
        );
        assert!(super::find(None, &folder).unwrap_err().to_string().contains("there is no run in"));
    }
}
