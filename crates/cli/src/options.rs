//! Options that several commands share.

use std::path::PathBuf;
use std::time::Duration;

pub use ascertain::arguments::{count, duration, label, margin, positive_share, share};
use ascertain_engine::plan::Config;
use ascertain_engine::unit::{Unit, parse_quantity};
pub use ascertain_report::options::Format;
use ascertain_report::options::RenderOptions;
use ascertain_report::terminal::Style;
use ascertain_sys::clock;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ValueEnum};

use crate::exports::Exports;

/// Options that every measuring command has.
#[derive(clap::Args, Clone, Debug)]
pub struct Common {
    /// Highest chance that any verdict of the run is wrong
    #[arg(long, value_name = "E", default_value = "0.001", value_parser = share, help_heading = "Judging")]
    pub error: f64,
    /// Time after which no new trial starts, such as `30s` or `2min`
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Judging")]
    pub max_time: Option<Duration>,
    /// Maximum number of trials for each comparison or claim
    #[arg(long, short_alias = 'M', visible_alias = "max-runs", value_name = "N", value_parser = count,
          help_heading = "Judging")]
    pub max_trials: Option<u64>,
    /// Seed of the run's random numbers: the same seed gives the same plan
    #[arg(long, value_name = "N", help_heading = "Judging")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub display: Display,
    /// Explain, below the answers, how each answer was decided
    #[arg(long, help_heading = "Output")]
    pub explain: bool,
    /// Folder in which to create the run's folder [default: ~/.local/state/ascertain/runs]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub evidence: Option<PathBuf>,
    /// Label of this run: `history` shows it, and `report` and `continue` find the run by it
    #[arg(long, value_name = "LABEL", value_parser = label, conflicts_with = "no_evidence", help_heading = "Output")]
    pub label: Option<String>,
    /// Record no evidence; the run can't be continued or shown later
    #[arg(long, conflicts_with = "evidence", help_heading = "Output")]
    pub no_evidence: bool,
    #[command(flatten)]
    pub exports: Exports,
}

impl Common {
    /// Returns the configuration that results from a command's defaults and the options.
    pub fn config(&self, default: Config) -> Config {
        let mut config = Config { error: self.error, max_trials: self.max_trials, seed: seed(self.seed), ..default };
        if let Some(max_time) = self.max_time {
            config.limit_time(max_time);
        }
        config
    }

    /// Returns the options for printing that all measuring commands share.
    pub fn render(&self) -> RenderOptions {
        RenderOptions { explain: self.explain, ..self.display.render() }
    }
}

/// Parses a size of at least 1 byte, with or without a unit.
pub fn bytes(text: &str) -> Result<u64, String> {
    let bytes = text.parse::<f64>().or_else(|_| parse_quantity(text, Unit::Byte)).map_err(|error| error.to_string())?;
    if (1.0..1e18).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err(format!("`{text}` is not a size; give a size such as 256MiB"))
    }
}

/// Least memory limit without a unit, in bytes. Smaller numbers are likely to mean another unit.
const LEAST_WITHOUT_UNIT: f64 = 1e6;

/// Parses a memory limit: a size, which needs a unit if it is small.
pub fn memory_limit(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(number) if (1.0..LEAST_WITHOUT_UNIT).contains(&number) => {
            Err(format!("`{text}` has no unit; write a unit, such as {text}MB or {text}kB"))
        }
        _ => bytes(text),
    }
}

/// Returns the given seed, or else a new one. The seed is printed and recorded, so that a run can be repeated.
pub fn seed(given: Option<u64>) -> u64 {
    given.unwrap_or_else(|| (clock::unix_ns() ^ u64::from(std::process::id())) % 1_000_000_007)
}

/// Appends a command's own default value to the help text of a shared option.
pub fn with_default(arg: Arg, default: &str) -> Arg {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    arg.help(format!("{help} [default: {default}]"))
}

/// Options that every printing command has.
#[derive(clap::Args, Clone, Debug)]
pub struct Display {
    /// Format of the results
    #[arg(long, value_parser = one_of(FORMATS), value_name = "FORMAT", default_value = "table", help_heading = "Output")]
    pub format: Format,
    /// Print no progress, no table and no sentences; errors are still printed
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// Use of colours
    #[arg(long, value_enum, default_value_t = Color::Auto, help_heading = "Output")]
    pub color: Color,
}

/// The words that `--format` accepts, each with its help text and value.
pub const FORMATS: &[Word<Format>] = &[
    (&["table"], "Tables and sentences for people", Format::Table),
    (&["json"], "One JSON object; its `schema` names the structure and its version", Format::Json),
    (&["csv"], "One line for each metric of each arm", Format::Csv),
    (&["markdown"], "Markdown tables", Format::Markdown),
];

impl Display {
    /// Returns the options for printing a result.
    pub fn render(&self) -> RenderOptions {
        RenderOptions { format: self.format, quiet: self.quiet, style: self.style(), ..RenderOptions::default() }
    }

    /// Returns the colours that `--color` selects, and the width of the terminal.
    pub fn style(&self) -> Style {
        Style::of_stdout(match self.color {
            Color::Always => Some(true),
            Color::Never => Some(false),
            Color::Auto => None,
        })
    }
}

/// The values of `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// Use colours on a terminal, unless NO_COLOR is set
    Auto,
    /// Always use colours
    Always,
    /// Never use colours
    Never,
}

/// A word that an option accepts: first the word and its aliases, then its help text, then the value for which it
/// stands.
pub type Word<T> = (&'static [&'static str], &'static str, T);

/// Returns a parser for an option that accepts these words. It returns the value for which the given word stands.
pub fn one_of<T: Clone + Send + Sync>(words: &'static [Word<T>]) -> impl TypedValueParser<Value = T> {
    let values = words.iter().map(|(names, about, _)| PossibleValue::new(names[0]).aliases(&names[1..]).help(*about));
    PossibleValuesParser::new(values).try_map(|given| {
        let meant = words.iter().find(|(names, ..)| names.contains(&given.as_str()));
        meant.map(|(.., value)| value.clone()).ok_or("this value is not accepted")
    })
}
