//! Tests with limits that the shell sets for Ascertain, and with names that are not UTF-8.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use crate::common::{command, ran};

/// Runs the binary in a shell, after `ulimit` with these options.
fn after_ulimit(state: &Path, options: &str, arguments: &[&str]) -> crate::common::Ran {
    let ascertain = command(state, arguments);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {options} && exec \"$0\" \"$@\"")]).arg(ascertain.get_program());
    shell.args(ascertain.get_args()).current_dir(state).env("XDG_STATE_HOME", state).env("NO_COLOR", "1");
    ran(shell.output().unwrap())
}

#[test]
fn a_limit_on_the_size_of_files_is_a_warning_for_evidence_and_an_error_for_a_copy() {
    let state = tempfile::tempdir().unwrap();
    let compared = after_ulimit(state.path(), "-f 1", &["compare", "-r", "2", "true"]);
    assert_eq!(compared.code, Some(0), "{}", compared.stderr);
    assert!(compared.stderr.contains("File too large"), "{}", compared.stderr);
    fs::write(state.path().join("source"), vec![0; 3_000_000]).unwrap();
    let put = after_ulimit(state.path(), "-f 1000", &["put", "-q", "source", "copy"]);
    assert!(put.code == Some(5) && put.stderr.contains("File too large"), "{:?} {}", put.code, put.stderr);
    assert!(!state.path().join("copy").exists());
}

#[test]
fn a_small_stack_is_enough() {
    let state = tempfile::tempdir().unwrap();
    let compared = after_ulimit(state.path(), "-s 64", &["compare", "--no-evidence", "-r", "2", "true"]);
    assert_eq!(compared.code, Some(0), "{}", compared.stderr);
}

/// Commands accept paths that are not UTF-8, even if the working directory and the home directory are not UTF-8 either.
#[test]
fn names_need_not_be_utf_8() {
    let outer = tempfile::tempdir().unwrap();
    let odd = |text: &str| OsString::from(OsStr::from_bytes(&[b"\xff", text.as_bytes()].concat()));
    let folder = outer.path().join(odd("folder"));
    fs::create_dir(&folder).unwrap();
    let claims = "[[claim]]\nid = \"a\"\ncommand = \"true\"\npredicate = \"exit == 0\"\nrate = 0.5\n";
    fs::write(folder.join(odd("claims")), claims).unwrap();
    fs::write(folder.join(odd("numbers")), "1\n2\n3\n").unwrap();
    let run = |arguments: &[&OsStr]| {
        let mut ascertain = command(&folder, &[]);
        ascertain.args(arguments).env("HOME", &folder);
        let ran = ran(ascertain.output().unwrap());
        // Exit code 3 means undecided.
        assert!(matches!(ran.code, Some(0 | 3)), "{arguments:?}: {:?} {}", ran.code, ran.stderr);
    };
    let word = OsStr::new;
    run(&[word("check"), word("-q"), word("--no-evidence"), &odd("claims")]);
    run(&[word("compare"), word("-q"), word("-r"), word("1"), word("--evidence"), &odd("runs"), word("true")]);
    for export in ["--export-json", "--export-csv", "--export-junit", "--export-github"] {
        let compare = ["compare", "-q", "-r", "1", "--no-evidence", export].map(word);
        run(&[&compare[..], &[&odd(export), word("true")]].concat());
        assert!(folder.join(odd(export)).exists(), "{export}");
    }
    let run_of = fs::read_dir(folder.join(odd("runs"))).unwrap().next().unwrap().unwrap().path();
    run(&[word("report"), run_of.as_os_str(), word("-o"), &odd("report.html")]);
    // A sample may also name a run and an arm, which must be UTF-8.
    let permute = command(&folder, &["permute"]).args([odd("numbers"), odd("numbers")]).output().unwrap();
    assert_eq!(permute.status.code(), Some(2));
    let slo = ["slo", "-q", "--no-evidence", "--at-least", "50%", "--recorded"].map(word);
    run(&[&slo[..], &[&odd("numbers"), word("--"), word("true")]].concat());
}
