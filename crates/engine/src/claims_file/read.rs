//! From the text of a file, or of several, to claims.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::error::{ClaimsFileError, Mistake, Notes, Place, unknown};
use super::fields::{Fields, entries};
use super::resolve::resolve;
use crate::claim::Claim;
use crate::command::CommandSet;
use crate::plan::Registry;

/// A claims file, resolved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimsFile {
    /// The claims, in the order of the file.
    pub claims: Vec<Claim>,
    /// The commands of the claims that measure some, one set a `[[claim]]`.
    pub commands: Vec<CommandSet>,
    /// The ids as they are written, and where.
    ids: Vec<(String, Place)>,
}

impl ClaimsFile {
    /// Where the claim with this id stands; one of several that one `[[claim]]` became (`id[elements=1024]`)
    /// stands where that does.
    pub fn place(&self, id: &str) -> Option<&Place> {
        let written = id.split('[').next()?;
        self.ids.iter().find(|(known, _)| known == written).map(|(_, place)| place)
    }
}

/// Reads a claims file. `path` is what messages call it; nothing is read from there.
///
/// # Errors
/// All mistakes of the file together. Where the TOML itself is broken, only what breaks it: the rest
/// can't be told from what the break made of it.
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
    for error in &broken {
        notes.add(error.span().map_or(0, |span| span.start), error.message());
    }
    let mut file = ClaimsFile::default();
    if !broken.is_empty() {
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
