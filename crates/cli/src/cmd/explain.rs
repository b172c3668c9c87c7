//! `ascertain explain`.

use anyhow::bail;
use ascertain::Ending;
use ascertain_engine::claim::Claim;
use ascertain_engine::experiment::Spec;
use ascertain_engine::names::{by_nearness, suggestion};
use ascertain_engine::outcome::ClaimSpec;
use ascertain_report::sentence;
use ascertain_report::terminal::{Style, prose};
use serde_json::{Value, json};

use crate::cmd::run;
use crate::options::{Display, Format};
use crate::output;

/// The name and version of the schema of `explain --format json`, which has an `experiment` or a `claim`.
const SCHEMA: &str = "ascertain.explanation/1";

const EXAMPLES: &str = "\
Examples:
  ascertain explain sum
      Explain an experiment: its question, its method and its claims
  ascertain explain sum.kahan-avx512-8x-naive
      Explain a claim: its source, and how it is tested";

/// Explain an experiment or a claim
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
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
    let (kind, json, text) = if let Some(found) = experiments.iter().find(|found| found.spec().id == args.id) {
        of_experiment(found.spec(), &claims, &style)
    } else if let Some(claim) = claims.iter().find(|claim| claim.id == args.id) {
        of_claim(claim, run::find(&claim.experiment)?.spec(), &style)
    } else {
        let known = experiments.iter().map(|e| e.spec().id.as_str()).chain(claims.iter().map(|c| c.id.as_str()));
        let hint = suggestion(&args.id, known).unwrap_or_else(|| elsewhere(&args.id, &claims));
        bail!("there is no experiment and no claim `{}`{hint}", args.id)
    };
    match args.display.format {
        Format::Json => output::print(&format!("{:#}\n", json!({ "schema": SCHEMA, kind: json })))?,
        Format::Table if args.display.quiet => {}
        Format::Table => output::say(&text)?,
        Format::Csv | Format::Markdown => bail!("`explain` prints text or --format json"),
    }
    Ok(Ending::Done)
}

/// Where to look for what has no id that is near: among the claims about the experiment that it begins with.
fn elsewhere(id: &str, claims: &[Claim]) -> String {
    let experiment = id.split_once('.').map_or(id, |(experiment, _)| experiment);
    let about = claims.iter().filter(|claim| claim.experiment == experiment).map(|claim| claim.id.as_str());
    match by_nearness(id, about).get(..NEAR) {
        Some(near) => format!("; the nearest are `{}`; `ascertain list {experiment}` has all", near.join("`, `")),
        None => "; `ascertain list` has the experiments, `ascertain list sum` the claims about one".into(),
    }
}

/// So many ids are named where none is what was probably meant.
const NEAR: usize = 3;

/// What it is, and what is said of it to programs and to people.
type Explanation = (&'static str, Value, String);

fn of_experiment(spec: &Spec, claims: &[Claim], style: &Style) -> Explanation {
    let about = || claims.iter().filter(|claim| claim.experiment == spec.id);
    let json: Vec<Value> = about().map(|claim| json!({ "id": claim.id, "says": claim.says })).collect();
    let mut text = prose(&spec.readme, style);
    text += if json.is_empty() { "" } else { "\nShipped claims\n\n" };
    text.extend(about().map(|claim| style.item(&format!("{}: {}", claim.id, claim.says))));
    ("experiment", json!({ "id": spec.id, "readme": spec.readme, "claims": json }), text)
}

fn of_claim(claim: &Claim, spec: &Spec, style: &Style) -> Explanation {
    let mut text = format!("{}\n\n{}", claim.id, style.paragraph(&claim.says));
    let parts = [
        ("source", &claim.source),
        ("the source's figure", &claim.source_value),
        ("analysis", &claim.analysis),
        ("restated", &claim.restated),
    ];
    for (name, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
        text += &format!("\n{}", style.paragraph(&format!("{name}: {}", value.trim())));
    }
    let asked = ClaimSpec::of(claim, claim.margin, spec);
    text.push_str(&format!("\nexperiment: {}\n", spec.id));
    for line in sentence::test(&asked, claim.rate) {
        text += &if line.starts_with(' ') { style.item(&line) } else { style.paragraph(&line) };
    }
    let json = json!({
        "id": claim.id,
        "says": claim.says,
        "source": claim.source,
        "source_value": claim.source_value,
        "analysis": claim.analysis.trim(),
        "restated": claim.restated.trim(),
        "experiment": spec.id,
        "rate": claim.rate,
        "asked": asked,
    });
    ("claim", json, text)
}
