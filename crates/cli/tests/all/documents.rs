//! What the documents name is there.

use std::collections::BTreeSet;
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

/// What `--format json` prints has a schema, which somebody who meets it looks for.
#[test]
fn the_guide_names_each_schema() {
    fn code_below(folder: &Path) -> String {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let text = |path: PathBuf| match path.extension() {
            _ if path.is_dir() => code_below(&path),
            Some(extension) if extension == "rs" => std::fs::read_to_string(path).unwrap(),
            _ => String::new(),
        };
        entries.map(text).collect()
    }
    let guide = read("docs/guide.md");
    let code: String =
        ["engine", "report", "cli"].map(|name| code_below(&root().join(format!("crates/{name}/src")))).concat();
    let schemas: BTreeSet<&str> = code
        .split("\"ascertain.")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|name| name.contains('/') && !name.starts_with("evidence/"))
        .collect();
    assert!(schemas.len() > 9, "{schemas:?}");
    for schema in schemas {
        assert!(guide.contains(&format!("`ascertain.{schema}`")), "ascertain.{schema}");
    }
}

#[test]
fn the_readme_is_short() {
    assert!(read("README.md").lines().count() <= 150);
}

/// Whether the code has the function, and in a block of its owner's where it names one: `RunJudge::take`.
fn has_function(code: &str, function: &str) -> bool {
    let (owner, name) = function.rsplit_once("::").unwrap_or(("", function));
    let is_in = |code: &str| ["(", "<"].iter().any(|next| code.contains(&format!("fn {name}{next}")));
    let is_owners = |block: &str| {
        let (head, body) = block.split_once("{\n").unwrap_or_default();
        let is_owner = head.split(|c: char| !c.is_alphanumeric()).any(|word| word == owner);
        is_owner && body.split("\n}").next().is_some_and(is_in)
    };
    if owner.is_empty() { is_in(code) } else { code.split("\nimpl").skip(1).any(is_owners) }
}

#[test]
fn the_walk_has_twelve_stations_that_are_there() {
    let text = read("CONTRIBUTING.md");
    let (walk, _) = text.split_once("## Where things go").unwrap();
    let (_, walk) = walk.split_once("## How an observation").unwrap();
    let number = |line: &str| line.split('|').nth(1)?.trim().parse::<u64>().ok();
    assert!((1..=12).contains(&walk.lines().filter_map(number).count()));
    let parts: Vec<&str> = walk.split('`').collect();
    let is_file = |at: &usize| parts[*at].starts_with("crates/") && parts[*at].ends_with(".rs");
    let files: Vec<usize> = (1..parts.len()).step_by(2).filter(is_file).collect();
    assert!(files.len() > 16, "{files:?}");
    for at in files {
        let code = read(parts[at]);
        // `file` | `function`, (`file`, `function`), `function` (`file`), and `function` in `file`.
        let function = match (parts[at - 1].trim(), parts[at + 1]) {
            (_, " | " | ", ") => parts[at + 2],
            ("(" | "in", _) => parts[at - 2],
            _ => continue,
        };
        assert!(has_function(&code, function), "{} has no {function}", parts[at]);
    }
    let code = "struct A;\n\nimpl A {\n    fn one() {}\n}\n\nimpl B for A2 {\n    fn two() {}\n}\n";
    let has = ["A::one", "one", "A::two", "A2::two", "B::one", "B::two"].map(|function| has_function(code, function));
    assert_eq!(has, [true, true, false, true, false, true]);
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
