//! `cargo xtask test`: chooses parts of the tests, runs them, and prints their costs and failures at the end.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Error, bail, ensure};

use crate::changes::Changes;
use crate::costs::{self, Cost, Costs};
use crate::part::{self, Part, Skipped};
use crate::tools::{self, Need};

pub const USAGE: &str = "\
cargo xtask test [OPTION …] [WORD …]

Run the quick parts: formatting, lints, documentation, and every deterministic test. With words, run the parts with one
of the words in their names. All parts run, also after a failure. A table of costs and the list of failures come last.

--all                  also run the slow parts, and record their costs in xtask/costs.toml; with words, run only the
                       named parts, and record the slow ones among them
--changed-since REV    also run the slow parts whose inputs changed since a revision, or in the commits of the last
                       hours (`24h`), as long as their recorded costs add up to at most 12 minutes
--stress [SEED]        instead, run all tests, in random order within each program, on a machine that is kept busy
--fail-fast            stop after the first failure
--no-install           install nothing: skip the parts that lack a tool
--list                 print the names of all parts";

/// The options of `cargo xtask test`.
#[derive(Default)]
pub struct Options {
    is_all: bool,
    changed_since: Option<String>,
    is_fail_fast: bool,
    pub is_installing: bool,
    words: Vec<String>,
}

pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut options = Options { is_installing: true, ..Options::default() };
    let mut stress = None;
    let count = arguments.len();
    let mut arguments = arguments.iter().map(String::as_str).peekable();
    while let Some(argument) = arguments.next() {
        match argument {
            "--all" => options.is_all = true,
            "--changed-since" => {
                let revision = arguments.next().context("--changed-since needs a revision or a number of hours")?;
                options.changed_since = Some(revision.to_owned());
            }
            "--stress" => {
                let seed = arguments.next_if(|next| next.parse::<u64>().is_ok());
                stress = Some(seed.and_then(|seed| seed.parse().ok()));
                ensure!(
                    count == if seed.is_some() { 2 } else { 1 },
                    "--stress accepts only a seed; remove the other arguments\n{USAGE}"
                );
            }
            "--fail-fast" => options.is_fail_fast = true,
            "--no-install" => options.is_installing = false,
            "--list" => {
                part::all()
                    .for_each(|part| println!("{}{}", if part.inputs.is_some() { "slow: " } else { "" }, part.name));
                return Ok(());
            }
            "--help" | "-h" => {
                println!("{USAGE}");
                return Ok(());
            }
            option if option.starts_with('-') => bail!("unknown option {option}\n{USAGE}"),
            word => options.words.push(word.to_owned()),
        }
    }
    match stress {
        Some(seed) => crate::stress::run(seed),
        None => run_parts(&options),
    }
}

fn run_parts(options: &Options) -> anyhow::Result<()> {
    let mut costs = Costs::read()?;
    let (parts, not_run) = choose(options, &costs)?;
    if options.is_installing {
        announce(&parts);
    }
    let mut results = Vec::new();
    for part in &parts {
        let result = PartResult::run(part, options.is_installing);
        let is_failed = result.outcome.is_err();
        results.push((*part, result));
        if is_failed && options.is_fail_fast {
            break;
        }
    }
    if options.is_all {
        for (part, result) in results.iter().filter(|(part, result)| part.inputs.is_some() && result.is_passed()) {
            costs.record(part.name, result.cost);
        }
        costs.write()?;
    }
    println!("\n{}", costs::table(results.iter().map(|(part, result)| (part.name, result.cost, result.word()))));
    println!("installing tools: {:.0} s", results.iter().map(|(_, result)| result.install_s).sum::<f64>());
    for line in not_run {
        println!("not run: {line}");
    }
    for (part, result) in &results {
        for line in &result.skipped {
            println!("skipped: {}: {line}", part.name);
        }
    }
    for line in ignored(&tools::root().join("crates"))? {
        println!("ignored: {line}");
    }
    let mut failed = 0;
    for (part, result) in &results {
        if let Err(error) = &result.outcome {
            let error = format!("{error:#}");
            println!("failed: {}: {}", part.name, error.lines().next().unwrap_or_default());
            failed += 1;
        }
    }
    let skipped: usize = results.iter().map(|(_, result)| result.skipped.len()).sum();
    let passed = results.iter().filter(|(_, result)| result.is_passed()).count();
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    ensure!(failed == 0, "parts of the tests failed; they are listed above");
    Ok(())
}

/// Returns the parts to run. For each part that does not run, also returns a message with the reason.
fn choose(options: &Options, costs: &Costs) -> anyhow::Result<(Vec<&'static Part>, Vec<String>)> {
    if !options.words.is_empty() {
        let is_named = |part: &&Part| options.words.iter().any(|word| part.name.contains(word));
        let parts: Vec<_> = part::all().filter(is_named).collect();
        ensure!(!parts.is_empty(), "no part of the tests has `{}` in its name", options.words.join("` or `"));
        return Ok((parts, Vec::new()));
    }
    let (slow, mut parts): (Vec<_>, Vec<_>) = part::all().partition(|part| part.inputs.is_some());
    if options.is_all {
        parts.extend(slow);
        return Ok((parts, Vec::new()));
    }
    let Some(revision) = &options.changed_since else {
        let not_run = vec![format!("{} slow parts: `cargo xtask test --all` runs them", slow.len())];
        return Ok((parts, not_run));
    };
    let changes = Changes::since(revision)?;
    println!("{changes}");
    let mut affected = Vec::new();
    let mut not_run = Vec::new();
    for part in slow {
        match changes.distance(part.inputs.unwrap_or_default()) {
            Some(distance) => affected.push((distance, part)),
            None => not_run.push(format!("{}: none of its inputs changed", part.name)),
        }
    }
    let (chosen, too_many) = costs.within_limit(affected);
    parts.extend(chosen);
    not_run.extend(too_many);
    Ok((parts, not_run))
}

