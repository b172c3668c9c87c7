//! `ascertain man`.

use std::path::PathBuf;

use anyhow::Context;
use ascertain::Ending;
use ascertain_report::export;
use clap::{Command, CommandFactory};
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

/// Print the manual page, or write one for each subcommand
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Write ascertain.1, and ascertain-SUBCOMMAND.1 for each subcommand, to this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub fn execute<C: CommandFactory>(args: &Args) -> anyhow::Result<Ending> {
    let mut command = C::command().disable_help_subcommand(true);
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

/// A command and all below it.
fn with_subcommands(command: &Command) -> Vec<&Command> {
    std::iter::once(command).chain(command.get_subcommands().flat_map(with_subcommands)).collect()
}

/// Where evidence is, and what else is written.
const FILES: &[(&str, &str)] = &[
    (
        "~/.local/state/ascertain/runs",
        "the evidence of every run, a folder each; below XDG_STATE_HOME where that is set",
    ),
    ("run.json", "in a run's folder: machine, plan, seed and outcome"),
    ("trials.jsonl", "every observation, written while the run goes on; emptied when trials.parquet has all of them"),
    ("trials.parquet", "the same at its end"),
];

/// The variables that are heeded.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("XDG_STATE_HOME", "where evidence goes, instead of ~/.local/state"),
    ("TSIG_KEY", "what updates of a zone of yours are signed with, as `nsupdate -y` has it"),
    ("TSIG_KEY_FILE", "the same in a file, as `tsig-keygen` prints it"),
    (
        "AWS_*, GOOGLE_*",
        "credentials and end points for put, get, and zones at providers: as their own tools have them",
    ),
    ("NO_COLOR", "no colours, unless --color always is given"),
    ("COLUMNS", "how wide tables may be, instead of the terminal's width"),
    ("GITHUB_STEP_SUMMARY", "a file that --export-github adds to, instead of replacing it"),
];

fn page(command: &Command) -> anyhow::Result<String> {
    let man = Man::new(command.clone());
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    // Written here, for `Man` leaves the quotes of an empty date out, and all that follows moves up.
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
        // Without filling: a line of an example is a line of the page.
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

/// A section of terms, each with what it means.
fn section<'a>(heading: &str, terms: impl IntoIterator<Item = (&'a str, &'a str)>) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [heading]);
    for (term, meaning) in terms {
        roff.control("TP", []).text([bold(term)]).text([roman(meaning)]);
    }
    roff
}
