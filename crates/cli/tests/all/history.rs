//! Tests of `ascertain history`, which lists, compares and deletes runs, and shows how metrics developed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{self, Ran, ascertain};

/// A folder with three runs: two of the same commands, then one of another command.
struct Runs {
    state: tempfile::TempDir,
}

impl Runs {
    fn new() -> Runs {
        let runs = Runs { state: tempfile::tempdir().unwrap() };
        for commands in [["true", "sleep 0.002"], ["true", "sleep 0.002"], ["true", "sleep 0.004"]] {
            let measured = runs.run(&[&["compare", "-q", "-r", "12"], &commands[..]].concat());
            assert_eq!(measured.code, Some(0), "{}", measured.stderr);
        }
        runs
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        ascertain(self.state.path(), arguments)
    }

    fn history(&self, arguments: &[&str]) -> Ran {
        self.run(&[&["history"], arguments].concat())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.history(&[arguments, &["--format", "json"]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.json()
    }

    fn below(&self) -> PathBuf {
        self.state.path().join("ascertain/runs")
    }

    /// Returns the folders of the runs, from the oldest to the latest.
    fn folders(&self) -> Vec<PathBuf> {
        common::runs(self.state.path())
    }

    fn ids(&self) -> Vec<String> {
        self.folders().iter().map(|run| name(run)).collect()
    }
}

fn name(folder: &Path) -> String {
    folder.file_name().unwrap().to_str().unwrap().into()
}

/// Applies a change to the `run.json` of a run.
fn change(run: &Path, with: impl FnOnce(&mut Value)) {
    let path = run.join("run.json");
    let mut header: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    with(&mut header);
    fs::write(path, header.to_string()).unwrap();
}

#[test]
fn the_list_has_every_run_whatever_its_outcome() {
    let runs = Runs::new();
    assert_eq!(runs.json(&["list", "-n", "1"]), runs.json(&["-n", "1"]));
    let folders = runs.folders();
    change(&folders[0], |header| header["outcome"] = Value::Null);
    change(&folders[1], |header| header["outcome"]["interrupted"] = true.into());
    let (cut, foreign) = (runs.below().join("20200101T000000000Z-cut0"), runs.below().join("20200101T000000000Z-old0"));
    for (folder, text) in [(&cut, "{\"schema\": "), (&foreign, "{\"schema\": \"ascertain.evidence/9\"}")] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("run.json"), text).unwrap();
    }
    fs::create_dir(runs.below().join("not a run")).unwrap();
    let list = runs.json(&[]);
    assert_eq!((&list["schema"], &list["count"]), (&"ascertain.history/1".into(), &5.into()));
    let states: Vec<&str> = list["runs"].as_array().unwrap().iter().map(|run| run["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["finished", "interrupted", "killed", "unreadable", "unreadable"]);
    let newest = &list["runs"][0];
    assert_eq!(newest["id"], name(&folders[2]));
    assert_eq!(newest["command_line"][1], "compare");
    assert_eq!(
        newest["claims"]["slower"].as_u64().unwrap_or_default()
            + newest["claims"]["undecided"].as_u64().unwrap_or_default(),
        1
    );
    assert!(newest["bytes"].as_u64().unwrap() > 1000);
    let killed = &list["runs"][2]["claims"];
    assert_eq!(killed.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum::<u64>(), 1, "{list}");
    assert!(list["runs"][3]["reason"].as_str().unwrap().contains("ascertain.evidence/9"), "{list}");
    assert!(list["runs"][4]["reason"].as_str().unwrap().contains("cut off"), "{list}");
    let text = runs.history(&["-n", "2"]).stdout;
    assert!(text.contains(&name(&folders[2])) && !text.contains(&name(&folders[0])), "{text}");
    assert!(text.contains("The latest 2 of 5 runs in"), "{text}");
    assert_eq!(runs.history(&["--format", "csv"]).stdout.lines().count(), 6);
    assert_eq!(runs.history(&["--format", "markdown"]).stdout.lines().count(), 7);
}

#[test]
fn a_run_has_its_label_and_the_revision_of_its_folder() {
    let state = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]);
        git.args(arguments).current_dir(state.path()).output().is_ok_and(|ran| ran.status.success())
    };
    let compare = |label: &[&str]| {
        let measured = ascertain(state.path(), &[&["compare", "-q", "-r", "2", "true", "true"], label].concat());
        assert_eq!((measured.code, measured.stderr.contains("git")), (Some(0), false), "{}", measured.stderr);
    };
    compare(&["--label", " v1.1 "]);
    let has_git = git(&["init", "--quiet"]);
    fs::write(state.path().join("tracked"), "1").unwrap();
    let has_git = has_git && git(&["add", "tracked"]) && git(&["commit", "--quiet", "-m", "first"]);
    fs::write(state.path().join("tracked"), "2").unwrap();
    compare(&["--label", "v1.2"]);
    compare(&[]);
    let runs = ascertain(state.path(), &["history", "--format", "json"]).json()["runs"].clone();
    let labels: Vec<&Value> = (0..3).map(|index| &runs[index]["label"]).collect();
    assert_eq!(labels, [&Value::Null, &"v1.2".into(), &"v1.1".into()]);
    assert_eq!(runs[2]["revision"], Value::Null, "the folder was in no repository");
    if has_git {
        // On a very busy machine, git may exceed its time limit; then there is no revision.
        let is_dirty = &runs[0]["revision"]["dirty"];
        assert_ne!(*is_dirty, false);
        let commit = runs[0]["revision"]["commit"].as_str().unwrap();
        let text = ascertain(state.path(), &["history"]).stdout;
        let end = if *is_dirty == true { "-dirty" } else { "" };
        assert!(text.contains(&format!("{}{end}", &commit[..10])) && text.contains("v1.2"), "{text}");
    }
    let path = ascertain(state.path(), &["report", "-q", "v1.2"]).stdout;
    assert!(path.contains(runs[1]["id"].as_str().unwrap()), "{path}");
    let continued = ascertain(state.path(), &["continue", "-q", "--max-trials", "3", "v1.2"]);
    assert_eq!(continued.code, Some(0), "{}", continued.stderr);
    let compared = ascertain(state.path(), &["history", "compare", "v1.1", "v1.2", "--format", "json"]).json();
    assert_eq!((&compared["runs"][0]["label"], &compared["runs"][1]["label"]), (&"v1.1".into(), &"v1.2".into()));
    compare(&["--label", "v1.1"]);
    let several = ascertain(state.path(), &["report", "v1.1"]);
    assert!(several.code == Some(2) && several.stderr.contains("label of 2 runs"), "{}", several.stderr);
    for (label, message) in [("", "at least one"), ("latest", "the latest run"), ("a\nb", "line breaks")] {
        let refused = ascertain(state.path(), &["compare", "true", "true", "--label", label]);
        assert!(refused.code == Some(2) && refused.stderr.contains(message), "{}", refused.stderr);
    }
}

