//! Tests that documents name only things that exist, and have the agreed layout.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ascertain_engine::claims_file;
use ascertain_experiments::{registry, shipped_claims};

use crate::typed::{markdown, root};

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The documents in the root folder of the repository.
const DOCUMENTS: [&str; 6] = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "GOALS.md", "METHODOLOGY.md", "BIAS.md"];

/// Returns the paths of the documents in the root folder, and of the pages in these folders.
fn documents(folders: &[&str]) -> Vec<String> {
    let pages = folders.iter().flat_map(|folder| {
        markdown(folder)
            .into_iter()
            .map(move |path| format!("{folder}/{}", path.file_name().unwrap().to_string_lossy()))
    });
    DOCUMENTS.map(String::from).into_iter().chain(pages).collect()
}

/// Returns the targets of the links in a text. Skips code blocks, and links to web pages.
fn links(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    let links = prose.flat_map(|part| part.split("](").skip(1)).map(|rest| rest.split(')').next().unwrap());
    links.filter(|link| !link.starts_with("http")).collect()
}

/// Lines that cannot be wrapped are exempt: rows of tables, and images.
#[test]
fn lines_are_no_wider_than_120_columns() {
    for document in documents(&["docs"]) {
        let text = read(&document);
        let mut lines = text.lines().filter(|line| !line.starts_with(['|', '!']));
        let wide = lines.find(|line| line.chars().count() > 120);
        assert_eq!(wide, None, "{document}");
    }
}

