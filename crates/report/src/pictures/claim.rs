use ascertain::recorded::RecordedRun;

use super::Picture;

/// The pictures of a claim, by its index.
pub fn of_claim(_run: &RecordedRun, _claim: usize) -> Vec<Picture> {
    Vec::new()
}
