//! Options that write results to files for other tools. There is one option for each format in [`FORMATS`].

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::bail;
use ascertain_engine::plan::Plan;
use ascertain_report::export;
use ascertain_report::exports::{ExportFormat, FORMATS, Files};
use ascertain_report::plot::{Plot, svg};
use clap::error::Error;
use clap::{Arg, ArgMatches, Command, FromArgMatches, ValueEnum, value_parser};

use ascertain_report::options::{Format, RenderOptions};

/// Options that export results to other tools.
#[derive(clap::Args, Clone, Debug)]
pub struct Exports {
    #[command(flatten)]
    files: Wanted,
    /// Service for which to print annotations on standard error: one for each claim that failed or is undecided, at
    /// most ten of each kind
    #[arg(long, value_enum, value_name = "WHERE", help_heading = HEADING)]
    pub annotate: Option<Annotate>,
}

/// A service that turns certain lines of output into annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Annotate {
    /// Workflow commands of GitHub Actions
    Github,
}

const HEADING: &str = "Exports, written as results arrive";

impl Exports {
    /// Returns the option of a requested export that needs every observation. `None` if there is none.
    pub fn of_observations(&self) -> Option<&'static str> {
        let options = self.files.0.iter().map(|(kind, _)| kind.option);
        options.into_iter().find(|option| !["export-junit", "export-github", "export-bencher"].contains(option))
    }

    /// Opens the requested files, before anything is measured.
    ///
    /// # Errors
    /// If a file can't be written, or if an export needs standard output but something else is already printed there.
    pub fn open(&self, options: &RenderOptions) -> anyhow::Result<Files> {
        let wanted = self.files.0.iter().map(|(kind, path)| (*kind, path.as_path()));
        let is_free = options.format == Format::Table && options.quiet;
        if let Some((kind, _)) = wanted.clone().find(|(_, path)| *path == Path::new(STDOUT)).filter(|_| !is_free) {
            let way_out = match options.format {
                Format::Table => "the table; add -q to print no table, or name a file",
                _ => "the output of --format; name a file",
            };
            bail!("--{} can't share standard output with {way_out}", kind.option);
        }
        Ok(Files::open(wanted, options.layout)?)
    }
}

/// Returns the plan with the paths of its claims files relative to the root of the repository. GitHub requires such
/// paths, but the job may run in any folder of the repository.
pub fn in_repository(mut plan: Plan) -> Plan {
    let root = env::var_os("GITHUB_WORKSPACE").and_then(|root| fs::canonicalize(root).ok());
    for place in plan.claims.iter_mut().filter_map(|claim| claim.place.as_mut()) {
        let file = fs::canonicalize(&place.file).ok();
        let inside = file.as_deref().zip(root.as_deref()).and_then(|(file, root)| file.strip_prefix(root).ok());
        if let Some(inside) = inside {
            place.file = inside.into();
        }
    }
    plan
}

const STDOUT: &str = "/dev/stdout";

/// Returns the file to which an option's value refers; `-` refers to standard output.
pub fn named(file: &Path) -> PathBuf {
    if file == Path::new("-") { STDOUT.into() } else { file.into() }
}

/// Writes a plot as an SVG to `file`; does nothing if it is `None`. Returns `false` if the SVG went to standard output.
/// Nothing else may then be printed there.
pub fn write_svg(file: Option<&Path>, plot: impl FnOnce() -> Plot) -> anyhow::Result<bool> {
    let Some(file) = file else { return Ok(true) };
    export::write(&named(file), &svg::standalone(&plot()))?;
    Ok(file != Path::new("-"))
}

/// The requested exports: each with its format and the file to write.
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
