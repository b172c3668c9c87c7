//! hyperfine beside `compare`: its own tests run on `compare`, and its own scripts on what `compare` exports, from the
//! source of each of its versions as crates.io has it, of which nothing is kept here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::part::{Input, Part};
use crate::tools::{self, Need};

const OLDER: &str = "1.20.0";
const NEWER: &str = "2.0.0";
const SOURCES: [Need; 2] = [Need::Source("hyperfine", OLDER), Need::Source("hyperfine", NEWER)];

const INPUTS: &[Input] =
    &[Input::Package("ascertain-cli"), Input::Path("xtask/src/hyperfine.rs"), Input::Path("xtask/src/hyperfine")];

pub const PARTS: &[Part] = &[
    Part::slow("hyperfine's exports", &[Need::HYPERFINE], INPUTS, same_fields),
    Part::slow("hyperfine's own tests on compare", &SOURCES, INPUTS, tests),
    Part::slow(
        "hyperfine's own scripts on both forms of its JSON",
        &[SOURCES[0], SOURCES[1], Need::Python("numpy"), Need::Python("scipy"), Need::Python("matplotlib")],
        INPUTS,
        scripts,
    ),
];

const WRAPPER: &str = include_str!("hyperfine/wrapper.rs");
const MANIFEST: &str = "\
[package]
name = \"hyperfine\"
version = \"0.0.0\"
edition = \"2024\"
[dev-dependencies]
assert_cmd = \"2\"
csv = \"1\"
insta = { version = \"1\", features = [\"filters\", \"yaml\"] }
insta-cmd = \"0.7\"
predicates = \"3\"
serde_json = \"1\"
tempfile = \"3\"
[workspace]
";

/// The tests that do not pass, by what is otherwise here on purpose; docs/coming-from.md says why. All others pass.
const DIFFERENT: &[(&str, &[&str])] = &[
    (
        "every command is run: there are no times that nothing took (--debug-mode)",
        &[
            "comparison_and_markup_identify_first_command_as_reference",
            "intermediate_results_are_not_exported_to_stdout",
            "json_export_basic",
            "json_export_parameterized_with_reference",
            "json_export_single_run",
            "markdown_export_preserves_backticks_and_pipes_in_command_names",
            "markdown_export_uses_first_parameterized_benchmark_as_reference",
            "min_runs_of_one_still_performs_one_run",
            "performs_all_benchmarks_in_parameter_scan",
            "performs_reference_and_all_benchmarks_in_parameter_scan",
            "performs_ten_runs_for_slow_commands",
            "performs_three_seconds_of_benchmarking_for_fast_commands",
            "returns_mean_time_in_correct_unit",
            "secondary_metrics_include_factors_for_large_changes",
            "shows_benchmark_comparison_relative_to_reference",
            "shows_benchmark_comparison_with_relative_times",
            "shows_benchmark_comparison_with_same_time",
            "shows_multiple_metrics_relative_to_first_command",
            "shows_reference_name",
            "speed_comparison_sort_order",
            "takes_both_preparation_and_conclusion_command_into_account_for_computing_number_of_runs",
            "takes_conclusion_command_into_account_for_computing_number_of_runs",
            "takes_preparation_command_into_account_for_computing_number_of_runs",
            "takes_shell_spawning_time_into_account_for_computing_number_of_runs",
        ],
    ),
    (
        "commands take turns in a random order, and all set-ups come before the first trial",
        &[
            "benchmarks_are_executed_sequentially",
            "benchmarks_are_executed_sequentially_one",
            "cleanup_commands_are_executed_once_after_each_benchmark",
            "commands_execute_in_input_order",
            "conclude_commands_are_executed_after_each_timing_run",
            "conclude_commands_are_executed_after_each_warmup",
            "multiple_parameter_values",
            "prepare_commands_are_executed_before_each_timing_run",
            "prepare_commands_are_executed_before_each_warmup",
            "reference_is_executed_first",
            "reference_is_executed_first_parameter_value",
            "reference_is_executed_separately_from_commands",
            "repeated_commands_execute_separately",
            "setup_commands_are_executed_before_each_series_of_timing_runs",
            "setup_prepare_cleanup_combined",
            "setup_prepare_conclude_cleanup_combined",
            "setup_prepare_reference_conclude_cleanup_combined",
            "setup_separate_prepare_reference_separate_conclude_cleanup_combined",
            "setup_separate_prepare_separate_conclude_cleanup_combined",
            "single_parameter_value",
        ],
    ),
    (
        "what is wrong is refused as there, with an exit code and words of our own",
        &[
            "can_ignore_multiple_exit_codes",
            "can_ignore_specific_exit_codes",
            "can_run_failing_commands_with_ignore_failure_option",
            "fails_for_failing_command_without_shell",
            "fails_for_unknown_cleanup_command",
            "fails_for_unknown_command",
            "fails_for_unknown_command_without_shell",
            "fails_for_unknown_conclude_command",
            "fails_for_unknown_prepare_command",
            "fails_for_unknown_setup_command",
            "fails_if_invalid_stdin_data_file_provided",
            "fails_with_duplicate_parameter_names",
            "fails_with_wrong_number_of_command_name_arguments",
            "fails_with_wrong_number_of_conclude_options",
            "fails_with_wrong_number_of_prepare_options",
            "fails_with_zero_runs",
            "invalid_command_options_preserve_export_files",
            "rejects_invalid_environment",
            "rejects_negative_parameter_steps",
            "requires_explicit_shell_for_environment_assignments",
            "requires_explicit_shell_for_shell_syntax",
        ],
    ),
    (
        "results are a table of our own, which has standard output to itself; tables for export have the form of 1.x",
        &[
            "exits_quietly_when_stdout_is_closed",
            "intermediate_markdown_retains_completed_reference",
            "preserves_input_order_with_parameterized_prepare",
        ],
    ),
    ("a parameter that is in no command line is refused", &["unused_parameters_are_shown_in_benchmark_name"]),
    ("--reference is kept", &["rejects_removed_reference_option_with_migration_guidance"]),
    ("what is judged is one metric: --metric", &["rejects_invalid_metric_before_export_or_setup"]),
];

/// What the hyperfine of this machine finds with these arguments: a result for each command.
pub fn results(arguments: &[&str]) -> anyhow::Result<Vec<Value>> {
    let path = tools::in_target("hyperfine.json");
    tools::output_of("hyperfine", &[&["-N", "--style", "none", "--export-json", &path], arguments].concat())?;
    results_in(&path)
}

fn results_in(path: &str) -> anyhow::Result<Vec<Value>> {
    let mut json: Value = serde_json::from_slice(&fs::read(path)?).context("an export in JSON")?;
    json["results"].as_array_mut().map(std::mem::take).context("no results")
}

/// The same export by both tools has the same fields.
fn same_fields() -> anyhow::Result<()> {
    let (path, commands) = (tools::in_target("ours.json"), ["-r", "10", "true", "sleep 0.001"]);
    tools::output_of(
        tools::test_binary()?,
        &[&["compare", "--no-evidence", "--export-json-1", &path], &commands[..]].concat(),
    )?;
    let (ours, theirs) = (results_in(&path)?, results(&commands)?);
    ensure!(ours.len() == 2 && theirs.len() == 2, "two commands");
    let missing: Vec<&String> = theirs[0].as_object().context("a result")?.keys().collect();
    let missing: Vec<_> = missing.into_iter().filter(|field| ours[0].get(field).is_none()).collect();
    ensure!(missing.is_empty(), "missing in ours: {missing:?}");
    Ok(())
}

/// Every test of both versions behind the wrapper: exactly those of the list fail.
fn tests() -> anyhow::Result<()> {
    let ascertain = tools::test_binary()?;
    let mut unseen: BTreeSet<&str> = DIFFERENT.iter().flat_map(|(_, names)| *names).copied().collect();
    let different = unseen.clone();
    for version in [OLDER, NEWER] {
        let folder = package(version)?;
        let mut cargo = Command::new("cargo");
        cargo.args(["test", "--no-fail-fast", "--color", "never"]).current_dir(&folder);
        cargo.env("CARGO_TARGET_DIR", tools::target()).env("INSTA_UPDATE", "no");
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
        let output = cargo.env("ASCERTAIN", &ascertain).env("HYPERFINE", version).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let ended = |how: &str| -> BTreeSet<&str> {
            let names = text.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(how));
            names.map(str::trim_end).collect()
        };
        let (passed, failed) = (ended("... ok"), ended("... FAILED"));
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(passed.len() > 5 && failed.len() > 30, "{version}: the tests were not built: {errors}");
        let wrong: Vec<&&str> = failed.difference(&different).chain(passed.intersection(&different)).collect();
        ensure!(wrong.is_empty(), "{version}: other than the list of differences says: {wrong:?}\n{text}");
        unseen.retain(|name| !failed.contains(name));
        println!("{version}: {} pass, {} differ as they are to", passed.len(), failed.len());
    }
    ensure!(unseen.is_empty(), "in the list of differences, and no test: {unseen:?}");
    Ok(())
}

