//! `ascertain report`: writes the HTML report of runs, or prints a run's verdicts.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use ascertain::Ending;
use ascertain::names::among;
use ascertain::{runs, series};
use ascertain_engine::evidence;
use ascertain_engine::names::suggestion;
use ascertain_engine::outcome::Verdict;
use ascertain_engine::recorded::{self, RecordedRun};
use ascertain_report::options::{Format, RenderOptions, Shown};
use ascertain_report::pictures::Picture;
use ascertain_report::plot::{Plot, svg};
use ascertain_report::series::SeriesDigest;
use ascertain_report::terminal::{self, Style};
use ascertain_report::{export, html, render};
use ascertain_sys::interrupt::Stop;
use ascertain_sys::machine;

use super::series::header_of;
use crate::options::{FORMATS, one_of};
use crate::output;

/// File name of the report on a single run, in the run's folder.
const OF_ONE: &str = "report.html";
/// File name of the report on several runs, in the working directory.
const SEVERAL: &str = "ascertain-report.html";
/// If a report has at most this many plots, an error about an unknown plot lists all of them.
const FEW: usize = 12;

const EXAMPLES: &str = "\
Examples:
  ascertain report
      Make the page of the latest run, in the run's folder
  ascertain report v1.1 v1.2 --output both.html
      Put two runs side by side on one page
  ascertain report latest --only refuted
      Print the refuted claims of the latest run as sentences
  ascertain report latest --series 'mean(window(wall, 100))'
      Add the mean of each 100 trials to the page";

/// Write the HTML report of runs, or print a run's verdicts
///
/// The report is a single file that opens offline, and shows several runs side by side. It is made from the evidence
/// alone, so it also works for a run that was killed or is still going on.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Runs to report: each by its folder, its name, a unique beginning or end of its name, or its label [default: the
    /// latest]
    #[arg(value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// File to write, or `-` for standard output [default: report.html in the run's folder; of several runs:
    /// ascertain-report.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Plot to write as an SVG, to standard output or to the file of --output; --plots lists the plots
    #[arg(long, value_name = "PLOT", conflicts_with = "plots")]
    svg: Option<String>,
    /// List the report's plots
    #[arg(long, conflicts_with = "output")]
    plots: bool,
    /// Print a sentence for every verdict, and a table of all claims
    #[arg(long, conflicts_with_all = ["output", "svg", "plots"])]
    all: bool,
    /// Verdicts whose claims are printed as sentences, such as `refuted,undecided`
    #[arg(long, value_name = "VERDICT", value_delimiter = ',', value_parser = verdict,
          conflicts_with_all = ["output", "svg", "plots"])]
    only: Vec<Verdict>,
    /// Format in which to print a run's figures and claims, to standard output or to the file of --output
    #[arg(long, value_parser = one_of(FORMATS), value_name = "FORMAT", conflicts_with_all = ["svg", "plots", "all", "only"])]
    format: Option<Format>,
    /// Derived series to add to the page, or to the table of --format: an expression as in `ascertain series`. Give the
    /// option again for further series
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true, conflicts_with_all = ["all", "only"])]
    series: Vec<String>,
    /// Write the page and print only its path, not the results
    #[arg(short, long)]
    quiet: bool,
    /// Folder in which to find the runs [default: ~/.local/state/ascertain/runs]
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
    let derived = derived(args, &folders)?;
    match (&args.svg, &folders[..]) {
        _ if args.all || !args.only.is_empty() => verdicts(&read, &Shown { all: args.all, only: args.only.clone() })?,
        _ if args.plots => list(&pictures(&read, &derived))?,
        _ if let Some(format) = args.format => {
            let [run] = <[RecordedRun; 1]>::try_from(read).map_err(|_| {
                anyhow!("--format prints a single run; use `ascertain history compare RUN RUN --format …` for two")
            })?;
            let stored: RenderOptions = serde_json::from_value(run.header.render.clone()).unwrap_or_default();
            let style = Style::of_stdout(args.output.as_ref().map(|_| false));
            let mut text = render::render(&run.into_result(), &RenderOptions { format, style, ..stored });
            for digest in derived.iter().flatten() {
                let markdown = format == Format::Markdown;
                text = terminal::parted([text, if markdown { digest.markdown() } else { digest.text(&style) }]);
            }
            match &args.output {
                Some(file) => put(file, &text)?,
                None if format == Format::Table => output::print_for_people(&text)?,
                None => output::print(&text)?,
            }
        }
        (Some(id), _) => {
            let file = args.output.clone().unwrap_or_else(|| "-".into());
            put(&file, &svg::standalone(find(&pictures(&read, &derived), id)?))?;
        }
        (None, _) => {
            if args.output.as_deref() != Some(Path::new("-")) && !args.quiet {
                answers(&read);
            }
            match (&args.output, &folders[..]) {
                (Some(file), _) => put(file, &html::page_with_series(&read, &derived))?,
                (None, [folder]) => {
                    export::write_in(folder, OF_ONE, &html::page_with_series(&read, &derived))?;
                    output::print(&format!("{}\n", folder.join(OF_ONE).display()))?;
                }
                (None, _) => put(Path::new(SEVERAL), &html::page_with_series(&read, &derived))?,
            }
        }
    }
    Ok(Ending::Done)
}

