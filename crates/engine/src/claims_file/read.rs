//! From the text of a file, or of several, to claims.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::error::{ClaimsFileError, Mistake, Notes, unknown};
use super::keys::{Entry, Fields, entries};
use super::question::{Question, levels, says};
use super::subject::{Points, Subject};
use crate::block::MAX_ARMS;
use crate::claim::{Claim, Judging, Place, Test};
use crate::command::CommandSet;
use crate::experiment::{Arm, Point, Spec};
use crate::plan::Registry;

/// A claims file, resolved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimsFile {
    /// The claims, in the order of the file.
    pub claims: Vec<Claim>,
    /// The commands of the claims that measure some, one set a `[[claim]]`.
    pub commands: Vec<CommandSet>,
    /// Where each claim stands, by its id; one of several that one `[[claim]]` became stands where that does.
    pub places: BTreeMap<String, Place>,
    /// The ids as they are written, and where.
    ids: Vec<(String, Place)>,
}

/// Reads a claims file. `path` is what messages call it; nothing is read from there.
///
/// # Errors
/// All mistakes of the file together. Where the TOML itself is broken, only what breaks it: the rest can't be told from
/// what the break made of it; and of a file without claims, where each line is broken, the first alone.
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
                notes.add(place(first), format!("this is not TOML, which a claims file is: {}", first.message()));
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
        if let Some(resolved) = resolve(&fields, registry, &mut notes) {
            let place = file.ids.last().map(|(_, place)| place);
            let places = resolved.claims.iter().filter_map(|claim| Some((claim.id.clone(), place?.clone())));
            file.places.extend(places);
            file.claims.extend(resolved.claims);
            file.commands.extend(resolved.commands);
        }
    }
    notes.finish(file)
}

/// Puts several files together.
///
/// # Errors
/// When an id occurs in more than one.
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
        merged.places.extend(file.places);
        merged.claims.extend(file.claims);
        merged.commands.extend(file.commands);
    }
    if mistakes.is_empty() { Ok(merged) } else { Err(ClaimsFileError { mistakes }) }
}

fn repeated(id: &str, first: &Place) -> String {
    format!("the id `{id}` is taken by the claim at {first}")
}

/// The tables under `claim`.
fn claim_tables<'t>(document: &'t DeTable<'t>, notes: &mut Notes<'_>) -> Vec<Fields<'t>> {
    const WANTED: &str = "a claims file is a list of claims, each under `[[claim]]`";
    let mut tables = Vec::new();
    let mut has_claims = false;
    for entry in entries(document) {
        match entry.value {
            _ if entry.key != "claim" => notes.add(entry.key_at, unknown("key", entry.key, ["claim"])),
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
        notes.add(0, format!("there is no claim; {WANTED}"));
    }
    tables
}

/// What one `[[claim]]` becomes.
struct Resolved {
    pub(super) claims: Vec<Claim>,
    pub(super) commands: Option<CommandSet>,
}

/// Resolves one `[[claim]]`; `None` when it has mistakes, which are noted.
fn resolve(fields: &Fields<'_>, registry: &Registry<'_>, notes: &mut Notes<'_>) -> Option<Resolved> {
    // Every part is read whatever became of the others, so that all mistakes are found at once.
    let count_before = notes.count();
    if !fields.has("id") {
        notes.add(fields.at, "`id` is missing");
    }
    fields.check(notes);
    let criterion = Criterion::read(fields, notes);
    let subject = Subject::read(fields, registry, notes)?;
    let points = Points::read(fields, &subject.spec, notes);
    let printed = subject.commands.as_ref().map_or(&[][..], |set| &set.printed);
    let question = Question::read(fields, &subject.spec, printed, notes);
    let parts = Parts { fields, spec: &subject.spec, criterion, question: question?, points: points? };
    let mut claims = parts.claims();
    if let Some(experiment) = registry.iter().find(|experiment| experiment.spec().id == subject.spec.id) {
        let tests = claims.iter_mut().flat_map(|claim| &mut claim.tests);
        tests.flat_map(Test::arms_mut).for_each(|arm| *arm = experiment.trimmed(arm));
        check_levels(&claims, &parts.points.swept, fields, notes);
    }
    check_arms(&claims, fields, notes);
    (notes.count() == count_before).then_some(Resolved { claims, commands: subject.commands })
}

/// The parts of a claim, each read without a mistake.
struct Parts<'p, 't> {
    fields: &'p Fields<'t>,
    spec: &'p Spec,
    criterion: Criterion,
    question: Question,
    points: Points,
}

impl Parts<'_, '_> {
    /// One claim, or one a point.
    fn claims(&self) -> Vec<Claim> {
        match self.points.over_every {
            true => vec![self.claim(&self.points.all)],
            false => self.points.all.chunks(1).map(|point| self.claim(point)).collect(),
        }
    }

