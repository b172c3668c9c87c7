//! `cargo xtask mutants`: makes one ordering, fence, check or instruction of the code wrong, and runs the quick tests.
//!
//! If no test notices a mutant, a test is missing, unless `mutants.txt` explains why no test can notice it. This
//! program finds the orderings and fences by itself. `mutants.txt` lists the other mutants, because only a person knows
//! which lines of a protocol are needed for safety.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail, ensure};

use crate::tools;

/// A faulty change to a file.
struct Mutant {
    file: &'static str,
    /// Description of the fault, in a few words.
    what: String,
    at: Range<usize>,
    to: String,
    /// The reason why no test can notice the mutant; `None` if a test should.
    why: Option<String>,
}

/// A paragraph of `mutants.txt`.
struct ListEntry {
    file: &'static str,
    /// Descriptions of the faults. For an ordering, the beginning of the description is enough.
    names: Vec<&'static str>,
    /// The text to replace; empty for orderings, which this program finds itself.
    from: String,
    to: String,
    why: String,
}

/// Returns the entries of `mutants.txt`. The first paragraph of the file explains the format.
fn list() -> impl Iterator<Item = ListEntry> {
    let mut file = "";
    let paragraphs = include_str!("mutants.txt").split("\n\n").skip(1);
    paragraphs.filter_map(move |paragraph| {
        if let Some(name) = paragraph.strip_prefix("# ") {
            file = name;
            return None;
        }
        let marked = |mark, between| {
            let lines = paragraph.lines().filter_map(|line| line.strip_prefix(mark));
            lines.collect::<Vec<_>>().join(between)
        };
        let names = paragraph.lines().filter(|line| !line.starts_with(['-', '+', '='])).collect();
        Some(ListEntry { file, names, from: marked("-", "\n"), to: marked("+", "\n"), why: marked("= ", " ") })
    })
}

/// A kind of build, and the options of `cargo test` that select some of the quick tests.
type Tests = (&'static str, &'static str);

const SYS: &str = "crates/sys/src/";
const SYNC: &str = "crates/sync/src/";

/// Path of the table with the results, below the root of the repository.
const TABLE: &str = "docs/mutants.md";

/// The text before the rows of [`TABLE`].
const HEADING: &str = "\
# Mutants of the synchronisation code

`cargo xtask mutants` writes this table: each change to the code, and the test that notices it.
[GOALS.md](../GOALS.md#mutants) explains the method.

| file | mutant | noticed by |
|---|---|---|
";

/// Tests all mutants, or only those with all `words` in their file names and descriptions, and updates [`TABLE`]. With
/// `--list` in `words`, only prints the mutants.
pub fn run(words: &[String]) -> anyhow::Result<()> {
    let start = Instant::now();
    let (options, words): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| *word == "--list");
    let is_listing = !options.is_empty();
    let tree = if is_listing { tools::root() } else { copy()? };
    let table = match words.as_slice() {
        // A run of all mutants also removes the rows of former mutants.
        [] => HEADING.to_owned(),
        _ => fs::read_to_string(tools::in_root(TABLE))?,
    };
    ensure!(
        table.starts_with(HEADING),
        "{TABLE} has another heading than in xtask/src/mutants.rs; correct one of them"
    );
    let (mut tried, mut rows, mut missed) = (0, Vec::new(), 0);
    for (file, tests) in &files() {
        let text = source(&tree, file)?;
        let mutants = mutants_of(file, &text)?;
        let is_chosen = |mutant: &&Mutant| {
            let has = |word: &&String| mutant.what.contains(word.as_str()) || file.contains(word.as_str());
            words.iter().all(has)
        };
        for mutant in mutants.iter().filter(is_chosen) {
            tried += 1;
            if is_listing {
                println!("{file}: {}", mutant.what);
                continue;
            }
            let mut changed = text.clone();
            changed.replace_range(mutant.at.clone(), &mutant.to);
            let path = path(&tree, file);
            fs::write(&path, changed)?;
            let noticed = noticed_by(&tree, mutant, tests)?;
            fs::write(&path, &text)?;
            let outcome = match (noticed, &mutant.why) {
                (Some(test), None) => test,
                (Some(test), Some(_)) => format!("{test}, though explained"),
                (None, Some(why)) => format!("no test: {why}"),
                (None, None) => "**no test**".into(),
            };
            missed += usize::from(outcome == "**no test**");
            println!("{file}: {}: {outcome}", mutant.what);
            rows.push((format!("| {file} | {} | ", mutant.what), outcome));
        }
    }
    if is_listing {
        println!("{tried} mutants");
        return Ok(());
    }
    fs::write(tools::in_root(TABLE), updated(&table, &rows))?;
    println!("\n{TABLE} is updated: {tried} mutants, {} minutes", start.elapsed().as_secs().div_ceil(60));
    ensure!(missed == 0, "no test notices {missed} of the mutants");
    Ok(())
}

