//! Which runs were deleted, or would be.

use ascertain_engine::unit::Unit;
use serde::Serialize;

use crate::csv::record;
use crate::grid::{Cell, ColumnKind, Grid};
use crate::terminal::Style;
use crate::text::{counted, parted};
use crate::{json, markdown};

/// The name and version of the schema of [`Pruning`] in JSON.
pub const SCHEMA: &str = "ascertain.prune/1";

/// What became of the runs in a folder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pruning {
    /// [`SCHEMA`].
    pub schema: String,
    /// The folder that they are in.
    pub folder: String,
    /// Whether nothing was deleted, but only asked what would be.
    pub dry_run: bool,
    /// The runs that go, the oldest first.
    pub removed: Vec<PrunedRun>,
    /// The bytes of their files.
    pub removed_bytes: u64,
    /// How many runs stay.
    pub kept: u64,
    /// Those of them that would go if they could.
    pub spared: Vec<SparedRun>,
}

/// A run that goes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PrunedRun {
    /// The name of its folder.
    pub id: String,
    /// The bytes of its files.
    pub bytes: u64,
}

/// A run that stays although it was asked to go.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SparedRun {
    /// The name of its folder.
    pub id: String,
    /// Why it stays.
    pub reason: String,
}

impl Pruning {
    fn grid(&self) -> Grid {
        let mut grid = Grid::new(&[
            ("Run", ColumnKind::Word),
            ("Size", ColumnKind::Number),
            ("Stays, because", ColumnKind::Prose),
        ]);
        for PrunedRun { id, bytes } in &self.removed {
            let size = Unit::Byte.human(*bytes as f64);
            grid.rows.push(vec![Cell::Code(id.clone()), size.into(), "".into()]);
        }
        for SparedRun { id, reason } in &self.spared {
            grid.rows.push(vec![Cell::Code(id.clone()), "".into(), reason.as_str().into()]);
        }
        grid.without_empty_columns()
    }

    fn sentence(&self) -> String {
        let (removed, bytes) = (counted(self.removed.len(), "run"), Unit::Byte.human(self.removed_bytes as f64));
        let said = match (self.removed.len(), self.dry_run) {
            (0, _) => "Nothing to delete".to_string(),
            (1, true) => format!("{removed} of {bytes} would be deleted"),
            (_, true) => format!("{removed} of {bytes} together would be deleted"),
            (1, false) => format!("Deleted {removed} of {bytes}"),
            (_, false) => format!("Deleted {removed} of {bytes} together"),
        };
        let verb = if self.kept == 1 { "stays" } else { "stay" };
        format!("{said}; {} {verb} in {}.", counted(self.kept, "run"), self.folder)
    }
}

/// The runs that go, and what that makes.
pub fn table(pruning: &Pruning, style: &Style) -> String {
    parted([style.table(&pruning.grid()), style.paragraph(&pruning.sentence())])
}

/// The same.
pub fn markdown(pruning: &Pruning) -> String {
    parted([markdown::table(&pruning.grid()), markdown::paragraph(&pruning.sentence())])
}

/// All as one object.
pub fn json(pruning: &Pruning) -> String {
    json::object(pruning)
}

/// A line for each run that goes or is spared; the reason of one that goes is empty.
pub fn csv(pruning: &Pruning) -> String {
    let gone = pruning.removed.iter().map(|PrunedRun { id, bytes }| record(&[id, bytes, &""]));
    let spared = pruning.spared.iter().map(|SparedRun { id, reason }| record(&[id, &"", reason]));
    "id,bytes,spared_because\n".to_string() + &gone.chain(spared).collect::<String>()
}