#[test]
fn links_lead_somewhere() {
    let mut count = 0;
    for document in documents(&["docs", "docs/reference", "docs/experiments"]) {
        let text = read(&document);
        for link in links(&text) {
            count += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => root().join(&document),
                _ => root().join(&document).parent().unwrap().join(file),
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
    assert!(count > 200, "{count}");
}

/// Files in `docs/` that are not pages of the book.
const NO_PAGES: [&str; 2] = ["SUMMARY.md", "mutants.md"];

fn is_page(path: &Path) -> bool {
    NO_PAGES.iter().all(|name| !path.ends_with(name))
}

/// Links must not lead out of the folder of the book. Such links would be dead, because mdBook copies nothing from
/// outside.
#[test]
fn links_of_the_book_stay_in_the_book() {
    for (folder, out) in [("docs", "../"), ("docs/reference", "../../"), ("docs/experiments", "../../")] {
        for page in markdown(folder).into_iter().filter(|page| is_page(page)) {
            let text = std::fs::read_to_string(&page).unwrap();
            let outside = links(&text).into_iter().find(|link| link.starts_with(out));
            assert_eq!(outside, None, "{}", page.display());
        }
    }
}

#[test]
fn each_page_is_in_the_summary() {
    let summary = read("docs/SUMMARY.md");
    let listed = links(&summary);
    for (folder, prefix) in [("docs", ""), ("docs/reference", "reference/"), ("docs/experiments", "experiments/")] {
        for page in markdown(folder).into_iter().filter(|page| is_page(page)) {
            let link = format!("{prefix}{}", page.file_name().unwrap().to_string_lossy());
            let count = listed.iter().filter(|listed| **listed == link).count();
            assert_eq!(count, 1, "{link} must be in SUMMARY.md once");
        }
    }
}

/// Every path in code formatting that looks like a path of this repository must exist.
#[test]
fn files_that_the_book_names_exist() {
    let mut count = 0;
    for page in markdown("docs").into_iter().filter(|page| !page.is_symlink()) {
        let text = std::fs::read_to_string(&page).unwrap();
        let prose: String = text.split("```").step_by(2).collect();
        let starts = ["crates/", "examples/", "claims/", "xtask/", "docs/", "action.yml"];
        for path in
            prose.split('`').skip(1).step_by(2).filter(|code| starts.iter().any(|start| code.starts_with(start)))
        {
            count += 1;
            assert!(root().join(path).exists(), "{} names {path}", page.display());
        }
    }
    assert!(count > 10, "{count}");
}

#[test]
fn the_reference_has_each_schema() {
    fn code_below(folder: &Path) -> String {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let text = |path: PathBuf| match path.extension() {
            _ if path.is_dir() => code_below(&path),
            Some(extension) if extension == "rs" => std::fs::read_to_string(path).unwrap(),
            _ => String::new(),
        };
        entries.map(text).collect()
    }
    let reference = read("docs/reference/json.md");
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
        assert!(reference.contains(&format!("\n## ascertain.{schema}\n")), "ascertain.{schema}");
    }
}

#[test]
fn the_readme_is_short() {
    assert!(read("README.md").lines().count() <= 120);
}

/// The first lines have, in this order: the name, a sentence about it, a command with its output, and the set-up.
#[test]
fn the_readme_starts_with_an_answer() {
    let text = read("README.md");
    let first_screen: Vec<&str> = text.lines().take(40).collect();
    let place = |start: &str| first_screen.iter().position(|line| line.starts_with(start)).expect(start);
    let places =
        ["# Ascertain", "**Benchmark", "$ cargo run --release -- compare ", "cargo run --release -- check"].map(place);
    assert!(places.is_sorted() && place("cargo xtask test") > places[3], "{places:?}");
}

#[test]
fn the_readme_counts_what_ships() {
    let (experiments, claims) = (registry().len(), shipped_claims().unwrap().claims.len());
    let readme = read("README.md");
    let counts =
        [format!("{experiments} ready-made experiments"), format!("test {claims} published performance claims")];
    assert_eq!(counts.iter().find(|count| !readme.contains(*count)), None, "README.md lacks a count, or has another");
}

/// Returns whether the code defines the function. If `function` contains an owner, as in `RunJudge::take`, the function
/// must be in an `impl` block of that type or trait.
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

/// Returns the file and the function in each row of a table in CONTRIBUTING, which follows a command through the code.
fn stations(table: &str) -> Vec<(&str, &str)> {
    let station = |line| {
        let cells: Vec<&str> = str::split(line, '|').map(|cell| cell.trim().trim_matches('`')).collect();
        cells.get(1)?.parse::<u64>().ok().map(|_| (cells[2], cells[3]))
    };
    table.lines().filter_map(station).collect()
}

/// CONTRIBUTING follows two commands through the code, in tables with a file and a function in each row. Each file must
/// define its function, and a file in an earlier row must call it.
#[test]
fn the_walks_are_true() {
    let text = read("CONTRIBUTING.md");
    for (heading, most) in [("### `ascertain compare", 10), ("### `ascertain put", 12)] {
        let (_, walk) = text.split_once(heading).unwrap();
        let stations = stations(walk.split("\n#").next().unwrap());
        assert!((8..=most).contains(&stations.len()), "{heading}: {stations:?}");
        let mut earlier = String::new();
        for (index, (file, function)) in stations.into_iter().enumerate() {
            let code = read(file);
            assert!(has_function(&code, function), "{file} has no {function}");
            let name = function.rsplit("::").next().unwrap();
            // Only calls count, not the definitions of functions of the same name.
            let calls = earlier.matches(&format!("{name}(")).count() - earlier.matches(&format!("fn {name}(")).count();
            assert!(index == 0 || calls > 0, "no station before {file} calls {function}");
            earlier += &code;
        }
    }
}

/// Every path of this repository that CONTRIBUTING names must exist.
#[test]
fn named_files_exist() {
    let text = read("CONTRIBUTING.md");
    let named: Vec<&str> = text.split('`').skip(1).step_by(2).filter(|word| word.starts_with("crates/")).collect();
    assert!(named.len() > 30, "{named:?}");
    for path in named.into_iter().filter(|path| !path.contains(['<', '*'])) {
        assert!(root().join(path).exists(), "CONTRIBUTING.md names {path}");
    }
    // The text names functions in two forms: `function` in `file`, and `function` (`file`).
    let words: Vec<&str> = text.split('`').collect();
    let mut functions = 0;
    for at in (3..words.len()).step_by(2).filter(|at| words[*at].ends_with(".rs")) {
        let (file, mut function) = (words[at], words[at - 2]);
        // Before `::`, a name in lower case is a module, which is the file itself, so it is dropped.
        if function.starts_with(char::is_lowercase) {
            function = function.rsplit("::").next().unwrap();
        }
        let is_name = function.chars().all(|c| c.is_alphanumeric() || "_:".contains(c));
        let is_type = function.starts_with(char::is_uppercase) && !function.contains("::");
        if matches!(words[at - 1], " in " | " (") && is_name && !is_type {
            assert!(has_function(&read(file), function), "{file} has no {function}");
            functions += 1;
        }
    }
    assert!(functions > 5, "{functions}");
}

#[test]
fn functions_are_found_with_their_owners() {
    let code = "struct A;\n\nimpl A {\n    fn one() {}\n}\n\nimpl B for A2 {\n    fn two() {}\n}\n";
    let has = ["A::one", "one", "A::two", "A2::two", "B::one", "B::two"].map(|function| has_function(code, function));
    assert_eq!(has, [true, true, false, true, false, true]);
}

#[test]
fn the_committed_schema_is_the_generated_one() {
    let generated = format!("{:#}\n", claims_file::json_schema(&registry()));
    let is_up_to_date = read("claims/schema.json") == generated;
    assert!(is_up_to_date, "claims/schema.json is not up to date: `cargo xtask schema` writes it anew");
}

#[test]
fn our_goals_are_well_formed() {
    let [everywhere, zen5] = ["claims/goals.toml", "claims/goals-zen5.toml"]
        .map(|path| claims_file::parse(&read(path), Path::new(path), &registry()).unwrap());
    for claim in &everywhere.claims {
        assert!(!claim.analysis.is_empty(), "{}: says what is left between it and the limit", claim.id);
    }
    // `merge` fails if a claim is in both files.
    claims_file::merge([everywhere, zen5]).unwrap();
}
