//! Tests of the session with real repositories, and of its parts.

use std::fs;
use std::path::Path;

use ascertain_engine::experiment::{Arm, Experiment, Sample, Samples, Session, Setup, TargetError, Trial};
use ascertain_sys::testing::left_out;

use super::changes::{Changes, Pattern, content, path};
use super::git::{self, Git};
use super::repository::difference;
use super::session::{is_available, open};
use super::trace::Trace;
use super::*;

fn arm(variant: &str, levels: &[(&str, Level)]) -> Arm {
    let point = GitStatus.spec().default_point().with("files", 300).with("changed", 20);
    let point = levels.iter().fold(point, |point, (factor, level)| point.with(factor, level.clone()));
    GitStatus.trimmed(&Arm { variant: variant.into(), point })
}

fn values(samples: &Samples, metric: usize) -> Vec<&Sample> {
    samples.iter().filter(|sample| sample.metric == metric).collect()
}

fn measure(session: &mut dyn Session, arm: usize, trial: u64) -> Result<Samples, TargetError> {
    let mut samples = Samples::default();
    session.measure(arm, &Trial { number: trial, seed: 100 + trial }, &mut samples)?;
    Ok(samples)
}

/// Measures each variant that this machine has, with each level of `untracked` and `changes`. Each output is compared
/// with plain git's, so this also tests that the monitors are right about changed, removed and new files.
fn every_variant_is_right(git: &str) {
    if let Err(reason) = Git::find(git) {
        return left_out(&reason);
    }
    let arms = || {
        let variants = GitStatus.spec().variants.iter().map(|variant| variant.name.clone());
        variants.flat_map(|variant| {
            [(NORMAL, MIXED), (NO, MIXED), (ALL, MIXED), (NORMAL, EDIT)].map(|(untracked, changes)| {
                let levels = [("untracked", untracked), ("changes", changes), ("git", git)];
                arm(&variant, &levels.map(|(factor, level)| (factor, level.into())))
            })
        })
    };
    let (arms, lacking): (Vec<_>, Vec<_>) = arms().partition(|arm| is_available(arm).is_ok());
    lacking.iter().filter(|arm| text(arm, "changes") == EDIT).for_each(|arm| {
        left_out(format!("{arm}: {}", is_available(arm).unwrap_err()));
    });
    let mut session = open(&arms, &Setup::default()).unwrap();
    for (arm, name) in arms.iter().enumerate() {
        session.verify(arm).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for trial in 0..5 {
        for (index, arm) in arms.iter().enumerate() {
            let samples = measure(&mut *session, index, trial).unwrap_or_else(|error| panic!("{arm}: {error}"));
            for metric in [WALL, SYSTEM, USER] {
                assert_eq!(values(&samples, metric).len(), 1, "{arm}: {}", GitStatus.spec().metrics[metric].name);
            }
            let wall = values(&samples, WALL)[0].value;
            let phases = values(&samples, PHASE);
            let sum: f64 = phases.iter().map(|sample| sample.value).sum();
            assert!(phases.len() > 5 && (sum - wall).abs() < 1e-3 * wall, "{arm}: {sum} of {wall}: {phases:?}");
            assert_eq!(phases.iter().any(|sample| sample.key == "query monitor"), has_monitor(&arm.variant), "{arm}");
        }
    }
}

#[test]
fn with_the_installed_git_every_variant_is_right() {
    every_variant_is_right(INSTALLED);
}

#[test]
fn with_git_2_30_every_variant_is_right() {
    every_variant_is_right("2.30");
}

#[test]
fn with_git_2_55_every_variant_is_right() {
    every_variant_is_right("2.55");
}

#[test]
fn the_first_difference_between_two_outputs_is_named() {
    assert_eq!(difference(b" M a\0?? b\0", b" M a\0?? b\0"), None);
    let says = |ours: &[u8], theirs: &[u8]| difference(ours, theirs).unwrap();
    assert_eq!(says(b"?? b\0", b" M a\0?? b\0"), "`git status` does not report ` M a`, which plain git reports");
    assert_eq!(says(b" M a\0?? b\0", b" M a\0"), "`git status` reports `?? b`, which plain git does not report");
    assert!(says(b" M a\0 M b\0", b" M b\0 M a\0").ends_with("in another order"));
}

#[test]
fn changes_are_undone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for file in 0..50 {
        let path = root.join(path(file));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content(file)).unwrap();
    }
    let before = contents(root);
    let mut changes = Changes::default();
    let mut renewed = |changed, pattern, seed| {
        changes.renew(root, (50, changed), pattern, seed).unwrap();
        contents(root)
    };
    let different = |one: &[(String, String)], other: &[(String, String)]| {
        one.iter().zip(other).filter(|(one, other)| one != other).count()
    };
    let [first, second] = [(20, 1), (1_000, 2)].map(|(changed, seed)| renewed(changed, Pattern::Mixed, seed));
    assert!(before != first && first != second && before != second);
    // The same files are edited again.
    let [first, second] = [3, 4].map(|seed| renewed(20, Pattern::Edit, seed));
    let counts = [different(&before, &first), different(&before, &second), different(&first, &second)];
    assert_eq!(counts, [20; 3]);
    assert_eq!(renewed(0, Pattern::Mixed, 5), before);
}

