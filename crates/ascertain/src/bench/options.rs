//! Parses the command line of a bench.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use ascertain_engine::names::nearest;
use ascertain_engine::plan::Config;
use ascertain_engine::unit::{Unit, parse_quantity};
use ascertain_report::exports::{ExportFormat, FORMATS};
use ascertain_report::options::Format;
use lexopt::prelude::*;
use regex_lite::Regex;

use super::main::Pairs;
use crate::arguments::{self, count, duration, positive_share, share};

pub(super) const HELP: &str = "\
Measure functions against each other; the first one of each group is the reference

Usage: cargo bench --bench NAME -- [OPTIONS] [FILTER …]

A FILTER is a part of a path that --list prints, `group/function (input)`, or a regular expression that matches a
part of it. Without a FILTER, all functions are measured.

      --exact           match each FILTER against the whole path
      --skip FILTER     filter of functions to leave out
      --reference NAME  function with which the others of its group are compared, instead of the first one
      --all-pairs       compare every function with every other; the pairs share the error of the group
      --baseline NAME   recorded baseline to compare the medians with; there is no verdict, because trials are not
                        paired between runs (needs the feature `recorded` of `ascertain`)
      --save-baseline NAME
                        name under which this run of each group is kept; `ascertain history` lists it as GROUP@NAME
                        (needs the feature `recorded` of `ascertain`)
      --margin M        smallest difference that matters: the answer is faster or slower for a larger difference, and
                        same for a smaller one; with 0, the function that wins more pairs is faster [default: 1%]
      --error E         highest chance that any answer for a group is wrong [default: 0.001]
      --precision P     width to which the intervals of all ratios and medians are narrowed; 1% is ±1 % [default: 1%,
                        for at most half a second for each function]
      --quick           stop at the answers, even if the intervals are wide
      --max-time TIME   time for each input of a group, after which no new trial starts [default: 10s]
      --max-trials N    maximum number of trials for each group
      --seed N          seed of the random numbers: the same seed gives the same plan
      --format FORMAT   format of the results: table, json (an object for each group), csv or markdown [default: table]
      --evidence DIR    folder of runs [default: ~/.local/state/ascertain/runs]
      --no-evidence     record no evidence
      --export-KIND FILE
                        file for the results of all groups, for other tools; it is rewritten as results arrive. KIND is
                        json, json-1, csv, markdown, asciidoc, orgmode, junit, github, bencher, go or google-benchmark
                        (needs the feature `exports` of `ascertain`)
      --list            list the functions, one per line, as `--format terse` of other test programs does
      --test            call each function once and check its answer, without measuring
      --bench           measure (`cargo bench` passes this option, and `cargo test --benches` does not)
      --ignored         run nothing, because a bench has no ignored functions; --include-ignored and --nocapture are
                        accepted and have no effect
  -h, --help            print this text

Exit codes: 0 done; 2 wrong usage; 4 no function passes the filter; 5 a wrong answer; 130 interrupted.
";

const SHARED: &str = "an export can't share standard output with the output of --format; name a file";

/// Default precision. Functions are measured until the intervals of ratios and medians are at most ±1 %.
const PRECISION: f64 = 0.01;
/// Time limit per function for reaching [`PRECISION`], counted from the start of the group. It is a tenth of the time
/// that criterion takes for a function.
const PRECISION_TIME: Duration = Duration::from_millis(500);

