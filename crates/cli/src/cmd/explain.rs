//! `ascertain explain`: explains an experiment or a claim.

use anyhow::bail;
use ascertain::Ending;
use ascertain_engine::claim::Claim;
use ascertain_engine::experiment::Spec;
use ascertain_engine::names::{LEAST_LENGTH, by_nearness, suggestion};
use ascertain_report::sentence;
use ascertain_report::terminal::{Style, prose};
use serde_json::{Value, json};

use crate::cmd::run;
use crate::options::{Display, Format};
use crate::output;

/// Name and version of the schema of the JSON output, which has the key `experiment` or `claim`.
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
    /// Id of an experiment or a claim
    id: String,
    #[command(flatten)]
    display: Display,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let claims = ascertain_experiments::shipped_claims()?.claims;
    let experiments = ascertain_experiments::registry();
    let style = args.display.style();
    let (kind, json, text) = if let Some(found) = experiments.iter().find(|found| found.spec().id == args.id) {
        of_experiment(found.spec(), &claims, &style)
    } else if let Some(claim) = claims.iter().find(|claim| claim.id == args.id) {
        of_claim(claim, run::find(&claim.experiment)?.spec(), &style)
    } else {
        let known = || experiments.iter().map(|e| e.spec().id.as_str()).chain(claims.iter().map(|c| c.id.as_str()));
        let hint = containing(&args.id, known()).or_else(|| suggestion(&args.id, known()));
        bail!("there is no experiment or claim `{}`{}", args.id, hint.unwrap_or_else(|| elsewhere(&args.id, &claims)))
    };
    match args.display.format {
        Format::Json => output::print(&format!("{:#}\n", json!({ "schema": SCHEMA, kind: json })))?,
        Format::Table if args.display.quiet => {}
        Format::Table => output::print_for_people(&text)?,
        Format::Csv | Format::Markdown => {
            bail!("`explain` does not support this format; use --format table or --format json")
        }
    }
    Ok(Ending::Done)
}

/// Returns a hint with a list of ids that contain `text`; `None` if no id does. Ids that begin with `text` come first.
fn containing<'a>(text: &str, ids: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut found: Vec<&str> = ids.filter(|id| text.len() >= LEAST_LENGTH && id.contains(text)).collect();
    found.sort_by_key(|id| !id.starts_with(text));
    let shown = found.get(..found.len().min(NEAR)).filter(|shown| !shown.is_empty())?.join("`, `");
    let more = match found.len().saturating_sub(NEAR) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let ids = if found.len() == 1 { "id" } else { "ids" };
    let are = if found.len() == 1 { "is" } else { "are" };
    Some(format!("; the {ids} with `{text}` {are} `{shown}`{more}"))
}

/// Returns a hint for an unknown id that resembles no known id. If it begins with the name of an experiment, the hint
/// lists claims about this experiment: those with the most similar ids.
fn elsewhere(id: &str, claims: &[Claim]) -> String {
    let experiment = id.split_once('.').map_or(id, |(experiment, _)| experiment);
    let about = claims.iter().filter(|claim| claim.experiment == experiment).map(|claim| claim.id.as_str());
    match by_nearness(id, about).get(..NEAR) {
        Some(near) => {
            format!("; the most similar ids are `{}`; use `ascertain list {experiment}` to list all", near.join("`, `"))
        }
        None => {
            "; use `ascertain list` for the experiments, and `ascertain list sum` for the claims about `sum`".into()
        }
    }
}

/// Maximum number of ids that a hint lists.
const NEAR: usize = 3;

/// The kind of an explained item (`experiment` or `claim`), its JSON value, and its explanation for people.
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
    text.push_str(&format!("\nexperiment: {}\n", spec.id));
    for line in sentence::test(&claim.asked, claim.rate) {
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
        "asked": claim.asked,
    });
    ("claim", json, text)
}
