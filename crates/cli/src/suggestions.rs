//! Names of options and subcommands in other tools, and what to use in this tool instead.

use clap::Command;

/// Pairs of lines. The first line suggests an option or a command line of this tool, in the third person. The second
/// line is indented, and lists the options and subcommands of other tools for which this is suggested. A suggestion
/// that begins with an option must apply to every measuring command.
const SUGGESTIONS: &str = "\
`cargo bench` runs benches of your own functions; docs/functions.md has an example
    bench benches benchmark --bench
`ascertain compare COMMAND COMMAND` compares commands
    benchmark diff hyperfine measure time
`ascertain compare --counters COMMAND COMMAND` counts instructions, cache misses and page faults
    perf stat --event --events --perf
`ascertain check claims.toml` judges the claims of a file
    test validate verify
`ascertain continue` resumes the latest run
    resume
`ascertain report` makes an HTML page of the latest run
    html open show view --export-html --html --html-report --open --report
`ascertain history` lists the latest runs
    log runs --history
`ascertain history prune --keep 50` deletes all runs but the latest 50
    prune --delete --prune
`ascertain history compare RUN1 RUN2` shows two runs side by side
    diff --baseline --compare --load-baseline
`ascertain compare --reference COMMAND COMMAND` compares a command with a reference
    --baseline
`ascertain compare --against main -- COMMAND` compares a program with that of another revision
    bisect --base --base-ref --ref --revision
`cargo bench --bench BENCH -- --baseline NAME` shows a bench of your own functions beside a saved run
    --baseline --load-baseline
`cargo bench --bench BENCH -- --save-baseline NAME` saves the run of a bench of your own functions
    --save-baseline
`--label v1.2` gives the run a label, by which `report`, `continue` and `history` find it
    --name --save-baseline --tag --title
`ascertain compare --command-name NAME --command-name NAME COMMAND COMMAND` names the commands
    --name --names
`--format json` prints the results as JSON
    --json
`--format csv` prints the results as CSV
    --csv
`--format markdown` prints Markdown tables
    --markdown --md
`--export-junit FILE` writes JUnit XML
    --junit --junit-xml --junitxml
`--evidence DIR` keeps the run in this folder
    --out-dir --output-dir --output-directory
`--error 0.05` sets the chance of a wrong verdict
    --alpha --confidence --confidence-level --significance-level
`--max-time 2min` sets how long the run may take
    --benchtime --duration --max-duration --measurement-time
`--max-trials 100` limits the number of trials
    --count --iterations --repeat --sample-count --sample-size --samples
`ascertain compare --runs 100 COMMAND COMMAND` takes exactly 100 trials
    --count --iterations --repeat --sample-count --sample-size --samples
`ascertain compare --warmup 5 COMMAND COMMAND` starts with five trials that do not count
    --warm-up --warm-up-time --warmup-runs --warmup-time
`ascertain compare --margin 3% COMMAND COMMAND` sets the smallest difference that matters
    --max-regression --noise-threshold --threshold --tolerance
`ascertain compare --fail-if slower --margin 3% COMMAND COMMAND` exits with 1 if the second command is slower
    --benchmark-compare-fail --fail-on-alert --fail-on-regression --fail-threshold
`ascertain compare --time-limit 10s COMMAND COMMAND` stops a command that takes longer
    --timeout
`ascertain slo --at-least 99% --within 50ms -- COMMAND` checks a percentile
    --latency --percentile --quantile
`--explain` prints the reasons below the answers
    --verbose
`ascertain calibrate-here` measures the noise of this machine
    calibrate doctor noise
`ascertain explain sum` explains an experiment or a claim
    describe info
`ascertain put FILE s3://BUCKET/NAME` uploads files
    copy cp push upload
`ascertain get s3://BUCKET/NAME FILE` downloads files
    copy cp download fetch pull
`ascertain ls s3://BUCKET/PREFIX/` lists the objects of a store
    dir lsf
`ascertain completions bash` prints completions for a shell
    completion --completion --completions --generate-completions
";

/// Returns each suggestion, with the names from other tools to which it applies.
fn suggestions() -> impl Iterator<Item = (&'static str, &'static str)> {
    SUGGESTIONS.lines().zip(SUGGESTIONS.lines().skip(1)).step_by(2)
}

/// Returns the option or command line of this tool that a suggestion names.
fn instead(suggestion: &str) -> &str {
    suggestion.split('`').nth(1).unwrap_or_default()
}

/// Returns the suggestions for an option (with its dashes) or subcommand that does not exist. Suggests an option only
/// if `command` has it.
pub fn for_name(name: &str, command: &Command) -> Vec<String> {
    let name = name.split('=').next().unwrap_or(name);
    let has_option = |line: &str| {
        let option = line.strip_prefix("--").and_then(|option| option.split(' ').next());
        option.is_none_or(|option| command.get_arguments().any(|argument| argument.get_long() == Some(option)))
    };
    let is_for_it = |names: &str| names.split_whitespace().any(|other| other == name);
    let found = suggestions().filter(|(suggestion, names)| is_for_it(names) && has_option(instead(suggestion)));
    found.map(|(suggestion, _)| suggestion.to_string()).collect()
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

    /// The shortest command line of each command that measures, split into two texts. A test inserts an option between
    /// them.
    const MEASURING: [[&str; 2]; 4] = [
        ["ascertain compare", "true true"],
        ["ascertain slo --at-least 50%", "-- true"],
        ["ascertain check", ""],
        ["ascertain run", "sum"],
    ];

    /// The source file that reads the options of a user's own bench.
    const BENCH_OPTIONS: &str = include_str!("../../ascertain/src/bench/options.rs");

    #[test]
    fn every_suggestion_is_a_command_line_that_parses() {
        for (suggestion, _) in suggestions() {
            let instead = instead(suggestion);
            if let Some((cargo, options)) = instead.split_once(" -- ").filter(|_| instead.starts_with("cargo")) {
                assert_eq!(cargo, "cargo bench --bench BENCH");
                assert!(BENCH_OPTIONS.contains(&format!("      {options}")), "{instead}");
                continue;
            }
            let lines = match instead {
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
        for name in suggestions().flat_map(|(_, names)| names.split_whitespace()) {
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
