//! Mutants: the code with one ordering, fence, check or instruction wrong, under the tests that are quick. A mutant
//! that no test notices is a test that is missing, unless the list says why nothing can notice it.
//!
//! Orderings and fences are found in the files; the rest is listed in `mutants.txt`, for which of a protocol's lines
//! are checks that safety rests on is nothing that a program could know.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail, ensure};

use crate::tools;

/// One change to a file.
struct Mutant {
    file: &'static str,
    what: String,
    at: Range<usize>,
    to: String,
    /// Why nothing can notice it.
    why: Option<String>,
}

/// A paragraph of the list.
struct Listed {
    file: &'static str,
    /// What is wrong in the mutant; of orderings, how that begins.
    names: Vec<&'static str>,
    /// Empty of orderings, which are found without it.
    from: String,
    to: String,
    why: String,
}

/// The list, which begins with what its lines mean.
fn list() -> impl Iterator<Item = Listed> {
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
        Some(Listed { file, names, from: marked("-", "\n"), to: marked("+", "\n"), why: marked("= ", " ") })
    })
}

/// A kind of build, and the options of `cargo test` for the tests that are quick and may notice.
type Tests = (Kind, &'static str);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Native,
    Loom,
    Tso,
    Miri,
}

const SYS: &str = "crates/sys/src/";
const SYNC: &str = "crates/sync/src/";

/// Files whose names begin so, and their tests, which are tried one after the other until one fails. The files are
/// those with orderings that somebody relies on.
const FILES: &[(&[&str], &[Tests])] = &[
    (
        &["rseq/stacks.rs", "rseq/x86_64.rs", "rseq/outcome.rs", "rseq/plain.rs"],
        &[
            (Kind::Native, "--package ascertain-sys --lib rseq"),
            (Kind::Miri, "--package ascertain-sys --lib rseq::tests"),
            (Kind::Native, "--test all -- per_cpu_machine::"),
        ],
    ),
    (
        &[
            "event_count/awaitable.rs",
            "event_count/flagged.rs",
            "event_count/polled.rs",
            "event_count/sleep.rs",
            "event_count/two_word.rs",
        ],
        &[
            (Kind::Native, "--lib event_count"),
            (Kind::Loom, "--test loom event_count"),
            (Kind::Tso, "--lib tso::event_count -- --skip ring"),
            (Kind::Native, "--test all -- event_count::"),
        ],
    ),
    (
        &["ring/consumer.rs", "ring/producer.rs", "ring/shared.rs"],
        &[
            (Kind::Tso, "--lib ring"),
            (Kind::Native, "--test all -- ring:: panics::"),
            (Kind::Loom, "--test loom nobody_will_pop"),
            (Kind::Loom, "--test loom ring"),
        ],
    ),
    (
        &["hazard/domain.rs", "hazard/pointer.rs"],
        &[
            (Kind::Loom, "--test loom reclamation"),
            (Kind::Native, "--lib"),
            (Kind::Native, "--test all -- hazard:: reclamation::"),
            (Kind::Tso, "--lib tso::reclamation"),
        ],
    ),
    (
        &["epoch/collector.rs", "epoch/handle.rs"],
        &[
            (Kind::Loom, "--test loom reclamation"),
            (Kind::Native, "--lib"),
            (Kind::Native, "--test all -- epoch:: epoch_default:: reclamation::"),
            (Kind::Tso, "--lib tso::reclamation"),
        ],
    ),
    (&["epoch/local.rs"], &[(Kind::Native, "--test all -- epoch_default::"), (Kind::Miri, "--lib epoch::local")]),
    (&["reclaim/published.rs", "reclaim/records.rs", "reclaim/retired.rs"], RECLAMATION),
    (&["drop_all.rs"], &[(Kind::Native, "--lib"), (Kind::Native, "--test all -- panics:: hazard:: epoch:: ring::")]),
    (
        &["per_cpu/counter.rs", "per_cpu/free_list.rs", "per_cpu/lock.rs"],
        &[
            (Kind::Native, "--lib"),
            (Kind::Native, "--test all -- per_cpu:: per_cpu_pinned:: per_cpu_machine:: panics::"),
        ],
    ),
    (&["barrier/contract.rs"], RECLAMATION),
    (
        &["barrier/choose.rs", "barrier/interrupts.rs", "barrier/membarrier.rs"],
        &[
            (Kind::Native, "--features daemon --lib"),
            (Kind::Native, "--features daemon --test all -- barrier:: barrier_fork:: barrierd::client::"),
            (Kind::Miri, "--lib barrier"),
            (Kind::Miri, "--test all -- barrier::fences_are"),
        ],
    ),
    (
        &["barrierd/client.rs", "barrierd/file.rs"],
        &[(Kind::Native, "--test all -- barrierd::client:: barrierd::order:: barrierd::trust::")],
    ),
];

