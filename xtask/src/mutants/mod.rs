//! Mutants: the code with one ordering, fence, check or instruction wrong, under the tests that are quick. A mutant that no
//! test notices is a test that is missing, unless it says here why nothing can notice it.
//!
//! Orderings and fences are found in the files; the rest is a list, for which of a protocol's lines are checks that safety
//! rests on is nothing that a program could know.

mod edits;
mod explained;
mod orderings;

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::tools;
use edits::EDITS;
use explained::EXPLAINED;

/// One change to a file.
struct Mutant {
    file: &'static str,
    what: String,
    at: Range<usize>,
    to: &'static str,
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

/// Files whose names begin so, and their tests, which are tried one after the other until one fails. The files are those
/// with orderings that somebody relies on.
const FILES: &[(&[&str], &[Tests])] = &[
    (
        &["rseq/stacks.rs", "rseq/x86_64.rs", "rseq/fence.rs", "rseq/plain.rs"],
        &[
            (Kind::Native, "--package ascertain-sys --lib rseq"),
            (Kind::Miri, "--package ascertain-sys --lib rseq::tests"),
        ],
    ),
    (
        &[
            "event_count/awaitable.rs",
            "event_count/flagged.rs",
            "event_count/polled.rs",
            "event_count/sleep.rs",
            "event_count/two_word.rs",
            "event_count/unlocked.rs",
        ],
        &[
            (Kind::Loom, "--test loom -- --skip ring --skip nobody_will_pop"),
            (Kind::Tso, "--lib tso::event_count -- --skip ring"),
            (Kind::Native, "--lib --test event_count event_count"),
            (Kind::Native, "--test event_count"),
        ],
    ),
    (
        &["ring/consumer.rs", "ring/producer.rs", "ring/shared.rs"],
        &[
            (Kind::Tso, "--lib ring"),
            (Kind::Native, "--test ring --test panics"),
            (Kind::Loom, "--test loom nobody_will_pop"),
            (Kind::Loom, "--test loom ring"),
        ],
    ),
    (
        &["hazard/domain.rs", "hazard/pointer.rs", "hazard/retirer.rs"],
        &[
            (Kind::Loom, "--test reclamation_loom"),
            (Kind::Native, "--lib --test hazard"),
            (Kind::Tso, "--lib tso::reclamation"),
        ],
    ),
    (
        &["epoch/collector.rs", "epoch/handle.rs"],
        &[
            (Kind::Loom, "--test reclamation_loom"),
            (Kind::Native, "--lib --test epoch --test epoch_default"),
            (Kind::Tso, "--lib tso::reclamation"),
        ],
    ),
    (&["epoch/local.rs"], &[(Kind::Native, "--test epoch_default"), (Kind::Miri, "--lib epoch::local")]),
    (&["reclaim/orphans.rs", "reclaim/published.rs", "reclaim/records.rs", "reclaim/turn.rs"], RECLAMATION),
    (&["drop_all.rs"], &[(Kind::Native, "--test panics --test hazard --test epoch --test ring")]),
    (
        &["per_cpu/counter.rs", "per_cpu/free_list.rs", "per_cpu/lock.rs"],
        &[(Kind::Native, "--lib --test per_cpu --test per_cpu_pinned --test per_cpu_machine --test panics")],
    ),
    (&["barrier/fences.rs"], RECLAMATION),
    (
        &["barrier/expedited.rs", "barrier/global.rs", "barrier/interrupts.rs"],
        &[
            (Kind::Native, "--features daemon --lib --test barrier --test global_fork --test barrierd_client"),
            (Kind::Miri, "--lib barrier"),
        ],
    ),
    (
        &["barrierd/client.rs", "barrierd/file.rs"],
        &[(Kind::Native, "--test barrierd_client --test barrierd_order --test barrierd_trust")],
    ),
];

const RECLAMATION: &[Tests] = &[
    (Kind::Loom, "--test reclamation_loom"),
    (Kind::Native, "--lib --test hazard --test epoch --test epoch_default"),
    (Kind::Tso, "--lib tso::reclamation"),
];

/// Tries each mutant, or those with all of the words in their files' names and descriptions, and prints a table.
pub fn run(words: &[String]) -> anyhow::Result<()> {
    let start = Instant::now();
    let tree = tools::target().join("xtask-mutants/tree");
    let _ = fs::remove_dir_all(&tree);
    fs::create_dir_all(&tree)?;
    // With the times of now: what is older than the last mutant's build would not be compiled again.
    let copied = ["-r", "Cargo.toml", "Cargo.lock", "crates", "xtask", "claims", &*tree.to_string_lossy()];
    tools::run("cp", &copied)?;
    let (mut tried, mut rows, mut missed) = (0, Vec::new(), 0);
    for (files, tests) in FILES {
        for file in *files {
            let root = if file.starts_with("rseq/") { SYS } else { SYNC };
            let path = tree.join(root).join(file);
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let mutants = mutants_of(file, &text)?;
            let is_chosen = |mutant: &&Mutant| {
                let has = |word: &String| mutant.what.contains(word.as_str()) || file.contains(word.as_str());
                words.iter().all(has)
            };
            for mutant in mutants.iter().filter(is_chosen) {
                let mut changed = text.clone();
                changed.replace_range(mutant.at.clone(), mutant.to);
                fs::write(&path, changed)?;
                let noticed = noticed_by(&tree, mutant, tests)?;
                fs::write(&path, &text)?;
                let outcome = match (noticed, mutant.explanation()) {
                    (Some(test), None) => test,
                    (Some(test), Some(_)) => format!("{test}, though explained"),
                    (None, Some(why)) => format!("nobody: {why}"),
                    (None, None) => "**nobody**".into(),
                };
                tried += 1;
                missed += usize::from(outcome == "**nobody**");
                println!("{file}: {}: {outcome}", mutant.what);
                rows.push(format!("| {file} | {} | {outcome} |", mutant.what));
            }
        }
    }
    println!("\n| file | mutant | noticed by |\n|---|---|---|\n{}", rows.join("\n"));
    println!("\n{tried} mutants, {} minutes", start.elapsed().as_secs().div_ceil(60));
    ensure!(missed == 0, "{missed} mutants are noticed by no test");
    Ok(())
}

/// In the order of their places. An explanation that is about none of them is an error.
fn mutants_of(file: &'static str, text: &str) -> anyhow::Result<Vec<Mutant>> {
    let mut mutants = orderings::mutants(file, text)?;
    for (_, what, from, to) in EDITS.iter().filter(|(edited, ..)| *edited == file) {
        let found: Vec<usize> = text.match_indices(from).map(|(at, _)| at).collect();
        let [at] = found[..] else { anyhow::bail!("{what}: {file} has its text {} times, not once", found.len()) };
        mutants.push(Mutant { file, what: (*what).into(), at: at..at + from.len(), to });
    }
    mutants.sort_by_key(|mutant| mutant.at.start);
    for (explained, what, _) in EXPLAINED.iter().filter(|(explained, ..)| *explained == file) {
        ensure!(
            mutants.iter().any(|mutant| mutant.what.starts_with(what)),
            "{explained} has no mutant `{what}` to explain"
        );
    }
    Ok(mutants)
}

impl Mutant {
    fn explanation(&self) -> Option<&'static str> {
        let is_this = |(file, what, _): &&(&str, &str, _)| *file == self.file && self.what.starts_with(what);
        EXPLAINED.iter().find(is_this).map(|(.., why)| *why)
    }
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
    // Optimising across crates would take most of the time.
    let variables =
        ["CARGO_PROFILE_RELEASE_LTO=off", "CARGO_PROFILE_DEV_DEBUG=0", "CARGO_INCREMENTAL=1", "RUSTC_BOOTSTRAP=1"];
    let mut arguments = vec!["300", "env"];
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
