//! The levels of an arm: names and paths of runtimes, and the arms that a table measures.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ascertain_engine::experiment::{Arm, Level};
use ascertain_engine::suite::split_name;

use super::discover::{installed, is_program, is_version, numbers, on_path};
use super::languages::{LANGUAGES, Language};
use super::probe::{self, Runtime};
use super::{FOUND, JAVASCRIPT, RUNTIME, WORKLOADS, workloads};

/// The largest number of runtimes that are measured together.
const MOST_RUNTIMES: usize = 16;

/// Returns the level of a factor as text; empty if the arm has none.
pub fn text(arm: &Arm, factor: &str) -> String {
    arm.point.get(factor).map(Level::to_string).unwrap_or_default()
}

/// Returns the name of the arm's runtime: the name that the user gave, or the level itself.
pub fn name(arm: &Arm) -> String {
    let level = text(arm, RUNTIME);
    split_name(&level).0.unwrap_or(&level).to_string()
}

/// Returns whether the arm measures files of the user, as whole processes.
pub fn has_files(arm: &Arm) -> bool {
    text(arm, WORKLOADS).split(',').any(workloads::is_file)
}

/// Returns the runtime of an arm.
///
/// # Errors
/// The reason, for the user, if there is no such runtime.
pub fn runtime(arm: &Arm) -> Result<Arc<Runtime>, String> {
    let level = text(arm, RUNTIME);
    find(split_name(&level).1, text(arm, "follow") != "no")
}

/// Finds a runtime by its path, by its name on `PATH`, or by its version among all runtimes of this machine.
fn find(asked: &str, follows: bool) -> Result<Arc<Runtime>, String> {
    if asked.contains('/') {
        let path = expanded(asked);
        if !path.exists() {
            return Err(format!("there is no file `{asked}`; give the path of a program that runs files"));
        }
        if !is_program(&path) {
            return Err(format!("`{asked}` cannot be executed; give the path of a program that runs files"));
        }
        return probe::runtime(&path, follows);
    }
    let mut why = None;
    for path in on_path(asked) {
        match probe::runtime(&path, follows) {
            Ok(runtime) => return Ok(runtime),
            Err(error) => why = why.or(Some(error)),
        }
    }
    for language in LANGUAGES.iter().filter(|language| !language.programs.is_empty()) {
        let version = asked.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let is_asked = language.is_named(asked) || version == asked && !asked.is_empty();
        let of_version = installed(language).into_iter().filter(|runtime| is_version(runtime.version(), version));
        if let Some(newest) = of_version.filter(|_| is_asked).max_by_key(|runtime| numbers(runtime.version())) {
            return Ok(newest);
        }
    }
    Err(why.unwrap_or_else(|| {
        format!("`{asked}` is neither on PATH nor among the runtimes of version managers; give its path")
    }))
}

fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => std::path::absolute(path).unwrap_or_else(|_| path.into()),
    }
}

/// Checks a level. If the level is a path, returns the absolute path.
pub fn settled(factor: &str, level: Level) -> Result<Level, String> {
    let asked = level.to_string();
    match factor {
        RUNTIME if asked == FOUND => Ok(level),
        RUNTIME => {
            let (name, rest) = split_name(&asked);
            find(rest, true)?;
            let rest = if rest.contains('/') { expanded(rest).display().to_string() } else { rest.to_string() };
            Ok(Level::Text(name.map_or(rest.clone(), |name| format!("{name}={rest}"))))
        }
        WORKLOADS => {
            let words = asked.split(',').map(workloads::settled).collect::<Result<Vec<_>, _>>()?;
            Ok(Level::Text(words.join(",")))
        }
        _ => Ok(level),
    }
}

/// The number of runtimes that are measured if the user names none: the first runtime and the newest of the others.
/// With more runtimes, the default time would not be enough for a verdict.
const MOST_FOUND: usize = 5;

/// Returns the arms to measure. The level `found` is replaced by all runtimes of this machine, and each runtime is
/// measured only with the variant of its language.
pub fn chosen(arms: Vec<Arm>, are_named: bool) -> Result<Vec<Arm>, String> {
    let mut chosen: Vec<Arm> = Vec::new();
    // Each variant has all requested levels in the order of the request, whatever their language.
    let mut requested: Vec<String> = Vec::new();
    for level in arms.iter().map(|arm| text(arm, RUNTIME)) {
        if !requested.contains(&level) {
            requested.push(level);
        }
    }
    for arm in arms {
        let language = super::languages::named(&arm.variant);
        if text(&arm, RUNTIME) == FOUND {
            let found = found(language);
            // A comparison needs two runtimes. JavaScript is compared only if there are two, or if it is requested.
            let is_wanted = found.len() > 1 && (are_named || language.name != JAVASCRIPT || chosen.is_empty());
            let at = |level: &String| Arm { point: arm.point.clone().with(RUNTIME, &**level), ..arm.clone() };
            chosen.extend(found.iter().filter(|_| is_wanted || are_named).map(at));
            continue;
        }
        if runtime(&arm)?.language.name == language.name && !chosen.contains(&arm) {
            chosen.push(arm);
        }
    }
    let mut runtimes: Vec<String> = chosen.iter().map(|arm| text(arm, RUNTIME)).collect();
    runtimes.sort();
    runtimes.dedup();
    match runtimes.len() {
        0 => Err("no two runtimes of one language were found on this machine; name them with `runtime`".into()),
        1 => Err("a comparison needs two runtimes; name another one with `runtime`".into()),
        2..=MOST_RUNTIMES => {
            chosen.sort_by_key(|arm| requested.iter().position(|level| *level == text(arm, RUNTIME)));
            Ok(chosen)
        }
        count => {
            Err(format!("{count} runtimes are too many for one trial; name at most {MOST_RUNTIMES} with `runtime`"))
        }
    }
}

/// Returns the levels for the runtimes of a language that are measured by default. A runtime has its short name, such
/// as `python3.12`, if this name leads to it, and otherwise its path.
fn found(language: &Language) -> Vec<String> {
    let Some(program) = language.programs.first() else { return Vec::new() };
    let level = |runtime: &Arc<Runtime>| {
        let short: Vec<&str> = runtime.version().splitn(3, '.').take(2).collect();
        let name = format!("{}{}", program.trim_end_matches('3'), short.join("."));
        let leads_here = find(&name, true).is_ok_and(|other| other.identity == runtime.identity);
        if leads_here { name } else { runtime.given.display().to_string() }
    };
    // The variants have no place for a Python 2, whose results may differ.
    let is_supported = |runtime: &&Arc<Runtime>| !runtime.version().starts_with("2.");
    let all = installed(language);
    let supported: Vec<&Arc<Runtime>> = all.iter().filter(is_supported).collect();
    let Some((first, others)) = supported.split_first() else { return Vec::new() };
    let newest = others.iter().skip(others.len().saturating_sub(MOST_FOUND - 1));
    [first].into_iter().chain(newest).map(|runtime| level(runtime)).collect()
}
