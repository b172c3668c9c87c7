//! Options that mean the same everywhere.

use std::path::PathBuf;
use std::time::Duration;

pub use ascertain::arguments::{count, duration, label, margin, positive_share, share};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ValueEnum};

use crate::exports::Exports;

/// Options of every command that measures.
#[derive(clap::Args, Clone, Debug)]
pub struct Common {
    /// The chance that any verdict of the run is wrong
    #[arg(long, value_name = "E", default_value = "0.001", value_parser = share, help_heading = "Judging")]
    pub error: f64,
    /// Start no new trial after this time: `30s`, `2min`
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Judging")]
    pub max_time: Option<Duration>,
    /// Start no new trial after that many
    #[arg(long, short_alias = 'M', visible_alias = "max-runs", value_name = "N", value_parser = count,
          help_heading = "Judging")]
    pub max_trials: Option<u64>,
    /// Seed of the run's random numbers: the same seed gives the same plan
    #[arg(long, value_name = "N", help_heading = "Judging")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub display: Display,
    /// Say below the answers what they rest on
    #[arg(long, help_heading = "Output")]
    pub explain: bool,
    /// Folder of runs to put this run's folder in, instead of ~/.local/state/ascertain/runs
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub evidence: Option<PathBuf>,
    /// Label of this run: `history` shows it, and `report LABEL` and `continue LABEL` find the run by it
    #[arg(long, value_name = "LABEL", value_parser = label, conflicts_with = "no_evidence", help_heading = "Output")]
    pub label: Option<String>,
    /// Keep no evidence
    #[arg(long, conflicts_with = "evidence", help_heading = "Output")]
    pub no_evidence: bool,
    #[command(flatten)]
    pub exports: Exports,
}

/// Adds the command's own default to the help of an option that several commands have.
pub fn with_default(arg: Arg, default: &str) -> Arg {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    arg.help(format!("{help} [default: {default}]"))
}

/// Options of every command that prints.
#[derive(clap::Args, Clone, Debug)]
pub struct Display {
    /// How results are printed
    #[arg(long, value_enum, default_value_t = Format::Table, help_heading = "Output")]
    pub format: Format,
    /// Print no progress and no table; why something failed is still said
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// Colours: NO_COLOR is heeded
    #[arg(long, value_enum, default_value_t = Color::Auto, help_heading = "Output")]
    pub color: Color,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// One object, whose `schema` names its form and version.
    Json,
    /// One line a metric of an arm.
    Csv,
    /// Tables to paste.
    Markdown,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A word that an option takes, its aliases behind it; what `--help` says of it; and what it stands for.
pub type Word<T> = (&'static [&'static str], &'static str, T);

/// Takes one of these words.
pub fn one_of<T: Clone + Send + Sync>(words: &'static [Word<T>]) -> impl TypedValueParser<Value = T> {
    let values = words.iter().map(|(names, about, _)| PossibleValue::new(names[0]).aliases(&names[1..]).help(*about));
    PossibleValuesParser::new(values).try_map(|given| {
        let meant = words.iter().find(|(names, ..)| names.contains(&given.as_str()));
        meant.map(|(.., value)| value.clone()).ok_or("it is not one of the words")
    })
}
