//! Parses the text of claims files and resolves their claims.

use std::collections::BTreeSet;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::error::{ClaimsFileError, Mistake, Notes};
use super::keys::{Entry, Fields, entries};
use super::question::{levels, read_test, sentence, test_at};
use super::subject::{Points, Subject};
use crate::block::MAX_ARMS;
use crate::claim::{Claim, Hypothesis, Judging, Place, Test};
use crate::command::CommandSet;
use crate::experiment::{Arm, Point, Spec};
use crate::names::unknown;
use crate::plan::Registry;

/// The contents of a claims file, with all names in its claims resolved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimsFile {
    /// The claims, in file order.
    pub claims: Vec<Claim>,
    /// The commands to measure: one set of commands for each `[[claim]]` that is about commands and not about an
    /// experiment.
    pub commands: Vec<CommandSet>,
    /// Every claim id as it is written in the file, with its position.
    ids: Vec<(String, Place)>,
}

/// Parses a claims file. `text` has the contents of the file. `path` is only used in messages.
///
/// # Errors
/// Returns all mistakes in the file. If the TOML itself is invalid, returns only the syntax errors, because the rest
/// cannot be interpreted. If no claim can be found either, the file is probably not TOML, and only the first error is
/// returned.
///
/// ```
/// use std::path::Path;
/// let text = r#"
/// [[claim]]
/// id = "true-succeeds"
/// command = "true"
/// predicate = "exit == 0 and wall <= 1 s"
/// rate = 0.99
/// "#;
/// let file = ascertain_engine::claims_file::parse(text, Path::new("claims.toml"), &[]).unwrap();
/// assert_eq!(file.claims[0].says, "`true`: exit == 0 and wall <= 1 s in at least 99 % of the trials");
///
/// let wrong = text.replace("wall", "wal");
/// let error = ascertain_engine::claims_file::parse(&wrong, Path::new("claims.toml"), &[]).unwrap_err();
/// assert!(error.to_string().starts_with("claims.toml:5:13: unknown metric `wal`"));
/// assert!(error.to_string().ends_with("did you mean `wall`?"));
/// ```
pub fn parse(text: &str, path: &Path, registry: &Registry<'_>) -> Result<ClaimsFile, ClaimsFileError> {
    let mut notes = Notes::new(text, path);
    let (document, broken) = DeTable::parse_recoverable(text);
    let mut file = ClaimsFile::default();
    if !broken.is_empty() {
        let place = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
        match broken.iter().min_by_key(|error| place(error)) {
            Some(first) if !document.get_ref().contains_key("claim") => {
                notes.add(
                    place(first),
                    format!("a claims file must be TOML, but this file is not: {}", first.message()),
                );
            }
            _ => broken.iter().for_each(|error| notes.add(place(error), error.message())),
        }
        return notes.finish(file);
    }
    for fields in claim_tables(document.get_ref(), &mut notes) {
        if let Some(id) = fields.get("id") {
            let name = id.value.as_str().unwrap_or_default();
            if let Some((_, first)) = file.ids.iter().find(|(earlier, _)| earlier == name) {
                notes.add(id.at, repeated(name, first));
            }
            file.ids.push((name.to_string(), notes.place(id.at)));
        }
        if let Some((claims, commands)) = resolve(&fields, registry, &mut notes) {
            file.claims.extend(claims);
            file.commands.extend(commands);
        }
    }
    notes.finish(file)
}

/// Combines several claims files into one.
///
/// # Errors
/// If an id occurs in more than one file.
pub fn merge(files: impl IntoIterator<Item = ClaimsFile>) -> Result<ClaimsFile, ClaimsFileError> {
    let mut merged = ClaimsFile::default();
    let mut mistakes = Vec::new();
    for file in files {
        for (id, place) in file.ids {
            if let Some((_, first)) = merged.ids.iter().find(|(earlier, _)| *earlier == id) {
                mistakes.push(Mistake { message: repeated(&id, first), place: place.clone() });
            }
            merged.ids.push((id, place));
        }
        merged.claims.extend(file.claims);
        merged.commands.extend(file.commands);
    }
    if mistakes.is_empty() { Ok(merged) } else { Err(ClaimsFileError { mistakes }) }
}

fn repeated(id: &str, first: &Place) -> String {
    format!("the claim at {first} already has the id `{id}`; choose another id")
}

