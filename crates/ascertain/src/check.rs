//! Do the claims of a file hold.

use std::path::PathBuf;
use std::time::Duration;

use ascertain_engine::claims_file::{self, ClaimsFile};
use ascertain_engine::plan::{Config, Plan, Registry};

use crate::error::Error;
use crate::request::{GatedVerdict, Request, Terms};

/// Its name in `run.json`, which is that of its subcommand.
pub const USE_CASE: &str = "check";

/// So that the shipped claims are through in three minutes, with the report.
const MAX_TIME: Duration = Duration::from_secs(165);

/// Claims to be judged.
#[derive(Debug)]
pub struct Check {
    /// The claims, with the commands that they speak of: from [`read`], or anywhere else.
    pub claims: ClaimsFile,
    /// The verdicts that fail.
    pub fail_on: Vec<GatedVerdict>,
    /// Error, time, trials, seed.
    pub terms: Terms,
}

impl Check {
    /// The verdicts that fail where nobody says which: of claims of one's own.
    pub const FAIL_ON: [GatedVerdict; 2] = [GatedVerdict::Refuted, GatedVerdict::Undecided];

    /// Claims of one's own.
    #[must_use]
    pub fn new(claims: ClaimsFile) -> Check {
        Check { claims, fail_on: Check::FAIL_ON.to_vec(), terms: Terms::default() }
    }

    /// What to measure and judge.
    #[must_use]
    pub fn plan(self) -> (Request, Plan) {
        let file = self.claims;
        let request = Request { fail_on: self.fail_on, places: file.places, ..Request::new(USE_CASE) };
        let config = Config { table_trials: Some(0), ..self.terms.config(MAX_TIME) };
        (request, Plan { claims: file.claims, tables: Vec::new(), commands: file.commands, config })
    }
}

/// Reads files of claims about commands and these experiments.
///
/// # Errors
/// When one can't be read or is not a file of claims: the error names file, line and column.
pub fn read(paths: &[PathBuf], registry: &Registry) -> Result<ClaimsFile, Error> {
    let files = paths.iter().map(|path| {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.clone(), source })?;
        Ok(claims_file::parse(&text, path, registry)?)
    });
    Ok(claims_file::merge(files.collect::<Result<Vec<_>, Error>>()?)?)
}

/// Leaves the claims whose id contains one of these texts, and the commands that they need; all where there is no text.
pub fn retain(file: &mut ClaimsFile, texts: &[String]) {
    file.claims.retain(|claim| texts.is_empty() || texts.iter().any(|text| claim.id.contains(text)));
    file.commands.retain(|set| file.claims.iter().any(|claim| claim.experiment == set.id));
}