/// Returns the table with new outcomes. Each of `rows` is the beginning of a row and its outcome. Rows of new mutants
/// are added at the end.
fn updated(table: &str, rows: &[(String, String)]) -> String {
    let mut lines: Vec<String> = table.strip_prefix(HEADING).unwrap_or_default().lines().map(str::to_owned).collect();
    for (beginning, outcome) in rows {
        let row = format!("{beginning}{outcome} |");
        match lines.iter_mut().find(|line| line.starts_with(beginning)) {
            Some(line) => *line = row,
            None => lines.push(row),
        }
    }
    lines.insert(0, HEADING.trim_end().into());
    lines.join("\n") + "\n"
}

/// Copies the sources to a folder in which mutants can be made. Returns the folder.
fn copy() -> anyhow::Result<PathBuf> {
    let tree = tools::target().join("xtask-mutants/tree");
    let _ = fs::remove_dir_all(&tree);
    fs::create_dir_all(&tree)?;
    // The copies get the present time. Cargo would not compile files that are older than the build of the last mutant.
    let copied = ["-r", "Cargo.toml", "Cargo.lock", "crates", "xtask", "claims", &*tree.to_string_lossy()];
    tools::run("cp", &copied)?;
    Ok(tree)
}

/// Returns each file in which mutants are made, with the tests that may notice its mutants.
fn files() -> Vec<(&'static str, Vec<Tests>)> {
    let groups = include_str!("mutants_tests.txt").split("\n\n").skip(1);
    let of_group = |group: &'static str| {
        let tests: Vec<Tests> = group.lines().filter_map(|line| line.split_once(": ")).collect();
        group.lines().filter(|line| !line.contains(": ")).map(move |file| (file, tests.clone()))
    };
    groups.flat_map(of_group).collect()
}

fn path(tree: &Path, file: &str) -> PathBuf {
    tree.join(if file.starts_with("rseq/") { SYS } else { SYNC }).join(file)
}

fn source(tree: &Path, file: &str) -> anyhow::Result<String> {
    let path = path(tree, file);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// Returns the mutants of a file, in the order of their positions. Fails if an explanation applies to none of them.
fn mutants_of(file: &'static str, text: &str) -> anyhow::Result<Vec<Mutant>> {
    let mut mutants = weaker_orderings(file, text)?;
    for ListEntry { names, from, to, why, .. } in list().filter(|listed| listed.file == file) {
        let what = names.join(" ");
        ensure!(from != to || !why.is_empty(), "{file}: `{what}` changes nothing and explains nothing");
        if !from.is_empty() {
            let found: Vec<usize> = text.match_indices(&from).map(|(at, _)| at).collect();
            let [at] = found[..] else {
                bail!("{file}: the text of the mutant `{what}` occurs {} times instead of once", found.len())
            };
            mutants.push(Mutant { file, what, at: at..at + from.len(), to, why: None });
        }
        for name in names.iter().filter(|_| !why.is_empty()) {
            let mut explained = mutants.iter_mut().filter(|mutant| mutant.what.starts_with(name)).peekable();
            ensure!(explained.peek().is_some(), "mutants.txt explains `{name}`, but {file} has no such mutant");
            explained.for_each(|mutant| mutant.why = Some(why.clone()));
        }
    }
    mutants.sort_by_key(|mutant| mutant.at.start);
    Ok(mutants)
}

/// Returns the orderings that replace an ordering in the mutants: only the next weaker ones. A test that notices these
/// would also notice still weaker orderings.
fn weaker(ordering: &str) -> &'static [&'static str] {
    match ordering {
        "Acquire" | "Release" => &["Relaxed"],
        "AcqRel" => &["Acquire", "Release"],
        "SeqCst" => &["AcqRel"],
        _ => &[],
    }
}

