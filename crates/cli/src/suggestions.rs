//! Names that other tools have for options and subcommands, and how to write the same here.

use clap::Command;

/// The equivalent of subcommands and options of other tools.
struct Suggestion {
    /// Subcommands, and options with their dashes.
    names: &'static [&'static str],
    /// A command line, or an option that every command that measures has.
    instead: &'static str,
    /// The effect of `instead`, in the third person.
    effect: &'static str,
}

const fn suggest(names: &'static [&'static str], instead: &'static str, effect: &'static str) -> Suggestion {
    Suggestion { names, instead, effect }
}

const SUGGESTIONS: &[Suggestion] = &[
    suggest(
        &["bench", "benches", "benchmark", "--bench"],
        "cargo bench",
        "runs benches of your own functions; docs/guide.md has an example",
    ),
    suggest(
        &["benchmark", "diff", "hyperfine", "measure", "time"],
        "ascertain compare COMMAND COMMAND",
        "compares commands",
    ),
    suggest(
        &["perf", "stat", "--event", "--events", "--perf"],
        "ascertain compare --counters COMMAND COMMAND",
        "counts instructions, cache misses and page faults",
    ),
    suggest(&["test", "validate", "verify"], "ascertain check claims.toml", "judges the claims of a file"),
    suggest(&["resume"], "ascertain continue", "resumes the latest run"),
    suggest(
        &["html", "open", "show", "view", "--export-html", "--html", "--html-report", "--open", "--report"],
        "ascertain report",
        "makes an HTML page of the latest run",
    ),
    suggest(&["log", "runs", "--history"], "ascertain history", "lists the latest runs"),
    suggest(
        &["prune", "--delete", "--prune"],
        "ascertain history prune --keep 50",
        "deletes all runs but the latest 50",
    ),
    suggest(
        &["diff", "--baseline", "--compare", "--load-baseline"],
        "ascertain history compare RUN1 RUN2",
        "shows two runs side by side",
    ),
    suggest(
        &["--against", "--baseline"],
        "ascertain compare --reference COMMAND COMMAND",
        "compares a command with a reference",
    ),
    suggest(
        &["--baseline", "--load-baseline"],
        "cargo bench --bench BENCH -- --baseline NAME",
        "shows a bench of your own functions beside a saved run",
    ),
    suggest(
        &["--save-baseline"],
        "cargo bench --bench BENCH -- --save-baseline NAME",
        "saves the run of a bench of your own functions",
    ),
    suggest(
        &["--name", "--save-baseline", "--tag", "--title"],
        "--label v1.2",
        "gives the run a label, by which `report`, `continue` and `history` find it",
    ),
    suggest(
        &["--name", "--names"],
        "ascertain compare --command-name NAME --command-name NAME COMMAND COMMAND",
        "names the commands",
    ),
    suggest(&["--json"], "--format json", "prints the results as JSON"),
    suggest(&["--csv"], "--format csv", "prints the results as CSV"),
    suggest(&["--markdown", "--md"], "--format markdown", "prints Markdown tables"),
    suggest(&["--junit", "--junit-xml", "--junitxml"], "--export-junit FILE", "writes JUnit XML"),
    suggest(&["--out-dir", "--output-dir", "--output-directory"], "--evidence DIR", "keeps the run in this folder"),
    suggest(
        &["--alpha", "--confidence", "--confidence-level", "--significance-level"],
        "--error 0.05",
        "sets the chance of a wrong verdict",
    ),
    suggest(
        &["--benchtime", "--duration", "--max-duration", "--measurement-time"],
        "--max-time 2min",
        "sets how long the run may take",
    ),
    suggest(
        &["--count", "--iterations", "--repeat", "--sample-count", "--sample-size", "--samples"],
        "--max-trials 100",
        "limits the number of trials",
    ),
    suggest(
        &["--count", "--iterations", "--repeat", "--sample-count", "--sample-size", "--samples"],
        "ascertain compare --runs 100 COMMAND COMMAND",
        "takes exactly 100 trials",
    ),
    suggest(
        &["--warm-up", "--warm-up-time", "--warmup-runs", "--warmup-time"],
        "ascertain compare --warmup 5 COMMAND COMMAND",
        "starts with five trials that do not count",
    ),
    suggest(
        &["--max-regression", "--noise-threshold", "--threshold", "--tolerance"],
        "ascertain compare --margin 3% COMMAND COMMAND",
        "sets the smallest difference that matters",
    ),
    suggest(
        &["--benchmark-compare-fail", "--fail-on-alert", "--fail-on-regression", "--fail-threshold"],
        "ascertain compare --fail-if slower --margin 3% COMMAND COMMAND",
        "exits with 1 if the second command is slower",
    ),
    suggest(&["--timeout"], "ascertain compare --time-limit 10s COMMAND COMMAND", "stops a command that takes longer"),
    suggest(
        &["--latency", "--percentile", "--quantile"],
        "ascertain slo --at-least 99% --within 50ms -- COMMAND",
        "checks a percentile",
    ),
    suggest(&["--verbose"], "--explain", "prints the reasons below the answers"),
    suggest(&["calibrate", "doctor", "noise"], "ascertain calibrate-here", "measures the noise of this machine"),
    suggest(&["describe", "info"], "ascertain explain sum", "explains an experiment or a claim"),
    suggest(&["copy", "cp", "push", "upload"], "ascertain put FILE s3://BUCKET/NAME", "uploads files"),
    suggest(&["copy", "cp", "download", "fetch", "pull"], "ascertain get s3://BUCKET/NAME FILE", "downloads files"),
    suggest(
        &["completion", "--completion", "--completions", "--generate-completions"],
        "ascertain completions bash",
        "prints completions for a shell",
    ),
];

