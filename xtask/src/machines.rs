//! Records the verdicts of a machine in `docs/machines/`, and writes the tables of all recorded machines to a page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};

use crate::tools;

const FOLDER: &str = "docs/machines";
const PAGE: &str = "docs/machines.md";
/// The file with the goals, which names the technique of each goal.
const GOALS: &str = "claims/goals.toml";
/// The variable that hides instruction sets from Ascertain.
const LEVEL: &str = "ASCERTAIN_CPU";
/// The two sets of claims of a file: the key, and the arguments of `ascertain`.
const SETS: [(&str, &[&str]); 2] =
    [("check", &["check", "--max-time", "580s"]), ("goals", &["check", GOALS, "--max-time", "580s"])];
/// The facts of a claim that are kept.
const FACTS: [&str; 13] = [
    "id",
    "experiment",
    "says",
    "verdict",
    "reason",
    "trials",
    "rate",
    "ratio",
    "ratio_low",
    "ratio_high",
    "times_baseline",
    "times_baseline_low",
    "times_baseline_high",
];
const VERDICTS: [&str; 4] = ["holds", "refuted", "undecided", "unavailable"];

/// Measures this machine if a name is given, and then writes the table.
pub fn run(words: &[String]) -> anyhow::Result<()> {
    match words {
        [] => {}
        [name] => record(name, &SETS)?,
        [name, set] => match SETS.iter().find(|(key, _)| key == set) {
            Some(set) => record(name, std::slice::from_ref(set))?,
            None => anyhow::bail!("`{set}` is not a set of claims; use `check` or `goals`"),
        },
        _ => anyhow::bail!("`cargo xtask machines` takes a name, such as zen4, and perhaps `check` or `goals`"),
    }
    let path = tools::in_root(PAGE);
    fs::write(&path, table(&read()?))?;
    println!("wrote {path}");
    Ok(())
}

/// Checks that a machine's name can be the name of its file.
fn check_name(name: &str) -> anyhow::Result<()> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    ensure!(
        name.starts_with(|letter: char| letter.is_ascii_alphanumeric()) && name.chars().all(is_plain),
        "`{name}` cannot be the name of a file: begin with a letter or digit, and use letters, digits, `-`, `_` and `.`"
    );
    Ok(())
}

/// Judges the claims of some sets on this machine, and writes the verdicts to the file with this name. A set that is not
/// judged now keeps its earlier verdicts.
fn record(name: &str, sets: &[(&str, &[&str])]) -> anyhow::Result<()> {
    check_name(name)?;
    let path = tools::in_root(&format!("{FOLDER}/{name}.json"));
    let binary = tools::release_binary()?;
    let level = std::env::var(LEVEL).ok().filter(|level| !level.is_empty());
    let techniques = techniques()?;
    let mut recorded: Map<String, Value> = match fs::read_to_string(&path) {
        Ok(earlier) => serde_json::from_str(&earlier).with_context(|| path.clone())?,
        Err(_) => Map::new(),
    };
    recorded.insert("schema".into(), json!("ascertain.machine/1"));
    recorded.insert("level".into(), json!(level));
    for (set, arguments) in sets {
        println!("judging the claims of `{set}` (10 minutes)");
        let output =
            tools::capture(&binary, &[*arguments, &["--format", "json", "--no-evidence", "--quiet"]].concat())?;
        let json = String::from_utf8(output.stdout)?;
        let json: Value = serde_json::from_str(&json)
            .with_context(|| format!("the JSON of `{set}`: {}", String::from_utf8_lossy(&output.stderr)))?;
        recorded.insert("date".into(), date(&json));
        recorded.insert("machine".into(), json["machine"].clone());
        let claims = json["claims"].as_array().context("the JSON has no claims")?;
        recorded.insert((*set).into(), claims.iter().map(|claim| kept(claim, &techniques)).collect());
    }
    fs::create_dir_all(tools::in_root(FOLDER))?;
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

/// The facts about a goal that only its file has: the technique, its baseline, and what is required.
type Technique = Map<String, Value>;

/// Returns the techniques of the goals, by the id of the goal.
fn techniques() -> anyhow::Result<BTreeMap<String, Technique>> {
    let text = fs::read_to_string(tools::in_root(GOALS)).context(GOALS)?;
    let goals: toml::Table = toml::from_str(&text).context(GOALS)?;
    let goals = goals.get("claim").and_then(|claims| claims.as_array()).into_iter().flatten();
    Ok(goals.filter_map(|goal| Some((goal.get("id")?.as_str()?.to_string(), technique(goal)))).collect())
}

fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(" to "),
        other => format!("{other:?}"),
    }
}