/// Returns the mutants of a file that weaken an ordering or a fence. Skips comments and the tests at the end of the
/// file.
fn weaker_orderings(file: &'static str, text: &str) -> anyhow::Result<Vec<Mutant>> {
    let mut mutants: Vec<Mutant> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test") {
            break;
        }
        let code = line.split("//").next().unwrap_or(line).trim_end();
        let shown = code.trim_start();
        let mut add = |at: usize, len: usize, what: String, to: &str| {
            // A file may contain the same line twice, so the description gets a number.
            let same = mutants.iter().filter(|mutant| mutant.what.starts_with(&what)).count();
            let what = if same == 0 { what } else { format!("{what} ({})", same + 1) };
            let at = start + at..start + at + len;
            mutants.push(Mutant { file, what, at, to: to.into(), why: None });
        };
        if !shown.starts_with("use ") {
            for (at, word) in words(code) {
                if let Some(at) = code[..at].rfind("fence(") {
                    let at =
                        code[..at].rfind(|c: char| c != '_' && !c.is_alphanumeric()).map_or(0, |before| before + 1);
                    ensure!(code.ends_with(");"), "{file}: a fence in the middle of `{shown}`");
                    // A weaker fence is enough: a test that notices it would notice a missing fence too. A compiler
                    // fence has no weaker form, so it is removed.
                    let (how, to) = if shown.starts_with("compiler") {
                        ("is not there", "();")
                    } else {
                        ("is `AcqRel`", "fence(Ordering::AcqRel);")
                    };
                    add(at, code.len() - at, format!("`{shown}` {how}"), to);
                } else {
                    for to in weaker(word) {
                        add(at, word.len(), format!("`{shown}`: `{word}` is `{to}`"), to);
                    }
                }
            }
        }
        start += line.len();
    }
    Ok(mutants)
}

/// Returns those orderings in a line of code that can be made weaker, with their positions.
fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c == '_' || c.is_alphanumeric();
    let ends = code.char_indices().filter(move |&(_, c)| !is_part(c)).map(|(at, _)| at).chain([code.len()]);
    let mut start = 0;
    let words = ends.map(move |end| {
        let word = (start, &code[start..end]);
        start = end + 1;
        word
    });
    words.filter(|(_, word)| !weaker(word).is_empty())
}

/// Returns the name of the first test that fails; `None` if all pass. Fails if the mutant does not compile.
fn noticed_by(tree: &Path, mutant: &Mutant, tests: &[Tests]) -> anyhow::Result<Option<String>> {
    for &(kind, options) in tests {
        let built = cargo(tree, kind, options, true)?;
        let what = || format!("{}: {}: {}", mutant.file, mutant.what, String::from_utf8_lossy(&built.stderr));
        ensure!(built.status.success(), "{}", what());
        let output = cargo(tree, kind, options, false)?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stdout);
            let failed = text.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
            let failed = failed.map(|test| test.trim_end_matches(" - should panic"));
            let no_test = if kind == "Miri" { "undefined behaviour" } else { "a crash, or no end" };
            let by = failed.map_or_else(|| no_test.into(), |test| format!("`{test}`"));
            let by = if kind == "Native" { by } else { format!("{by} ({kind})") };
            return Ok(Some(by));
        }
    }
    Ok(None)
}

