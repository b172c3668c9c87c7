//! The list of runs in a folder: the output of `ascertain history`.

use std::collections::BTreeMap;

use ascertain_engine::evidence::Revision;
use ascertain_engine::unit::Unit;
use serde::Serialize;

use super::words::{minute, revision};
use crate::csv::record;
use crate::formats::{Element, Report};
use crate::grid::{Cell, ColumnKind, Grid};
use crate::standing::of_so_many;
use crate::text::{command_line, counted, cut_behind_word, escape_controls};

/// The runs in a folder, the newest first. Unknown values are `None`, in JSON `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunList {
    /// The path of the folder that has the runs.
    pub folder: String,
    /// Number of runs in the folder. The list may be limited to fewer.
    pub count: u64,
    /// The listed runs, the newest first.
    pub runs: Vec<ListedRun>,
}

/// A summary of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ListedRun {
    /// The id of the run, which is the name of its folder.
    pub id: String,
    /// When the run started, in RFC 3339, UTC.
    pub started: Option<String>,
    /// The command line that started the run.
    pub command_line: Vec<String>,
    /// The label that the user gave to the run.
    pub label: Option<String>,
    /// The git revision of the folder that the run was started in.
    pub revision: Option<Revision>,
    /// The state of the run: `finished`, `interrupted`, `running`, `killed`, or `unreadable` if `run.json` is damaged
    /// or from an unknown version.
    pub state: &'static str,
    /// The reason why the run can't be read.
    pub reason: Option<String>,
    /// For each answer, the number of the run's claims that have it. Answers are `holds`, `refuted`, `undecided` and so
    /// on; for `compare` they are `faster`, `slower`, `same`.
    pub claims: BTreeMap<String, u64>,
    /// The total size of the run's files, in bytes.
    pub bytes: u64,
}

/// The largest width of a command line in the list, in columns. A longer one is cut after a word.
const COMMAND_COLUMNS: usize = 240;

/// The answers, in the order of a summary such as "7 hold, 3 refuted".
const ANSWERS: &str = "holds,refuted,faster,slower,same,not slower,not faster,undecided,unavailable,failed,deferred";

impl ListedRun {
    /// Returns the number of claims by answer: "7 hold, 3 refuted".
    fn claims(&self) -> String {
        let counted = ANSWERS.split(',').filter_map(|word| {
            let count = *self.claims.get(word).filter(|count| **count > 0)?;
            Some(format!("{count} {}", of_so_many(count as usize, word)))
        });
        counted.collect::<Vec<_>>().join(", ")
    }
}

impl Report for RunList {
    const SCHEMA: &'static str = "ascertain.history/1";

    fn elements(&self) -> Vec<Element> {
        let headings = ["Run", "Started (UTC)", "Label", "Revision", "Command", "State", "Claims", "Size"];
        let mut grid = Grid::new(&headings)
            .kind(ColumnKind::Word, &["Run", "Started (UTC)", "Revision"])
            .kind(ColumnKind::Number, &["Size"])
            .stacking(&["Started (UTC)", "Label", "Revision", "Claims"]);
        for run in &self.runs {
            let command = cut_behind_word(&escape_controls(&command_line(&run.command_line)), COMMAND_COLUMNS);
            grid.rows.push(vec![
                Cell::Code(run.id.clone()),
                run.started.as_deref().map(minute).unwrap_or_default().into(),
                Cell::Code(escape_controls(run.label.as_deref().unwrap_or_default())),
                revision(run.revision.as_ref()).into(),
                run.reason.clone().map_or(Cell::Code(command), Cell::Text),
                run.state.into(),
                run.claims().into(),
                Unit::Byte.human(run.bytes as f64).into(),
            ]);
        }
        let runs = counted(self.count, "run");
        let count = match self.runs.len() as u64 {
            shown if shown == self.count => format!("{runs} in {}.", self.folder),
            shown => format!("The latest {shown} of {runs} in {}.", self.folder),
        };
        vec![Element::Table(grid.without_empty_columns()), Element::Note(count)]
    }

    /// Returns the list as CSV with a line for each run. The words of a command line are separated by spaces.
    fn csv(&self) -> String {
        let mut lines = String::from("id,started,command_line,state,reason,claims,bytes,label,revision\n");
        for run in &self.runs {
            let ListedRun { id, started, state, reason, bytes, label, .. } = run;
            let (command, revision) = (command_line(&run.command_line), revision(run.revision.as_ref()));
            lines += &record(&[id, started, &command, state, reason, &run.claims(), bytes, label, &revision]);
        }
        lines
    }
}
