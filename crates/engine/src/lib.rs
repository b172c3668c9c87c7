//! Ascertain puts performance claims on trial: it measures in randomised, paired trials, decides as
//! soon as the evidence suffices, and is wrong at most a stated fraction of the time.
//!
//! A [`Plan`](plan::Plan) says what to measure and judge, as plain data; [`run`](run::run) carries it
//! out on [`Experiment`](experiment::Experiment)s; an [`Outcome`](outcome::Outcome) says what came of
//! it, as plain data again. Functions ([`Group`](function::Group)) and commands
//! ([`CommandExperiment`](command::CommandExperiment)) are ready-made experiments.

pub mod batch;
mod block;
mod bound;
pub mod claim;
pub mod claims_file;
pub mod command;
mod error;
pub mod evidence;
pub mod experiment;
pub mod finding;
pub mod function;
mod judging;
mod likeness;
mod measure;
pub mod memory;
mod names;
pub mod nearest;
pub mod observations;
pub mod outcome;
mod paired;
pub mod plan;
mod planning;
pub mod predicate;
pub mod recorded;
mod replay;
pub mod run;
pub mod samples;
mod schedule;
mod slots;
mod summary;
mod threats;
pub mod unit;
pub mod values;

pub use error::Error;
pub use planning::share_error;
pub use std::hint::black_box;
