//! `ascertain explain`.

use anyhow::bail;
use ascertain::Ending;
use ascertain_engine::claim::Claim;
use ascertain_engine::experiment::Spec;
use ascertain_engine::names::suggestion;
use ascertain_engine::outcome::ClaimSpec;
use ascertain_report::sentence;
use ascertain_report::terminal::{Style, prose};
use serde_json::{Value, json};

use crate::cmd::run;
use crate::options::{Display, Format};
use crate::output;

/// The name and version of the schema of `explain --format json`, which has an `experiment` or a `claim`.
const SCHEMA: &str = "ascertain.explanation/1";

/// Explain an experiment or a claim
#[derive(clap::Args)]
pub struct Args {
    /// The id of an experiment or a claim
    id: String,
    #[command(flatten)]
    display: Display,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let claims = ascertain_experiments::shipped_claims()?.claims;
    let experiments = ascertain_experiments::registry();
    let style = output::style(&args.display);
    let is_json = match args.display.format {
        Format::Json => true,
        Format::Table => false,
        Format::Csv | Format::Markdown => bail!("`explain` prints text or --format json"),
    };
    let print_json =
        |kind: &str, value: Value| output::print(&format!("{:#}\n", json!({ "schema": SCHEMA, kind: value })));
    if let Some(experiment) = experiments.iter().find(|experiment| experiment.spec().id == args.id) {
        let about: Vec<&Claim> = claims.iter().filter(|claim| claim.experiment == args.id).collect();
        if is_json {
            let claims: Vec<Value> = about.iter().map(|claim| json!({ "id": claim.id, "says": claim.says })).collect();
            let readme = &experiment.spec().readme;
            print_json("experiment", json!({ "id": args.id, "readme": readme, "claims": claims }))?;
            return Ok(Ending::Done);
        }
        let mut text = prose(&experiment.spec().readme, &style);
        text += if about.is_empty() { "" } else { "\nShipped claims\n\n" };
        text.extend(about.iter().map(|claim| style.item(&format!("{}: {}", claim.id, claim.says))));
        output::print(&text)?;
        return Ok(Ending::Done);
    }
    if let Some(claim) = claims.iter().find(|claim| claim.id == args.id) {
        let spec = run::find(&claim.experiment)?.spec();
        match is_json {
            true => print_json("claim", as_json(claim, spec))?,
            false => output::print(&explain(claim, spec, &style))?,
        }
        return Ok(Ending::Done);
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

fn as_json(claim: &Claim, spec: &Spec) -> Value {
    json!({
        "id": claim.id,
        "says": claim.says,
        "source": claim.source,
        "source_title": ascertain_experiments::source_title(&claim.source),
        "source_value": claim.source_value,
        "analysis": claim.analysis.trim(),
        "restated": claim.restated.trim(),
        "experiment": spec.id,
        "rate": claim.rate,
        "asked": ClaimSpec::of(claim, claim.margin, spec),
    })
}