/// A run counts as killed if it was continued after its end, and killed before it wrote its new outcome.
#[test]
fn a_run_that_was_killed_while_it_was_continued_is_known() {
    let runs = Runs::new();
    let folder = &runs.folders()[2];
    let path = folder.join("trials.jsonl");
    let lines = common::restored_lines(folder);
    let next: String = lines
        .lines()
        .filter(|line| line.contains("\"trial\":11,"))
        .map(|line| line.replace("\"trial\":11,", "\"trial\":12,") + "\n")
        .collect();
    assert!(!next.is_empty());
    fs::write(&path, lines + &next).unwrap();
    assert_eq!(runs.json(&[])["runs"][0]["state"], "killed");
    let compared = runs.json(&["compare", "latest", &runs.ids()[0]]);
    assert_eq!(
        (&compared["runs"][0]["state"], &compared["points"][0]["estimates"][0]["n"]),
        (&"killed".into(), &13.into())
    );
}

#[test]
fn a_run_that_is_being_written_is_known_and_left_alone() {
    let runs = Runs::new();
    let folders = runs.folders();
    let lines = File::open(folders[1].join("trials.jsonl")).unwrap();
    lines.lock().unwrap();
    assert_eq!(runs.json(&[])["runs"][1]["state"], "running");
    let pruned = runs.json(&["prune", "--keep", "0"]);
    assert_eq!(pruned["removed"].as_array().unwrap().len(), 2);
    assert_eq!(pruned["spared"][0]["id"], name(&folders[1]));
    assert_eq!(runs.folders(), [folders[1].clone()]);
}

