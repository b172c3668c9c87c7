//! Records the verdicts of a machine in `docs/machines/`, and writes the table of all recorded machines.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};

use crate::tools;

const FOLDER: &str = "docs/machines";
/// The variable that hides instruction sets from Ascertain.
const LEVEL: &str = "ASCERTAIN_CPU";
/// The two sets of claims of a file: the key, and the arguments of `ascertain`.
const SETS: [(&str, &[&str]); 2] =
    [("check", &["check", "--max-time", "580s"]), ("goals", &["check", "claims/goals.toml", "--max-time", "580s"])];
/// The facts of a claim that are kept.
const FACTS: [&str; 10] = [
    "id",
    "experiment",
    "says",
    "verdict",
    "reason",
    "trials",
    "rate",
    "times_baseline",
    "times_baseline_low",
    "times_baseline_high",
];
const VERDICTS: [&str; 4] = ["holds", "refuted", "undecided", "unavailable"];

/// Measures this machine if a name is given, and then writes the table.
pub fn run(words: &[String]) -> anyhow::Result<()> {
    match words {
        [] => {}
        [name] => record(name)?,
        _ => anyhow::bail!("`cargo xtask machines` takes at most one name, such as zen4"),
    }
    let path = tools::in_root(&format!("{FOLDER}/README.md"));
    fs::write(&path, table(&read()?))?;
    println!("wrote {path}");
    Ok(())
}

/// Judges the shipped claims and the goals on this machine, and writes the verdicts to a file with this name.
fn record(name: &str) -> anyhow::Result<()> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    ensure!(name.chars().all(is_plain), "`{name}` is the name of a file: use letters, digits, `-`, `_` and `.`");
    let binary = tools::release_binary()?;
    let level = std::env::var(LEVEL).ok();
    let mut recorded = Map::new();
    recorded.insert("schema".into(), json!("ascertain.machine/1"));
    for (set, arguments) in SETS {
        println!("judging the claims of `{set}` (10 minutes)");
        let output = tools::capture(&binary, &[arguments, &["--format", "json", "--no-evidence", "--quiet"]].concat())?;
        let json = String::from_utf8(output.stdout)?;
        let json: Value = serde_json::from_str(&json)
            .with_context(|| format!("the JSON of `{set}`: {}", String::from_utf8_lossy(&output.stderr)))?;
        recorded.entry("date").or_insert_with(|| date(&json));
        recorded.entry("level").or_insert_with(|| json!(level));
        recorded.entry("machine").or_insert_with(|| json["machine"].clone());
        let claims = json["claims"].as_array().context("the JSON has no claims")?;
        recorded.insert(set.into(), claims.iter().map(kept).collect());
    }
    let path = tools::in_root(&format!("{FOLDER}/{name}.json"));
    let unfinished = format!("{path}.unfinished");
    fs::write(&unfinished, format!("{:#}\n", Value::Object(recorded)))?;
    fs::rename(unfinished, &path)?;
    println!("wrote {path}");
    Ok(())
}

/// Returns the day of a run, such as `2026-12-01`, from the beginning of its id.
fn date(json: &Value) -> Value {
    let id = json["run_id"].as_str().unwrap_or_default();
    let part = |range| id.get(range).unwrap_or_default();
    json!(format!("{}-{}-{}", part(0..4), part(4..6), part(6..8)))
}

fn kept(claim: &Value) -> Value {
    let facts = FACTS.iter().filter(|fact| !claim[**fact].is_null());
    facts.map(|fact| (fact.to_string(), claim[*fact].clone())).collect::<Map<_, _>>().into()
}

/// Returns the recorded machines, in the order of their names.
fn read() -> anyhow::Result<Vec<(String, Value)>> {
    let files = tools::files(tools::in_root(FOLDER).as_ref(), "json")?;
    let read = |path: PathBuf| {
        let json = serde_json::from_str(&fs::read_to_string(&path)?).with_context(|| path.display().to_string())?;
        Ok((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), json))
    };
    files.into_iter().map(read).collect()
}

fn claims<'a>(machine: &'a Value, set: &str) -> impl Iterator<Item = &'a Value> {
    machine[set].as_array().into_iter().flatten()
}