fn technique(goal: &toml::Value) -> Technique {
    // An arm is a variant, or a variant with levels that differ from those of the goal.
    let arm = |value: &toml::Value| match value.as_table() {
        None => shown(value),
        Some(levels) => {
            let (variants, levels): (Vec<_>, Vec<_>) = levels.iter().partition(|(key, _)| *key == "variant");
            let variant = variants.into_iter().map(|(_, name)| shown(name));
            let levels = levels.into_iter().map(|(key, level)| format!("{key}={}", shown(level)));
            variant.chain(levels).collect::<Vec<_>>().join(", ")
        }
    };
    let mut technique = Technique::new();
    for key in ["candidate", "baseline"] {
        technique.extend(goal.get(key).map(|value| (key.to_string(), json!(arm(value)))));
    }
    let levels = goal.get("at").and_then(|at| at.as_table()).into_iter().flatten();
    let levels: Vec<String> = levels.map(|(key, level)| format!("{key}={}", shown(level))).collect();
    if !levels.is_empty() {
        technique.insert("at".into(), json!(levels.join(", ")));
    }
    let required = |key: &str, before: &str| goal.get(key).map(|value| format!("{before}{}", shown(value)));
    let required = [required("at_least", "≥ "), required("at_most", "≤ "), required("within", "")];
    if let Some(required) = required.into_iter().flatten().next() {
        technique.insert("required".into(), json!(required));
    }
    technique
}

/// Returns the facts of a claim that a file keeps.
fn kept(claim: &Value, techniques: &BTreeMap<String, Technique>) -> Value {
    let facts = FACTS.iter().filter(|fact| !claim[**fact].is_null());
    let facts = facts.map(|fact| (fact.to_string(), claim[*fact].clone()));
    let technique = techniques.get(claim["id"].as_str().unwrap_or_default()).cloned().unwrap_or_default();
    facts.chain(technique).collect::<Map<_, _>>().into()
}

/// Returns the recorded machines, in the order of their names.
fn read() -> anyhow::Result<Vec<(String, Value)>> {
    let folder = tools::in_root(FOLDER);
    // git keeps no empty folder.
    let files = if fs::exists(&folder)? { tools::files(folder.as_ref(), "json")? } else { Vec::new() };
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

fn fact<'a>(claim: &'a Value, key: &str) -> &'a str {
    claim[key].as_str().unwrap_or_default()
}

/// Returns the facts by which the same goal of two machines is found. Two goals may only differ by their ids.
fn goal(claim: &Value) -> [&str; 5] {
    let of = |key: &str, other: &'static str| Some(fact(claim, key)).filter(|word| !word.is_empty()).unwrap_or(other);
    [of("candidate", "–"), of("baseline", "a condition"), of("at", "–"), of("required", "–"), fact(claim, "id")]
}

/// Returns the verdict of a claim and its figure, such as `holds, 0.97`.
fn outcome(claim: &Value) -> String {
    let verdict = match fact(claim, "verdict") {
        "refuted" => "**refuted**",
        other => other,
    };
    let share = || claim["rate"].as_f64().map(|rate| format!(", {:.0} %", rate * 100.0));
    let figure = claim["ratio"].as_f64().map(|ratio| format!(", {ratio:.3}")).or_else(share);
    format!("{verdict}{}", figure.unwrap_or_default())
}

