use ascertain::recorded::RecordedRun;

use super::Picture;

/// All claims side by side.
pub fn overview(_run: &RecordedRun) -> Vec<Picture> {
    Vec::new()
}