    /// The claim at these points.
    fn claim(&self, at: &[Point]) -> Claim {
        let Parts { fields, spec, criterion, question, points } = self;
        let mut id = fields.owned_text("id");
        let mut sentence = fields.owned_text("says");
        let is_one_of_several = !points.over_every && !points.swept.is_empty();
        if is_one_of_several {
            id += &format!("[{}]", levels(&points.swept, &at[0], ","));
        }
        if sentence.trim().is_empty() {
            sentence = says(question, criterion, points, at, spec);
        } else if is_one_of_several {
            sentence += &format!(" ({})", levels(&points.swept, &at[0], ", "));
        }
        Claim {
            id,
            says: sentence,
            source: fields.owned_text("source"),
            source_value: fields.owned_text("source_value"),
            analysis: fields.owned_text("analysis"),
            restated: fields.owned_text("restated"),
            experiment: spec.id.clone(),
            tests: at.iter().map(|point| question.at(point)).collect(),
            judging: criterion.judging,
            rate: criterion.rate,
            margin: criterion.margin,
            error: criterion.error,
            look_every: 1,
            max_time: criterion.max_time,
            max_trials: criterion.max_trials,
            counters: Vec::new(),
        }
    }
}

/// A level that no arm of a claim has is not measured, and the claim would speak of it.
fn check_levels(claims: &[Claim], swept: &[String], fields: &Fields<'_>, notes: &mut Notes<'_>) {
    fn arms_of<'c>(claim: &'c Claim, key: &str) -> Vec<&'c Arm> {
        let of_test = |test: &'c Test| match (key, test) {
            ("candidate", Test::Versus { candidate: arm, .. }) | ("baseline", Test::Versus { baseline: arm, .. }) => {
                vec![arm]
            }
            _ => test.arms(),
        };
        claim.tests.iter().flat_map(of_test).collect()
    }
    for key in ["at", "candidate", "baseline"] {
        let Some(table) = fields.get(key).and_then(|entry| entry.value.as_table()) else { continue };
        for Entry { key: factor, key_at, .. } in entries(table).into_iter().filter(|entry| entry.key != "variant") {
            let lack = |arms: &Vec<&Arm>| arms.iter().all(|arm| arm.point.get(factor).is_none());
            let (lacking, having): (Vec<_>, Vec<_>) = claims.iter().map(|claim| arms_of(claim, key)).partition(lack);
            let Some(arms) = lacking.first() else { continue };
            let variants: BTreeSet<String> = arms.iter().map(|arm| format!("`{}`", arm.variant)).collect();
            let variants = variants.into_iter().collect::<Vec<_>>().join(" and ");
            let means_nothing = format!("`{factor}` means nothing to {variants}");
            let of_claim = arms.first().map_or_else(String::new, |arm| levels(swept, &arm.point, ", "));
            let message = match (having.is_empty(), of_claim.as_str()) {
                (true, _) => format!("{means_nothing} at its other levels; leave it out"),
                (false, "") => format!("{means_nothing}; make that a claim of its own, without it"),
                (false, of_claim) => {
                    format!("{means_nothing} at `{of_claim}`; make that a claim of its own, without it")
                }
            };
            notes.add(key_at, message);
        }
    }
}

/// A trial measures each arm once: an arm can't be held against itself, and there is room for so many.
fn check_arms(claims: &[Claim], fields: &Fields<'_>, notes: &mut Notes<'_>) {
    let is_against_itself =
        |test: &Test| matches!(test, Test::Versus { candidate, baseline, .. } if candidate == baseline);
    if claims.iter().flat_map(|claim| &claim.tests).any(is_against_itself)
        && let Some(baseline) = fields.get("baseline")
    {
        notes.add(baseline.at, "`candidate` and `baseline` are the same; nothing is compared");
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

/// The rate of a comparison unless one is given: the median trial decides.
pub(super) const COMPARISON_RATE: f64 = 0.5;

/// How a claim is judged, and for how long.
pub(super) struct Criterion {
    pub(super) judging: Judging,
    pub(super) rate: f64,
    pub(super) margin: Option<f64>,
    pub(super) error: Option<f64>,
    pub(super) max_time: Option<Duration>,
    pub(super) max_trials: Option<u64>,
}

impl Criterion {
    /// Reads the criterion.
    pub(super) fn read(fields: &Fields<'_>, notes: &mut Notes<'_>) -> Criterion {
        let is_exact = fields.is_exact();
        if fields.is_predicate() && !fields.has("rate") && !is_exact {
            let message = "`rate` is missing; say how often the predicate must hold, such as rate = 0.99, or add kind = \"exact\"";
            notes.add(fields.at, message);
        }
        let rate = fields.number("rate").unwrap_or(COMPARISON_RATE);
        if let Some(entry) = fields.get("margin")
            && let Some(margin) = fields.number("margin")
            && fields.has("rate") == fields.get("rate").is_some()
            && !(rate - margin > 0.0 && rate + margin < 1.0)
        {
            notes.add(entry.at, format!("`margin` must leave rate ± margin within (0, 1); {rate} ± {margin} is not"));
        }
        Criterion {
            judging: if is_exact { Judging::Exact } else { Judging::Rate },
            rate,
            margin: fields.number("margin"),
            error: fields.number("error"),
            max_time: fields.duration("max_time"),
            max_trials: fields.count("max_trials"),
        }
    }
}