/// Default margin. Even identical functions may differ by this much, as [`super`] explains.
const MARGIN: f64 = 0.01;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Task {
    #[default]
    Measure,
    Test,
    List,
    Help,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub task: Task,
    /// `true` if the argument `--bench` is given. `cargo bench` passes it to benches; `cargo test` does not.
    pub is_bench: bool,
    filters: Vec<Filter>,
    is_exact: bool,
    skipped: Vec<Filter>,
    /// `true` for `--ignored`, which runs only ignored functions. A bench has no ignored functions, so this selects
    /// nothing.
    pub ignored_only: bool,
    /// Name of the function that becomes the reference, in each group that has it.
    pub reference: Option<String>,
    pub all_pairs: bool,
    pub baseline: Option<String>,
    pub save_baseline: Option<String>,
    pub config: Config,
    pub format: Format,
    pub evidence: Option<PathBuf>,
    pub no_evidence: bool,
    pub exports: Vec<(&'static ExportFormat, PathBuf)>,
}

/// A filter of function names. It matches a name either as plain text or as a regular expression. Plain text is needed
/// because names contain their input in brackets, and brackets have another meaning in a regular expression.
#[derive(Clone, Debug)]
struct Filter {
    text: String,
    expression: Option<Regex>,
}

impl Filter {
    fn new(text: String) -> Filter {
        Filter { expression: Regex::new(&text).ok(), text }
    }

    fn fits_a_part_of(&self, path: &str) -> bool {
        path.contains(&self.text) || self.expression.as_ref().is_some_and(|expression| expression.is_match(path))
    }
}

impl Options {
    /// Returns whether the filters select the function with the full name `group/function`. `function` includes the
    /// input.
    pub fn wants(&self, group: &str, function: &str) -> bool {
        let path = format!("{group}/{function}");
        let fits = |filter: &Filter| if self.is_exact { path == filter.text } else { filter.fits_a_part_of(&path) };
        let is_asked_for = self.filters.is_empty() || self.filters.iter().any(fits);
        is_asked_for && !self.skipped.iter().any(fits) && !self.ignored_only
    }

    pub fn pairs(&self) -> Pairs {
        if self.all_pairs { Pairs::All } else { Pairs::WithTheFirst }
    }

    /// Parses the arguments, without the program's name. `seed` is used if no option sets a seed.
    ///
    /// # Errors
    /// If an option is unknown, a value is invalid, or two options contradict each other.
    pub fn read<I>(arguments: I, seed: u64) -> Result<Options, lexopt::Error>
    where
        I: IntoIterator<Item: Into<OsString>>,
    {
        let max_time = Duration::from_secs(10);
        let config = Config { seed, max_time, margin: Some(MARGIN), ..Config::default() };
        let mut options = Options { config, ..Options::default() };
        let (mut task, mut is_quick) = (None, false);
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Value(filter) => options.filters.push(Filter::new(filter.string()?)),
                Short('h') | Long("help") => task = Some(Task::Help),
                Long("list") => task = task.or(Some(Task::List)),
                Long("test") => task = task.or(Some(Task::Test)),
                Long("bench") => options.is_bench = true,
                Long("exact") => options.is_exact = true,
                Long("reference") => options.reference = Some(parser.value()?.string()?),
                Long("all-pairs") => options.all_pairs = true,
                Long("quick") => is_quick = true,
                Long("skip") => options.skipped.push(Filter::new(parser.value()?.string()?)),
                Long("ignored") => options.ignored_only = true,
                // Users and test runners pass these options to all test programs; they have no effect here.
                Long("nocapture" | "include-ignored") => {}
                Long("baseline") => options.baseline = Some(parser.value()?.parse_with(name)?),
                Long("save-baseline") => options.save_baseline = Some(parser.value()?.parse_with(name)?),
                Long("evidence") => options.evidence = Some(parser.value()?.into()),
                Long("no-evidence") => options.no_evidence = true,
                Long("format") => options.format = parser.value()?.parse_with(format)?,
                Long("seed") => options.config.seed = parser.value()?.parse()?,
                Long("max-trials") => options.config.max_trials = Some(parser.value()?.parse_with(count)?),
                Long("max-time") => options.config.max_time = parser.value()?.parse_with(duration)?,
                Long("error") => options.config.error = parser.value()?.parse_with(share)?,
                Long("precision") => options.config.precision = Some(parser.value()?.parse_with(positive_share)?),
                Long("margin") => options.config.margin = parser.value()?.parse_with(margin)?,
                other => match export(&other) {
                    Some(kind) => match parser.value()? {
                        dash if dash == "-" => return Err(SHARED.into()),
                        file => options.exports.push((kind, file.into())),
                    },
                    None => return Err(unknown(&other)),
                },
            }
        }
        let asked = if options.is_bench { Task::Measure } else { Task::Test };
        options.task = task.unwrap_or(asked);
        if options.no_evidence && (options.baseline.is_some() || options.save_baseline.is_some()) {
            return Err("a baseline is a recorded run; leave out --no-evidence".into());
        }
        let config = &mut options.config;
        match config.precision {
            Some(_) if is_quick => {
                return Err("--quick and --precision can't be combined; leave one of them out".into());
            }
            None if !is_quick => (config.precision, config.precision_time) = (Some(PRECISION), Some(PRECISION_TIME)),
            _ => {}
        }
        config.median_precision = config.precision;
        if options.baseline.is_some() && options.format == Format::Csv {
            return Err(
                "--baseline adds a second table, and CSV has only one; use --format table, json or markdown".into()
            );
        }
        Ok(options)
    }
}

