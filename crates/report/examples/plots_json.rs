//! Prints the pictures of a run as JSON. `tests/plotted.py` compares them with the recorded values of the run.
//!
//! `cargo run --package ascertain-report --example plots_json -- RUN_FOLDER`

use std::error::Error;
use std::io::Write;
use std::path::Path;

use ascertain_engine::recorded;
use ascertain_report::pictures;
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("missing argument: the folder of a run")?;
    let run = recorded::read(Path::new(&folder))?;
    let ids = run.header.experiments.iter().map(|spec| spec.id.as_str());
    let experiments: Vec<_> =
        ids.map(|id| json!({ "experiment": id, "pictures": pictures::of_experiment(&run, id) })).collect();
    let claims = (0..run.outcome.claims.len()).map(|index| pictures::of_claim(&run, index));
    let claims: Vec<_> = claims.zip(&run.outcome.claims).collect();
    let claims: Vec<_> =
        claims.iter().map(|(pictures, claim)| json!({ "claim": claim, "pictures": pictures })).collect();
    let all = json!({ "overview": pictures::overview(&run), "claims": claims, "experiments": experiments });
    writeln!(std::io::stdout(), "{all:#}")?;
    Ok(())
}
