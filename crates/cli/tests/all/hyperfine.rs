//! Tests that command lines for hyperfine also work with Ascertain.

use std::path::Path;

use serde_json::Value;

use crate::common::{Ran, ascertain};

/// Runs `compare` without evidence.
fn compare(state: &Path, arguments: &[&str]) -> Ran {
    ascertain(state, &[&["compare", "--no-evidence"], arguments].concat())
}

/// Runs `compare` without evidence, and checks that it succeeds.
#[track_caller]
fn compared(state: &Path, arguments: &[&str]) -> Ran {
    let ran = compare(state, arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
    ran
}

/// Returns the lines that commands wrote to `log`.
fn log(state: &Path) -> String {
    std::fs::read_to_string(state.join("log")).unwrap().replace('\n', "")
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Creates two versions of a program: `v/fast` has fewer page faults than `v/slow`.
fn versions(state: &Path) {
    std::fs::create_dir(state.join("v")).unwrap();
    for (name, text) in [("fast", "true\n"), ("slow", "env; env; env; env\n")] {
        std::fs::write(state.join("v").join(name), text).unwrap();
    }
}

/// All set-ups run before the first trial. If several set-ups write the same program, all commands would use the
/// program of the last set-up.
#[test]
fn set_ups_that_overwrite_each_other_are_refused() {
    let state = tempfile::tempdir().unwrap();
    versions(state.path());
    let list = ["-r", "3", "-L", "ver", "fast,slow", "--setup", "cp v/{ver} prog"];
    let refused = compare(state.path(), &[&list[..], &["sh prog"]].concat());
    assert_eq!(refused.code, Some(2), "{}{}", refused.stdout, refused.stderr);
    assert!(refused.stderr.contains("`cp v/slow prog`") && refused.stderr.contains("--prepare"), "{}", refused.stderr);
    let twice = ["-r", "3", "--setup", "cp v/fast prog", "--setup", "cp v/slow prog", "sh prog", "sh prog"];
    assert_eq!(compare(state.path(), &twice).code, Some(2));
    // The command lines differ, but both use the same file.
    for line in ["sh prog {ver}", "sh -c './prog; : {ver}'"] {
        let refused = compare(state.path(), &[&list[..], &[line]].concat());
        assert_eq!(refused.code, Some(5), "{}{}", refused.stdout, refused.stderr);
        let words = refused.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("set-up `cp v/slow prog` changed the file `") && words.contains("prepare each observation"),
            "{words}"
        );
    }
    // The remedies: prepare before each observation, or use a separate file for each command.
    let prepared = ["-r", "3", "-L", "ver", "slow,fast", "--prepare", "cp v/{ver} prog", "--format", "json"];
    let prepared = [&prepared[..], &["--metric", "page_faults", "sh prog"]].concat();
    assert_eq!(compared(state.path(), &prepared).json()["claims"][0]["successes"], 3);
    let apart = ["-r", "3", "-L", "ver", "slow,fast", "--setup", "cp v/{ver} prog-{ver}", "sh prog-{ver}"];
    compared(state.path(), &apart);
    let shared = ["-r", "3", "-L", "ver", "slow,fast", "--setup", "cp v/fast prog", "sh prog {ver}"];
    compared(state.path(), &shared);
}

/// After `-S`, hyperfine 1 expects the shell, but hyperfine 2 the first command.
#[test]
fn what_may_be_a_shell_or_a_command_is_refused() {
    let state = tempfile::tempdir().unwrap();
    let names = |arguments: &[&str]| {
        let json = compared(state.path(), &[&["-r", "1", "--format", "json"], arguments].concat()).json();
        let walls = json["points"].as_array().unwrap().iter().filter(|point| point["metric"] == "wall");
        walls.map(|point| point["variant"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["-S", "sleep 0.001 | true", "true | true"]), ["sleep 0.001 | true", "true | true"]);
    assert_eq!(names(&["-S", "sleep 0.001", "true"]), ["sleep 0.001", "true"]);
    for shell in [&["-S", "sh"][..], &["--shell", "sh"], &["--shell=sh"], &["-S"], &["-S", "default"]] {
        assert_eq!(names(&[shell, &["true | true"]].concat()), ["true | true"], "{shell:?}");
    }
    assert_eq!(names(&["--shell", "none", "true"]), ["true"]);
    for option in ["-S", "--shell"] {
        for either in ["sh -e", "sh run.sh", "env -i sh"] {
            let refused = compare(state.path(), &["-r", "1", option, either, "true"]);
            assert_eq!(refused.code, Some(2), "{either}");
            assert!(refused.stderr.contains(&format!("'--shell={either}'")), "{}", refused.stderr);
            assert!(refused.stderr.contains("--shell=sh to run it"), "{}", refused.stderr);
        }
    }
}

#[test]
fn each_observation_may_be_concluded_and_knows_its_number() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["-q", "-w", "1", "-r", "2", "-p", "echo p >> log", "-C", "echo c$HYPERFINE_ITERATION >> log"];
    compared(state.path(), &[&arguments[..], &["sh -c 'echo $ASCERTAIN_ITERATION >> log'"]].concat());
    assert_eq!(log(state.path()), "pwarmup-0cwarmup-0p0c0p1c1");
    let failed = compare(state.path(), &["-r", "1", "-C", "exit 3; :", "true"]);
    assert!(failed.code == Some(5) && failed.stdout.contains("conclusion `exit 3; :`"), "{}", failed.stdout);
}

#[test]
fn variables_and_outputs_are_given_once_or_for_each() {
    let state = tempfile::tempdir().unwrap();
    let both = ["-r", "1", "--env", "A=1 B='x y'", "--env", "A=2", "--output", "one", "--output", "two"];
    compared(state.path(), &[&both[..], &["sh -c 'echo \"$A$B\"'", "sh -c 'echo \"$A\"'"]].concat());
    let read = |name: &str| std::fs::read_to_string(state.path().join(name)).unwrap();
    assert_eq!([read("one"), read("two")], ["1x y\n", "2\n"]);
    let list = ["-r", "1", "-S", "-L", "n", "1,2", "--env", "N='<{n}>'", "--input", "null"];
    compared(state.path(), &[&list[..], &["cat; echo \"$N\" >> log; : {n}"]].concat());
    assert!(["<1><2>", "<2><1>"].contains(&log(state.path()).as_str()));
    for wrong in ["A", "1A=2", "=2", "A=$B", "A='"] {
        let refused = compare(state.path(), &["--env", wrong, "true"]);
        assert!(refused.code == Some(2) && refused.stderr.contains("NAME=value"), "{wrong}: {}", refused.stderr);
    }
    for option in ["--env", "--output", "--prepare", "--conclude"] {
        let refused = compare(state.path(), &[option, "A=1", option, "A=1", "true", "true", "true"]);
        assert!(refused.code == Some(2) && refused.stderr.contains("once for each"), "{option}: {}", refused.stderr);
    }
}

#[test]
fn exit_codes_may_be_ignored_by_name() {
    let state = tempfile::tempdir().unwrap();
    let ends = |option: &str| compare(state.path(), &["-r", "1", "-S", option, "exit 2"]);
    for option in ["-i", "--ignore-failure", "--ignore-failure=all-non-zero", "--ignore-failure=1,2", "-i=2"] {
        let ran = ends(option);
        assert_eq!(ran.code, Some(0), "{option}: {}{}", ran.stdout, ran.stderr);
        let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("`exit 2` ended with exit code 2 in 1 of 1 trial"), "{words}");
    }
    assert_eq!(ends("--ignore-failure=1,3").code, Some(5));
    for wrong in ["x", "0", "256", "-1", "1,256"] {
        let refused = ends(&format!("--ignore-failure={wrong}"));
        assert!(refused.code == Some(2) && refused.stderr.contains("from 1 to 255"), "{wrong}: {}", refused.stderr);
    }
}