/// Returns the fields of each `[[claim]]`, and reports everything else in the file as a mistake.
fn claim_tables<'t>(document: &'t DeTable<'t>, notes: &mut Notes<'_>) -> Vec<Fields<'t>> {
    const WANTED: &str = "a claims file is a list of claims, each under `[[claim]]`";
    let mut tables = Vec::new();
    let mut has_claims = false;
    for entry in entries(document) {
        match entry.value {
            _ if entry.key != "claim" => {
                notes.begin_table(entry.key_at);
                notes.add(entry.key_at, unknown("key", entry.key, ["claim"]));
            }
            DeValue::Array(items) => {
                has_claims |= !items.is_empty();
                for item in items.iter() {
                    let at = item.span().start;
                    match item.get_ref().as_table() {
                        Some(table) => tables.push(Fields::read(table, at, notes)),
                        None => notes.add(at, WANTED),
                    }
                }
            }
            _ => {
                has_claims = true;
                notes.add(entry.key_at, WANTED);
            }
        }
    }
    if !has_claims && notes.count() == 0 {
        notes.add(0, format!("the file has no claims; {WANTED}"));
    }
    tables
}

/// Resolves one `[[claim]]`: returns its claims (one, or one per point) and the commands that these claims measure. If
/// the `[[claim]]` has mistakes, adds them to `notes` and returns `None`.
fn resolve(
    fields: &Fields<'_>,
    registry: &Registry<'_>,
    notes: &mut Notes<'_>,
) -> Option<(Vec<Claim>, Option<CommandSet>)> {
    // Continue after a mistake, so that all mistakes are found at once.
    let count_before = notes.count();
    if !fields.has("id") {
        notes.add(fields.at, "`id` is missing");
    }
    fields.check(notes);
    let template = read_template(fields, notes);
    let Subject { spec, commands } = Subject::read(fields, registry, notes)?;
    let points = Points::read(fields, &spec, notes);
    let printed = commands.as_ref().map_or(&[][..], |set| &set.printed);
    let test = read_test(fields, &spec, printed, notes);
    let (test, points) = (test?, points?);
    let claim_at = |at: &[Point]| claim_at(&template, &test, &points, at, &spec);
    let mut claims: Vec<Claim> = match points.over_every {
        true => vec![claim_at(&points.all)],
        false => points.all.chunks(1).map(claim_at).collect(),
    };
    if let Some(experiment) = registry.iter().find(|experiment| experiment.spec().id == spec.id) {
        let tests = claims.iter_mut().flat_map(|claim| &mut claim.asked.tests);
        tests.flat_map(Test::arms_mut).for_each(|arm| *arm = experiment.trimmed(arm));
        check_levels(&claims, &points.swept, fields, notes);
    }
    check_arms(&claims, fields, notes);
    (notes.count() == count_before).then_some((claims, commands))
}

/// Returns the claim for the points in `at`. If the `[[claim]]` has one claim for all its points, `at` has all of them;
/// otherwise it has one point. `template` has the other properties of the claim.
fn claim_at(template: &Claim, test: &Test, points: &Points, at: &[Point], spec: &Spec) -> Claim {
    let mut claim = Claim { experiment: spec.id.clone(), ..template.clone() };
    let is_one_of_several = !points.over_every && !points.swept.is_empty();
    if is_one_of_several {
        claim.id += &format!("[{}]", levels(&points.swept, &at[0], ","));
    }
    if claim.says.trim().is_empty() {
        claim.says = sentence(template, test, points, at, spec);
    } else if is_one_of_several {
        claim.says += &format!(" ({})", levels(&points.swept, &at[0], ", "));
    }
    claim.asked.tests = at.iter().map(|point| test_at(test, point)).collect();
    claim
}