#[test]
fn the_oldest_are_deleted_and_nothing_else() {
    let runs = Runs::new();
    let (folders, below) = (runs.folders(), runs.below());
    fs::rename(&folders[0], below.join("baseline")).unwrap();
    fs::create_dir(below.join("20200101T000000000Z-none")).unwrap();
    fs::create_dir_all(below.join(".deleting-20200101T000000000Z-half/x")).unwrap();
    fs::create_dir_all(below.join(".deleting-mine")).unwrap();
    std::os::unix::fs::symlink(below.join("baseline"), below.join("20200101T000000000Z-link")).unwrap();
    let before = common::runs(runs.state.path());
    let dry = runs.history(&["prune", "--keep", "1", "--dry-run"]);
    assert!(dry.stdout.contains("would be deleted") && dry.stdout.contains(&name(&folders[1])), "{}", dry.stdout);
    assert_eq!(common::runs(runs.state.path()), before);
    let pruned = runs.history(&["prune", "--keep", "1"]);
    assert!(pruned.stdout.contains("Deleted 1 run of"), "{}", pruned.stdout);
    let left: Vec<String> = common::runs(runs.state.path()).iter().map(|path| name(path)).collect();
    let (link, none) = ("20200101T000000000Z-link".to_string(), "20200101T000000000Z-none".to_string());
    assert_eq!(left, [".deleting-mine".to_string(), link, none, name(&folders[2]), "baseline".to_string()]);
    assert!(below.join("baseline/trials.parquet").is_file());
    let young = runs.json(&["prune", "--older-than", "1d"]);
    assert_eq!((young["removed"].as_array().unwrap().len(), &young["kept"]), (0, &3.into()));
}

#[test]
fn much_evidence_is_noted_and_never_deleted() {
    let state = tempfile::tempdir().unwrap();
    let compare = |quiet: &[&str]| {
        ascertain(state.path(), &[&["compare", "-r", "1", "true", "true"], quiet].concat()).stderr.replace('\n', " ")
    };
    assert!(!compare(&[]).contains("prune"));
    let run = &common::runs(state.path())[0];
    // The file is sparse, so it takes no space on the disk.
    File::create(run.join("large")).unwrap().set_len(1_000_000_001).unwrap();
    let noted = compare(&[]);
    assert!(noted.contains(" GB; to delete old ones, run `ascertain history prune --keep 50"), "{noted}");
    assert!(!compare(&["-q"]).contains("prune"));
    assert_eq!(common::runs(state.path()).len(), 3);
    let elsewhere = compare(&["--evidence", "elsewhere"]);
    assert!(!elsewhere.contains("prune"), "{elsewhere}");
}

