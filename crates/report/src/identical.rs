//! The answer to a comparison of programs that are equal: nothing needs to be measured.

use serde::Serialize;

use crate::csv::{Field, record};
use crate::formats::{Element, Report};
use crate::terminal::Style;
use crate::text::{plain, quoted};

/// Revisions of a repository whose programs are equal, byte for byte. Such programs are not measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IdenticalPrograms {
    /// The program, as the command line names it.
    pub program: String,
    /// Hash of the program, as `git hash-object --no-filters` prints it.
    pub program_hash: String,
    /// `true` if the program is a script. The files that a script reads can differ, although the script is the same.
    pub is_script: bool,
    /// Names of the revisions; the first one is the reference.
    pub revisions: Vec<String>,
}

impl IdenticalPrograms {
    /// Returns the answer as a sentence, with names between backticks.
    #[must_use]
    pub fn plain_sentence(&self) -> String {
        plain(&self.sentence())
    }

    fn sentence(&self) -> String {
        let names: Vec<String> = self.revisions.iter().map(|name| quoted(name)).collect();
        let (last, first) = names.split_last().map_or(("", &[][..]), |(last, first)| (last, first));
        let script = match self.is_script {
            true => " The program is a script: if it reads other files of the repository, use `--measure-identical`.",
            false => "",
        };
        format!(
            "Identical: {} has the same bytes in {} and {last}, so there is nothing to measure.{script}",
            quoted(&self.program),
            first.join(", ")
        )
    }
}

impl Report for IdenticalPrograms {
    const SCHEMA: &'static str = "ascertain.identical/1";

    fn elements(&self) -> Vec<Element> {
        vec![Element::Sentences(vec![self.sentence()])]
    }

    fn text(&self, style: &Style) -> String {
        style.sentence(&self.plain_sentence(), Some("Identical"))
    }

    fn csv(&self) -> String {
        let rows = self.revisions.iter().map(|revision| {
            let fields: [&dyn Field; 4] =
                [&"identical", &self.program.as_str(), &self.program_hash.as_str(), &revision.as_str()];
            record(&fields)
        });
        format!("answer,program,program_hash,revision\n{}", rows.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_names_the_program_and_all_revisions() {
        let mut identical = IdenticalPrograms {
            program: "target/app".into(),
            program_hash: "ab12".into(),
            is_script: false,
            revisions: vec!["main (1111111)".into(), "v2 (2222222)".into(), "HEAD (3333333)".into()],
        };
        let answer = "Identical: `target/app` has the same bytes in `main (1111111)`, `v2 (2222222)` and `HEAD \
                      (3333333)`, so there is nothing to measure.";
        assert_eq!(identical.plain_sentence(), answer);
        let rows: Vec<String> = identical.csv().lines().map(str::to_owned).collect();
        assert_eq!(rows[1], "identical,target/app,ab12,main (1111111)");
        assert_eq!(rows.len(), 4);
        identical.is_script = true;
        assert!(identical.sentence().ends_with("use `--measure-identical`."));
        assert!(identical.json().contains(IdenticalPrograms::SCHEMA), "{}", identical.json());
    }
}
