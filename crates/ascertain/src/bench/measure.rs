//! Measuring groups and printing what came of each.

use std::path::PathBuf;

use ascertain_engine::evidence;
use ascertain_engine::experiment::Experiment;
use ascertain_engine::function::Group;
use ascertain_engine::run::{Recording, Run};
use ascertain_report::exports::Files;
use ascertain_report::layout::Layout;
use ascertain_report::terminal::{self, Style, harmless};
use ascertain_report::{csv, export, json, markdown};

use super::options::{Format, Options};
use crate::compare::functions;

pub(super) struct Bench<'o> {
    options: &'o Options,
    style: Style,
    /// What threatens the results, as the last group's run found it.
    threats: String,
    folders: Vec<PathBuf>,
    groups: usize,
    exports: Files,
}

impl<'o> Bench<'o> {
    pub fn new(options: &'o Options, exports: Files) -> Self {
        let style = Style::of_stdout(None);
        Bench { options, style, threats: String::new(), folders: Vec::new(), groups: 0, exports }
    }

    pub fn has_measured(&self) -> bool {
        self.groups > 0
    }

    /// Measures a group and prints what came of it.
    pub fn measure(&mut self, group: &Group) -> Result<Run, ascertain_engine::Error> {
        let options = self.options;
        let recording = match options.no_evidence {
            true => Recording::None,
            false => Recording::New {
                runs: options.evidence.clone().unwrap_or_else(evidence::runs_folder),
                command_line: std::env::args().collect(),
                request: serde_json::Value::Null,
            },
        };
        let run = ascertain_engine::run::run(
            &functions(group, &options.config),
            &[group],
            recording,
            &Default::default(),
            &mut self.exports,
        )?;
        self.exports.keep(&run.outcome, &run.observations);
        print!("{}", self.text(group, &run));
        if options.format == Format::Table {
            self.threats = terminal::threats(&run.outcome, &self.style);
        }
        self.folders.extend(run.folder.clone());
        self.groups += 1;
        if let Some(error) = run.unkept {
            return Err(error.into());
        }
        Ok(run)
    }

    fn text(&self, group: &Group, run: &Run) -> String {
        let (outcome, is_first) = (&run.outcome, self.groups == 0);
        match self.options.format {
            Format::Json => json::outcome(outcome),
            Format::Markdown => format!("{}{}", if is_first { "" } else { "\n" }, markdown::outcome(outcome)),
            Format::Csv => {
                let text = csv::outcome(outcome);
                // One table has one heading.
                let rows = text.split_once('\n').map_or("", |(_, rows)| rows);
                if is_first { text.clone() } else { rows.to_string() }
            }
            Format::Table => {
                let heading = harmless(&group.spec().id);
                let table = terminal::compare_table(outcome, &Layout::default(), &self.style);
                let said = terminal::sentences(outcome, &self.style);
                let said = if said.is_empty() { terminal::left_out(outcome, &self.style) } else { said };
                let gap = if said.is_empty() { "" } else { "\n" };
                format!("{}{heading}\n{table}{gap}{said}", if is_first { "" } else { "\n" })
            }
        }
    }

    /// Writes the results of all groups for other tools.
    pub fn write_exports(&self) -> Result<(), export::Error> {
        self.exports.finish()
    }

    /// Prints what is said once: threats, where the evidence is, and what to do with it.
    pub fn end(&self) {
        if !self.threats.is_empty() {
            print!("\n{}", self.threats);
        }
        for folder in &self.folders {
            eprintln!("evidence: {}", folder.display());
        }
        if let Some(last) = self.folders.last() {
            eprintln!("`ascertain report {}` makes an HTML report of it", last.display());
        }
    }
}
