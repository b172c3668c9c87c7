//! The shipped claims: the sources' sentences with the sources' figures, one file a source.

use std::path::Path;

use ascertain_engine::claims_file::{self, ClaimsFile, ClaimsFileError};

use crate::registry;

/// Claims of the sources, by file.
const SHIPPED: &[(&str, &str)] = &[
    ("claims/000_float-summation.toml", include_str!("../../../claims/000_float-summation.toml")),
    ("claims/002_cube-root.toml", include_str!("../../../claims/002_cube-root.toml")),
    ("claims/003_balls-and-bins.toml", include_str!("../../../claims/003_balls-and-bins.toml")),
    ("claims/003_barriers.toml", include_str!("../../../claims/003_barriers.toml")),
    ("claims/003_event-counts.toml", include_str!("../../../claims/003_event-counts.toml")),
    ("claims/003_integers-to-text.toml", include_str!("../../../claims/003_integers-to-text.toml")),
    ("claims/003_reclamation.toml", include_str!("../../../claims/003_reclamation.toml")),
    ("claims/003_restartable-sequences.toml", include_str!("../../../claims/003_restartable-sequences.toml")),
    ("claims/004_core-latency.toml", include_str!("../../../claims/004_core-latency.toml")),
    ("claims/004_format-scaling.toml", include_str!("../../../claims/004_format-scaling.toml")),
    ("claims/004_strength-reduction.toml", include_str!("../../../claims/004_strength-reduction.toml")),
];

/// The shipped claims, resolved.
///
/// # Errors
/// When a shipped file is wrong; a test reads them all.
pub fn shipped_claims() -> Result<ClaimsFile, ClaimsFileError> {
    let files =
        SHIPPED.iter().map(|(path, text)| Ok(named(claims_file::parse(text, Path::new(path), registry())?, path)));
    claims_file::merge(files.collect::<Result<Vec<_>, _>>()?)
}

/// What the file of a shipped claim's source says that it is, in the comment that it begins with: who wrote what.
pub fn source_title(source: &str) -> Option<String> {
    let (_, text) = SHIPPED.iter().find(|(path, _)| stem(path) == source)?;
    let comment = text.lines().map_while(|line| line.strip_prefix('#'));
    Some(comment.map(str::trim).collect::<Vec<_>>().join(" ")).filter(|title| !title.is_empty())
}

/// The file with its own name, `000_float-summation`, for that of each claim's source: the documents themselves have
/// numbers for names, which tell people nothing.
fn named(mut file: ClaimsFile, path: &str) -> ClaimsFile {
    for claim in &mut file.claims {
        claim.source = stem(path);
    }
    file
}

fn stem(path: &str) -> String {
    Path::new(path).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ascertain_engine::claims_file;

    #[test]
    fn shipped_claims_are_well_formed() {
        let file = super::shipped_claims().unwrap();
        for claim in &file.claims {
            assert!(super::source_title(&claim.source).is_some(), "{}: its file begins with a title", claim.id);
            assert!(!claim.source.is_empty() && !claim.analysis.is_empty(), "{}: source and analysis", claim.id);
            assert!(
                claim.id.starts_with(&format!("{}.", claim.experiment)),
                "{}: begins with its experiment",
                claim.id
            );
        }
    }

    #[test]
    fn the_committed_schema_is_the_generated_one() {
        let committed = include_str!("../../../claims/schema.json");
        let generated = format!("{:#}\n", claims_file::json_schema(crate::registry()));
        assert!(committed == generated, "claims/schema.json is not up to date: `cargo xtask schema` writes it anew");
    }

    #[test]
    fn our_goals_are_well_formed() {
        let goals = [
            ("claims/goals.toml", include_str!("../../../claims/goals.toml")),
            ("claims/goals-zen5.toml", include_str!("../../../claims/goals-zen5.toml")),
        ];
        let [everywhere, zen5] =
            goals.map(|(path, text)| claims_file::parse(text, Path::new(path), crate::registry()).unwrap());
        for claim in &everywhere.claims {
            assert!(!claim.analysis.is_empty(), "{}: says what is left between it and the limit", claim.id);
        }
        // None is in both.
        claims_file::merge([everywhere, zen5]).unwrap();
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
