//! `ascertain report`.

use std::path::{Path, PathBuf};

use anyhow::bail;
use ascertain::Ending;
use ascertain::names::among;
use ascertain::runs;
use ascertain_engine::claim::Judging;
use ascertain_engine::evidence;
use ascertain_engine::names::suggestion;
use ascertain_engine::outcome::{ClaimResult, Verdict};
use ascertain_engine::recorded::{self, RecordedRun};
use ascertain_report::layout::TableLayout;
use ascertain_report::pictures::Picture;
use ascertain_report::plot::{Plot, svg};
use ascertain_report::terminal::{self, Shown, Style};
use ascertain_report::{csv, export, html, json, markdown};
use ascertain_sys::process;

use crate::options::Format;
use crate::output;

/// The report of one run, in its folder, unless another file is asked for.
const OF_ONE: &str = "report.html";
/// Of several runs, unless another file is asked for.
const SEVERAL: &str = "ascertain-report.html";
/// So many plots are named to whoever asks for one that is not there.
const FEW: usize = 12;

const EXAMPLES: &str = "\
Examples:
  ascertain report
      Make the page of the latest run, in the run's folder
  ascertain report v1.1 v1.2 --output both.html
      Put two runs side by side on one page
  ascertain report latest --only refuted
      Print the refuted claims of the latest run as sentences";

/// Make the HTML report of a run, or of several side by side; or print a run's verdicts
///
/// One file that opens offline. It is made from the run's evidence alone, also of a run that was killed or is
/// still going on.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Runs: a run's folder, its name, a unique beginning or end of its name, or its label; without one, the latest
    #[arg(value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// File to write, or `-` for standard output [default: report.html in the run's folder; of several runs:
    /// ascertain-report.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// One plot as an SVG, to standard output unless there is a file to write; `--plots` names them
    #[arg(long, value_name = "PLOT", conflicts_with = "plots")]
    svg: Option<String>,
    /// List the report's plots
    #[arg(long, conflicts_with = "output")]
    plots: bool,
    /// Print each verdict as a sentence, and a table of all claims
    #[arg(long, conflicts_with_all = ["output", "svg", "plots"])]
    all: bool,
    /// Print the claims of these verdicts as sentences: `--only refuted,undecided`
    #[arg(long, value_name = "VERDICT", value_delimiter = ',', value_parser = verdict,
          conflicts_with_all = ["output", "svg", "plots"])]
    only: Vec<Verdict>,
    /// Print a run's figures and claims in a format, to standard output unless there is a file to write
    #[arg(long, value_enum, conflicts_with_all = ["svg", "plots", "all", "only"])]
    format: Option<Format>,
    /// Write the page and print where it is, without what came of the run
    #[arg(short, long)]
    quiet: bool,
    /// Folder of runs to look in, instead of ~/.local/state/ascertain/runs
    #[arg(long, value_name = "DIR")]
    evidence: Option<PathBuf>,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let below = args.evidence.clone().unwrap_or_else(evidence::runs_folder);
    let folders = match args.runs.as_slice() {
        [] => vec![runs::find(None, &below)?],
        names => names.iter().map(|name| runs::find(Some(name), &below)).collect::<Result<_, _>>()?,
    };
    let read = folders.iter().map(|folder| recorded::read(folder));
    let read: Vec<RecordedRun> = read.collect::<Result<_, _>>()?;
    for run in &read {
        for said in html::missing_trials(run).iter().chain(&run.faults) {
            output::note(&format!("note: {}: {said}", runs::name(&run.folder)));
        }
    }
    match (&args.svg, &folders[..]) {
        _ if args.all || !args.only.is_empty() => verdicts(&read, &Shown { all: args.all, only: args.only.clone() })?,
        _ if args.plots => list(&html::pictures(&read))?,
        _ if let Some(format) = args.format => {
            let [run] = &read[..] else {
                bail!("--format is of one run; `ascertain history compare RUN RUN --format …` compares two");
            };
            match &args.output {
                Some(file) => put(file, &formatted(run, format, &Style::of_stdout(Some(false))))?,
                None if format == Format::Table => output::say(&formatted(run, format, &Style::of_stdout(None)))?,
                None => output::print(&formatted(run, format, &Style::of_stdout(None)))?,
            }
        }
        (Some(id), _) => {
            let file = args.output.clone().unwrap_or_else(|| "-".into());
            put(&file, &svg::standalone(find(&html::pictures(&read), id)?))?;
        }
        (None, _) => {
            if args.output.as_deref() != Some(Path::new("-")) && !args.quiet {
                answers(&read);
            }
            match (&args.output, &folders[..]) {
                (Some(file), _) => put(file, &html::page(&read))?,
                (None, [folder]) => {
                    export::write_in(folder, OF_ONE, &html::page(&read))?;
                    output::print(&format!("{}\n", folder.join(OF_ONE).display()))?;
                }
                (None, _) => put(Path::new(SEVERAL), &html::page(&read))?,
            }
        }
    }
    Ok(Ending::Done)
}