fn row<S: AsRef<str>>(cells: impl IntoIterator<Item = S>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|cell| cell.as_ref().replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Returns the page with the tables of all machines.
fn table(machines: &[(String, Value)]) -> String {
    let mut text = String::from(
        "# Machines on which the claims were judged\n\n\
         The folder `docs/machines/` has a file per machine, with the verdicts on the shipped claims (`check`) and on our own\n\
         goals (`goals`). A file with a level was recorded with `ASCERTAIN_CPU`, which hides newer instructions.\n\n\
         To add your machine, run `cargo xtask machines NAME`, which takes 20 minutes, and send us the file. The command\n\
         also writes this page. [Limits of machines](limits.md) explains why some goals are relative to a limit.\n\n",
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
        let word =
            |key: &str, other: &str| machine[key].as_str().filter(|word| !word.is_empty()).unwrap_or(other).to_string();
        let counted = |set: &str| counts(claims(machine, set));
        let link = format!("[{name}](machines/{name}.json)");
        text += &row([link, cpu, word("level", "full"), word("date", "–"), counted("check"), counted("goals")]);
    }
    text += "\n## Goals by technique\n\n\
             A cell has the verdict, and the factor by which the technique was better than what it is compared with.\n\
             For a condition, it has the share of the trials in which the condition was true.\n";
    let all = || machines.iter().flat_map(|(_, machine)| claims(machine, "goals"));
    for experiment in all().map(|claim| fact(claim, "experiment")).collect::<BTreeSet<_>>() {
        text += &format!("\n### {experiment}\n\n");
        let names = machines.iter().map(|(name, _)| name.as_str());
        text += &row(["technique", "compared with", "at", "required"].into_iter().chain(names));
        text += &row(vec!["---"; machines.len() + 4]);
        let of_experiment = all().filter(|claim| fact(claim, "experiment") == experiment);
        // Machines may have been recorded with other goals, so a goal is known by all that its row shows.
        let goals: BTreeSet<[&str; 5]> = of_experiment.map(goal).collect();
        for wanted in goals {
            let cell = |(_, machine): &(String, Value)| {
                let judged = claims(machine, "goals").find(|claim| goal(claim) == wanted);
                judged.map_or_else(|| "–".into(), outcome)
            };
            let [technique, baseline, at, required, _] = wanted;
            let of_goal = [format!("`{technique}`"), baseline.into(), at.into(), required.into()];
            text += &row(of_goal.into_iter().chain(machines.iter().map(cell)));
        }
    }
    text += "\n## Refuted goals\n\n\
             A range is the 95 % interval of the measured value as a multiple of the baseline's value.\n\n";
    text += &row(["machine", "goal", "measured", "claim"]);
    text += &row(["---"; 4]);
    for (name, machine) in machines {
        for claim in claims(machine, "goals").filter(|claim| claim["verdict"] == "refuted") {
            let number = |key: &str| claim[key].as_f64();
            let range = match (number("times_baseline_low"), number("times_baseline_high")) {
                (Some(low), Some(high)) => format!("{low:.2} to {high:.2}"),
                _ => number("rate").map_or_else(String::new, |rate| format!("in {:.0} % of trials", rate * 100.0)),
            };
            text += &row([name, &format!("`{}`", fact(claim, "id")), &range, fact(claim, "says")]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_recorded_machines() {
        let page = fs::read_to_string(tools::in_root(PAGE)).unwrap();
        assert_eq!(page, table(&read().unwrap()), "run `cargo xtask machines`");
    }

    #[test]
    fn names_are_those_of_files() {
        for name in ["zen3", "zen3-avx2", "7950X_1.0"] {
            check_name(name).unwrap();
        }
        for name in ["", ".", "..", ".hidden", "a/b", "/tmp/a", "a b", "-x", "ü"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn each_goal_names_its_technique() {
        let techniques = techniques().unwrap();
        let text = fs::read_to_string(tools::in_root(GOALS)).unwrap();
        assert_eq!(techniques.len(), text.lines().filter(|line| line.starts_with("id = ")).count());
        let pair = toml::from_str::<toml::Table>(
            "candidate = 'a'\nbaseline = { variant = 'b', size = 3 }\nat = { on = 'x' }\nat_least = 0.9",
        );
        let kept = kept(
            &json!({"id": "i", "says": "-"}),
            &[("i".into(), technique(&toml::Value::Table(pair.unwrap())))].into(),
        );
        let wanted = json!({"id": "i", "says": "-", "candidate": "a", "baseline": "b, size=3", "at": "on=x",
            "required": "≥ 0.9"});
        assert_eq!(kept, wanted);
    }

    /// Two levels of one machine are two columns. A goal that a file does not have leaves its cell empty.
    #[test]
    fn techniques_are_compared_between_machines() {
        let goal = |verdict: &str, ratio: f64| {
            json!({"id": "e.goal", "experiment": "e", "candidate": "fast", "baseline": "limit", "required": "≥ 0.9",
                "verdict": verdict, "ratio": ratio, "rate": 0.5})
        };
        let condition =
            json!({"id": "e.other", "experiment": "e", "candidate": "fast", "verdict": "holds", "rate": 0.97});
        let machine = |goals: Vec<Value>| json!({"date": "2026-12-01", "level": "", "check": [], "goals": goals});
        let page = table(&[
            ("zen9".into(), machine(vec![goal("holds", 0.951), condition])),
            ("zen9-avx2".into(), machine(vec![goal("refuted", 0.5)])),
        ]);
        assert!(page.contains("### e\n\n| technique | compared with | at | required | zen9 | zen9-avx2 |\n"), "{page}");
        assert!(page.contains("| `fast` | limit | – | ≥ 0.9 | holds, 0.951 | **refuted**, 0.500 |\n"), "{page}");
        assert!(page.contains("| `fast` | a condition | – | – | holds, 97 % | – |\n"), "{page}");
        assert_eq!(page.matches("| full | 2026-12-01 |").count(), 2, "{page}");
    }

    #[test]
    fn refuted_goals_are_listed_with_their_range() {
        let goal = json!({"id": "a.goal", "experiment": "a", "says": "A is fast", "verdict": "refuted",
            "times_baseline_low": 1.2, "times_baseline_high": 1.3});
        let machine = json!({"date": "2026-12-01", "level": null, "check": [],
            "machine": {"cpu_model": "A | B", "cpus_allowed": 2}, "goals": [goal, {"experiment": "a", "verdict": "holds"}]});
        let page = table(&[("zen9".into(), machine)]);
        assert!(page.contains(
            "| [zen9](machines/zen9.json) | A \\| B, 2 CPUs, no virtual machine | full | 2026-12-01 | – | 1 hold, 1"
        ));
        assert!(page.contains("| zen9 | `a.goal` | 1.20 to 1.30 | A is fast |\n"), "{page}");
    }
}