#[test]
fn medians_and_ratios_go_from_run_to_run() {
    let runs = Runs::new();
    let ids = runs.ids();
    let trend = runs.json(&["trend", "compare"]);
    assert_eq!((&trend["metric"], &trend["unit"]), (&"wall".into(), &"ns".into()));
    let lines = trend["lines"].as_array().unwrap();
    let shape: Vec<(&str, usize)> =
        lines.iter().map(|line| (line["variant"].as_str().unwrap(), line["runs"].as_array().unwrap().len())).collect();
    assert_eq!(shape, [("true", 3), ("sleep 0.004", 1)], "what the latest run has");
    assert!(trend["notes"][0].as_str().unwrap().contains("request them by name"), "{trend}");
    assert_eq!(lines[0]["runs"][0]["run_id"], ids[0], "the oldest first");
    let header: Value = serde_json::from_slice(&fs::read(runs.folders()[0].join("run.json")).unwrap()).unwrap();
    assert_eq!(lines[0]["runs"][0]["estimate"]["median"], header["outcome"]["points"][0]["median"]);

    let trend = runs.json(&["trend", "compare", "--variant", "sleep 0.002", "--metric", "user", "-n", "2"]);
    assert_eq!(trend["lines"][0]["runs"].as_array().unwrap().len(), 2, "runs of other commands do not count");

    let ratio = runs.json(&["trend", "compare", "--ratio", "sleep 0.002/true"]);
    let line = &ratio["lines"][0];
    assert_eq!((&ratio["unit"], line["runs"].as_array().unwrap().len()), (&"1".into(), 2));
    let claim = &header["outcome"]["claims"][0];
    assert_eq!(line["runs"][0]["estimate"]["median"], claim["ratio"], "paired as the claim was");
    assert_eq!(line["runs"][0]["estimate"]["n"], 12);
    let text = runs.history(&["trend", "compare", "--ratio", "sleep 0.002/true"]).stdout.replace('\n', " ");
    assert!(text.contains("of all trials of a run. In the report of a run"), "{text}");
}

#[test]
fn runs_without_an_outcome_have_their_place_in_a_trend() {
    let runs = Runs::new();
    let folders = runs.folders();
    let whole = runs.json(&["trend", "compare"]);
    common::restored_lines(&folders[2]);
    change(&folders[2], |header| header["outcome"] = Value::Null);
    fs::remove_file(folders[2].join("trials.parquet")).unwrap();
    fs::write(folders[1].join("run.json"), "{").unwrap();
    let trend = runs.json(&["trend", "compare"]);
    assert_eq!(trend["lines"][0]["runs"][1]["estimate"], whole["lines"][0]["runs"][2]["estimate"]);
    assert!(trend["notes"][0].as_str().unwrap().contains("run.json"), "{trend}");
    for index in 0..3 {
        let damaged = runs.below().join(format!("20200101T000000000Z-000{index}"));
        fs::create_dir(&damaged).unwrap();
        fs::write(damaged.join("run.json"), "{").unwrap();
    }
    let trend = runs.json(&["trend", "compare"]);
    let left_out: Vec<&str> = trend["notes"].as_array().unwrap().iter().filter_map(|note| note.as_str()).collect();
    let left_out: Vec<&&str> = left_out.iter().filter(|note| note.starts_with("Left out")).collect();
    assert!(left_out.len() == 1 && left_out[0].contains("4 runs"), "one line, however many: {left_out:?}");
    let text = runs.history(&["trend", "compare", "--svg", "trend.svg"]);
    assert!(text.stdout.contains("Left out:") && text.stdout.contains("95 % interval"), "{}", text.stdout);
    assert!(fs::read_to_string(runs.state.path().join("trend.svg")).unwrap().contains("<svg"));
}

