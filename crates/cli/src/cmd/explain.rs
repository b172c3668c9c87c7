//! `ascertain explain`.

use anyhow::bail;
use ascertain_engine::claim::Claim;
use ascertain_engine::experiment::Spec;
use ascertain_engine::names::suggestion;
use ascertain_engine::outcome::ClaimSpec;
use ascertain_report::sentence;
use ascertain_report::terminal::{Style, prose};

use crate::cmd::run;
use crate::exit::Code;
use crate::output;

/// Explain an experiment or a claim
#[derive(clap::Args)]
pub struct Args {
    /// The id of an experiment or a claim
    id: String,
}

pub fn execute(args: &Args) -> anyhow::Result<Code> {
    let claims = ascertain_experiments::shipped_claims()?.claims;
    let experiments = ascertain_experiments::registry();
    let style = Style::of_stdout(None);
    if let Some(experiment) = experiments.iter().find(|experiment| experiment.spec().id == args.id) {
        let mut text = prose(&experiment.spec().readme, &style);
        let about: Vec<&Claim> = claims.iter().filter(|claim| claim.experiment == args.id).collect();
        text += if about.is_empty() { "" } else { "\nShipped claims\n\n" };
        text.extend(about.iter().map(|claim| style.item(&format!("{}: {}", claim.id, claim.says))));
        output::print(&text)?;
        return Ok(Code::Done);
    }
    if let Some(claim) = claims.iter().find(|claim| claim.id == args.id) {
        output::print(&explain(claim, run::find(&claim.experiment)?.spec(), &style))?;
        return Ok(Code::Done);
    }
    let known = experiments.iter().map(|e| e.spec().id.as_str()).chain(claims.iter().map(|c| c.id.as_str()));
    let hint = suggestion(&args.id, known).unwrap_or_else(|| "; see `ascertain list`".into());
    bail!("there is no experiment and no claim `{}`{hint}", args.id)
}

fn explain(claim: &Claim, spec: &Spec, style: &Style) -> String {
    let mut text = format!("{}\n\n{}", claim.id, style.paragraph(&claim.says));
    let source = ascertain_experiments::source_title(&claim.source).unwrap_or_else(|| claim.source.clone());
    let parts = [
        ("source", &source),
        ("the source's figure", &claim.source_value),
        ("analysis", &claim.analysis),
        ("restated", &claim.restated),
    ];
    for (name, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
        text += &format!("\n{}", style.paragraph(&format!("{name}: {}", value.trim())));
    }
    text.push_str(&format!("\nexperiment: {}\n", spec.id));
    for line in sentence::test(&ClaimSpec::of(claim, claim.margin, spec), claim.rate) {
        text.push_str(&format!("{line}\n"));
    }
    text
}