const RECLAMATION: &[Tests] = &[
    (Kind::Loom, "--test loom reclamation"),
    (Kind::Native, "--lib"),
    (Kind::Native, "--test all -- hazard:: epoch:: epoch_default:: reclamation::"),
    (Kind::Tso, "--lib tso::reclamation"),
];

/// Tries each mutant, or those with all of the words in their files' names and descriptions, and prints a table. With
/// `--list` among the words it only says which there are.
pub fn run(words: &[String]) -> anyhow::Result<()> {
    let start = Instant::now();
    let (options, words): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| *word == "--list");
    let is_listing = !options.is_empty();
    let tree = if is_listing { tools::root() } else { copy()? };
    let (mut tried, mut rows, mut missed) = (0, Vec::new(), 0);
    for (file, tests) in files() {
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
                (None, Some(why)) => format!("nobody: {why}"),
                (None, None) => "**nobody**".into(),
            };
            missed += usize::from(outcome == "**nobody**");
            println!("{file}: {}: {outcome}", mutant.what);
            rows.push(format!("| {file} | {} | {outcome} |", mutant.what));
        }
    }
    if is_listing {
        println!("{tried} mutants");
        return Ok(());
    }
    println!("\n| file | mutant | noticed by |\n|---|---|---|\n{}", rows.join("\n"));
    println!("\n{tried} mutants, {} minutes", start.elapsed().as_secs().div_ceil(60));
    ensure!(missed == 0, "{missed} mutants are noticed by no test");
    Ok(())
}

/// A copy of the sources, in which the mutants are made.
fn copy() -> anyhow::Result<PathBuf> {
    let tree = tools::target().join("xtask-mutants/tree");
    let _ = fs::remove_dir_all(&tree);
    fs::create_dir_all(&tree)?;
    // With the times of now: what is older than the last mutant's build would not be compiled again.
    let copied = ["-r", "Cargo.toml", "Cargo.lock", "crates", "xtask", "claims", &*tree.to_string_lossy()];
    tools::run("cp", &copied)?;
    Ok(tree)
}

/// Each file, with its tests.
fn files() -> impl Iterator<Item = (&'static str, &'static [Tests])> {
    FILES.iter().flat_map(|&(files, tests)| files.iter().map(move |&file| (file, tests)))
}

fn path(tree: &Path, file: &str) -> PathBuf {
    tree.join(if file.starts_with("rseq/") { SYS } else { SYNC }).join(file)
}