#[test]
fn each_scan_has_the_step_that_is_given_for_it() {
    let state = tempfile::tempdir().unwrap();
    let scans = ["-r", "1", "--format", "csv", "-P", "x", "0", "10", "-P", "y", "1", "2"];
    let run = |steps: &[&str]| compare(state.path(), &[&scans[..], steps, &["echo {x} {y}"]].concat());
    let both = run(&["-D", "5", "-D", "0.5"]);
    let lines = |text: &str| both.stdout.lines().filter(|line| line.contains(text)).count();
    assert!(lines("x=5 y=1.5") > 0 && lines("x=10 y=2.0") > 0 && lines("x=1 ") == 0, "{}", both.stdout);
    for steps in [&["-D", "5"][..], &["-D", "1", "-D", "1", "-D", "1"]] {
        let refused = run(steps);
        assert!(
            refused.code == Some(2) && refused.stderr.contains("give one step for each scan"),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn names_may_be_given_for_each_combination() {
    let state = tempfile::tempdir().unwrap();
    let lists = ["-r", "1", "--format", "csv", "-L", "a", r"1,x\,y", "-L", "b", "3,4"];
    let names = ["-n", "one", "-n", "two", "-n", "three", "-n", "four"];
    let csv = compared(state.path(), &[&lists[..], &names, &["echo {a} {b}"]].concat()).stdout;
    for name in ["one", "two", "three", "four"] {
        assert!(csv.lines().any(|line| line.split(',').any(|field| field == name)), "{name}: {csv}");
    }
    let to = |file| ["--output", file];
    let outputs = ["a", "b", "c", "d"].map(to).concat();
    compared(state.path(), &[&lists[..], &outputs, &["echo {a} {b}"]].concat());
    let read = |name: &str| std::fs::read_to_string(state.path().join(name)).unwrap();
    assert_eq!(["a", "b", "c", "d"].map(read), ["1 3\n", "x,y 3\n", "1 4\n", "x,y 4\n"]);
    let itself = compare(state.path(), &[&lists[..], &names, &["echo {a}"]].concat());
    assert!(itself.code == Some(2) && itself.stderr.contains("compared with itself"), "{}", itself.stderr);
    let many = compare(state.path(), &[&lists[..], &names, &["-n", "five", "echo {a} {b}"]].concat());
    assert!(many.code == Some(2) && many.stderr.contains("5 names are given for 4 commands"), "{}", many.stderr);
}

#[test]
fn a_clean_up_that_fails_fails() {
    let state = tempfile::tempdir().unwrap();
    let ran = compare(state.path(), &["-r", "1", "-c", "exit 3; :", "true"]);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert!(ran.stderr.contains("error: clean-up `exit 3; :`"), "{}", ran.stderr);
}

#[test]
fn requested_runs_are_measured_or_reported_as_missing() {
    let state = tempfile::tempdir().unwrap();
    // The first trial takes three seconds, and no trial starts after that.
    let missed = compared(state.path(), &["--min-runs", "50", "--max-time", "3s", "sleep 3"]);
    assert!(missed.stderr.contains("only 1 of 50 trials was measured"), "{}", missed.stderr);
    assert!(missed.stderr.contains("allow more time with --max-time"), "{}", missed.stderr);
    let never = compare(state.path(), &["--min-runs", "50", "-M", "3", "true"]);
    assert!(never.code == Some(2) && never.stderr.contains("--min-runs 50 is more"), "{}", never.stderr);
    let kept = compared(state.path(), &["--min-runs", "5", "--max-runs", "5", "true"]);
    assert!(!kept.stderr.contains("wanted"), "{}", kept.stderr);
}

#[test]
fn styles_are_colours_and_silence() {
    let state = tempfile::tempdir().unwrap();
    let drawn = |style: &str| compared(state.path(), &["-r", "2", "--style", style, "true", "sleep 0.001"]).stdout;
    assert!(drawn("full").contains('\x1b') && drawn("color").contains('\x1b'));
    for style in ["auto", "basic", "nocolor"] {
        assert!(!drawn(style).contains('\x1b') && drawn(style).contains("sleep 0.001"));
    }
    assert_eq!(drawn("none"), "");
}

/// If one command fails, the export still contains the trials of the other command.
#[test]
fn a_failure_keeps_the_trials_of_the_other_commands() {
    let state = tempfile::tempdir().unwrap();
    for commands in [["true", "false"], ["false", "true"]] {
        let failed = compare(state.path(), &[&["-r", "1", "--export-json", "out.json"], &commands[..]].concat());
        assert_eq!(failed.code, Some(5));
        let results = json(&state.path().join("out.json"))["results"].clone();
        assert!(
            results.as_array().unwrap().iter().any(|result| result["command"] == "true"),
            "{commands:?}: {results}"
        );
    }
}

/// The JSON format of hyperfine 2 has the executed line of each command, its name, its parameters and its environment
/// variables.
#[test]
fn its_newer_json_has_every_run_with_every_metric() {
    let state = tempfile::tempdir().unwrap();
    let export =
        ["-q", "-r", "3", "-u", "second", "--sort", "time", "--export-json", "2.json", "--export-json-1", "1.json"];
    let list = [
        "--export-markdown",
        "a.md",
        "-L",
        "n",
        "0.05,0.001",
        "-n",
        "wait {n} s",
        "--env",
        "A={n}",
        "--record-env",
        "sleep {n}",
    ];
    compared(state.path(), &[&export[..], &list].concat());
    let (newer, older) = (json(&state.path().join("2.json")), json(&state.path().join("1.json")));
    assert_eq!((&newer["schema_version"], &newer["primary_metric"]), (&2.into(), &"time_wall_clock".into()));
    for (index, value) in ["0.05", "0.001"].into_iter().enumerate() {
        let result = &newer["results"][index];
        assert_eq!(result["command"], format!("sleep {value}"));
        assert_eq!(result["name"], format!("wait {value} s"));
        assert_eq!((&result["parameters"]["n"]["value"], &result["environment"]["A"]), (&value.into(), &value.into()));
        for metric in ["time_wall_clock", "time_cpu", "time_user", "time_system", "memory_peak_resident"] {
            let values =
                result["measurements"].as_array().unwrap().iter().map(|run| run[metric]["value"].as_f64().unwrap());
            let (mean, count) = (values.clone().sum::<f64>() / 3.0, values.count());
            let summary = &result["summary"][metric];
            assert_eq!((count, &summary["count"]), (3, &3.into()), "{metric}");
            assert!((summary["mean"].as_f64().unwrap() - mean).abs() <= 1e-9 * mean, "{metric}: {summary}");
        }
        assert_eq!(result["measurements"][0]["exit_code"], 0);
        assert_eq!(older["results"][index]["mean"], result["summary"]["time_wall_clock"]["mean"]);
        assert_eq!(older["results"][index]["command"], result["name"]);
    }
    let table = std::fs::read_to_string(state.path().join("a.md")).unwrap();
    assert!(table.contains("Mean [s]"), "{table}");
    // The rows are in the order of the measured means.
    let [long, short] = [0, 1].map(|index| older["results"][index]["mean"].as_f64().unwrap());
    let is_short_first = table.find("`wait 0.001 s`") < table.find("`wait 0.05 s`");
    assert_eq!(is_short_first, short < long, "{short} {long}: {table}");
}