#[test]
fn two_runs_side_by_side() {
    let runs = Runs::new();
    let ids = runs.ids();
    change(&runs.folders()[0], |header| {
        header["outcome"]["machine"]["kernel"] = "Linux 2.6".into();
        header["plan"]["config"]["error"] = 0.01.into();
        header["plan"]["config"]["max_time"] = serde_json::json!({ "secs": 30, "nanos": 500_000_000 });
    });
    let json = runs.json(&["compare", &ids[0], &ids[1][ids[1].len() - 4..]]);
    assert_eq!(json["runs"][1]["id"], ids[1]);
    let differences: Vec<&str> =
        json["differences"].as_array().unwrap().iter().map(|d| d["what"].as_str().unwrap()).collect();
    assert_eq!(differences, ["machine.kernel", "config.error", "config.max_time"]);
    assert_eq!(json["differences"][2]["values"], serde_json::json!(["30.5 s", "no limit"]));
    let text = runs.history(&["compare", &ids[0], &ids[1]]).stdout;
    assert!(text.contains("option: max time ") && text.contains("machine: kernel "), "{text}");
    assert_eq!(json["points"].as_array().unwrap().len(), 10, "five metrics of two commands");
    let wall = &json["points"][0];
    let (first, second) = (&wall["estimates"][0]["median"], &wall["estimates"][1]["median"]);
    assert_eq!(wall["ratio"], second.as_f64().unwrap() / first.as_f64().unwrap());
    assert_eq!(json["claims"].as_array().unwrap().len(), 1);
    assert_eq!(json["unmatched_points"], serde_json::json!([[], []]));

    let json = runs.json(&["compare", &ids[1], "latest"]);
    assert_eq!(json["claims"].as_array().unwrap().len(), 0);
    assert_eq!(json["unmatched_claims"], serde_json::json!([["sleep 0.002"], ["sleep 0.004"]]));
    assert_eq!(json["unmatched_points"][0][0], "compare, sleep 0.002, wall");
    let commands = json["differences"].to_string();
    assert!(commands.contains("commands.0.commands.1.line"), "{commands}");
    let text = runs.history(&["compare", &ids[0], "latest"]).stdout.replace('\n', " ");
    assert!(text.contains("Trials are paired within a run, not between runs"), "{text}");
    assert!(text.contains("Measured only in run 1: `compare, sleep 0.002, wall`"), "{text}");
    assert!(text.contains(" and 3 more."), "two of the five metrics are named: {text}");
}

#[test]
fn mistakes_are_named() {
    let runs = Runs::new();
    let id = runs.ids()[0].clone();
    let near = format!("{}X", &id[..id.len() - 1]);
    for (arguments, message) in [
        (&["compare", "latest", "zebra"][..], "the latest is `2"),
        (&["compare", "latest", near.as_str()], "did you mean `2"),
        (&["compare", "latest", "20"], "matches 3 runs"),
        (&["compare", "latest"], "RUN2"),
        (&["compare", "latest", "/"], "no run in /"),
        (&["trend", "compar"], "did you mean `compare`"),
        (&["trend", "sum"], "there are: compare"),
        (&["trend", "compare", "--metric", "wal"], "did you mean `wall`"),
        (&["trend", "compare", "--variant", "tru"], "did you mean `true`"),
        (&["trend", "compare", "--variant", "\u{1b}[31m"], r"no variant `\u{1b}[31m`"),
        (&["trend", "compare", "--at", "size=3"], "no factor `size`"),
        (&["trend", "compare", "--at", "size"], "FACTOR=LEVEL"),
        (&["trend", "compare", "--ratio", "true"], "two variants as A/B"),
        (&["trend", "compare", "--ratio", "true/sleep 0.003"], "no variant `sleep 0.003`"),
        (
            &["trend", "compare", "--ratio", "sleep 0.002/sleep 0.004"],
            "no trial has values of both variants for the metric `wall`",
        ),
        (&["trend"], "EXPERIMENT"),
        (&["changes", "compare"], "--ratio"),
        (&["changes", "compare", "--ratio", "true/sleep 0.003"], "no variant `sleep 0.003`"),
        (&["prune"], "--keep"),
        (&["prune", "--older-than", "30"], "write it in ns"),
        (&["prune", "--older-than", "0s"], "not an age; give an age such as 30d, or use --keep 0"),
        (&["-n", "0"], "a whole number from 1"),
    ] {
        let ran = runs.history(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}{}", ran.stderr, ran.stdout);
        assert!(ran.stderr.contains(message), "{arguments:?} should say {message:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{arguments:?}");
    }
    assert_eq!(runs.ids().len(), 3, "nothing was deleted");
}

