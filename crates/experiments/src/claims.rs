//! The shipped claims: the sources' sentences with the sources' figures, one file a subject.

use std::path::PathBuf;

use ascertain_engine::claims_file::{self, ClaimsFile, ClaimsFileError};

use crate::registry;

macro_rules! shipped {
    ($($family:literal: $name:literal,)*) => {
        &[$(#[cfg(feature = $family)] ($name, include_str!(concat!("../claims/", $name, ".toml"))),)*]
    };
}

/// The files of shipped claims, by family: name and text.
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
    "storage": "moving-files",
    "storage": "cache-race",
    "storage": "racing",
};

/// The shipped claims, resolved.
///
/// # Errors
/// When a shipped file is wrong; a test reads them all.
pub fn shipped_claims() -> Result<ClaimsFile, ClaimsFileError> {
    let files = SHIPPED.iter().map(|(name, text)| {
        let path = PathBuf::from(format!("claims/{name}.toml"));
        let mut file = claims_file::parse(text, &path, registry())?;
        // The documents themselves have numbers for names, which tell people nothing.
        for claim in &mut file.claims {
            claim.source = title(text);
        }
        Ok(file)
    });
    claims_file::merge(files.collect::<Result<Vec<_>, _>>()?)
}

/// What the comment says that a file begins with: who wrote what.
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
            assert!(claim.source.contains(' '), "{}: its file begins with a title: {}", claim.id, claim.source);
            assert!(!claim.source.is_empty() && !claim.analysis.is_empty(), "{}: source and analysis", claim.id);
            assert!(
                claim.id.starts_with(&format!("{}.", claim.experiment)),
                "{}: begins with its experiment",
                claim.id
            );
        }
    }

    /// Of most trials without a loss the median is none: a table says the mean.
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
