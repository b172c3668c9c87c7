//! Which run is meant.

use std::path::{Path, PathBuf};

use anyhow::bail;
use ascertain_engine::names::suggestion;

/// The folder of a run: of the one that is named by its folder, a file of it, its name, or a beginning or end that
/// only its name has; without a name, or as `latest`, of the latest. `runs` is the folder of runs.
pub fn find(run: Option<&Path>, runs: &Path) -> anyhow::Result<PathBuf> {
    let all = all(runs);
    let Some(run) = run.filter(|run| *run != Path::new("latest")) else {
        return match all.last() {
            Some(latest) => Ok(latest.clone()),
            None => bail!("there is no run in {}; name the folder of one", runs.display()),
        };
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
    match fitting.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let names: Vec<String> = all.iter().map(|folder| name(folder)).collect();
            let latest = || names.last().map(|latest| format!("; the latest is `{latest}`"));
            let hint = suggestion(&asked, names.iter().map(String::as_str)).or_else(latest).unwrap_or_default();
            bail!("there is no run `{asked}` in {}{hint}", runs.display())
        }
        several => {
            let names: Vec<String> = several.iter().rev().take(5).map(|folder| name(folder)).collect();
            bail!("`{asked}` fits {} runs: {}; give more of the name", several.len(), names.join(", "))
        }
    }
}

/// The folders of all runs, the oldest first, and before them those that have been given names of their own.
pub fn all(runs: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.join("run.json").is_file()).collect();
    // Names begin with the time.
    all.sort_by_cached_key(|folder| (is_id(&name(folder)), folder.clone()));
    all
}

/// Whether a folder's name is one that runs are given: `20261121T093012000Z-0000`.
pub fn is_id(name: &str) -> bool {
    let Some((time, drawn)) = name.split_once("Z-") else { return false };
    let Some((date, time)) = time.split_once('T') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    date.len() == 8 && is_number(date) && time.len() >= 6 && is_number(time) && drawn.len() == 4
}

/// The name of a run's folder.
pub fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_runs_are_given() {
        for id in ["20261121T093012000Z-0a0z", "20261121T093012Z-0000"] {
            assert!(is_id(id), "{id}");
        }
        for name in ["", "baseline", "20261121T093012000Z", "20261121T0930Z-0000", "20261121T093012000Z-0000.old"] {
            assert!(!is_id(name), "{name}");
        }
    }

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
        assert!(message("20261121").contains("fits 2 runs"), "{}", message("20261121"));
        assert!(message("20261121T093000000Z-aaab").contains("did you mean `20261121T093000000Z-aaaa`?"));
        assert!(message("zebra").contains("the latest is `20261122T093000000Z-cccc`"), "{}", message("zebra"));
        let folder = runs.path().join("30000101T000000000Z-none");
        assert_eq!(find(folder.to_str()).unwrap(), folder, "a folder is taken as it is; reading it says what is wrong");
        let named = runs.path().join("named");
        assert_eq!(find(named.join("run.json").to_str()).unwrap(), named, "a file of a run is as good");
        assert!(super::find(None, &folder).unwrap_err().to_string().contains("there is no run in"));
    }
}