#[test]
fn if_no_run_can_be_read_one_is_named() {
    let state = tempfile::tempdir().unwrap();
    let run = state.path().join("ascertain/runs/20200101T000000000Z-old0");
    fs::create_dir_all(&run).unwrap();
    fs::write(run.join("run.json"), "{\"schema\": 99}").unwrap();
    let ran = ascertain(state.path(), &["history", "trend", "sum"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    for part in ["Left out: ", "20200101T000000000Z-old0", "has the schema `99`"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("there are: "), "{}", ran.stderr);
}

#[test]
fn a_missing_run_is_reported() {
    let state = tempfile::tempdir().unwrap();
    for arguments in [&["history"][..], &["history", "trend", "sum"], &["history", "prune", "--keep", "1"]] {
        let ran = ascertain(state.path(), arguments);
        assert_eq!(ran.code, Some(4), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("there is no run in"), "{}", ran.stderr);
    }
}

/// The commands print their times, so each run has the ratio and the baseline that this test chooses. The code changes in
/// run 12, and the machine in run 24.
#[test]
fn changes_of_code_and_machine_are_found_from_run_to_run() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let history = |arguments: &[&str]| ascertain(state, &[&["history"], arguments].concat());
    for run in 0..32 {
        let noise = |factor: usize| 1.0 + (run * factor % 101) as f64 / 5000.0;
        let old = if run < 24 { 5.0 } else { 5.5 } * noise(59);
        let new = if run < 12 { 1.0 } else { 1.05 } * old * noise(37);
        for (name, time) in [("old", old), ("new", new)] {
            fs::write(state.join(name), format!("took {time} ms\n")).unwrap();
        }
        let metric = "latency=took ([0-9.]+) ms";
        let measured = ascertain(state, &["compare", "-q", "-r", "2", "--metric", metric, "cat old", "cat new"]);
        assert_eq!(measured.code, Some(0), "{}", measured.stderr);
    }
    let ids: Vec<String> = common::runs(state).iter().map(|run| name(run)).collect();
    let ratio = ["changes", "compare", "--metric", "latency", "--ratio", "cat new/cat old"];
    let json = history(&[&ratio[..], &["--format", "json"]].concat()).json();
    assert_eq!((&json["schema"], &json["metric"]), (&"ascertain.changes/1".into(), &"latency".into()));
    assert_eq!(json["lines"][0]["runs"].as_array().unwrap().len(), 32);
    let changes = json["changes"].as_array().unwrap();
    let found: Vec<_> =
        changes.iter().map(|change| (change["cause"].as_str().unwrap(), &change["first"]["run_id"])).collect();
    assert_eq!(found, [("code", &ids[12].clone().into()), ("machine", &ids[24].clone().into())]);
    let after = changes[0]["ratio_after"].as_f64().unwrap() / changes[0]["ratio_before"].as_f64().unwrap();
    assert!((after * 1.05 - 1.0).abs() < 0.01, "{after}");

    let text = history(&ratio).stdout;
    assert!(text.contains("2 changes in 32 runs.") && text.contains(&ids[12]), "{text}");
    let later = history(&[&ratio[..], &["-n", "18", "--format", "csv"]].concat()).stdout;
    assert_eq!(later.lines().count(), 2, "only the machine changed in the latest 18 runs: {later}");
    let svg = history(&[&ratio[..], &["--svg", "-"]].concat()).stdout;
    assert!(svg.contains("<svg") && svg.contains("machine"), "{svg}");
    let otava = history(&[&ratio[..], &["--export", "otava"]].concat()).stdout;
    let rows: Vec<&str> = otava.lines().collect();
    assert_eq!((rows[0], rows.len()), ("time,run,commit,machine,ratio,baseline", 33));
    assert!(rows[1].contains(&ids[0]) && rows[32].contains(&ids[31]), "{otava}");
}
