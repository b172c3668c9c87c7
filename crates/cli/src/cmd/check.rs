//! `ascertain check`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use ascertain_engine::claims_file::{self, ClaimsFile};
use ascertain_engine::plan::{Config, Plan};
use ascertain_engine::run::Run;
use ascertain_report::exports::Purpose;

use crate::cmd::report;
use crate::exit::{self, Code, FailOn};
use crate::options::Common;
use crate::output::{self, Asks};
use crate::session;

const MAX_TIME: Duration = Duration::from_secs(120);

/// Judge a file of claims; without one, the shipped claims that this machine can run
///
/// The sources' claims do not gate: that one is refuted here is a finding. A file of your own does:
/// exit code 1 when a claim is refuted, 3 when one is undecided.
#[derive(clap::Args)]
pub struct Args {
    /// Files of claims
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only claims whose id contains this
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Verdicts that fail: refuted (exit code 1), undecided (3), nothing. For the shipped claims: nothing
    #[arg(long, value_enum, value_delimiter = ',', help_heading = "Judging")]
    fail_on: Option<Vec<FailOn>>,
    #[command(flatten)]
    common: Common,
}

pub fn execute(args: &Args) -> anyhow::Result<Code> {
    let mut file = match args.files.as_slice() {
        [] => ascertain_experiments::shipped_claims()?,
        files => read(files)?,
    };
    if !args.only.is_empty() {
        file.claims.retain(|claim| args.only.iter().any(|text| claim.id.contains(text)));
    }
    if file.claims.is_empty() {
        output::note(&format!("no claim's id contains {}", args.only.join(" or ")));
        return Ok(Code::Nothing);
    }
    let config = Config { table_trials: Some(0), ..session::config(&args.common, MAX_TIME) };
    file.commands.retain(|set| file.claims.iter().any(|claim| claim.experiment == set.id));
    let places = file.claims.iter().filter_map(|claim| Some((claim.id.clone(), file.place(&claim.id)?.clone())));
    let purpose = Purpose { places: places.collect(), ..Purpose::default() };
    let plan = Plan { claims: file.claims, tables: Vec::new(), commands: file.commands, config };
    session::carry_out(&plan, &args.common, purpose, |run| {
        output::outcome(run, &plan.tables, &args.common.display, Asks::Verdicts, output::checked)?;
        if let Some(folder) = &run.folder {
            report::write(folder, args.common.display.quiet)?;
        }
        Ok(args.code(run))
    })
}

impl Args {
    /// The exit code of such a run.
    pub fn code(&self, run: &Run) -> Code {
        let gates = match (&self.fail_on, self.files.is_empty()) {
            (Some(gates), _) => gates.as_slice(),
            (None, true) => &[],
            (None, false) => &[FailOn::Refuted, FailOn::Undecided],
        };
        exit::code(run, gates)
    }
}

fn read(paths: &[PathBuf]) -> anyhow::Result<ClaimsFile> {
    let registry = ascertain_experiments::registry();
    let files = paths.iter().map(|path| {
        let text = std::fs::read_to_string(path).with_context(|| format!("{} can't be read", path.display()))?;
        Ok(claims_file::parse(&text, path, registry)?)
    });
    Ok(claims_file::merge(files.collect::<anyhow::Result<Vec<_>>>()?)?)
}
