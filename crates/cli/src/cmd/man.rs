//! `ascertain man`: prints the manual page, or writes the pages of all commands.

use std::path::PathBuf;

use anyhow::Context;
use ascertain::Ending;
use ascertain_report::export;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::exit::meanings;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  ascertain man | man -l -
      Show the manual page
  ascertain man --dir ~/.local/share/man/man1
      Install the pages of all commands";

/// Print the manual page, or write the pages of all commands
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder for the pages: ascertain.1, and ascertain-SUBCOMMAND.1 for each subcommand
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub fn execute(args: &Args, cli: Command) -> anyhow::Result<Ending> {
    let mut command = cli.disable_help_subcommand(true);
    command.build();
    let Some(dir) = &args.dir else {
        output::print(&page(&command)?)?;
        return Ok(Ending::Done);
    };
    std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    for command in with_subcommands(&command) {
        let path = dir.join(Man::new(command.clone()).get_filename());
        export::write(&path, &page(command)?)?;
    }
    Ok(Ending::Done)
}

/// Returns a command and its subcommands at all levels.
fn with_subcommands(command: &Command) -> Vec<&Command> {
    std::iter::once(command).chain(command.get_subcommands().flat_map(with_subcommands)).collect()
}

/// The files in a run's folder, each with a description, for the manual page.
const FILES: &[(&str, &str)] = &[
    (
        "~/.local/state/ascertain/runs",
        "the evidence of all runs, in one folder per run; below XDG_STATE_HOME if that is set",
    ),
    ("run.json", "in a run's folder: machine, plan, seed and outcome"),
    ("trials.jsonl", "every observation, written during the run; emptied when trials.parquet contains all of them"),
    ("trials.parquet", "every observation, written at the end of the run"),
];

/// The environment variables that `ascertain` reads, each with a description, for the manual page.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("XDG_STATE_HOME", "folder for evidence, instead of ~/.local/state"),
    ("TSIG_KEY", "key that signs updates of your zone, in the form of `nsupdate -y`"),
    ("TSIG_KEY_FILE", "file with the key that signs updates of your zone, as `tsig-keygen` prints it"),
    (
        "AWS_*, GOOGLE_*",
        "credentials and end points for put, get, and zones at providers, as in the providers' own tools",
    ),
    ("NO_COLOR", "if set, turns off colours, unless --color always is given"),
    ("COLUMNS", "width of tables, instead of the terminal's width"),
    ("GITHUB_STEP_SUMMARY", "file to which --export-github appends, instead of replacing it"),
];

fn page(command: &Command) -> anyhow::Result<String> {
    let man = Man::new(command.clone());
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    // The title is written here because `Man` omits the quotes around an empty date, which moves the fields after the
    // date to wrong positions.
    let title = format!(".TH {} 1 \"\" \"ascertain {}\" \"\"\n", name.to_uppercase(), env!("CARGO_PKG_VERSION"));
    let mut page = title.into_bytes();
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if let Some(examples) = help.strip_prefix("Examples:\n") {
        // Filling, which joins lines into paragraphs, is off, so that each line of an example stays a line of its own.
        let mut roff = Roff::new();
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in examples.lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []).to_writer(&mut page)?;
    }
    let codes = meanings().map(|(code, meaning)| (code.to_string(), meaning));
    section("EXIT STATUS", codes.iter().map(|(code, meaning)| (code.as_str(), *meaning))).to_writer(&mut page)?;
    if name == command.get_name() {
        section("FILES", FILES.iter().copied()).to_writer(&mut page)?;
        section("ENVIRONMENT", ENVIRONMENT.iter().copied()).to_writer(&mut page)?;
        man.render_version_section(&mut page)?;
    } else {
        Roff::new().control("SH", ["SEE ALSO"]).text([bold("ascertain"), roman("(1)")]).to_writer(&mut page)?;
    }
    Ok(String::from_utf8(page)?)
}

/// Returns a section with a list of terms and their descriptions.
fn section<'a>(heading: &str, terms: impl IntoIterator<Item = (&'a str, &'a str)>) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [heading]);
    for (term, meaning) in terms {
        roff.control("TP", []).text([bold(term)]).text([roman(meaning)]);
    }
    roff
}