/// The result of one part of the tests.
struct PartResult {
    outcome: Result<Run, Error>,
    cost: Cost,
    /// Time in seconds to install the tools of the part.
    install_s: f64,
    /// The reasons why the part or some of its tests did not run.
    skipped: BTreeSet<String>,
}

/// The outcome of a part that did not fail.
#[derive(PartialEq, Eq)]
enum Run {
    Passed,
    Skipped,
}

impl PartResult {
    fn run(part: &Part, is_installing: bool) -> PartResult {
        println!("\n== {}", part.name);
        let start = Instant::now();
        // Goes on after a tool that cannot be installed, because later parts may use the other tools.
        let missing = part.needs.iter().filter_map(|need| match is_installing {
            true => need.meet().err(),
            false => (!need.is_met()).then(|| format!("not installed: {need}")),
        });
        let missing = missing.collect::<Vec<_>>().join("; ");
        let _ = fs::remove_file(tools::left_out_list());
        let install_s = start.elapsed().as_secs_f64();
        let (start, building) = (Instant::now(), tools::time_building());
        let result = if missing.is_empty() { (part.run)() } else { Err(Error::new(Skipped(missing))) };
        let build = tools::time_building() - building;
        let cost = Cost { build_s: build.as_secs_f64(), run_s: start.elapsed().saturating_sub(build).as_secs_f64() };
        let tests = fs::read_to_string(tools::left_out_list()).unwrap_or_default();
        let mut skipped: BTreeSet<String> = tests.lines().map(str::to_owned).collect();
        let outcome = match result {
            Ok(()) => Ok(Run::Passed),
            Err(error) => match error.downcast::<Skipped>() {
                Ok(Skipped(reason)) => {
                    skipped.insert(reason);
                    Ok(Run::Skipped)
                }
                Err(error) => {
                    println!("{}: failed: {error:#}", part.name);
                    Err(error)
                }
            },
        };
        PartResult { outcome, cost, install_s, skipped }
    }

    fn is_passed(&self) -> bool {
        matches!(self.outcome, Ok(Run::Passed))
    }

    fn word(&self) -> &'static str {
        match self.outcome {
            Ok(Run::Passed) => "passed",
            Ok(Run::Skipped) => "skipped",
            Err(_) => "FAILED",
        }
    }
}

/// Returns a line for each test with `#[ignore]`: its name, its file and the reason.
fn ignored(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for path in tools::files(folder, "rs")? {
        let code = fs::read_to_string(&path)?;
        let of_file = code.split("#[ignore").skip(1).filter_map(|rest| {
            let (reason, rest) = rest.strip_prefix(" = \"")?.split_once("\"]")?;
            let name = rest.split_once("fn ")?.1.split(['(', '<']).next()?;
            Some(format!("{name}, of {}: {reason}", path.strip_prefix(tools::root()).unwrap_or(&path).display()))
        });
        found.extend(of_file);
    }
    Ok(found)
}

/// Prints the tools that will be installed, and the parts that need them.
fn announce(parts: &[&Part]) {
    let mut missing: Vec<Need> = Vec::new();
    for need in parts.iter().flat_map(|part| part.needs) {
        if !missing.contains(need) && !need.is_met() {
            missing.push(*need);
        }
    }
    for need in missing {
        let names = parts.iter().filter(|part| part.needs.contains(&need)).map(|part| part.name);
        println!("to be installed: {need}\n    for: {}", names.collect::<Vec<_>>().join("; "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ignored_test_is_named_with_its_reason() {
        let listed = ignored(&tools::root().join("crates")).unwrap();
        let cube_roots = "takes ten seconds in a release build";
        assert!(
            listed.iter().any(|line| line.contains("crates/numeric/tests/all/cbrt.rs: ") && line.ends_with(cube_roots))
        );
        let attributes = fs::read_to_string(tools::in_root("crates/numeric/tests/all/exact.rs")).unwrap();
        let of_exact = listed.iter().filter(|line| line.contains("numeric/tests/all/exact.rs"));
        assert_eq!(of_exact.count(), attributes.matches("#[ignore").count());
    }

    #[test]
    fn each_part_has_a_name_of_its_own() {
        let names: Vec<_> = part::all().map(|part| part.name).collect();
        let different: BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{names:?}");
    }

    #[test]
    fn without_options_only_the_quick_parts_run() {
        let (parts, not_run) = choose(&Options::default(), &Costs::default()).unwrap();
        assert!(parts.iter().all(|part| part.inputs.is_none()));
        let slow = part::all().filter(|part| part.inputs.is_some()).count();
        assert_eq!(not_run, [format!("{slow} slow parts: `cargo xtask test --all` runs them")]);
    }

    #[test]
    fn a_failure_and_its_time_are_kept() {
        let part = Part::quick("fails", &[], || bail!("on purpose"));
        let result = PartResult::run(&part, false);
        assert_eq!((result.word(), result.is_passed()), ("FAILED", false));
        assert_eq!(result.outcome.err().map(|error| error.to_string()).as_deref(), Some("on purpose"));
        let part = Part::quick("cannot run", &[], || Err(Error::new(Skipped("no such kernel".into()))));
        let result = PartResult::run(&part, false);
        assert_eq!(result.word(), "skipped");
        assert!(result.skipped.contains("no such kernel"));
    }
}
