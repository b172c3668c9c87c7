//! Runs a plan: in blocks of observations, in exactly the announced memory.

mod accumulator;
mod arithmetic;
mod cursor;
mod engine;
mod evidence;
mod held;
mod join;
pub(crate) mod memory;
mod panes;
mod quantiles;
mod ring;
mod state;
mod window;

use crate::describe::grouped;

pub(crate) use cursor::MOST_NEAR;
pub use engine::{Engine, EngineState, Failure, Results};
pub use evidence::{Advance, Evidence, Recorded};
pub use state::MOST_EXACT;
pub(crate) use state::{Sketch, ring_of, sketch_of, state_bytes, step_bytes};

/// The reason why a run cannot start or go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// There is not enough memory for a buffer.
    #[error("there is no memory for a buffer of {} bytes; use smaller windows or lags", grouped(*.bytes))]
    NoMemory {
        /// Size of the buffer.
        bytes: u64,
    },
    /// A `buffer` of the expression is full.
    #[error(
        "the buffer of {} values is full after {} results; allow more values, or use `hold` or `again` instead",
        grouped(*.values),
        grouped(*.results)
    )]
    BufferFull {
        /// Number of values that may wait.
        values: u64,
        /// Number of results of the join before the buffer was full.
        results: u64,
    },
    /// A quantile table has more full counters than it was made for.
    #[error("the quantile table is full after {} values; use shorter windows", grouped(*.values))]
    TableFull {
        /// Number of values in the table.
        values: u64,
    },
}
