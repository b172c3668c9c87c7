//! The shipped claims: statements from publications with their figures, one file per subject.

use std::path::PathBuf;

use ascertain_engine::claims_file::{self, ClaimsFile, ClaimsFileError};

use crate::registry;

macro_rules! shipped {
    ($($family:literal: $name:literal,)*) => {
        &[$(#[cfg(feature = $family)] ($name, include_str!(concat!("../claims/", $name, ".toml"))),)*]
    };
}

/// The names and texts of the files of shipped claims. A file is included if the feature of its family of experiments
/// is enabled.
const SHIPPED: &[(&str, &str)] = shipped! {
    "numeric": "float-summation",
    "numeric": "cube-root",
    "chance": "balls-and-bins",
    "sync": "barriers",
    "sync": "event-counts",
    "numeric": "integers-to-text",
    "sync": "reclamation",
    "sync": "restartable-sequences",
    "sync": "core-latency",
    "numeric": "format-scaling",
    "numeric": "strength-reduction",
    "networks": "first-flight",
    "networks": "https-throughput",
    "networks": "favouritism",
    "networks": "link-throughput",
    "networks": "networks",
    "networks": "dns-propagation",
    "host": "git-status",
    "storage": "storage",
    "host": "python",
    "transfer": "file-transfers",
    "transfer": "cache-race",
    "transfer": "racing",
};

/// Returns the shipped claims, with their references to experiments resolved.
///
/// # Errors
/// Fails if a shipped file is invalid; a test reads all of them.
pub fn shipped_claims() -> Result<ClaimsFile, ClaimsFileError> {
    let files = SHIPPED.iter().map(|(name, text)| {
        let path = PathBuf::from(format!("claims/{name}.toml"));
        let mut file = claims_file::parse(text, &path, &registry())?;
        // The names of the source documents are numbers that mean nothing to users, so the title of the file replaces
        // them.
        for claim in &mut file.claims {
            claim.source = title(text);
        }
        Ok(file)
    });
    claims_file::merge(files.collect::<Result<Vec<_>, _>>()?)
}

/// Returns the title of a claims file from its leading comment: the author and the title of the source.
fn title(text: &str) -> String {
    let comment = text.lines().map_while(|line| line.strip_prefix('#'));
    comment.map(str::trim).collect::<Vec<_>>().join(" ").trim_end_matches('.').into()
}

#[cfg(test)]
mod tests {
    #[test]
    fn shipped_claims_are_well_formed() {
        let file = super::shipped_claims().unwrap();
        for claim in &file.claims {
            assert!(claim.source.contains(' '), "{}: the file must begin with a title: {}", claim.id, claim.source);
            assert!(
                !claim.source.is_empty() && !claim.analysis.is_empty(),
                "{}: a claim needs a source and an analysis",
                claim.id
            );
            assert!(
                claim.id.starts_with(&format!("{}.", claim.experiment)),
                "{}: the id must begin with the experiment",
                claim.id
            );
        }
    }

    /// A metric whose description begins with "share of" must be marked as a share, so that tables show its mean. For
    /// example, the median of the lost share is 0 if most trials have no loss, but the mean is not.
    #[test]
    fn what_is_called_a_share_is_one() {
        for experiment in crate::registry() {
            let spec = experiment.spec();
            let is_called_one = |about: &str| about.trim_start_matches("the ").starts_with("share of");
            for metric in spec.metrics.iter().filter(|metric| is_called_one(&metric.about)) {
                assert!(metric.is_share, "{}: {}", spec.id, metric.name);
            }
        }
    }

    #[test]
    fn every_experiment_has_a_claim() {
        let file = super::shipped_claims().unwrap();
        for experiment in crate::registry() {
            let id = &experiment.spec().id;
            assert!(file.claims.iter().any(|claim| claim.experiment == *id), "{id} has no claim");
        }
    }
}
