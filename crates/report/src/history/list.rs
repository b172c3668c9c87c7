//! The runs there are.

use std::collections::BTreeMap;

use ascertain_engine::evidence::Revision;
use ascertain_engine::recorded::State;
use ascertain_engine::unit::Unit;
use serde::Serialize;

use super::words::{minute, revision};
use crate::csv::record;
use crate::grid::{Cell, ColumnKind, Grid};
use crate::standing::of_so_many;
use crate::terminal::Style;
use crate::text::{command_line, counted, cut_behind_word, escape_controls};
use crate::{json, markdown};

/// The name and version of the schema of [`RunList`] in JSON.
pub const SCHEMA: &str = "ascertain.history/1";

/// Runs, the newest first. What is not known is `None`, in JSON `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunList {
    /// [`SCHEMA`].
    pub schema: String,
    /// The folder that they are in.
    pub folder: String,
    /// How many runs there are in it; the list may have fewer.
    pub count: u64,
    /// The runs.
    pub runs: Vec<ListedRun>,
}

/// A run in a few words.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedRun {
    /// The name of its folder.
    pub id: String,
    /// When it started: RFC 3339, UTC.
    pub started: Option<String>,
    /// What asked for it.
    pub command_line: Vec<String>,
    /// The label that the user gave it.
    pub label: Option<String>,
    /// The git revision of the folder in which it was started.
    pub revision: Option<Revision>,
    /// How it ended, if it did.
    pub state: RunState,
    /// Why it can't be read.
    pub reason: Option<String>,
    /// How many of its claims came to which answer: `holds`, `refuted`, `undecided`, …; of `compare`: `faster`,
    /// `slower`, `same`.
    pub claims: BTreeMap<String, u64>,
    /// The bytes of its files.
    pub bytes: u64,
}

/// How a run ended, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It came to its end.
    Finished,
    /// Ctrl-C or SIGTERM ended it.
    Interrupted,
    /// It is going on.
    Running,
    /// It was killed and wrote no outcome, or none of its last trials.
    Killed,
    /// Its `run.json` is damaged, or of another version.
    Unreadable,
}

impl From<State> for RunState {
    fn from(state: State) -> RunState {
        match state {
            State::Finished => RunState::Finished,
            State::Interrupted => RunState::Interrupted,
            State::Running => RunState::Running,
            State::Killed => RunState::Killed,
        }
    }
}

impl RunState {
    /// The word in tables and JSON.
    pub fn word(self) -> &'static str {
        match self {
            RunState::Finished => "finished",
            RunState::Interrupted => "interrupted",
            RunState::Running => "running",
            RunState::Killed => "killed",
            RunState::Unreadable => "unreadable",
        }
    }
}

/// The columns of a command line that are shown, in as many lines as they need.
const COMMAND_COLUMNS: usize = 240;

/// The answers in the order in which they are told.
const ANSWERS: [&str; 11] = [
    "holds",
    "refuted",
    "faster",
    "slower",
    "same",
    "not slower",
    "not faster",
    "undecided",
    "unavailable",
    "failed",
    "deferred",
];

impl ListedRun {
    /// "7 hold, 3 refuted".
    fn claims(&self) -> String {
        let counted = ANSWERS.into_iter().filter_map(|word| {
            let count = *self.claims.get(word).filter(|count| **count > 0)?;
            Some(format!("{count} {}", of_so_many(count as usize, word)))
        });
        counted.collect::<Vec<_>>().join(", ")
    }
}

impl RunList {
    fn grid(&self) -> Grid {
        let mut grid = Grid::new(&[
            ("Run", ColumnKind::Word),
            ("Started (UTC)", ColumnKind::Word),
            ("Label", ColumnKind::Prose),
            ("Revision", ColumnKind::Word),
            ("Command", ColumnKind::Prose),
            ("State", ColumnKind::Prose),
            ("Claims", ColumnKind::Prose),
            ("Size", ColumnKind::Number),
        ])
        .stacking(&["Started (UTC)", "Label", "Revision", "Claims"]);
        for run in &self.runs {
            let said = match &run.reason {
                Some(reason) => Cell::Text(reason.clone()),
                None => {
                    Cell::Code(cut_behind_word(&escape_controls(&command_line(&run.command_line)), COMMAND_COLUMNS))
                }
            };
            grid.rows.push(vec![
                Cell::Code(run.id.clone()),
                run.started.as_deref().map(minute).unwrap_or_default().into(),
                Cell::Code(escape_controls(run.label.as_deref().unwrap_or_default())),
                revision(run.revision.as_ref()).into(),
                said,
                run.state.word().into(),
                run.claims().into(),
                Unit::Byte.human(run.bytes as f64).into(),
            ]);
        }
        grid.without_empty_columns()
    }

    /// How many there are, and how many of them are shown.
    fn sentence(&self) -> String {
        let runs = counted(self.count, "run");
        match self.runs.len() as u64 {
            shown if shown == self.count => format!("{runs} in {}.", self.folder),
            shown => format!("The latest {shown} of {runs} in {}.", self.folder),
        }
    }
}

/// The table and how many there are.
pub fn table(list: &RunList, style: &Style) -> String {
    format!("{}\n{}", style.table(&list.grid()), style.paragraph(&list.sentence()))
}

/// The table.
pub fn markdown(list: &RunList) -> String {
    markdown::table(&list.grid())
}

/// The list as one object.
pub fn json(list: &RunList) -> String {
    json::object(list)
}

/// A line a run; the command line's words between spaces.
pub fn csv(list: &RunList) -> String {
    let mut lines = String::from("id,started,command_line,state,reason,claims,bytes,label,revision\n");
    for run in &list.runs {
        lines += &record(&[
            &run.id,
            &run.started,
            &command_line(&run.command_line),
            &run.state.word(),
            &run.reason,
            &run.claims(),
            &run.bytes,
            &run.label,
            &revision(run.revision.as_ref()),
        ]);
    }
    lines
}