/// A package with a version's tests and the wrapper.
fn package(version: &str) -> anyhow::Result<String> {
    let folder = tools::new_folder(&format!("xtask-hyperfine-tests/{version}"))?;
    let tests = tools::source("hyperfine", version).context("the source")?.join("tests");
    tools::output_of("cp", &["-r", &*tests.to_string_lossy(), &folder])?;
    fs::create_dir(format!("{folder}/src"))?;
    fs::write(format!("{folder}/src/main.rs"), WRAPPER)?;
    // Without versions of their own, cargo would take one package's programs for the other's.
    fs::write(format!("{folder}/Cargo.toml"), MANIFEST.replace("0.0.0", version))?;
    Ok(folder)
}

/// Each of its scripts with what it draws or says.
const SCRIPTS: [(&str, &str); 7] = [
    ("advanced_statistics.py", "compared"),
    ("welch_ttest.py", "compared"),
    ("plot_benchmark_comparison.py", "compared"),
    ("plot_histogram.py", "compared"),
    ("plot_progression.py", "compared"),
    ("plot_whisker.py", "compared"),
    ("plot_parametrized.py", "swept"),
];

/// Each version's scripts read what is exported in its form.
fn scripts() -> anyhow::Result<()> {
    let folder = tools::new_folder("xtask-exports/hyperfine")?;
    let path = |name: &str| format!("{folder}/{name}");
    let runs: [(&str, &[&str]); 2] = [
        ("compared", &["-n", "one", "sleep 0.001", "sleep 0.002"]),
        ("swept", &["-P", "n", "1", "3", "sleep 0.00{n}"]),
    ];
    for (name, commands) in runs {
        let [newer, older] = [NEWER, OLDER].map(|version| path(&format!("{name}-{version}.json")));
        let exports = ["--export-json", &newer, "--export-json-1", &older];
        tools::output_of(
            tools::test_binary()?,
            &[&["compare", "-q", "--no-evidence", "-r", "8"], &exports[..], commands].concat(),
        )?;
    }
    for version in [OLDER, NEWER] {
        let scripts = tools::source("hyperfine", version).context("the source")?.join("scripts");
        for (script, name) in SCRIPTS {
            let (file, picture) = (path(&format!("{name}-{version}.json")), path("picture.png"));
            let script = scripts.join(script).to_string_lossy().into_owned();
            let python = tools::python().to_string_lossy().into_owned();
            let draws = script.contains("/plot_");
            let drawn: &[&str] = if draws { &["-o", &picture] } else { &[] };
            let _ = fs::remove_file(&picture);
            let words = ["MPLBACKEND=Agg", &*python, "-B", "-W", "ignore", &script, &file];
            let output = tools::output_of("env", &[&words, drawn].concat()).with_context(|| script.clone())?;
            let is_read = if draws { Path::new(&picture).exists() } else { output.contains("one") };
            ensure!(is_read, "{script}: nothing came of it: {output}");
        }
        println!("{version}: {} scripts", SCRIPTS.len());
    }
    Ok(())
}