/// Runs `cargo test` on the copied sources for at most 5 minutes, because a mutant may never end.
fn cargo(tree: &Path, kind: &str, options: &str, only_builds: bool) -> anyhow::Result<std::process::Output> {
    let manifest = tree.join("Cargo.toml");
    let folder = tree.with_file_name(kind);
    let (model, command): (&str, &[&str]) = match kind {
        "Native" => ("", &["test"]),
        "Loom" => ("RUSTFLAGS=--cfg model=\"loom\"", &["test", "--release"]),
        "Tso" => ("RUSTFLAGS=--cfg model=\"tso\"", &["test", "--release"]),
        "Miri" => ("MIRIFLAGS=-Zmiri-disable-isolation", &["+nightly", "miri", "test"]),
        _ => bail!("unknown kind of build `{kind}` in mutants_tests.txt"),
    };
    let (cargo, harness) = options.split_once(" -- ").unwrap_or((options, ""));
    let is_named = cargo.contains("--package");
    let (manifest, folder) = (manifest.to_string_lossy(), folder.to_string_lossy());
    let variables = [
        "ASCERTAIN_MODEL_DEPTH=full",
        "CARGO_PROFILE_DEV_DEBUG=0",
        "CARGO_INCREMENTAL=1",
        // Allows the unstable option below for the test harness.
        "RUSTC_BOOTSTRAP=1",
    ];
    let mut arguments = vec!["300", "env"];
    // Miri does not get `RUSTC_BOOTSTRAP`, because its nightly compiler allows unstable options anyway.
    arguments.extend(variables.iter().take(if kind == "Miri" { 3 } else { 4 }));
    arguments.extend((!model.is_empty()).then_some(model));
    arguments.push("cargo");
    arguments.extend(command);
    arguments.extend(["--manifest-path", &manifest, "--target-dir", &folder]);
    arguments.extend(if is_named { &[][..] } else { &["--package", "ascertain-sync"] });
    arguments.extend(cargo.split(' '));
    if only_builds {
        arguments.push("--no-run");
    } else {
        arguments.push("--");
        // This option needs a nightly compiler or `RUSTC_BOOTSTRAP`.
        arguments.extend(["-Zunstable-options", "--fail-fast"]);
        arguments.extend(harness.split_whitespace());
    }
    tools::capture("timeout", &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a line that an entry of `mutants.txt` quotes was changed, or if a file was renamed. Otherwise only
    /// `cargo xtask mutants` would fail, after most of an hour.
    #[test]
    fn each_edit_and_explanation_has_its_place_and_each_test_its_file() {
        for (file, tests) in files() {
            assert!(tests.iter().all(|(kind, _)| ["Native", "Loom", "Tso", "Miri"].contains(kind)), "{tests:?}");
            mutants_of(file, &source(&tools::root(), file).unwrap()).unwrap();
            for (_, options) in tests.iter().filter(|(_, options)| !options.contains("--package")) {
                let modules = options.split_once(" -- ").map_or("", |(_, filters)| filters).split(' ');
                for (module, _) in modules.filter_map(|filter| filter.split_once("::")) {
                    let tests = tools::root().join("crates/sync/tests/all");
                    let is_there =
                        tests.join(module).join("mod.rs").exists() || tests.join(format!("{module}.rs")).exists();
                    assert!(is_there || options.contains("--lib"), "there is no test {module}");
                }
            }
        }
        for ListEntry { file: name, .. } in list() {
            assert!(files().iter().any(|(file, _)| *file == name), "{name} is not among the files");
        }
    }

    #[test]
    fn rows_of_mutants_that_were_tried_are_replaced_or_added() {
        let table = format!("{HEADING}| a.rs | one | `old` |\n| a.rs | two | `kept` |\n");
        let rows = [("| a.rs | one | ".into(), "`new`".into()), ("| b.rs | three | ".into(), "no test: why".into())];
        let expected = "| a.rs | one | `new` |\n| a.rs | two | `kept` |\n| b.rs | three | no test: why |\n";
        assert_eq!(updated(&table, &rows), format!("{HEADING}{expected}"));
    }
}