/// Computes the derived series of each run.
fn derived(args: &Args, folders: &[PathBuf]) -> anyhow::Result<Vec<Vec<SeriesDigest>>> {
    if !args.series.is_empty() && matches!(args.format, Some(Format::Json | Format::Csv)) {
        bail!("--series is for the page, and for the formats table and markdown; `ascertain series` prints the values");
    }
    let of_run = |folder: &PathBuf| args.series.iter().map(|expression| digest(folder, expression)).collect();
    folders.iter().map(of_run).collect()
}

/// Computes a derived series of a run.
fn digest(folder: &Path, expression: &str) -> anyhow::Result<SeriesDigest> {
    let planned = series::plan(folder, expression)?;
    planned.check_memory(machine::usable_memory_bytes())?;
    if let Some(trial) = planned.cut_off() {
        output::note(&format!("note: {}: {trial}", runs::name(folder)));
    }
    let mut digest = SeriesDigest::new(header_of(&planned, expression));
    let end = planned.compute(&Stop::default(), |results| {
        digest.add(results.lows, results.highs);
        true
    })?;
    digest.end(end.undecided);
    Ok(digest)
}

/// Returns the pictures of the page, including those of derived series.
fn pictures(read: &[RecordedRun], derived: &[Vec<SeriesDigest>]) -> Vec<Picture> {
    let of_run = |(run, series): (usize, &Vec<SeriesDigest>)| {
        let prefix = if read.len() > 1 { format!("r{}-", run + 1) } else { String::new() };
        let pictures = series.iter().enumerate().filter_map(|(index, digest)| digest.picture(index));
        let renamed = move |mut picture: Picture| {
            picture.plot.id = format!("{prefix}{}", picture.plot.id);
            picture
        };
        pictures.map(renamed).collect::<Vec<_>>()
    };
    html::pictures(read).into_iter().chain(derived.iter().enumerate().flat_map(of_run)).collect()
}

/// Writes the HTML report of a run into the run's folder, after the run has ended.
pub fn write(folder: &Path, quiet: bool) -> anyhow::Result<()> {
    export::write_in(folder, OF_ONE, &html::page(&[recorded::read(folder)?]))?;
    if !quiet {
        output::note(&format!("report:   {}", folder.join(OF_ONE).display()));
    }
    Ok(())
}

/// Prints the verdicts of each run in the same form as `check`.
fn verdicts(read: &[RecordedRun], shown: &Shown) -> anyhow::Result<()> {
    let style = Style::of_stdout(None);
    output::print_for_people(&of_each(read, |run| terminal::checked(&run.outcome, shown, None, &style)))
}

/// Prints each run's results on standard error, because scripts may read the path of the page from standard output.
fn answers(read: &[RecordedRun]) {
    let text = of_each(read, |run| terminal::answer(&run.outcome, &Style::of_stdout(Some(false))));
    if !text.is_empty() {
        output::note(text.trim_end());
    }
}

/// Calls `said` for each run, and joins the returned texts. If there are several runs, the name of the run precedes
/// each text.
fn of_each(read: &[RecordedRun], said: impl Fn(&RecordedRun) -> String) -> String {
    let text = |run: &RecordedRun| match said(run) {
        text if read.len() > 1 && !text.is_empty() => format!("{}\n\n{text}", runs::name(&run.folder)),
        text => text,
    };
    terminal::parted(read.iter().map(text))
}

fn verdict(word: &str) -> Result<Verdict, String> {
    let words = Verdict::ALL.map(Verdict::word);
    let known = Verdict::ALL.into_iter().find(|verdict| verdict.word() == word);
    known.ok_or_else(|| format!("not a verdict{}", among(word, words)))
}

/// Writes a file and prints its path. If the file is `-`, prints the text instead.
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
    output::print_for_people(&lines.collect::<String>())
}

fn find<'a>(pictures: &'a [Picture], id: &str) -> anyhow::Result<&'a Plot> {
    let plots = pictures.iter().map(|picture| &picture.plot);
    if let Some(found) = plots.clone().find(|plot| plot.id == id) {
        return Ok(found);
    }
    let known: Vec<&str> = plots.map(|plot| plot.id.as_str()).collect();
    // Don't list all plots if there are many: a report may have a thousand.
    let which = if known.len() <= FEW { among(id, known) } else { suggestion(id, known).unwrap_or_default() };
    bail!("the report has no plot `{id}`{which}; use --plots to list them")
}
