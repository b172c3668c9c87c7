//! `ascertain list`.

use ascertain::experiment::{Arm, Experiment};
use ascertain_report::terminal;
use ascertain_sys::machine::{self, Machine};
use serde_json::json;

use crate::exit::Code;
use crate::options::{Display, Format};
use crate::output;

/// What there is: experiments, their variants, what each needs, and whether this machine can
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    display: Display,
}

pub fn execute(args: &Args) -> anyhow::Result<Code> {
    let machine = machine::describe();
    let claims = ascertain_experiments::shipped_claims()?.claims;
    let experiments: Vec<terminal::Listed> = ascertain_experiments::registry()
        .iter()
        .map(|experiment| listed(*experiment, &machine, &claims))
        .collect();
    match args.display.format {
        Format::Json => output::print(&format!("{}\n", json!({ "experiments": experiments })))?,
        _ => output::print(&terminal::list(&experiments, &output::style(&args.display)))?,
    }
    Ok(Code::Done)
}

/// An experiment with its variants, and why this machine can't measure some of them.
fn listed(experiment: &dyn Experiment, machine: &Machine, claims: &[ascertain::claim::Claim]) -> terminal::Listed {
    let spec = experiment.spec();
    let variants = spec.variants.iter().map(|variant| {
        let arm = Arm { variant: variant.name.clone(), point: spec.default_point() };
        let unavailable = experiment.available(&arm, machine).err().map(|reason| reason.to_string());
        terminal::ListedVariant { name: variant.name.clone(), about: variant.about.clone(), unavailable }
    });
    terminal::Listed {
        id: spec.id.clone(),
        title: spec.title.clone(),
        variants: variants.collect(),
        factors: spec.factors.iter().map(|factor| format!("{}={}", factor.name, factor.default)).collect(),
        claims: claims.iter().filter(|claim| claim.experiment == spec.id).map(|claim| claim.id.clone()).collect(),
    }
}