/// Returns the numbers of verdicts, such as `3 hold, 1 refuted`; `–` if there are none.
fn counts<'a>(claims: impl Iterator<Item = &'a Value>) -> String {
    let verdicts: Vec<&str> = claims.filter_map(|claim| claim["verdict"].as_str()).collect();
    let number = |verdict: &str| verdicts.iter().filter(|of| **of == verdict).count();
    let others = verdicts.iter().filter(|of| !VERDICTS.contains(of)).count();
    let named = VERDICTS.iter().map(|verdict| (number(verdict), if *verdict == "holds" { "hold" } else { verdict }));
    let some = named.chain([(others, "deferred")]).filter(|(number, _)| *number > 0);
    let parts: Vec<String> = some.map(|(number, name)| format!("{number} {name}")).collect();
    if parts.is_empty() { "–".into() } else { parts.join(", ") }
}

fn row<S: AsRef<str>>(cells: impl IntoIterator<Item = S>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|cell| cell.as_ref().replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Returns the page with the tables of all machines.
fn table(machines: &[(String, Value)]) -> String {
    let mut text = String::from(
        "# Machines on which the claims were judged\n\n\
         Each file in this folder has the verdicts of one machine: on the shipped claims (`check`), and on our own goals\n\
         (`goals`). A file with a level was recorded with `ASCERTAIN_CPU`, which hides newer instructions.\n\n\
         To add your machine, run `cargo xtask machines NAME`, which takes 20 minutes, and send us the file. The command\n\
         also writes this page.\n\n",
    );
    text += &row(["machine", "CPU", "level", "date", "shipped claims", "goals"]);
    text += &row(["---"; 6]);
    for (name, machine) in machines {
        let cpu = format!(
            "{}, {} CPUs, {}",
            machine["machine"]["cpu_model"].as_str().unwrap_or("unknown"),
            machine["machine"]["cpus_allowed"],
            machine["machine"]["virtualisation"].as_str().unwrap_or("no virtual machine")
        );
        let word = |key: &str, other: &str| machine[key].as_str().unwrap_or(other).to_string();
        let counted = |set: &str| counts(claims(machine, set));
        let link = format!("[{name}]({name}.json)");
        text += &row([link, cpu, word("level", "full"), word("date", "–"), counted("check"), counted("goals")]);
    }
    text += "\n## Goals by experiment\n\n";
    let names = || machines.iter().map(|(name, _)| name.as_str());
    text += &row(["experiment"].into_iter().chain(names()));
    text += &row(vec!["---"; machines.len() + 1]);
    let experiment = |claim: &Value| claim["experiment"].as_str().unwrap_or_default().to_string();
    let all = machines.iter().flat_map(|(_, machine)| claims(machine, "goals"));
    for name in all.map(experiment).collect::<BTreeSet<String>>() {
        let of = |machine: &Value| counts(claims(machine, "goals").filter(|claim| experiment(claim) == name));
        text += &row([name.clone()].into_iter().chain(machines.iter().map(|(_, machine)| of(machine))));
    }
    text += "\n## Refuted goals\n\n\
             A range is the 95 % interval of the measured value as a multiple of the baseline's value.\n\n";
    for (name, machine) in machines {
        for claim in claims(machine, "goals").filter(|claim| claim["verdict"] == "refuted") {
            let number = |key: &str| claim[key].as_f64();
            let range = match (number("times_baseline_low"), number("times_baseline_high")) {
                (Some(low), Some(high)) => format!(": {low:.2} to {high:.2}"),
                _ => number("rate").map_or_else(String::new, |rate| format!(": in {:.0} % of trials", rate * 100.0)),
            };
            let says = claim["says"].as_str().unwrap_or_default();
            text += &format!("- {name}, `{}`{range}. {says}.\n", claim["id"].as_str().unwrap_or_default());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_recorded_machines() {
        let page = fs::read_to_string(tools::in_root(&format!("{FOLDER}/README.md"))).unwrap();
        assert_eq!(page, table(&read().unwrap()), "run `cargo xtask machines`");
    }

    #[test]
    fn refuted_goals_are_listed_with_their_range() {
        let goal = json!({"id": "a.goal", "experiment": "a", "says": "A is fast", "verdict": "refuted",
            "times_baseline_low": 1.2, "times_baseline_high": 1.3});
        let machine = json!({"date": "2026-12-01", "level": null, "check": [],
            "machine": {"cpu_model": "A | B", "cpus_allowed": 2}, "goals": [goal, {"experiment": "a", "verdict": "holds"}]});
        let page = table(&[("zen9".into(), machine)]);
        assert!(
            page.contains(
                "| [zen9](zen9.json) | A \\| B, 2 CPUs, no virtual machine | full | 2026-12-01 | – | 1 hold, 1"
            )
        );
        assert!(page.contains("- zen9, `a.goal`: 1.20 to 1.30. A is fast.\n"), "{page}");
    }
}
