//! Tests of `run git-status` with small repositories.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use ascertain_sys::testing::{left_out, wait_until};

use crate::common::{Ran, command, kill, ran, write_script};

/// Returns a command that makes its repositories below `folder`.
fn git_status(folder: &Path, arguments: &[&str]) -> Command {
    let temporary = folder.join("temporary");
    fs::create_dir_all(&temporary).unwrap();
    let mut command = command(folder, &[&["run", "git-status", "--no-claims"], arguments].concat());
    command.env("TMPDIR", temporary);
    command
}

fn has_git() -> bool {
    let has = Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has {
        left_out("git is not installed");
    }
    has
}

/// Returns the repositories that are left below `folder`.
fn left(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("temporary")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// Returns the command lines of running processes that name a path below `folder`.
fn running(folder: &Path) -> Vec<String> {
    let temporary = folder.join("temporary").to_string_lossy().into_owned();
    let lines = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains(&temporary)).collect()
}

fn variants(ran: &Ran) -> Vec<String> {
    let json = ran.json();
    let points = json["points"].as_array().unwrap().iter();
    let mut variants: Vec<String> = points.map(|point| point["variant"].as_str().unwrap().into()).collect();
    variants.dedup();
    variants
}

/// The user's own settings and variables would change the figures, or prevent the run.
#[test]
fn neither_the_settings_nor_the_variables_of_the_user_matter() {
    if !has_git() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    fs::create_dir_all(&home).unwrap();
    let settings = "[core]\n\tfsmonitor = /bin/false\n\tworktree = /nowhere\n[init]\n\ttemplateDir = /nowhere\n\
                    \tdefaultBranch = theirs\n[status]\n\tshowUntrackedFiles = no\n[commit]\n\tgpgSign = true\n";
    fs::write(home.join(".gitconfig"), settings).unwrap();
    let arguments = ["--trials", "3", "--variants", "plain,untracked-cache", "--at", "files=200", "--format", "json"];
    let mut command = git_status(folder.path(), &arguments);
    command.env("HOME", &home).env("GIT_DIR", "/nowhere").env("GIT_INDEX_FILE", "/nowhere/index");
    command.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "core.bare").env("GIT_CONFIG_VALUE_0", "true");
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(variants(&ran), ["plain", "untracked-cache"], "{}", ran.stdout);
    assert_eq!(left(folder.path()), [""; 0]);
}

#[test]
fn a_git_that_is_not_there_is_unavailable_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let ran = ran(git_status(folder.path(), &["--at", "git=/nowhere/git"]).output().unwrap());
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert!((ran.stdout + &ran.stderr).contains("/nowhere/git: No such file"), "{}", ran.stderr);
}

/// This git reports no change at all when it has an untracked cache.
#[test]
fn an_output_unlike_plain_gits_fails_its_variant() {
    if !has_git() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let git = folder.path().join("git");
    let script = "#!/bin/sh\ncase \"$*\" in *core.untrackedCache=true*) exit 0 ;; esac\nexec git \"$@\"\n";
    write_script(&git, script);
    let git = format!("git={}", git.display());
    let arguments = ["--trials", "2", "--variants", "plain,untracked-cache", "--at", "files=100", "--at", &git];
    let ran = ran(git_status(folder.path(), &arguments).output().unwrap());
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    let output = ran.stdout + &ran.stderr;
    assert!(output.contains("`git status` does not report `"), "{output}");
    assert!(output.contains("untracked-cache"), "{output}");
}

/// Neither a daemon nor a folder outlives a run for long, even if the run is killed. Without our hook and without a git
/// that has its own monitor, this tests the folder alone.
#[test]
fn after_a_kill_the_daemons_end_and_the_next_run_cleans_up() {
    if !has_git() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--at", "files=100", "--at", "git=2.55,git", "--max-time", "100s", "--trials", "100000"];
    let mut command = git_status(folder.path(), &arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("an arm has its index", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        let folders = left(folder.path()).into_iter().map(|name| folder.path().join("temporary").join(name));
        folders.into_iter().any(|folder| folder.join("1.index").exists())
    });
    kill(child);
    wait_until("the daemons have ended", || running(folder.path()).is_empty());
    assert_eq!(left(folder.path()).len(), 1);
    let next = ["--trials", "1", "--variants", "plain", "--at", "files=10", "-q"];
    let ran = ran(git_status(folder.path(), &next).output().unwrap());
    assert_eq!((ran.code, left(folder.path())), (Some(0), Vec::new()), "{}", ran.stderr);
}
