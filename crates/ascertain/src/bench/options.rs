//! What a bench is asked for on its command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use ascertain_engine::names::nearest;
use ascertain_engine::plan::Config;
use ascertain_engine::unit::{Unit, parse_quantity};
use ascertain_report::exports::{ExportFormat, FORMATS};
use lexopt::prelude::*;
use regex_lite::Regex;

use super::main::Pairs;
use crate::arguments::{self, count, duration, positive_share, share};

pub(super) const HELP: &str = "\
Measures functions against each other; the first of each group is the reference.

Usage: cargo bench --bench NAME -- [OPTIONS] [FILTER …]

A FILTER is a part of what --list shows, `group/function (input)`, or a regular expression that fits a part of it:
without one, all are measured.

      --exact           a FILTER is the whole of it
      --skip FILTER     leave out what this filter fits
      --reference NAME  compare the other functions of its group with this one instead of the first
      --all-pairs       compare every function with every other; the pairs share the error of the group
      --baseline NAME   lay the results beside those recorded under that name: medians, and no verdict, since nothing
                        pairs one run with another
      --save-baseline NAME
                        keep this run of each group under a name, which `ascertain history` knows as GROUP@NAME; both
                        need the feature `recorded` of `ascertain`
      --margin M        faster or slower beyond this, same inside; 0 counts wins [default: 1%]
      --error E         the chance that any answer for a group is wrong [default: 0.001]
      --precision P     measure until the intervals of all ratios and medians are at most this wide: 1% is ±1 %
                        [default: 1%, but for no longer than half a second for each function]
      --quick           stop at the answers, even if the intervals are wide
      --max-time TIME   for each input of a group: no new trial after that long [default: 10s]
      --max-trials N    for each group: no new trial after that many
      --seed N          the same seed gives the same plan
      --format FORMAT   table, json (an object for each group), csv or markdown [default: table]
      --evidence DIR    folder of runs, instead of ~/.local/state/ascertain/runs
      --no-evidence     keep no evidence
      --export-KIND FILE
                        write the results of all groups for other tools, anew as they arrive; KIND is json, json-1, csv,
                        markdown, asciidoc, orgmode, junit, github, bencher, go or google-benchmark; needs the feature
                        `exports` of `ascertain`
      --list            list the functions, a line each, as `--format terse` of other test programs does
      --test            call each function once and check its answer; time nothing
      --bench           measure: what `cargo bench` says, and what `cargo test --benches` does not
      --ignored         what test programs ignore, which is nothing here; --include-ignored and --nocapture change
                        nothing
  -h, --help            this text

Exit codes: 0 done; 2 usage; 4 no function passes the filter; 5 a wrong answer; 130 interrupted.
";

const SHARED: &str = "an export can't share standard output with what --format asks for: name a file";

/// The half width of the intervals of ratios and medians, relative to their middle, that a group goes on for after its
/// answers.
const PRECISION: f64 = 0.01;
/// The time for each function, from the start of its group, that the group goes on for narrow intervals: a tenth of the
/// time that criterion takes for a function.
const PRECISION_TIME: Duration = Duration::from_millis(500);

/// Functions that are equal to the letter may truly differ by that much: see [`super`].
const MARGIN: f64 = 0.01;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Measure,
    Test,
    List,
    Help,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Table,
    Json,
    Csv,
    Markdown,
}

#[derive(Clone, Debug)]
pub(super) struct Options {
    pub task: Task,
    /// Whether `cargo bench` asks, and not `cargo test`.
    pub is_bench: bool,
    filters: Vec<Filter>,
    is_exact: bool,
    skipped: Vec<Filter>,
    /// Only what is ignored is asked for: nothing.
    pub ignored_only: bool,
    /// The function that is the reference of its group.
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

/// What a name has in it: the text as it is, or what it says as a regular expression. Inputs stand in brackets, so that
/// many a text that one copies from the list is not an expression, or one that says something else.
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
    /// Whether a function of a group, named with its input, is wanted.
    pub fn wants(&self, group: &str, function: &str) -> bool {
        let path = format!("{group}/{function}");
        let fits = |filter: &Filter| if self.is_exact { path == filter.text } else { filter.fits_a_part_of(&path) };
        let is_asked_for = self.filters.is_empty() || self.filters.iter().any(fits);
        is_asked_for && !self.skipped.iter().any(fits) && !self.ignored_only
    }

    pub fn pairs(&self) -> Pairs {
        if self.all_pairs { Pairs::All } else { Pairs::WithTheFirst }
    }

    /// Reads the arguments, the program's name left out. `seed` is taken where none is given.
    ///
    /// # Errors
    /// When an option is unknown, its value is none, or two don't go together.
    pub fn read<I>(arguments: I, seed: u64) -> Result<Options, lexopt::Error>
    where
        I: IntoIterator<Item: Into<OsString>>,
    {
        let max_time = Duration::from_secs(10);
        let config = Config { seed, max_time, margin: Some(MARGIN), ..Config::default() };
        let mut options = Options {
            task: Task::Measure,
            is_bench: false,
            filters: Vec::new(),
            is_exact: false,
            skipped: Vec::new(),
            ignored_only: false,
            reference: None,
            all_pairs: false,
            baseline: None,
            save_baseline: None,
            config,
            format: Format::Table,
            evidence: None,
            no_evidence: false,
            exports: Vec::new(),
        };
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
                // What people and test runners pass to all tests at once.
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
            return Err("a baseline is a recorded run: leave --no-evidence out".into());
        }
        let config = &mut options.config;
        match config.precision {
            Some(_) if is_quick => {
                return Err("--quick and --precision exclude each other; leave one of them out".into());
            }
            None if !is_quick => (config.precision, config.precision_time) = (Some(PRECISION), Some(PRECISION_TIME)),
            _ => {}
        }
        config.median_precision = config.precision;
        if options.baseline.is_some() && options.format == Format::Csv {
            return Err("what --baseline shows is another table, and CSV has one: take json, markdown or table".into());
        }
        Ok(options)
    }
}

/// The kind of file that an option asks for.
fn export(argument: &lexopt::Arg) -> Option<&'static ExportFormat> {
    FORMATS.iter().find(|kind| matches!(argument, Long(name) if *name == kind.option))
}

/// The options that lines of the help begin with; exports are a list of their own.
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
        // `--list --format terse` is how test runners ask; a list is always terse.
        "table" | "terse" => Ok(Format::Table),
        "json" => Ok(Format::Json),
        "csv" => Ok(Format::Csv),
        "markdown" => Ok(Format::Markdown),
        _ => Err("it is table, json, csv or markdown".into()),
    }
}

/// How one comes by a feature.
fn add(feature: &str) -> String {
    format!("add features = [\"{feature}\"] to ascertain in Cargo.toml")
}

/// Of a baseline.
fn name(text: &str) -> Result<String, String> {
    match text {
        _ if !cfg!(feature = "recorded") => Err(format!("baselines need a feature: {}", add("recorded"))),
        "" => Err("it is a name, such as main".into()),
        name => Ok(name.into()),
    }
}

/// No margin where it is 0.
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
            (&["--baseline", "main", "--no-evidence"], "a recorded run: leave --no-evidence out"),
            (&["--no-evidence", "--save-baseline", "main"], "a recorded run: leave --no-evidence out"),
            (&["--baseline", "main", "--format", "csv"], "take json, markdown or table"),
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
