//! `ascertain list`.

use std::fmt::Write;

use anyhow::bail;
use ascertain_engine::claim::Claim;
use ascertain_engine::experiment::{Arm, Experiment};
use ascertain_engine::memory;
use ascertain_sys::machine::{self, Machine};
use serde_json::{Value, json};

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
    let experiments = ascertain_experiments::registry().iter();
    let listed: Vec<Listed> = experiments.map(|experiment| Listed::new(*experiment, &machine, &claims)).collect();
    match args.display.format {
        Format::Json => {
            let experiments: Vec<Value> = listed.iter().map(Listed::json).collect();
            output::print(&format!("{:#}\n", json!({ "experiments": experiments })))?;
        }
        Format::Csv | Format::Markdown => bail!("`list` prints a table or --format json"),
        Format::Table => output::print(&listed.iter().map(Listed::text).collect::<Vec<_>>().join("\n"))?,
    }
    Ok(Code::Done)
}

/// An experiment with its variants, and why this machine can't measure some of them.
struct Listed<'a> {
    experiment: &'a dyn Experiment,
    /// By variant: the reason why not.
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

    fn text(&self) -> String {
        let spec = self.experiment.spec();
        let mut text = format!("{}: {}\n", spec.id, spec.title);
        let width = spec.variants.iter().map(|variant| variant.name.len()).max().unwrap_or(0);
        for (variant, unavailable) in spec.variants.iter().zip(&self.unavailable) {
            let note = unavailable.as_ref().map(|reason| format!(" [unavailable: {reason}]")).unwrap_or_default();
            let _ = writeln!(text, "  {:width$}  {}{note}", variant.name, variant.about);
        }
        for factor in &spec.factors {
            let _ = writeln!(text, "  --at {}={}: {} [{}]", factor.name, factor.default, factor.about, factor.accepts);
        }
        let claims = match self.claims.len() {
            1 => "1 shipped claim".into(),
            n => format!("{n} shipped claims"),
        };
        let _ = writeln!(text, "  {claims}; more with `ascertain explain {}`", spec.id);
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
