//! The subcommand `cost`: prices work on several types of machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use ascertain::Ending;
use ascertain::cost::{
    Cost, CostClaim, FigureFile, Machines, PriceList, TypedRun, cost, is_price_file, read_claims, read_runs,
};
use ascertain::runs;
use ascertain_engine::evidence;
use ascertain_report::cost::RecordedFigures;
use ascertain_report::terminal::escape_controls;
use ascertain_sys::clock;

use crate::options::{Display, count};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  ascertain cost RUN1 RUN2 --prices prices.csv --type RUN1=c6g --type RUN2=c7g
      Compare what the work of two runs costs on their machines
  ascertain cost --figures figures.csv --prices prices.csv --claims claims.toml
      Price figures that other people recorded, and judge claims on them
  ascertain cost --figures figures.csv
      Record the figures as runs, which other commands can read";

/// Compute whether a type of machine is worth its price
///
/// Prices the same work on several types of machine. The speeds come from runs that you recorded on them, or from
/// figures that other people recorded. The output has the cost of a unit of work, the break-even ratio, the chance of
/// being cheaper, and the workloads that reverse the answer. The first type is the reference.
///
/// The price file has the columns type, region, price, currency, per, cpus, date and source; kind (such as spot) and
/// cores are optional. A CSV file in place of a run is a file of prices or figures. Without prices, --figures records
/// each type as a run.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Runs, at least one from each type of machine: each by its folder, its name, a unique beginning or end of its
    /// name, or its label
    #[arg(value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// CSV file of prices
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Type of the machine of a run; of figures, a type to compare, in this order
    #[arg(long = "type", value_name = "[RUN=]TYPE")]
    types: Vec<String>,
    /// CSV file of figures that other people recorded
    #[arg(long, value_name = "FILE")]
    figures: Option<PathBuf>,
    /// TOML file of claims about the types, to be judged
    #[arg(long, value_name = "FILE")]
    claims: Option<PathBuf>,
    /// Region whose prices apply
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// Number of threads that the work used, if it is not recorded; fewer threads than CPUs are not priced as a whole
    /// machine [default: 1]
    #[arg(long, value_name = "[TYPE=]N", value_parser = threads)]
    threads: Vec<(Option<String>, u64)>,
    /// Number of runs, or of other units of work, to price
    #[arg(long = "runs", visible_alias = "units", value_name = "N", default_value = "1000000", value_parser = count)]
    units: u64,
    /// Price only figures that were measured with all CPUs busy
    #[arg(long)]
    full_load: bool,
    /// Metric of the runs to price: a time or a rate [default: the first metric, or the time of each workload of
    /// `runtimes`]
    #[arg(long, value_name = "METRIC", conflicts_with = "figures")]
    metric: Option<String>,
    /// Folder of runs [default: ~/.local/state/ascertain/runs]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    evidence: Option<PathBuf>,
    #[command(flatten)]
    display: Display,
}

/// The sources of a calculation, after the files in place of runs were sorted out.
struct Inputs<'a> {
    runs: Vec<&'a Path>,
    prices: Option<&'a Path>,
    figures: Option<&'a Path>,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let Inputs { runs, prices, figures } = inputs(args)?;
    let folder = args.evidence.clone().unwrap_or_else(evidence::runs_folder);
    let (prices, figures) = match (prices, figures) {
        (None, Some(figures)) if runs.is_empty() => return record(args, figures, &folder),
        (None, _) => bail!("no prices are given; add --prices FILE, with the price of each type of machine"),
        (Some(prices), figures) => (prices, figures),
    };
    let (machines, types) = match figures {
        Some(figures) if runs.is_empty() => {
            let file = FigureFile::read(open(figures)?, &shown(figures))?;
            (Machines::from(file), args.types.clone())
        }
        Some(_) => bail!("runs and other people's figures can't be mixed; give either runs or --figures"),
        None if runs.is_empty() => bail!("nothing to price is given; name runs, or a file with --figures"),
        None => (recorded(args, &runs, &folder)?, Vec::new()),
    };
    let asked = Cost {
        prices: PriceList::read(open(prices)?, &shown(prices))?,
        machines,
        types,
        region: args.region.clone(),
        threads: args.threads.clone(),
        units: args.units as f64,
        full_load: args.full_load,
        claims: claims(args)?,
        today: evidence::rfc3339(clock::unix_ns())[..10].to_string(),
    };
    output::report(&cost(&asked)?, &args.display)?;
    Ok(Ending::Done)
}