/// Reports each level in `at` whose factor applies to no arm of the claim. Such a level would never be measured,
/// although the claim mentions it. `swept` has the names of the factors with several levels.
fn check_levels(claims: &[Claim], swept: &[String], fields: &Fields<'_>, notes: &mut Notes<'_>) {
    fn arms_of<'c>(claim: &'c Claim, key: &str) -> Vec<&'c Arm> {
        let of_test = |test: &'c Test| match (key, test) {
            ("candidate", Test::Versus { candidate: arm, .. }) | ("baseline", Test::Versus { baseline: arm, .. }) => {
                vec![arm]
            }
            _ => test.arms(),
        };
        claim.asked.tests.iter().flat_map(of_test).collect()
    }
    for key in ["at", "candidate", "baseline"] {
        let Some(table) = fields.get(key).and_then(|entry| entry.value.as_table()) else { continue };
        for Entry { key: factor, key_at, .. } in entries(table).into_iter().filter(|entry| entry.key != "variant") {
            let lack = |arms: &Vec<&Arm>| arms.iter().all(|arm| arm.point.get(factor).is_none());
            let (lacking, having): (Vec<_>, Vec<_>) = claims.iter().map(|claim| arms_of(claim, key)).partition(lack);
            let Some(arms) = lacking.first() else { continue };
            let variants: BTreeSet<String> = arms.iter().map(|arm| format!("`{}`", arm.variant)).collect();
            let variants = variants.into_iter().collect::<Vec<_>>().join(" and ");
            let means_nothing = format!("`{factor}` does not apply to {variants}");
            let of_claim = arms.first().map_or_else(String::new, |arm| levels(swept, &arm.point, ", "));
            let message = match (having.is_empty(), of_claim.as_str()) {
                (true, _) => format!("{means_nothing} at the other levels of the claim; leave out `{factor}`"),
                (false, "") => format!("{means_nothing}; make a separate claim without `{factor}`"),
                (false, of_claim) => {
                    format!("{means_nothing} at `{of_claim}`; make a separate claim without `{factor}`")
                }
            };
            notes.add(key_at, message);
        }
    }
}

/// Reports claims that compare an arm with itself, and claims with more arms than a trial can hold.
fn check_arms(claims: &[Claim], fields: &Fields<'_>, notes: &mut Notes<'_>) {
    let is_against_itself =
        |test: &Test| matches!(test, Test::Versus { candidate, baseline, .. } if candidate == baseline);
    if claims.iter().flat_map(|claim| &claim.asked.tests).any(is_against_itself)
        && let Some(baseline) = fields.get("baseline")
    {
        notes.add(baseline.at, "`candidate` and `baseline` are the same arm; compare two different arms");
    }
    let arms = claims.iter().map(|claim| claim.arms().len()).max().unwrap_or(0);
    if arms > MAX_ARMS
        && let Some(over) = fields.get("over")
    {
        let message = format!(
            "a trial of this claim has {arms} arms, and at most {MAX_ARMS} fit; use over = \"each\", or fewer levels"
        );
        notes.add(over.at, message);
    }
}

/// The default rate of a comparison. At this rate, the claim is about the median trial.
pub(super) const COMPARISON_RATE: f64 = 0.5;

/// Reads the keys of a claim that do not depend on its subject: its texts, its rate, margin and error, and its limits.
fn read_template(fields: &Fields<'_>, notes: &mut Notes<'_>) -> Claim {
    let is_exact = fields.is_exact();
    if fields.is_predicate() && !fields.has("rate") && !is_exact {
        let message =
            "`rate` is missing; say how often the predicate must hold, such as rate = 0.99, or add kind = \"exact\"";
        notes.add(fields.at, message);
    }
    let rate = fields.number("rate").unwrap_or(COMPARISON_RATE);
    if let Some(entry) = fields.get("margin")
        && let Some(margin) = fields.number("margin")
        && fields.has("rate") == fields.get("rate").is_some()
        && !(rate - margin > 0.0 && rate + margin < 1.0)
    {
        notes.add(entry.at, format!("rate ± margin must be between 0 and 1, but is {rate} ± {margin}; lower `margin`"));
    }
    Claim {
        id: fields.owned_text("id"),
        says: fields.owned_text("says"),
        source: fields.owned_text("source"),
        source_value: fields.owned_text("source_value"),
        analysis: fields.owned_text("analysis"),
        restated: fields.owned_text("restated"),
        experiment: String::new(),
        asked: Hypothesis {
            judging: if is_exact { Judging::Exact } else { Judging::Rate },
            margin: fields.number("margin"),
            tests: Vec::new(),
        },
        rate,
        error: fields.number("error"),
        look_every: 1,
        max_time: fields.duration("max_time"),
        max_trials: fields.count("max_trials"),
        counters: Vec::new(),
        tails: Vec::new(),
        place: fields.get("id").map(|id| notes.place(id.at)),
    }
}
