use std::path::PathBuf;

use ascertain_engine::predicate;
#[cfg(feature = "series")]
use ascertain_streams::grouped;

/// The error of a request that is invalid or can't be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run could not be planned, or could not continue.
    #[error(transparent)]
    Engine(#[from] ascertain_engine::Error),
    /// A setting only makes sense for a comparison, but there is a single command at a single combination of levels.
    #[cfg(feature = "commands")]
    #[error(transparent)]
    NeedsTwo(#[from] crate::compare::NeedsTwo),
    /// Commands cannot be compared by a printed metric, because it is unknown whether higher or lower values of this
    /// metric are better.
    #[error("it is unknown whether higher or lower `{metric}` is better")]
    NoDirection {
        /// Name of the printed metric.
        metric: String,
    },
    /// Two revisions that should be compared are the same commit, without uncommitted changes.
    #[cfg(feature = "commands")]
    #[error("{} and {} are the same commit ({commit}), so there is nothing to compare; name another revision", names[0], names[1])]
    SameCommit {
        /// The revisions, as the user named them.
        names: [String; 2],
        /// The commit, abbreviated.
        commit: String,
    },
    /// The build of a revision failed.
    #[cfg(feature = "commands")]
    #[error("{name}: the build `{command}` {how}; its output is in {} and ends with:\n{end}", log.display())]
    Build {
        /// Name of the revision.
        name: String,
        /// The command line of the build.
        command: String,
        /// The way in which the build failed, as the end of a sentence.
        how: String,
        /// The file with the output of the build.
        log: PathBuf,
        /// The last lines of the output.
        end: String,
    },
    /// The program to compare is missing in the folder of a revision.
    #[cfg(feature = "commands")]
    #[error("{name} has no program `{program}`: {} does not exist", path.display())]
    NoProgram {
        /// Name of the revision.
        name: String,
        /// The program, as the user wrote it.
        program: String,
        /// The path at which the program should be.
        path: PathBuf,
    },
    /// A predicate is invalid.
    #[error(transparent)]
    Predicate(#[from] predicate::PredicateError),
    /// Claims files have mistakes.
    #[cfg(feature = "claims")]
    #[error(transparent)]
    Claims(#[from] ascertain_engine::claims_file::ClaimsFileError),
    /// A number in the request is invalid for the statistical method.
    #[error(transparent)]
    Statistics(#[from] ascertain_stats::Error),
    /// The samples can't answer the question of a [`Permute`](crate::permute::Permute) request.
    #[cfg(feature = "permute")]
    #[error(transparent)]
    Permutation(#[from] ascertain_permute::Error),
    /// Computing the power for this many trials would take too long.
    #[error(
        "{max_trials} trials at {true_rates} true rates would take about {minutes} min to compute; choose true \
         rates that are farther from the claim, or allow at most {fitting} trials"
    )]
    TooManyTrials {
        /// Maximum number of trials, as requested.
        max_trials: u64,
        /// Number of true rates for which the power was requested.
        true_rates: usize,
        /// Estimated time of the computation, in minutes.
        minutes: f64,
        /// The largest number of trials for which the computation is fast enough.
        fitting: u64,
    },
    /// A recorded run can't be read.
    #[error(transparent)]
    Evidence(#[from] ascertain_engine::evidence::Error),
    /// The folder of runs has no runs.
    #[error("there is no run in {}; measure something first, or name another folder of runs", folder.display())]
    NoRun {
        /// The folder that should contain runs.
        folder: PathBuf,
    },
    /// A file or folder can't be read.
    #[error("{} can't be read", path.display())]
    Read {
        /// Path of the file or folder.
        path: PathBuf,
        /// The error that the system returned.
        source: std::io::Error,
    },
    /// An expression over the series of a run is refused.
    #[cfg(feature = "series")]
    #[error(transparent)]
    Expression(#[from] ascertain_streams::Error),
    /// The computation of a derived series cannot start or go on.
    #[cfg(feature = "series")]
    #[error(transparent)]
    Series(#[from] ascertain_streams::RunError),
    /// The plan of a derived series needs more memory than it may use.
    #[cfg(feature = "series")]
    #[error(
        "`{expression}` needs {} B of memory, and may use {} B; use smaller windows, lags and buffers, or allow more \
         memory",
        grouped(*needed_bytes), grouped(*limit_bytes)
    )]
    SeriesMemory {
        /// The expression, as the plan prints it.
        expression: String,
        /// The memory of the plan and of the columns for reading.
        needed_bytes: u64,
        /// The memory that the computation may use.
        limit_bytes: u64,
    },
    /// A file of prices or figures can't be read.
    #[cfg(feature = "cost")]
    #[error(transparent)]
    Table(#[from] ascertain_engine::samples::Error),
    /// The type of the machine that a run measured is not known.
    #[cfg(feature = "cost")]
    #[error("the type of the machine of run {run} is not known; name it as in the price file")]
    NoMachineType {
        /// Id of the run.
        run: String,
    },
    /// The prices that are needed are for several regions.
    #[cfg(feature = "cost")]
    #[error(
        "{file}: prices are for the regions `{}` (line {}) and `{}` (line {}); choose one region",
        regions[0], lines[0], regions[1], lines[1]
    )]
    Regions {
        /// The price file.
        file: String,
        /// Two of the regions.
        regions: [String; 2],
        /// The lines with these regions.
        lines: [u64; 2],
    },
    /// The parts of a request contradict each other, or the request names something that does not exist.
    #[error("{0}")]
    Request(String),
}

/// Returns [`Error::Request`] with this reason.
pub(crate) fn refused<T>(reason: String) -> Result<T, Error> {
    Err(Error::Request(reason))
}