/// Returns the export format that an option `--export-KIND` selects; `None` for other options.
fn export(argument: &lexopt::Arg) -> Option<&'static ExportFormat> {
    FORMATS.iter().find(|kind| matches!(argument, Long(name) if *name == kind.option))
}

/// Returns the names of all options except `export-KIND`. They are taken from the help text, in which each option
/// begins a line.
fn known() -> impl Iterator<Item = &'static str> {
    let lines = HELP.lines().filter_map(|line| line.trim_start().trim_start_matches("-h, ").strip_prefix("--"));
    lines.filter_map(|line| line.split(' ').next()).filter(|option| *option != "export-KIND")
}

fn unknown(argument: &lexopt::Arg) -> lexopt::Error {
    let name = match argument {
        Long(name) => format!("--{name}"),
        Short(letter) => format!("-{letter}"),
        Value(value) => value.to_string_lossy().into_owned(),
    };
    if FORMATS.is_empty() && name.starts_with("--export-") {
        return format!("`{name}` needs a feature: {}", add("exports")).into();
    }
    let exports = FORMATS.iter().map(|kind| kind.option);
    let near = nearest(name.trim_start_matches('-'), known().chain(exports));
    let hint = near.map_or_else(String::new, |near| format!("; did you mean `--{near}`?"));
    format!("there is no option `{name}`{hint}; there are --{}", known().collect::<Vec<_>>().join(", --")).into()
}

fn format(text: &str) -> Result<Format, String> {
    match text {
        // Test runners pass `--list --format terse`. The list always has that format, so accept it.
        "table" | "terse" => Ok(Format::Table),
        "json" => Ok(Format::Json),
        "csv" => Ok(Format::Csv),
        "markdown" => Ok(Format::Markdown),
        _ => Err("use table, json, csv or markdown".into()),
    }
}

/// Returns a hint on how to enable a feature, for a message about an option that needs it.
fn add(feature: &str) -> String {
    format!("add features = [\"{feature}\"] to ascertain in Cargo.toml")
}

/// Parses the name of a baseline, which must not be empty.
fn name(text: &str) -> Result<String, String> {
    match text {
        _ if !cfg!(feature = "recorded") => Err(format!("baselines need a feature: {}", add("recorded"))),
        "" => Err("give a name, such as main".into()),
        name => Ok(name.into()),
    }
}