/// Sorts out the files that are given in place of runs: CSV files of prices or figures.
fn inputs(args: &Args) -> anyhow::Result<Inputs<'_>> {
    let (mut runs, mut prices, mut figures) = (Vec::new(), args.prices.as_deref(), args.figures.as_deref());
    for path in &args.runs {
        let is_of_run = || path.parent().is_some_and(|folder| folder.join("run.json").is_file());
        if !path.is_file() || is_of_run() {
            runs.push(path.as_path());
            continue;
        }
        let (slot, option) = match is_price_file(open(path)?, &shown(path))? {
            true => (&mut prices, "--prices"),
            false => (&mut figures, "--figures"),
        };
        if let Some(other) = slot.replace(path) {
            bail!("{} and {} are both files for {option}; give one of them", shown(other), shown(path));
        }
    }
    Ok(Inputs { runs, prices, figures })
}

/// Reads the runs, each with the type of its machine.
fn recorded(args: &Args, runs: &[&Path], folder: &Path) -> anyhow::Result<Machines> {
    let mut types = Vec::new();
    for given in &args.types {
        let Some((run, machine_type)) = given.rsplit_once('=') else {
            bail!("--type {} names no run; write --type RUN={0}", escape_controls(given));
        };
        if !runs.iter().any(|known| known.as_os_str() == run) {
            bail!(
                "--type names the run `{}`, which is not among the runs; write the run as there",
                escape_controls(run)
            );
        }
        types.push((run, machine_type));
    }
    let typed = runs.iter().map(|run| {
        let mut of_run = types.iter().filter(|(known, _)| run.as_os_str() == *known).map(|(_, of)| (*of).to_string());
        let machine_type = of_run.next();
        if let (Some(one), Some(other)) = (&machine_type, of_run.next()) {
            bail!("--type gives the run `{}` two types, `{one}` and `{other}`; give one", shown(run));
        }
        Ok(TypedRun { folder: runs::find(Some(run), folder)?, machine_type })
    });
    Ok(read_runs(&typed.collect::<anyhow::Result<Vec<_>>>()?, args.metric.as_deref())?)
}

fn claims(args: &Args) -> anyhow::Result<Vec<CostClaim>> {
    let Some(file) = &args.claims else { return Ok(Vec::new()) };
    let text = fs::read_to_string(file).with_context(|| format!("{} can't be read", shown(file)))?;
    Ok(read_claims(&text, &shown(file))?)
}

/// Records the figures of each type as a run.
fn record(args: &Args, figures: &Path, folder: &Path) -> anyhow::Result<Ending> {
    if args.claims.is_some() {
        bail!("claims are judged together with prices; add --prices FILE");
    }
    let mut file = FigureFile::read(open(figures)?, &shown(figures))?;
    if !args.types.is_empty() {
        file = file.only(&args.types)?;
    }
    let command_line: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let known = evidence::known_folder();
    let runs = file.record(folder, Some(&known), &command_line)?;
    output::report(
        &RecordedFigures { folder: folder.display().to_string(), copies: file.copies, runs },
        &args.display,
    )?;
    Ok(Ending::Done)
}

fn open(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| format!("{} can't be opened", shown(path)))
}

fn shown(path: &Path) -> String {
    escape_controls(&path.to_string_lossy())
}

/// Parses a number of threads, or a type of machine and its number of threads: `c7g.large=2`.
fn threads(text: &str) -> Result<(Option<String>, u64), String> {
    let (machine_type, number) = match text.rsplit_once('=') {
        Some((machine_type, number)) => (Some(machine_type.to_string()), number),
        None => (None, text),
    };
    let threads =
        count(number).map_err(|_| anyhow!("`{text}` is not a number of threads, such as 8 or TYPE=8").to_string())?;
    Ok((machine_type, threads))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_may_be_of_a_type() {
        assert_eq!(threads("8"), Ok((None, 8)));
        assert_eq!(threads("c7g.large=2"), Ok((Some("c7g.large".into()), 2)));
        for wrong in ["0", "x", "c7g=", "c7g=-1", ""] {
            assert!(threads(wrong).unwrap_err().contains("not a number of threads"), "{wrong}");
        }
    }
}
