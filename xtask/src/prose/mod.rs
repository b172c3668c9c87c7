//! Refuses prose that is hard to read, in Markdown, comments and string literals.
//!
//! The rules are the part of our style guide that a program can check. [`EXCEPTIONS`] lists sentences that break a rule
//! for a good reason.

mod rules;
mod text;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

use self::rules::Rule;
use self::text::Text;
use crate::tools;

/// Path of the file with the exceptions, below the root of the repository.
const EXCEPTIONS: &str = "xtask/prose.toml";

/// Largest accepted number of exceptions. More would mean that a rule is wrong or that sentences are not rewritten.
const MAX_EXCEPTIONS: usize = 40;

/// Maximum length of a refused sentence in the output, in characters. Longer sentences are cut.
const MAX_PRINTED: usize = 140;

/// A sentence that breaks a rule, and where it is.
#[derive(Debug)]
struct Violation {
    file: String,
    line: usize,
    rule: Rule,
    sentence: String,
}

/// A sentence that is allowed to break a rule.
struct Exception {
    file: String,
    /// Part of the sentence's text, which identifies the sentence in its file.
    contains: String,
}

/// Fails if a sentence breaks a rule and is not among the exceptions, or if an exception matches no refused sentence.
pub fn check() -> anyhow::Result<()> {
    let exceptions = read_exceptions(&fs::read_to_string(tools::in_root(EXCEPTIONS))?)?;
    ensure!(
        exceptions.len() <= MAX_EXCEPTIONS,
        "{EXCEPTIONS} has {} exceptions, but at most {MAX_EXCEPTIONS} are allowed; rewrite some of the sentences",
        exceptions.len()
    );
    let mut is_used = vec![false; exceptions.len()];
    let mut refused = Vec::new();
    for file in tools::output_of("git", &["ls-files", "*.rs", "*.md"])?.lines() {
        let path = tools::root().join(file);
        // Git still lists a deleted file if the deletion is not committed. The target of a symbolic link is listed,
        // too.
        if is_recorded(file) || !path.exists() || path.is_symlink() {
            continue;
        }
        let contents = fs::read_to_string(&path).with_context(|| format!("could not read {file}"))?;
        for violation in violations(file, &contents) {
            let exception = exceptions
                .iter()
                .position(|exception| exception.file == file && violation.sentence.contains(&exception.contains));
            match exception {
                Some(at) => is_used[at] = true,
                None => refused.push(violation),
            }
        }
    }
    for violation in &refused {
        let Violation { file, line, rule, sentence } = violation;
        println!("{file}:{line}: {rule}: {}", sentence.chars().take(MAX_PRINTED).collect::<String>());
    }
    print!("{}", counts(&refused));
    for (exception, _) in exceptions.iter().zip(&is_used).filter(|(_, is_used)| !*is_used) {
        println!("{EXCEPTIONS}: no refused sentence of {} contains `{}`", exception.file, exception.contains);
    }
    ensure!(refused.is_empty(), "{} sentences break a rule of prose; rewrite them", refused.len());
    ensure!(is_used.iter().all(|is_used| *is_used), "{EXCEPTIONS} has exceptions that no sentence needs; remove them");
    Ok(())
}

/// Returns whether a file is test data: written by other programs, or a record of a past state.
fn is_recorded(file: &str) -> bool {
    ["/fixtures/", "/golden/", "/corpus/"].iter().any(|folder| file.contains(folder))
}

fn violations(file: &str, contents: &str) -> Vec<Violation> {
    let is_rust = Path::new(file).extension().is_some_and(|extension| extension == "rs");
    let texts = if is_rust { text::of_rust(contents) } else { vec![Text::markdown(contents)] };
    let mut found = Vec::new();
    for text in texts {
        for (line, sentence) in text.sentences() {
            let broken = rules::broken_by(&sentence);
            found.extend(broken.map(|rule| Violation { file: file.into(), line, rule, sentence: sentence.clone() }));
        }
        if text.is_too_short() {
            let (line, sentence) = (text.line, text.contents.trim().into());
            found.push(Violation { file: file.into(), line, rule: Rule::ShortDocComment, sentence });
        }
    }
    found
}

/// Returns a text with one line per rule and crate: the number of violations, the crate and the rule.
fn counts(violations: &[Violation]) -> String {
    let mut by_rule = BTreeMap::new();
    for violation in violations {
        let parts: Vec<_> = violation.file.split('/').collect();
        let place = if parts[0] == "crates" { parts[..2].join("/") } else { parts[0].to_owned() };
        *by_rule.entry((violation.rule.to_string(), place)).or_insert(0_usize) += 1;
    }
    by_rule.iter().map(|((rule, place), count)| format!("{count:5}  {place}: {rule}\n")).collect()
}

fn read_exceptions(toml: &str) -> anyhow::Result<Vec<Exception>> {
    let table: toml::Table = toml.parse().context(EXCEPTIONS)?;
    let entries = table.get("exception").and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
    let read = |entry: &toml::Value| {
        let field = |key| {
            let value = entry.get(key).and_then(toml::Value::as_str).filter(|value| !value.is_empty());
            value.map(str::to_owned).with_context(|| format!("{EXCEPTIONS}: an exception has no `{key}`"))
        };
        field("reason")?;
        Ok(Exception { file: field("file")?, contains: field("contains")? })
    };
    entries.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_have_their_line_and_rule() {
        let code = "/// A web server.\nstruct S {\n    /// Where.\n    at: u8, // What it is.\n}\nconst M: &str = \"Whoever calls it waits\";\n";
        let found: Vec<_> = violations("a.rs", code).iter().map(|violation| (violation.line, violation.rule)).collect();
        let expected = [(3, Rule::Start), (3, Rule::ShortDocComment), (4, Rule::Start), (6, Rule::Start)];
        assert_eq!(found, expected);
        let found = violations("a.md", "# Title\n\nFine.\nThis line is told to be fine.\n\n```\nWhat is code\n```\n");
        assert_eq!(
            found.iter().map(|violation| (violation.line, violation.rule)).collect::<Vec<_>>(),
            [(4, Rule::Phrase)]
        );
    }

    #[test]
    fn an_exception_needs_a_reason() {
        assert!(
            read_exceptions("[[exception]]\nfile = \"a.rs\"\ncontains = \"b\"\nreason = \"a quotation\"\n").is_ok()
        );
        assert!(read_exceptions("[[exception]]\nfile = \"a.rs\"\ncontains = \"b\"\n").is_err());
    }
}