/// Suggestions for a name that a command does not have: an option with its dashes, or a subcommand. Options are
/// suggested only if the command has them.
pub fn for_name(name: &str, command: &Command) -> Vec<String> {
    let name = name.split('=').next().unwrap_or(name);
    let has_option = |line: &str| {
        let option = line.strip_prefix("--").and_then(|option| option.split(' ').next());
        option.is_none_or(|option| command.get_arguments().any(|argument| argument.get_long() == Some(option)))
    };
    let found = SUGGESTIONS.iter().filter(|suggestion| suggestion.names.contains(&name));
    let found = found.filter(|suggestion| has_option(suggestion.instead));
    found.map(|Suggestion { instead, effect, .. }| format!("`{instead}` {effect}")).collect()
}

#[cfg(test)]
mod tests {
    use ascertain_sys::process::split;
    use clap::error::ErrorKind;
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::Cli;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(split(line).unwrap())
    }

    /// The shortest command lines of the commands that measure, without their commands.
    const MEASURING: [[&str; 2]; 4] = [
        ["ascertain compare", "true true"],
        ["ascertain slo --at-least 50%", "-- true"],
        ["ascertain check", ""],
        ["ascertain run", "sum"],
    ];

    /// The options of a user's own bench, which the crate `ascertain` reads.
    const BENCH_OPTIONS: &str = include_str!("../../ascertain/src/bench/options.rs");

    #[test]
    fn every_suggestion_is_a_command_line_that_parses() {
        for Suggestion { instead, .. } in SUGGESTIONS {
            if let Some((cargo, options)) = instead.split_once(" -- ").filter(|_| instead.starts_with("cargo")) {
                assert_eq!(cargo, "cargo bench --bench BENCH");
                assert!(BENCH_OPTIONS.contains(&format!("      {options}")), "{instead}");
                continue;
            }
            let lines = match *instead {
                option if option.starts_with("--") => {
                    MEASURING.map(|[before, behind]| format!("{before} {option} {behind}")).to_vec()
                }
                "cargo bench" => continue,
                line => vec![line.to_string()],
            };
            for line in lines {
                if let Err(error) = parse(&line) {
                    panic!("{line}: {error}");
                }
            }
        }
    }

    #[test]
    fn every_name_is_unknown_and_gets_its_suggestions() {
        let cli = Cli::command();
        let [compare, list] = ["compare", "list"].map(|name| cli.find_subcommand(name).unwrap());
        for name in SUGGESTIONS.iter().flat_map(|suggestion| suggestion.names) {
            let line = match name.starts_with("--") {
                true => format!("ascertain compare true true {name}"),
                false => format!("ascertain {name}"),
            };
            let error = crate::with_suggestions(parse(&line).err().unwrap_or_else(|| panic!("{line} parses")));
            assert!(matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand), "{line}");
            let text = error.to_string();
            let tips = for_name(name, compare);
            assert!(!tips.is_empty() && tips.iter().all(|tip| text.contains(&format!("tip: {tip}"))), "{text}");
            assert_eq!(text.matches("tip: ").count(), tips.len(), "{text}");
        }
        assert!(for_name("--export-html=page.html", list)[0].starts_with("`ascertain report`"));
        assert!(for_name("--verbose", list).is_empty(), "it has no --explain");
        assert!(for_name("--export-json", compare).is_empty());
    }
}