/// Returns every file below a folder with its content, sorted.
fn contents(root: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => files.extend(contents(&entry)),
            false => files.push((entry.to_string_lossy().into_owned(), fs::read_to_string(&entry).unwrap())),
        }
    }
    files.sort();
    files
}

#[test]
fn an_unknown_git_is_refused_with_the_reason() {
    let reason = |level: &str| Git::find(level).unwrap_err();
    assert!(reason("/nowhere/git").starts_with("/nowhere/git: "), "{}", reason("/nowhere/git"));
    assert!(reason("1.2").contains("neither installed nor fetched"), "{}", reason("1.2"));
    assert!(reason("no-such-git").contains("not installed"), "{}", reason("no-such-git"));
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("git");
    std::os::unix::fs::symlink("/bin/true", &other).unwrap();
    assert!(reason(&other.to_string_lossy()).contains("this is not git"));
}

/// The user's configuration and variables have no effect on a command.
#[test]
fn a_command_ignores_the_user() {
    let Ok(git) = Git::find(INSTALLED) else { return left_out("git is not installed") };
    let folder = tempfile::tempdir().unwrap();
    // The home of a user with a configuration:
    fs::write(folder.path().join(".gitconfig"), "[user]\n\tname = theirs\n").unwrap();
    let arguments = ["-C", &folder.path().to_string_lossy(), "config", "--list"];
    let command = git.command(folder.path(), &["user.name=ours".into()], &arguments);
    assert_eq!(git::run(command, &Default::default()), Ok("user.name=ours".into()));
}

#[test]
fn a_trace_is_split_into_phases() {
    let event = |event: &str, rest: &str| format!(r#"{{"event":"{event}","thread":"main",{rest}}}"#);
    let enter =
        |category: &str, label: &str| event("region_enter", &format!(r#""category":"{category}","label":"{label}""#));
    let leave = |category: &str, label: &str, s: f64| {
        event("region_leave", &format!(r#""t_rel":{s},"category":"{category}","label":"{label}""#))
    };
    let data = |category: &str, key: &str, value: &str| {
        event("data", &format!(r#""category":"{category}","key":"{key}","value":"{value}""#))
    };
    let query = |data: &[String]| {
        let lines = [
            enter("index", "preload"),
            enter("other", "region"),
            enter("fsm_hook", "query"),
            event("child_exit", r#""t_rel":0.2"#),
            leave("fsm_hook", "query", 0.25),
            leave("other", "region", 0.5),
            leave("index", "preload", 1.0),
        ];
        let more = [enter("index", "refresh"), leave("index", "refresh", 2.0)];
        Trace::read(&[&lines[..], data, &more].concat().join("\n"), 5e9)
    };
    let trace = query(&[data("index", "preload/sum_lstat", "7"), data("index", "refresh/sum_lstat", "5")]);
    let phases = vec![("look up files", 2.75e9), ("query monitor", 0.25e9), ("start and rest", 2e9)];
    assert_eq!(trace, Trace { phases, looked_up: Some(12), is_short: Some(true) });
    assert_eq!(query(&[data("fsm_hook", "query/trivial-response", "1")]).is_short, Some(false));
    assert_eq!(query(&[data("fsm_hook", "query/failed", "-1")]).is_short, Some(false));

    // Git 2.30 has no region for the query.
    let old = [event("child_exit", r#""t_rel":0.25"#), enter("status", "index"), leave("status", "index", 0.5)];
    let phases = vec![("query monitor", 0.25e9), ("compare index", 0.5e9), ("start and rest", 0.25e9)];
    assert_eq!(Trace::read(&old.join("\n"), 1e9), Trace { phases, looked_up: None, is_short: None });
    assert_eq!(Trace::read("not JSON", 1.0).phases, [("start and rest", 1.0)]);
}
