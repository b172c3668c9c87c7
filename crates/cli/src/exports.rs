//! Options for results in files of other tools, made of the list of their kinds.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::bail;
use ascertain_report::export;
use ascertain_report::exports::{ExportFormat, FORMATS, Files, Purpose};
use ascertain_report::plot::{Plot, svg};
use clap::error::Error;
use clap::{Arg, ArgMatches, Command, FromArgMatches, ValueEnum, value_parser};

use crate::options::{Display, Format};

/// Results for other tools.
#[derive(clap::Args, Clone, Debug)]
pub struct Exports {
    #[command(flatten)]
    files: Wanted,
    /// Print a line for each claim that failed or is undecided, which becomes an annotation there: at most ten
    /// of each, on standard error
    #[arg(long, value_enum, value_name = "WHERE", help_heading = HEADING)]
    pub annotate: Option<Annotate>,
}

/// Who makes annotations of lines of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Annotate {
    /// GitHub Actions.
    Github,
}

const HEADING: &str = "Exports, written as results arrive";

impl Exports {
    /// Opens the files that are asked for.
    ///
    /// # Errors
    /// When one can't be written, or standard output has something else: said before anything is measured.
    pub fn open(&self, purpose: Purpose, display: &Display) -> anyhow::Result<Files> {
        let wanted = self.files.0.iter().map(|(kind, path)| (*kind, path.as_path()));
        let is_free = display.format == Format::Table && display.quiet;
        if let Some((kind, _)) = wanted.clone().find(|(_, path)| *path == Path::new(STDOUT)).filter(|_| !is_free) {
            let way_out = match display.format {
                Format::Table => "the table: leave that out with -q, or name a file",
                _ => "what --format asks for: name a file",
            };
            bail!("--{} can't share standard output with {way_out}", kind.option);
        }
        Ok(Files::open(wanted, purpose)?)
    }
}

/// With the places of claims as GitHub finds them: from the repository's root, wherever in it the job runs.
pub fn in_repository(mut purpose: Purpose) -> Purpose {
    let root = env::var_os("GITHUB_WORKSPACE").and_then(|root| fs::canonicalize(root).ok());
    for place in purpose.places.values_mut() {
        let file = fs::canonicalize(&place.file).ok();
        let inside = file.as_deref().zip(root.as_deref()).and_then(|(file, root)| file.strip_prefix(root).ok());
        if let Some(inside) = inside {
            place.file = inside.into();
        }
    }
    purpose
}

const STDOUT: &str = "/dev/stdout";

/// The file that is meant: `-` is standard output.
pub fn named(file: &Path) -> PathBuf {
    if file == Path::new("-") { STDOUT.into() } else { file.into() }
}

/// Writes a plot as an SVG where that is wanted. Whether something else may go to standard output then.
pub fn write_svg(file: Option<&Path>, plot: impl FnOnce() -> Plot) -> anyhow::Result<bool> {
    let Some(file) = file else { return Ok(true) };
    export::write(&named(file), &svg::standalone(&plot()))?;
    Ok(file != Path::new("-"))
}

/// The files that are asked for, each with its kind.
#[derive(Clone, Debug)]
struct Wanted(Vec<(&'static ExportFormat, PathBuf)>);

impl clap::Args for Wanted {
    fn augment_args(command: Command) -> Command {
        let arg = |kind: &'static ExportFormat| {
            let arg = Arg::new(kind.option).long(kind.option).value_name("FILE").help(kind.about);
            arg.value_parser(value_parser!(PathBuf)).help_heading(HEADING)
        };
        command.args(FORMATS.iter().map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Wanted::augment_args(command)
    }
}

impl FromArgMatches for Wanted {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Wanted, Error> {
        let path = |kind: &ExportFormat| matches.get_one::<PathBuf>(kind.option).cloned();
        Ok(Wanted(FORMATS.iter().filter_map(|kind| Some((kind, named(&path(kind)?)))).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Wanted::from_arg_matches(matches)?;
        Ok(())
    }
}
