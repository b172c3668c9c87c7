//! Judges the claims of claims files.

use std::path::PathBuf;
use std::time::Duration;

use ascertain_engine::claims_file::{self, ClaimsFile};
use ascertain_engine::plan::{Config, Plan, Registry, UseCase};
use ascertain_engine::result::GatedVerdict;

use crate::error::Error;

/// A request to judge claims.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The claims to judge, and the commands to measure for them. Use [`read`] to read both from files, or create them
    /// in code.
    pub claims: ClaimsFile,
    /// Settings for measuring and judging. By default [`config`].
    pub config: Config,
}

/// Returns the default configuration of a check. With this configuration, a check of the claims that are shipped with
/// Ascertain takes three minutes, including the report.
#[must_use]
pub fn config() -> Config {
    Config {
        max_time: Duration::from_secs(165),
        table_trials: Some(0),
        fail_on: vec![GatedVerdict::Refuted, GatedVerdict::Undecided],
        ..Config::default()
    }
}

impl Check {
    /// Returns a check of a user's own claims. The check fails if any claim is refuted or undecided.
    #[must_use]
    pub fn new(claims: ClaimsFile) -> Check {
        Check { claims, config: config() }
    }

    /// Returns the plan: the claims to judge and the arms to measure.
    #[must_use]
    pub fn plan(self) -> Plan {
        let (ClaimsFile { claims, commands, .. }, config) = (self.claims, self.config);
        Plan { use_case: UseCase::Check, claims, tables: Vec::new(), commands, config, windows: None }
    }
}

/// Reads claims files. Their claims may be about commands and about the experiments in `registry`.
///
/// # Errors
/// If a file can't be read, or has mistakes. The error gives file, line and column of each mistake.
pub fn read(paths: &[PathBuf], registry: &Registry) -> Result<ClaimsFile, Error> {
    let files = paths.iter().map(|path| {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.clone(), source })?;
        Ok(claims_file::parse(&text, path, registry)?)
    });
    Ok(claims_file::merge(files.collect::<Result<Vec<_>, Error>>()?)?)
}

/// Keeps only claims whose id contains at least one of these texts, and the commands that these claims need. If `texts`
/// is empty, keeps everything.
pub fn retain(file: &mut ClaimsFile, texts: &[String]) {
    file.claims.retain(|claim| texts.is_empty() || texts.iter().any(|text| claim.id.contains(text)));
    file.commands.retain(|set| file.claims.iter().any(|claim| claim.experiment == set.id));
}
