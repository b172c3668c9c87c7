use ascertain::observations::Observations;
use ascertain::outcome::Outcome;

use crate::plot::Plot;

/// What `compare` and `slo` show on a terminal.
pub fn for_terminal(_outcome: &Outcome, _observations: &Observations) -> Vec<Plot> {
    Vec::new()
}
