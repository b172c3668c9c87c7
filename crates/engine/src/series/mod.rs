//! The series of a recorded run, for expressions of `ascertain-streams`.

mod catalogue;
mod rows;

use std::path::{Path, PathBuf};

use ascertain_streams::{Engine, Failure, Plan, Results};

use crate::evidence::Error;

pub use catalogue::RunCatalogue;
use rows::RunRows;

/// A run of which the series are known. Its rows are read again for each computation.
#[derive(Debug)]
pub struct RunSeries {
    run: PathBuf,
    catalogue: RunCatalogue,
}

impl RunSeries {
    /// Reads all rows of the run in a folder once, to learn which series there are. The series have only the trials
    /// whose number is a multiple of `stride`.
    ///
    /// # Errors
    /// If the run has no file of rows, or a row is not valid.
    pub fn read(run: &Path, stride: u64) -> Result<RunSeries, Error> {
        Ok(RunSeries { run: run.to_path_buf(), catalogue: RunCatalogue::read(run, stride)? })
    }

    /// Returns the series, in which expressions find names.
    #[must_use]
    pub fn catalogue(&self) -> &RunCatalogue {
        &self.catalogue
    }

    /// Returns the size in bytes of the columns into which the rows of a block are read.
    #[must_use]
    pub fn reading_bytes(plan: &Plan) -> u64 {
        RunRows::bytes(plan)
    }

    /// Reads the rows block by block, for a plan with this catalogue. Calls `observe` with the results of each block; if
    /// it returns `false`, the computation ends.
    ///
    /// # Errors
    /// If a row is not valid, or if a buffer of a stated size is full.
    pub fn compute(
        &self,
        plan: &Plan,
        engine: &mut Engine,
        observe: &mut dyn FnMut(Results) -> bool,
    ) -> Result<(), Failure<Error>> {
        let mut rows = RunRows::open(&self.run, &self.catalogue, plan).map_err(Failure::Evidence)?;
        engine.run(&mut rows, observe)
    }
}
