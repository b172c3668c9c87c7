//! Tests with folders of runs from elsewhere, and tests of the permissions of your own runs' folders.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::common::{ascertain, runs};

/// Creates a state folder with one run. Returns it together with the run's folder.
fn recorded() -> (tempfile::TempDir, PathBuf) {
    let state = tempfile::tempdir().unwrap();
    assert_eq!(ascertain(state.path(), &["compare", "--max-trials", "2", "true", "true"]).code, Some(0));
    let run = runs(state.path()).pop().unwrap();
    (state, run)
}

/// Runs every command that reads a run, and returns its command line, exit code and standard error. None of these
/// commands may hang on a pipe without a writer.
fn readers(state: &Path, run: &Path) -> Vec<(String, Option<i32>, String)> {
    let run = run.to_str().unwrap();
    let commands: [&[&str]; 6] = [
        &["history"],
        &["history", "compare", run, run],
        &["history", "prune", "--keep", "9"],
        &["report", run, "-o", "page.html"],
        &["report", run, "--format", "json"],
        &["continue", run, "--max-trials", "3"],
    ];
    let ran = commands.map(|command| {
        let ran = ascertain(state, command);
        (command.join(" "), ran.code, ran.stderr)
    });
    ran.into()
}

#[test]
fn a_pipe_in_a_run_folder_is_waited_for_by_nobody() {
    for name in ["run.json", "trials.jsonl", "trials.parquet", "begun"] {
        let (state, run) = recorded();
        let _ = fs::remove_file(run.join(name));
        if name == "trials.jsonl" {
            fs::remove_file(run.join("trials.parquet")).unwrap();
        }
        mknodat(CWD, run.join(name), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for (command, code, said) in readers(state.path(), &run) {
            assert!(code.is_some_and(|code| code <= 5), "{name}, {command}: {code:?} {said}");
        }
    }
}

#[test]
fn a_link_in_a_run_folder_leads_nowhere() {
    for name in ["run.json", "trials.jsonl", "trials.parquet", "begun", "report.html"] {
        let (state, run) = recorded();
        let precious = state.path().join("precious");
        let _ = fs::rename(run.join(name), &precious);
        if !precious.exists() {
            fs::write(&precious, "mine").unwrap();
        }
        let before = fs::read(&precious).unwrap();
        symlink(&precious, run.join(name)).unwrap();
        readers(state.path(), &run);
        ascertain(state.path(), &["report", run.to_str().unwrap()]);
        assert!(fs::read(&precious).unwrap() == before, "{name} was written through");
    }
}

#[test]
fn nobody_else_may_look_into_a_run() {
    let (_state, run) = recorded();
    assert_eq!(fs::metadata(run).unwrap().permissions().mode() & 0o777, 0o700);
}