/// Writes the report of a run that has just ended into its folder.
pub fn write(folder: &Path, quiet: bool) -> anyhow::Result<()> {
    export::write_in(folder, OF_ONE, &html::page(&[recorded::read(folder)?]))?;
    if !quiet {
        output::note(&format!("report:   {}", folder.join(OF_ONE).display()));
    }
    Ok(())
}

/// The command that reports on a run that is kept there.
pub fn command(folder: &Path) -> String {
    process::join(&["ascertain", "report", &argument(folder)])
}

/// What a run is called on a command line: its name where that is looked for, else its folder.
pub fn argument(folder: &Path) -> String {
    let is_found = folder.parent() == Some(&evidence::runs_folder());
    if is_found { runs::name(folder) } else { folder.to_string_lossy().into_owned() }
}

/// Prints what `check` would of each run.
fn verdicts(read: &[RecordedRun], shown: &Shown) -> anyhow::Result<()> {
    let style = Style::of_stdout(None);
    output::say(&of_each(read, |run| terminal::checked(&run.outcome, shown, None, &style)))
}

/// Says what came of each run, on standard error: a script that opens the page reads where it is, and nothing else.
fn answers(read: &[RecordedRun]) {
    let text = of_each(read, |run| terminal::answer(&run.outcome, &Style::of_stdout(Some(false))));
    if !text.is_empty() {
        output::note(text.trim_end());
    }
}

/// What is said of each run; of several, below its name.
fn of_each(read: &[RecordedRun], said: impl Fn(&RecordedRun) -> String) -> String {
    let text = |run: &RecordedRun| match said(run) {
        text if read.len() > 1 && !text.is_empty() => format!("{}\n\n{text}", runs::name(&run.folder)),
        text => text,
    };
    output::parts(&read.iter().map(text).collect::<Vec<_>>())
}

/// The results of a run in a format: in CSV those of its claims where it was about these alone, and else its figures.
fn formatted(run: &RecordedRun, format: Format, style: &Style) -> String {
    let (outcome, plan) = (&run.outcome, &run.header.plan);
    let is_order = |claim: &ClaimResult| claim.asked.judging == Judging::Order;
    let is_about_claims = plan.tables.is_empty() && !outcome.claims.is_empty() && !outcome.claims.iter().any(is_order);
    match format {
        Format::Json => json::outcome(outcome),
        Format::Csv if is_about_claims => csv::claims(outcome),
        Format::Csv => csv::outcome(outcome),
        Format::Markdown => markdown::outcome(&outcome.asked_for(&plan.tables), &TableLayout::default()),
        Format::Table => {
            let asked = outcome.asked_for(&plan.tables);
            let claims = terminal::checked(&asked, &Shown::default(), None, style);
            if is_about_claims { claims } else { output::parts(&[terminal::points_table(&asked, style), claims]) }
        }
    }
}

fn verdict(word: &str) -> Result<Verdict, String> {
    let words = Verdict::ALL.map(Verdict::word);
    let known = Verdict::ALL.into_iter().find(|verdict| verdict.word() == word);
    known.ok_or_else(|| format!("it is no verdict{}", among(word, words)))
}

/// Writes a file and prints where it is, or prints the text itself.
fn put(file: &Path, text: &str) -> anyhow::Result<()> {
    if file == Path::new("-") {
        return output::print(text);
    }
    export::write(file, text)?;
    output::print(&format!("{}\n", file.display()))
}

fn list(pictures: &[Picture]) -> anyhow::Result<()> {
    let width = pictures.iter().map(|picture| picture.plot.id.len()).max().unwrap_or(0);
    let lines = pictures.iter().map(|Picture { plot, .. }| format!("{:width$}  {}\n", plot.id, plot.title));
    output::say(&lines.collect::<String>())
}

fn find<'a>(pictures: &'a [Picture], id: &str) -> anyhow::Result<&'a Plot> {
    let plots = pictures.iter().map(|picture| &picture.plot);
    if let Some(found) = plots.clone().find(|plot| plot.id == id) {
        return Ok(found);
    }
    let known: Vec<&str> = plots.map(|plot| plot.id.as_str()).collect();
    // All of them may be a thousand.
    let which = if known.len() <= FEW { among(id, known) } else { suggestion(id, known).unwrap_or_default() };
    bail!("the report has no plot `{id}`{which}; `--plots` lists them")
}
