//! Measuring groups and printing what came of each.

use std::path::PathBuf;

use ascertain_engine::evidence;
use ascertain_engine::experiment::Experiment;
use ascertain_engine::function::Group;
use ascertain_engine::run::{Recording, Run};
use ascertain_report::exports::Files;
use ascertain_report::layout::TableLayout;
use ascertain_report::progress::{Line, Watching};
use ascertain_report::terminal::{self, Style, escape_controls};
use ascertain_report::{csv, export, json, markdown};

use super::baseline;
use super::options::{Format, Options};
use crate::compare::functions;
use crate::error::{Error, refused};

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

    /// Measures a group, prints what came of it, and lays it beside its baseline.
    pub fn measure(&mut self, group: &Group) -> Result<Run, Error> {
        let options = self.options;
        let runs = options.evidence.clone().unwrap_or_else(evidence::runs_folder);
        let id = &group.spec().id;
        let baseline = options.baseline.as_ref().map(|name| (name, baseline::folder(&runs, id, name)));
        if let Some((name, folder)) = &baseline
            && !folder.exists()
        {
            return refused(format!(
                "there is no baseline `{name}` of `{id}` in {}: --save-baseline {name} keeps one",
                runs.display()
            ));
        }
        let recording = match options.no_evidence {
            true => Recording::None,
            false => Recording::New {
                runs: runs.clone(),
                command_line: std::env::args().collect(),
                request: serde_json::Value::Null,
            },
        };
        let mut watching = Watching { line: Line::new(true), files: &mut self.exports, is_quiet: false };
        let run = ascertain_engine::run::run(
            &functions(group, &options.config),
            &[group],
            recording,
            &Default::default(),
            &mut watching,
        );
        // The line is gone before anything is printed.
        drop(watching);
        let mut run = run?;
        self.exports.keep(&run.outcome, &run.observations);
        print!("{}", self.text(group, &run));
        if options.format == Format::Table {
            self.threats = terminal::threats(&run.outcome, &self.style);
        }
        self.groups += 1;
        #[cfg(feature = "recorded")]
        if let (Some((name, baseline)), Some(folder)) = (&baseline, &run.folder) {
            print!("\n{}", baseline::beside(name, [baseline, folder], options.format, &self.style)?);
        }
        match (&options.save_baseline, &mut run.folder) {
            (Some(name), _) if run.outcome.interrupted || run.target_failed => {
                eprintln!("not kept as `{name}`: it was interrupted, or a function failed");
            }
            (Some(name), Some(folder)) => {
                let kept = baseline::folder(&runs, id, name);
                baseline::save(folder, &kept)?;
                *folder = kept;
            }
            (Some(name), None) => {
                return refused(format!("`{id}` is not kept as `{name}`: its evidence could not be written"));
            }
            (None, _) => {}
        }
        self.folders.extend(run.folder.clone());
        Ok(run)
    }

    fn text(&self, group: &Group, run: &Run) -> String {
        let (outcome, is_first) = (&run.outcome, self.groups == 0);
        match self.options.format {
            Format::Json => json::outcome(outcome),
            Format::Markdown => {
                format!("{}{}", if is_first { "" } else { "\n" }, markdown::outcome(outcome, &TableLayout::default()))
            }
            Format::Csv => {
                let text = csv::outcome(outcome);
                // One table has one heading.
                let rows = text.split_once('\n').map_or("", |(_, rows)| rows);
                if is_first { text.clone() } else { rows.to_string() }
            }
            Format::Table => {
                let heading = escape_controls(&group.spec().id);
                let table = terminal::compare_table(outcome, &TableLayout::default(), &self.style);
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
