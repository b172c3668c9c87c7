use ascertain::recorded::RecordedRun;

use super::Picture;

/// The pictures of an experiment, by its id.
pub fn of_experiment(_run: &RecordedRun, _experiment: &str) -> Vec<Picture> {
    Vec::new()
}
