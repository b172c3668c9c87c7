//! `ascertain list`: lists experiments, and which of them this machine can run.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::bail;
use ascertain::Ending;
use ascertain_engine::claim::Claim;
use ascertain_engine::experiment::{Arm, Experiment, Factor};
use ascertain_engine::memory;
use ascertain_report::html;
use ascertain_report::terminal::{Style, prose};
use ascertain_sys::machine::{self, Machine};
use serde_json::{Value, json};

use crate::cmd::run;
use crate::options::{Display, Format};
use crate::output;

/// Name and version of the schema of the JSON output.
const SCHEMA: &str = "ascertain.list/1";

const EXAMPLES: &str = "\
Examples:
  ascertain list
      List all experiments, in one or two lines per experiment
  ascertain list sum
      List the variants and the levels of one experiment";

/// List experiments, and which of them this machine can run
///
/// Without an argument, `list` prints one or two lines per experiment. For a named experiment, it prints the variants,
/// the factors with their levels, and the claims.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Experiments to list with all variants, factors and claims [default: all experiments, in one or two lines each]
    #[arg(value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    #[command(flatten)]
    display: Display,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let machine = machine::describe();
    let claims = ascertain_experiments::shipped_claims()?.claims;
    let chosen = match args.experiments.as_slice() {
        [] => ascertain_experiments::registry(),
        named => named.iter().map(|id| run::find(id)).collect::<anyhow::Result<_>>()?,
    };
    let listed = |experiments: &[&'static dyn Experiment]| -> Vec<Listed> {
        experiments.iter().map(|experiment| Listed::new(*experiment, &machine, &claims)).collect()
    };
    let style = args.display.style();
    match args.display.format {
        Format::Json => {
            let experiments: Vec<Value> = listed(&chosen).iter().map(Listed::json).collect();
            output::print(&format!("{:#}\n", json!({ "schema": SCHEMA, "experiments": experiments })))?;
        }
        Format::Csv | Format::Markdown => {
            bail!("`list` does not support this format; use --format table or --format json")
        }
        Format::Table if args.display.quiet => {}
        Format::Table if args.experiments.is_empty() => {
            let families = ascertain_experiments::families().iter().map(|(title, experiments)| {
                let lines: String = listed(experiments).iter().map(|listed| style.item(&listed.line())).collect();
                format!("{title}\n{lines}")
            });
            let more =
                "`ascertain list sum` lists the variants and levels of `sum`, and `ascertain explain sum` explains it.";
            output::print_for_people(&(families.collect::<String>() + "\n" + &style.paragraph(more)))?;
        }
        Format::Table => {
            let texts = listed(&chosen).iter().map(|listed| listed.text(&style)).collect::<Vec<_>>();
            output::print_for_people(&texts.join("\n"))?;
        }
    }
    Ok(Ending::Done)
}

/// An experiment as `list` prints it, with the reasons why this machine can't measure some of its variants.
struct Listed<'a> {
    experiment: &'a dyn Experiment,
    /// For each variant, the reason why this machine can't measure it, or `None` if it can.
    unavailable: Vec<Option<String>>,
    claims: Vec<&'a str>,
}

impl<'a> Listed<'a> {
    fn new(experiment: &'a dyn Experiment, machine: &Machine, claims: &'a [Claim]) -> Listed<'a> {
        let spec = experiment.spec();
        let unavailable = spec.variants.iter().map(|variant| {
            let arm = Arm { variant: variant.name.clone(), point: spec.default_point() };
            memory::available(experiment, &arm, machine).err().map(|reason| reason.to_string())
        });
        Listed {
            experiment,
            unavailable: unavailable.collect(),
            claims: claims.iter().filter(|c| c.experiment == spec.id).map(|c| c.id.as_str()).collect(),
        }
    }

    /// Returns the line that describes the experiment in the list: id, title, number of variants that this machine can
    /// measure, number of claims.
    fn line(&self) -> String {
        let spec = self.experiment.spec();
        let missing = self.unavailable.iter().filter(|reason| reason.is_some()).count();
        // The line only counts variants. The output for a single experiment names the unavailable ones, with the
        // reasons.
        let here = match (spec.variants.len(), missing) {
            (_, 0) => String::new(),
            (variants, missing) => format!("{} of {variants} variants here, ", variants - missing),
        };
        format!("{}: {} ({here}{})", spec.id, spec.title, self.claims_counted())
    }

    /// Returns the section `Question` of the experiment's README as text for a terminal.
    fn question(&self, style: &Style) -> String {
        let sections = html::sections(&self.experiment.spec().readme);
        let asked = sections.iter().find(|(title, _)| title == "Question").map_or("", |(_, asked)| asked);
        prose(asked.trim(), style)
    }

    fn claims_counted(&self) -> String {
        match self.claims.len() {
            1 => "1 claim".into(),
            n => format!("{n} claims"),
        }
    }

    fn text(&self, style: &Style) -> String {
        let spec = self.experiment.spec();
        let mut text = format!("{}: {}\n{}", spec.id, spec.title, self.question(style));
        let width = spec.variants.iter().map(|variant| variant.name.len()).max().unwrap_or(0);
        let indent = width + "    ".len();
        let beside_names = Style { width: style.width.saturating_sub(indent), ..*style };
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (variant, unavailable) in spec.variants.iter().zip(&self.unavailable) {
            let note = if unavailable.is_some() { " [unavailable]" } else { "" };
            let about = beside_names.paragraph(&format!("{}{note}", variant.about));
            let about = about.trim_end().replace('\n', &format!("\n{:indent$}", ""));
            let _ = writeln!(text, "  {:width$}  {about}", variant.name);
            unavailable.iter().for_each(|reason| by_reason.entry(reason).or_default().push(&variant.name));
        }
        for (reason, variants) in by_reason {
            text += &style.item(&format!("unavailable: {}: {reason}", variants.join(", ")));
        }
        for factor in &spec.factors {
            let Factor { name, default, about, accepts } = factor;
            text += &style.item(&format!("--at {name}={default}: {about} [{accepts}]"));
        }
        let ids = if self.claims.is_empty() { "" } else { ", or with the id of a claim:" };
        text += &style.item(&format!("{}; more with `ascertain explain {}`{ids}", self.claims_counted(), spec.id));
        text.extend(self.claims.iter().map(|id| format!("    {id}\n")));
        text
    }

    fn json(&self) -> Value {
        let spec = self.experiment.spec();
        let variants = spec.variants.iter().zip(&self.unavailable).map(|(variant, unavailable)| {
            json!({ "name": variant.name, "about": variant.about, "unavailable": unavailable })
        });
        json!({
            "id": spec.id,
            "title": spec.title,
            "variants": variants.collect::<Vec<_>>(),
            "factors": spec.factors,
            "metrics": spec.metrics,
            "claims": self.claims,
        })
    }
}
