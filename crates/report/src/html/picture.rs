//! Pictures with their tables.

use ascertain::recorded::RecordedRun;

use super::markup::Html;
use super::table::Table;

/// A picture as the template draws it: for wide and for narrow windows.
pub(super) struct Figure {
    pub id: String,
    pub title: String,
    pub wide: Html,
    pub narrow: Html,
    pub table: Option<Table>,
}

pub(super) fn of_claim(_run: &RecordedRun, _index: usize, _prefix: &str) -> Vec<Figure> {
    Vec::new()
}

pub(super) fn of_experiment(_run: &RecordedRun, _id: &str, _prefix: &str) -> Vec<Figure> {
    Vec::new()
}

pub(super) fn overview(_run: &RecordedRun, _prefix: &str) -> Vec<Figure> {
    Vec::new()
}

/// A name with only what an address may hold.
pub(super) fn in_addresses(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect()
}
