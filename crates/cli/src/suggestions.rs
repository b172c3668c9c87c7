//! Names that other tools have for options and subcommands, and how to write the same here.

use clap::Command;

/// What to write in place of a name of another tool.
struct Suggestion {
    /// Subcommands, and options with their dashes.
    names: &'static [&'static str],
    /// A command line, or an option that every command that measures has.
    instead: &'static str,
    /// The effect of `instead`, in the third person.
    effect: &'static str,
}

const SUGGESTIONS: &[Suggestion] = &[
    Suggestion {
        names: &["bench", "benches", "benchmark", "--bench"],
        instead: "cargo bench",
        effect: "runs benches of your own functions; docs/guide.md has an example",
    },
    Suggestion {
        names: &["benchmark", "diff", "hyperfine", "measure", "time"],
        instead: "ascertain compare COMMAND COMMAND",
        effect: "compares commands",
    },
    Suggestion {
        names: &["perf", "stat", "--event", "--events", "--perf"],
        instead: "ascertain compare --counters COMMAND COMMAND",
        effect: "counts instructions, cache misses and page faults",
    },
    Suggestion {
        names: &["test", "validate", "verify"],
        instead: "ascertain check claims.toml",
        effect: "judges the claims of a file",
    },
    Suggestion { names: &["resume"], instead: "ascertain continue", effect: "resumes the latest run" },
    Suggestion {
        names: &["html", "open", "show", "view", "--export-html", "--html", "--html-report", "--open", "--report"],
        instead: "ascertain report",
        effect: "makes an HTML page of the latest run",
    },
    Suggestion { names: &["log", "runs", "--history"], instead: "ascertain history", effect: "lists the latest runs" },
    Suggestion {
        names: &["prune", "--delete", "--prune"],
        instead: "ascertain history prune --keep 50",
        effect: "deletes all runs but the latest 50",
    },
    Suggestion {
        names: &["diff", "--baseline", "--compare", "--load-baseline"],
        instead: "ascertain history compare RUN1 RUN2",
        effect: "shows two runs side by side",
    },
    Suggestion {
        names: &["--against", "--baseline"],
        instead: "ascertain compare --reference COMMAND COMMAND",
        effect: "compares a command with a reference",
    },
    Suggestion {
        names: &["--baseline", "--load-baseline"],
        instead: "cargo bench --bench BENCH -- --baseline NAME",
        effect: "shows a bench of your own functions beside a saved run",
    },
    Suggestion {
        names: &["--save-baseline"],
        instead: "cargo bench --bench BENCH -- --save-baseline NAME",
        effect: "saves the run of a bench of your own functions",
    },
    Suggestion {
        names: &["--name", "--save-baseline", "--tag", "--title"],
        instead: "--label v1.2",
        effect: "gives the run a label, by which `report`, `continue` and `history` find it",
    },
    Suggestion {
        names: &["--name", "--names"],
        instead: "ascertain compare --command-name NAME --command-name NAME COMMAND COMMAND",
        effect: "names the commands",
    },
    Suggestion { names: &["--json"], instead: "--format json", effect: "prints the results as JSON" },
    Suggestion { names: &["--csv"], instead: "--format csv", effect: "prints the results as CSV" },
    Suggestion { names: &["--markdown", "--md"], instead: "--format markdown", effect: "prints Markdown tables" },
    Suggestion {
        names: &["--junit", "--junit-xml", "--junitxml"],
        instead: "--export-junit FILE",
        effect: "writes JUnit XML",
    },
    Suggestion {
        names: &["--out-dir", "--output-dir", "--output-directory"],
        instead: "--evidence DIR",
        effect: "keeps the run in this folder",
    },
    Suggestion {
        names: &["--alpha", "--confidence", "--confidence-level", "--significance-level"],
        instead: "--error 0.05",
        effect: "sets the chance of a wrong verdict",
    },
    Suggestion {
        names: &["--benchtime", "--duration", "--max-duration", "--measurement-time"],
        instead: "--max-time 2min",
        effect: "sets how long the run may take",
    },
    Suggestion {
        names: &["--count", "--iterations", "--repeat", "--sample-count", "--sample-size", "--samples"],
        instead: "--max-trials 100",
        effect: "limits the number of trials",
    },
    Suggestion {
        names: &["--count", "--iterations", "--repeat", "--sample-count", "--sample-size", "--samples"],
        instead: "ascertain compare --runs 100 COMMAND COMMAND",
        effect: "takes exactly 100 trials",
    },
    Suggestion {
        names: &["--warm-up", "--warm-up-time", "--warmup-runs", "--warmup-time"],
        instead: "ascertain compare --warmup 5 COMMAND COMMAND",
        effect: "starts with five trials that do not count",
    },
    Suggestion {
        names: &["--max-regression", "--noise-threshold", "--threshold", "--tolerance"],
        instead: "ascertain compare --margin 3% COMMAND COMMAND",
        effect: "sets the smallest difference that matters",
    },
    Suggestion {
        names: &["--benchmark-compare-fail", "--fail-on-alert", "--fail-on-regression", "--fail-threshold"],
        instead: "ascertain compare --fail-if slower --margin 3% COMMAND COMMAND",
        effect: "exits with 1 if the second command is slower",
    },
    Suggestion {
        names: &["--timeout"],
        instead: "ascertain compare --time-limit 10s COMMAND COMMAND",
        effect: "stops a command that takes longer",
    },
    Suggestion {
        names: &["--latency", "--percentile", "--quantile"],
        instead: "ascertain slo --at-least 99% --within 50ms -- COMMAND",
        effect: "checks a percentile",
    },
    Suggestion { names: &["--verbose"], instead: "--explain", effect: "prints the reasons below the answers" },
    Suggestion {
        names: &["calibrate", "doctor", "noise"],
        instead: "ascertain calibrate-here",
        effect: "measures the noise of this machine",
    },
    Suggestion {
        names: &["describe", "info"],
        instead: "ascertain explain sum",
        effect: "explains an experiment or a claim",
    },
    Suggestion {
        names: &["copy", "cp", "push", "upload"],
        instead: "ascertain put FILE s3://BUCKET/NAME",
        effect: "uploads files",
    },
    Suggestion {
        names: &["copy", "cp", "download", "fetch", "pull"],
        instead: "ascertain get s3://BUCKET/NAME FILE",
        effect: "downloads files",
    },
    Suggestion {
        names: &["completion", "--completion", "--completions", "--generate-completions"],
        instead: "ascertain completions bash",
        effect: "prints completions for a shell",
    },
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
