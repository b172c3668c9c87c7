//! Tests of `ascertain report` on real runs.

use std::fs;
use std::path::Path;

use crate::common::{MANY_FAULTS, ascertain, restored_lines, runs};

/// Runs a quick comparison of two commands.
fn compare(state: &Path) {
    let ran = ascertain(state, &["compare", "-q", "-r", "5", "sleep 0.001", "echo '<script>alert(1)</script>'"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

fn name(run: &Path) -> String {
    run.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn the_report_is_in_the_runs_folder() {
    let state = tempfile::tempdir().unwrap();
    compare(state.path());
    let run = runs(state.path()).pop().unwrap();
    assert!(!run.join("report.html").exists(), "`compare` makes none by itself");
    let ran = ascertain(state.path(), &["report"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout.trim_end(), run.join("report.html").to_string_lossy());
    // The results are printed on standard error, as `compare` prints them, unless the user requests only the page.
    assert!(ran.stderr.starts_with("Too early to tell ") && ran.stderr.contains(" 5 pairs"), "{}", ran.stderr);
    assert_eq!(ascertain(state.path(), &["report", "-q"]).stderr, "");
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("echo &#39;&lt;script&gt;") && !page.contains("<script>alert"));
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    // The report is the same whether the run is given by its name, the end of its name, or a file in its folder. It is
    // also the same on standard output.
    let id = name(&run);
    let file = run.join("run.json").to_string_lossy().into_owned();
    for arguments in
        [["report", &id, "-o", "-"], ["report", &id[id.len() - 4..], "-o", "-"], ["report", &file, "-o", "-"]]
    {
        assert_eq!(ascertain(state.path(), &arguments).stdout, page);
    }
    let folder = run.to_string_lossy().into_owned();
    let ran = ascertain(state.path(), &["report", &folder, "-o", "here.html"]);
    assert_eq!(
        (ran.stdout.as_str(), fs::read_to_string(state.path().join("here.html")).unwrap()),
        ("here.html\n", page)
    );
}

/// For every command, `report --format` prints the same text as the command that measured.
#[test]
fn a_runs_results_come_in_every_format() {
    let state = tempfile::tempdir().unwrap();
    compare(state.path());
    let of = |format: &str| ascertain(state.path(), &["report", "--format", format]);
    let json = of("json").json();
    assert_eq!(json["schema"], "ascertain.run/1");
    assert!(of("csv").stdout.starts_with("experiment,variant,at,metric,unit,n,"));
    assert!(of("markdown").stdout.contains("\n| :--- |"));
    assert!(of("table").stdout.contains("Command"));
    let id = name(&runs(state.path())[0]);
    let several = ascertain(state.path(), &["report", &id, &id, "--format", "csv"]);
    assert_eq!(several.code, Some(2));
    assert!(several.stderr.contains("`ascertain history compare RUN RUN --format …`"), "{}", several.stderr);
}

#[test]
fn several_runs_stand_side_by_side() {
    let state = tempfile::tempdir().unwrap();
    compare(state.path());
    compare(state.path());
    let names: Vec<String> = runs(state.path()).iter().map(|run| name(run)).collect();
    let ran = ascertain(state.path(), &["report", &names[0], &names[1]]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ascertain-report.html\n"), "{}", ran.stderr);
    assert!(names.iter().all(|name| ran.stderr.contains(&format!("{name}\n\n"))), "{}", ran.stderr);
    let page = fs::read_to_string(state.path().join("ascertain-report.html")).unwrap();
    assert!(page.contains("2 runs side by side") && names.iter().all(|name| page.contains(name)));
}

#[test]
fn a_run_that_lost_rows_is_reported_with_a_warning() {
    let state = tempfile::tempdir().unwrap();
    compare(state.path());
    let run = runs(state.path()).pop().unwrap();
    let lines = restored_lines(&run);
    fs::remove_file(run.join("trials.parquet")).unwrap();
    let kept: String = lines.lines().take(lines.lines().count() / 2).map(|line| format!("{line}\n")).collect();
    fs::write(run.join("trials.jsonl"), kept).unwrap();
    let ran = ascertain(state.path(), &["report"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("counts 5 trials, but the evidence has"), "{}", ran.stderr);
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("counts 5 trials, but the evidence has"));
}

/// A damaged file of a run is reported even if another file has all the rows.
#[test]
fn a_damaged_file_is_named() {
    let state = tempfile::tempdir().unwrap();
    compare(state.path());
    let run = runs(state.path()).pop().unwrap();
    let whole = ascertain(state.path(), &["report", "-o", "-"]);
    assert_eq!(whole.stderr, "");
    let lines = restored_lines(&run);
    fs::write(run.join("trials.jsonl"), lines.clone() + "\n").unwrap();
    let blank = ascertain(state.path(), &["report", "-o", "-"]);
    assert_eq!((blank.stdout == whole.stdout, &*blank.stderr), (true, ""));
    fs::write(run.join("trials.jsonl"), lines.clone() + "x").unwrap();
    let longer = ascertain(state.path(), &["report", "-o", "-"]);
    assert!(longer.stderr.contains("trials.jsonl is longer than when the run ended"), "{}", longer.stderr);
    assert!(longer.stdout.contains("trials.jsonl is longer") && !longer.stdout.contains("was killed"));
    fs::write(run.join("trials.jsonl"), &lines).unwrap();
    fs::write(run.join("trials.parquet"), "PAR1").unwrap();
    let damaged = ascertain(state.path(), &["report", "-o", "-"]);
    assert!(damaged.stderr.contains("trials.parquet is damaged"), "{}", damaged.stderr);
    assert!(damaged.stdout.contains("trials.parquet is damaged"));
    fs::write(run.join("trials.jsonl"), lines.replacen("\"value\":1", "\"value\":2", 1)).unwrap();
    let changed = ascertain(state.path(), &["report", "-o", "-"]);
    assert!(
        changed.code == Some(2) && changed.stderr.contains("was changed since the run ended"),
        "{}",
        changed.stderr
    );
}

#[test]
fn plots_are_named_and_drawn_alone() {
    let state = tempfile::tempdir().unwrap();
    compare(state.path());
    let listed = ascertain(state.path(), &["report", "--plots"]).stdout;
    let ids: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(!ids.is_empty(), "{listed}");
    for id in &ids {
        let svg = ascertain(state.path(), &["report", "--svg", id]).stdout;
        assert!(svg.contains("<svg ") && svg.contains("xmlns=") && svg.trim_end().ends_with("</svg>"), "{id}: {svg}");
    }
    let ran = ascertain(state.path(), &["report", "--svg", ids[0], "-o", "plot.svg"]);
    assert_eq!(ran.stdout, "plot.svg\n");
    assert!(fs::read_to_string(state.path().join("plot.svg")).unwrap().contains("<svg "));
    let misspelled = format!("{}x", ids[0]);
    let ran = ascertain(state.path(), &["report", "--svg", &misspelled]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains(&format!("did you mean `{}`?", ids[0])), "{}", ran.stderr);
    let ran = ascertain(state.path(), &["report", "--svg", "nosuch"]);
    let named = format!("no plot `nosuch`; there are: {}; use --plots to list them", ids.join(", "));
    assert!(ran.stderr.contains(&named), "{}", ran.stderr);
    assert_eq!((ran.code, ran.stderr.lines().count(), &*ran.stdout), (Some(2), 1, ""), "{}", ran.stderr);
}

#[test]
fn check_and_run_leave_their_report() {
    let state = tempfile::tempdir().unwrap();
    for arguments in [
        ["check", "--only", "fill-rate.975", "--max-time", "1s"].as_slice(),
        &["run", "fill-rate", "--no-claims", "--max-time", "10min", "--trials", "3", "--at", "bins=10"],
    ] {
        let ran = ascertain(state.path(), arguments);
        let report = runs(state.path()).pop().unwrap().join("report.html");
        assert!(ran.stderr.contains(&format!("report:   {}", report.display())), "{}", ran.stderr);
        let page = fs::read_to_string(report).unwrap();
        assert!(page.contains("fill-rate") && page.contains("</html>"));
    }
}

/// The output of `check` ends with a command that prints its results again, without measuring. The command works for
/// any evidence folder.
#[test]
fn a_recorded_run_is_printed_as_its_check_would_have_been() {
    let state = tempfile::tempdir().unwrap();
    let claim = |id: usize| {
        let exit = usize::from(id > 4);
        format!("[[claim]]\nid = \"own.{id}\"\ncommand = \"true\"\npredicate = \"exit == {exit}\"\nrate = 0.5\n")
    };
    fs::write(state.path().join("claims.toml"), (0..7).map(claim).collect::<String>()).unwrap();
    for folder in [&[][..], &["--evidence", "elsewhere"]] {
        let check = ["check", "claims.toml", "--max-time", "10min", "--error", "0.1", "--max-trials", "40"];
        let ran = ascertain(state.path(), &[&check, folder].concat());
        assert!(ran.stdout.contains("7 claims: 5 hold, 2 refuted."), "{}{}", ran.stdout, ran.stderr);
        let words = ran.stdout.replace('\n', " ");
        let (_, hint) = words.split_once("`ascertain report ").unwrap();
        let (run, rest) = hint.split_once(' ').unwrap();
        let only = format!("--all` prints each verdict as a sentence. `ascertain report {run} --only refuted`");
        assert!(rest.starts_with(&only), "{rest}");
        let all = ascertain(state.path(), &["report", run, "--all"]);
        assert_eq!((all.code, all.stdout.matches("own.").count()), (Some(0), 14), "{}{}", all.stdout, all.stderr);
        assert_eq!(ascertain(state.path(), &["report", run]).stderr, "7 claims: 5 hold, 2 refuted.\n");
        let refuted = ascertain(state.path(), &["report", run, "--only", "refuted"]);
        assert!(refuted.stdout.starts_with("own.5\nRefuted: "), "{}", refuted.stdout);
        assert_eq!(refuted.stdout.matches("own.").count(), 2, "{}", refuted.stdout);
    }
    let ran = ascertain(state.path(), &["check", "claims.toml", "--max-trials", "2", "--no-evidence"]);
    assert!(ran.stdout.contains("7 claims: ") && !ran.stdout.contains("ascertain report"), "{}", ran.stdout);
    let wrong = ascertain(state.path(), &["report", "--only", "refutd"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("did you mean `refuted`?"), "{}", wrong.stderr);
}

#[test]
fn claims_are_counted_by_their_answers() {
    let state = tempfile::tempdir().unwrap();
    let claim = "[[claim]]\nid = \"own\"\ncommand = \"true\"\npredicate = \"exit == 0\"\nrate = 0.5\n";
    fs::write(state.path().join("claims.toml"), claim).unwrap();
    let check = ascertain(state.path(), &["check", "claims.toml", "--max-time", "10min", "--error", "0.1"]);
    assert!(check.stdout.ends_with("1 claim: 1 holds.\n"), "{}{}", check.stdout, check.stderr);
    let by = ["compare", "--metric", "page_faults", "--max-time", "10min", "--error", "0.2"];
    let compare = ascertain(state.path(), &[&by[..], &["true", MANY_FAULTS]].concat());
    assert!(compare.stdout.contains(" has more page faults than "), "{}{}", compare.stdout, compare.stderr);
    let all = ascertain(state.path(), &["report", "--all"]).stdout;
    assert!(all.contains(" has more page faults than ") && !all.contains("claim"), "{all}");
}

#[test]
fn a_folder_without_a_run_is_reported() {
    let state = tempfile::tempdir().unwrap();
    let says = |arguments: &[&str]| {
        let ran = ascertain(state.path(), &[&["report"], arguments].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        ran.stderr
    };
    assert!(says(&[]).contains("there is no run in"));
    assert!(says(&["20261121"]).contains("there is no run `20261121`"));
    fs::create_dir(state.path().join("empty")).unwrap();
    assert!(says(&["empty"]).contains("run.json"), "{}", says(&["empty"]));
    let run = state.path().join("broken");
    fs::create_dir(&run).unwrap();
    fs::write(run.join("run.json"), "{\"schema\": \"ascertain.evidence/2\", ").unwrap();
    assert!(says(&["broken"]).contains("run.json"));
    fs::write(run.join("run.json"), "{\"schema\": \"ascertain.evidence/99\"}").unwrap();
    assert!(says(&["broken"]).contains("ascertain.evidence/99"));
}
