//! What the documents name is there.
#![allow(missing_docs)]

use std::path::{Path, PathBuf};

use ascertain_engine::claims_file;
use ascertain_experiments::registry;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

const DOCUMENTS: [&str; 8] = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "GOALS.md",
    "METHODOLOGY.md",
    "BIAS.md",
    "docs/guide.md",
    "docs/coming-from.md",
];

/// A row of a table can't be broken, and what a picture shows neither.
#[test]
fn lines_are_no_wider_than_120_columns() {
    for document in DOCUMENTS {
        let text = read(document);
        let mut lines = text.lines().filter(|line| !line.starts_with(['|', '!']));
        let wide = lines.find(|line| line.chars().count() > 120);
        assert_eq!(wide, None, "{document}");
    }
}

#[test]
fn links_lead_somewhere() {
    for document in DOCUMENTS {
        let text = read(document);
        for link in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => root().join(document),
                _ => root().join(document).parent().unwrap().join(file),
            };
            assert!(target.exists(), "{document}: {link}");
            if !heading.is_empty() {
                let linked = std::fs::read_to_string(target).unwrap();
                let mut headings = linked.lines().filter(|line| line.starts_with('#'));
                assert!(
                    headings.any(|line| anchor(line.trim_start_matches('#').trim()) == heading),
                    "{document}: {link}"
                );
            }
        }
    }
}

#[test]
fn the_readme_is_short() {
    assert!(read("README.md").lines().count() <= 150);
}

#[test]
fn the_walk_has_twelve_stations_that_are_there() {
    let text = read("CONTRIBUTING.md");
    let stations = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        cells.get(1)?.parse::<u64>().ok()?;
        Some((cells[2].trim_matches('`').to_string(), cells[3].trim_matches('`').to_string()))
    });
    let stations: Vec<(String, String)> = stations.collect();
    assert!((1..=12).contains(&stations.len()), "{stations:?}");
    for (file, function) in stations {
        let (owner, name) = function.rsplit_once("::").unwrap_or(("", &function));
        let code = read(&file);
        assert!(code.contains(&format!("fn {name}(")) && code.contains(owner), "{file} has no {function}");
    }
}

#[test]
fn the_committed_schema_is_the_generated_one() {
    let generated = format!("{:#}\n", claims_file::json_schema(registry()));
    let is_up_to_date = read("claims/schema.json") == generated;
    assert!(is_up_to_date, "claims/schema.json is not up to date: `cargo xtask schema` writes it anew");
}

#[test]
fn our_goals_are_well_formed() {
    let [everywhere, zen5] = ["claims/goals.toml", "claims/goals-zen5.toml"]
        .map(|path| claims_file::parse(&read(path), Path::new(path), registry()).unwrap());
    for claim in &everywhere.claims {
        assert!(!claim.analysis.is_empty(), "{}: says what is left between it and the limit", claim.id);
    }
    // None is in both.
    claims_file::merge([everywhere, zen5]).unwrap();
}
