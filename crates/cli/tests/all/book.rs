//! Runs the commands in README and in the book, in a folder with the files that they name.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{ascertain, ran, write_script};
use crate::typed::{self, Typed};

/// Parts of commands that this test does not run, each with the reason. `each_command_in_the_documents_parses` parses
/// them.
const NOT_RUN: &[(&str, &str)] = &[
    ("s3://", "needs a store; `put_get` and `minio_azurite` run these commands"),
    ("az://", "needs a store; `put_get` and `minio_azurite` run these commands"),
    ("http", "needs a server"),
    ("first-flight", "needs a server or an emulated link"),
    ("cache-race", "needs a server; a trial takes seconds"),
    ("dns-", "needs name servers"),
    ("ascertain listen", "has no end"),
    ("barrierd", "needs root, or a running daemon"),
    ("man -l", "needs `man`"),
    ("python3", "measures a module of the user"),
    ("target/", "measures a program of the user"),
    ("git ", "changes a repository"),
    ("fsmonitor", "changes a repository"),
    ("slo --for", "lasts for minutes; `windows` runs such commands"),
    ("ascertain series", "needs a long run; `series` runs such commands"),
    (".sh", "measures a program of the user"),
    ("cost small large", "needs runs of two machines"),
];

/// Subcommands, each with the text that replaces it in commands. The text adds options, so that the command ends soon.
const SHORT: &[(&str, &str)] = &[
    ("run runtimes", "run runtimes --at runtime=A=python3,B=python3 --at workloads=calls --at phase=first"),
    ("compare ", "compare --max-trials 1 "),
    ("slo ", "slo --max-trials 1 "),
    ("check ", "check --max-trials 1 "),
    ("run ", "run --trials 1 --max-time 10min "),
    ("calibrate-here", "calibrate-here --max-time 1s"),
];

/// Creates the files and the runs that the commands name.
fn folder(state: &Path) {
    let write = |name: &str, text: &str| fs::write(state.join(name), text).unwrap();
    let words: String = (0..2000).map(|word| format!("word{}\n", word * 7919 % 2000)).collect();
    write("words.txt", &words);
    write("Cargo.lock", &words);
    let pyperf =
        r#"{"benchmarks": [{"metadata": {"name": "calls"}, "runs": [{"values": [0.02]}, {"values": [0.03]}]}]}"#;
    write("a.json", pyperf);
    write("b.json", pyperf);
    write("before.csv", "1\n2\n3\n4\n");
    write("after.csv", "2\n3\n4\n5\n");
    write("claims.toml", "[[claim]]\nid = \"sort.true\"\ncommand = \"true\"\npredicate = \"exit == 0\"\nrate = 0.5\n");
    fs::create_dir(state.join(".zfunc")).unwrap();
    fs::create_dir_all(state.join(".config/fish/completions")).unwrap();
    let (from, to) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/instances"), state.join("examples/instances"));
    fs::create_dir_all(&to).unwrap();
    for name in ["c6g-c7g.csv", "prices.csv", "claims.toml"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
    for name in ["old", "new"] {
        write_script(&state.join(name), "#!/bin/sh\n");
    }
    for label in ["v1.1", "v1.2"] {
        let measured = ["compare", "sleep 0.010", "sleep 0.011", "--max-trials", "1", "--label", label];
        assert_eq!(ascertain(state, &measured).code, Some(0));
    }
    let sum = ["run", "sum", "--no-claims", "--variants=kahan", "--at=elements=187500", "--trials=1"];
    assert_eq!(ascertain(state, &sum).code, Some(0));
}

/// No command may end with the exit code for wrong usage or for a failed command. The exit code of a failed gate is
/// allowed, because single trials decide little.
#[test]
fn each_command_in_the_documents_runs() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    folder(state);
    let binary = Path::new(env!("CARGO_BIN_EXE_ascertain")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let is_run = |typed: &Typed| typed.is_block && !NOT_RUN.iter().any(|(part, _)| typed.line.contains(part));
    let all_shipped_claims = |typed: &Typed| typed.line == "ascertain check";
    let mut count = 0;
    let has_python = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has_python {
        ascertain_sys::testing::left_out("Python 3 is not installed");
    }
    // `pyperf latest` exports the run of `runtimes` that the page starts before.
    let needs_python = |typed: &Typed| typed.line.contains("runtimes") || typed.line.contains("pyperf latest");
    for typed in typed::commands(&["docs"]).iter().filter(|typed| is_run(typed) && !all_shipped_claims(typed)) {
        if !has_python && needs_python(typed) {
            continue;
        }
        let is_counted = typed.line.contains("--min-runs") || typed.line.contains("history");
        let line = SHORT.iter().fold(typed.line.clone(), |line, (part, short)| match is_counted {
            true => line,
            false => line.replace(&format!("ascertain {part}"), &format!("ascertain {short}")),
        });
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(state).env("PATH", &path).env("HOME", state).stdin(Stdio::null());
        shell.env("XDG_STATE_HOME", state).env("NO_COLOR", "1");
        let ran = ran(shell.output().unwrap());
        let is_fine = matches!(ran.code, Some(0 | 1 | 3));
        assert!(is_fine, "{}: `{line}`: {:?}\n{}{}", typed.document, ran.code, ran.stdout, ran.stderr);
        count += 1;
    }
    assert!(count > 30, "{count}");
}