/// Parses a margin, the difference below which functions count as equally fast. Returns `None` for 0, which means no
/// margin.
fn margin(text: &str) -> Result<Option<f64>, String> {
    match parse_quantity(text, Unit::One) {
        Ok(0.0) => Ok(None),
        _ => arguments::margin(text).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Options, String> {
        Options::read(arguments, 7).map_err(|error| error.to_string())
    }

    #[test]
    fn cargo_bench_measures_and_cargo_test_does_not() {
        for (arguments, task) in [
            (&["--bench"][..], Task::Measure),
            (&[], Task::Test),
            (&["--test"], Task::Test),
            (&["--test", "--bench"], Task::Test),
            (&["--list", "--bench"], Task::List),
            (&["--list", "--help"], Task::Help),
            (&["-h"], Task::Help),
            (&["--nocapture", "sums"], Task::Test),
        ] {
            assert_eq!(read(arguments).unwrap().task, task, "{arguments:?}");
        }
    }

    #[test]
    fn a_margin_is_the_default_and_can_be_switched_off() {
        let margin = |arguments: &[&str]| read(arguments).unwrap().config.margin;
        assert_eq!(margin(&[]), Some(0.01));
        assert_eq!(margin(&["--margin", "5%"]), Some(0.05));
        assert_eq!(margin(&["--margin=0"]), None);
    }

    #[test]
    fn intervals_are_narrowed_for_a_while_unless_another_precision_is_given() {
        let precisions = |arguments: &[&str]| {
            let config = read(arguments).unwrap().config;
            (config.precision, config.median_precision, config.precision_time)
        };
        assert_eq!(precisions(&[]), (Some(0.01), Some(0.01), Some(Duration::from_millis(500))));
        assert_eq!(precisions(&["--precision", "5%"]), (Some(0.05), Some(0.05), None));
        assert_eq!(precisions(&["--quick"]), (None, None, None));
        for both in [["--quick", "--precision=2%"], ["--precision=2%", "--quick"]] {
            assert!(read(&both).unwrap_err().contains("leave one of them out"));
        }
    }

    #[test]
    fn functions_pass_a_filter_by_a_part_of_their_path() {
        let options = read(&["sums/l", "other"]).unwrap();
        assert!(options.wants("sums", "loop") && options.wants("other", "x") && !options.wants("sums", "chunks"));
        let exact = read(&["--exact", "sums/loop"]).unwrap();
        assert!(exact.wants("sums", "loop") && !exact.wants("sums", "loop 2"));
        let sized = read(&["n=10)", "--skip", "chunks"]).unwrap();
        assert!(sized.wants("sums", "loop (n=10)") && !sized.wants("sums", "loop (n=100)"));
        assert!(!sized.wants("sums", "chunks (n=10)"));
        let expression = read(&["^sums/(loop|sort).*=1?0\\)$", "--skip", "^other"]).unwrap();
        assert!(expression.wants("sums", "loop (n=10)") && !expression.wants("sums", "chunks (n=10)"));
        assert!(!expression.wants("sums", "loop (n=100)") && !expression.wants("other", "loop (n=10)"));
        assert!(!read(&["--ignored"]).unwrap().wants("sums", "loop"), "nothing is");
        assert!(read(&["--include-ignored"]).unwrap().wants("sums", "loop"));
    }

    #[test]
    fn baselines_are_recorded_runs() {
        for (arguments, message) in [
            (&["--save-baseline", ""][..], "a name, such as main"),
            (&["--baseline", "main", "--no-evidence"], "a recorded run; leave out --no-evidence"),
            (&["--no-evidence", "--save-baseline", "main"], "a recorded run; leave out --no-evidence"),
            (&["--baseline", "main", "--format", "csv"], "use --format table, json or markdown"),
        ] {
            let error = read(arguments).unwrap_err();
            let message = if cfg!(feature = "recorded") {
                message
            } else {
                "add features = [\"recorded\"] to ascertain in Cargo.toml"
            };
            assert!(error.contains(message), "{arguments:?}: {error}");
        }
        assert_eq!(read(&["--baseline", "main"]).is_ok(), cfg!(feature = "recorded"));
    }

    #[test]
    fn mistakes_name_the_option_and_the_way_out() {
        for (arguments, message) in [
            (
                &["--formt", "json"][..],
                "there is no option `--formt`; did you mean `--format`?; there are --exact, --skip,",
            ),
            (&["-x"], "`-x`"),
            (&["--format", "xml"], "table, json, csv or markdown"),
            (&["--margin", "-1%"], "is below 0"),
            (&["--error", "1"], "strictly between 0 and 1"),
            (&["--max-time", "0s"], "give one such as 30s"),
            (&["--max-time", "5"], "write it in ns"),
            (&["--max-trials", "0"], "a whole number from 1"),
            (&["--seed"], "missing argument"),
        ] {
            let error = read(arguments).unwrap_err();
            assert!(error.contains(message), "{arguments:?}: {error}");
        }
    }

    #[test]
    fn exports_are_known_where_they_are_built() {
        let error = |option: &str| read(&[option, "-"]).unwrap_err();
        let [wrong, right] = ["--export-junt", "--export-junit"].map(error);
        match cfg!(feature = "exports") {
            true => {
                assert!(wrong.contains("did you mean `--export-junit`?"), "{wrong}");
                assert!(right.contains("can't share standard output"), "{right}");
            }
            false => assert!(right.contains("add features = [\"exports\"] to ascertain"), "{right}"),
        }
    }

    #[test]
    fn the_help_names_options_that_there_are_and_every_export() {
        for option in known() {
            let said = read(&[&format!("--{option}"), "1"]).err().unwrap_or_default();
            assert!(!said.contains("there is no option"), "{said}");
        }
        assert_eq!(known().count(), 21);
        let kinds = FORMATS.iter().filter_map(|kind| kind.option.strip_prefix("export-"));
        assert!(kinds.into_iter().all(|kind| HELP.contains(kind)));
    }
}