fn source(tree: &Path, file: &str) -> anyhow::Result<String> {
    let path = path(tree, file);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// In the order of their places. An explanation that is about none of them is an error.
fn mutants_of(file: &'static str, text: &str) -> anyhow::Result<Vec<Mutant>> {
    let mut mutants = weaker_orderings(file, text)?;
    for Listed { names, from, to, why, .. } in list().filter(|listed| listed.file == file) {
        let what = names.join(" ");
        ensure!(from != to || !why.is_empty(), "{file}: `{what}` changes nothing and explains nothing");
        if !from.is_empty() {
            let found: Vec<usize> = text.match_indices(&from).map(|(at, _)| at).collect();
            let [at] = found[..] else { bail!("{what}: {file} has its text {} times, not once", found.len()) };
            mutants.push(Mutant { file, what, at: at..at + from.len(), to, why: None });
        }
        for name in names.iter().filter(|_| !why.is_empty()) {
            let mut explained = mutants.iter_mut().filter(|mutant| mutant.what.starts_with(name)).peekable();
            ensure!(explained.peek().is_some(), "{file} has no mutant `{name}` to explain");
            explained.for_each(|mutant| mutant.why = Some(why.clone()));
        }
    }
    mutants.sort_by_key(|mutant| mutant.at.start);
    Ok(mutants)
}

/// What it is made of an ordering: the next weaker ones. What notices those notices still weaker ones.
fn weaker(ordering: &str) -> &'static [&'static str] {
    match ordering {
        "Acquire" | "Release" => &["Relaxed"],
        "AcqRel" => &["Acquire", "Release"],
        "SeqCst" => &["AcqRel"],
        _ => &[],
    }
}

/// Every ordering and fence of a file, each made weaker: not in comments, nor in tests, which are what comes last.
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
            // Some lines come twice in a file.
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
                    // What notices a fence that is weaker notices that there is none; the compiler's has no weaker one.
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

/// The orderings that can be weaker, and where they begin.
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

/// The first test that fails; none if all pass. A mutant that does not compile is an error.
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
            let no_test = if kind == Kind::Miri { "undefined behaviour" } else { "a crash, or no end" };
            let by = failed.map_or_else(|| no_test.into(), |test| format!("`{test}`"));
            let by = if kind == Kind::Native { by } else { format!("{by} ({kind:?})") };
            return Ok(Some(by));
        }
    }
    Ok(None)
}

/// `cargo test`, which has 5 minutes: a mutant may never end.
fn cargo(tree: &Path, kind: Kind, options: &str, only_builds: bool) -> anyhow::Result<std::process::Output> {
    let manifest = tree.join("Cargo.toml");
    let folder = tree.with_file_name(format!("{kind:?}"));
    let (model, command): (&str, &[&str]) = match kind {
        Kind::Native => ("", &["test"]),
        Kind::Loom => ("RUSTFLAGS=--cfg model=\"loom\"", &["test", "--release"]),
        Kind::Tso => ("RUSTFLAGS=--cfg model=\"tso\"", &["test", "--release"]),
        Kind::Miri => ("MIRIFLAGS=-Zmiri-disable-isolation", &["+nightly", "miri", "test"]),
    };
    let (cargo, harness) = options.split_once(" -- ").unwrap_or((options, ""));
    let is_named = cargo.contains("--package");
    let (manifest, folder) = (manifest.to_string_lossy(), folder.to_string_lossy());
    let variables = [
        "ASCERTAIN_MODEL_DEPTH=full",
        "CARGO_PROFILE_DEV_DEBUG=0",
        "CARGO_INCREMENTAL=1",
        // Allows the harness its unstable option below.
        "RUSTC_BOOTSTRAP=1",
    ];
    let mut arguments = vec!["300", "env"];
    // Miri comes with a compiler that needs no such permission.
    arguments.extend(variables.iter().take(if kind == Kind::Miri { 3 } else { 4 }));
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
        // Only a compiler that is not released, or thinks so, has the option.
        arguments.extend(["-Zunstable-options", "--fail-fast"]);
        arguments.extend(harness.split_whitespace());
    }
    tools::capture("timeout", &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What moves a line or renames a file finds out here, and not after the better part of an hour.
    #[test]
    fn each_edit_and_explanation_has_its_place_and_each_test_its_file() {
        for (file, tests) in files() {
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
        for Listed { file: name, .. } in list() {
            assert!(files().any(|(file, _)| file == name), "{name} is not among the files");
        }
    }
}
