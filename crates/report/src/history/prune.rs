//! The runs that were deleted, or that a dry run would delete.

use ascertain_engine::unit::Unit;
use serde::Serialize;

use crate::csv::record;
use crate::formats::{Element, Report};
use crate::grid::{Cell, ColumnKind, Grid};
use crate::text::counted;

/// The result of deleting runs from a folder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pruning {
    /// The path of the folder that has the runs.
    pub folder: String,
    /// `true` if this was a dry run, which deletes nothing.
    pub dry_run: bool,
    /// The deleted runs, the oldest first; in a dry run, those that would be deleted.
    pub removed: Vec<PrunedRun>,
    /// The total size of the deleted runs, in bytes.
    pub removed_bytes: u64,
    /// Number of runs that are still in the folder.
    pub kept: u64,
    /// The runs that should have been deleted, but could not be.
    pub spared: Vec<SparedRun>,
}

/// A run that was deleted, or that a dry run would delete.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PrunedRun {
    /// The id of the run, which is the name of its folder.
    pub id: String,
    /// The total size of the run's files, in bytes.
    pub bytes: u64,
}

/// A run that should have been deleted, but was not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SparedRun {
    /// The id of the run, which is the name of its folder.
    pub id: String,
    /// The reason why the run was not deleted.
    pub reason: String,
}

impl Report for Pruning {
    const SCHEMA: &'static str = "ascertain.prune/1";

    fn elements(&self) -> Vec<Element> {
        let mut grid = Grid::new(&["Run", "Size", "Stays, because"])
            .kind(ColumnKind::Word, &["Run"])
            .kind(ColumnKind::Number, &["Size"]);
        let bytes = |bytes: u64| Unit::Byte.human(bytes as f64);
        let removed = self.removed.iter().map(|run| (&run.id, bytes(run.bytes), ""));
        let spared = self.spared.iter().map(|run| (&run.id, String::new(), run.reason.as_str()));
        let row =
            |(id, size, reason): (&String, String, &str)| vec![Cell::Code(id.clone()), size.into(), reason.into()];
        grid.rows.extend(removed.chain(spared).map(row));
        let (removed, bytes) = (counted(self.removed.len(), "run"), bytes(self.removed_bytes));
        let together = if self.removed.len() > 1 { " together" } else { "" };
        let found = match self.dry_run {
            _ if self.removed.is_empty() => "Nothing to delete".to_string(),
            true => format!("{removed} of {bytes}{together} would be deleted"),
            false => format!("Deleted {removed} of {bytes}{together}"),
        };
        let verb = if self.kept == 1 { "stays" } else { "stay" };
        let sentence = format!("{found}; {} {verb} in {}.", counted(self.kept, "run"), self.folder);
        vec![Element::Table(grid.without_empty_columns()), Element::Sentences(vec![sentence])]
    }

    /// Returns the result as CSV, with a line for each run that was deleted or should have been deleted. The reason is
    /// empty for a deleted run.
    fn csv(&self) -> String {
        let removed = self.removed.iter().map(|PrunedRun { id, bytes }| record(&[id, bytes, &""]));
        let spared = self.spared.iter().map(|SparedRun { id, reason }| record(&[id, &"", reason]));
        "id,bytes,spared_because\n".to_string() + &removed.chain(spared).collect::<String>()
    }
}
