//! Ascertain puts performance claims on trial: it measures in randomised, paired trials, decides as
//! soon as the evidence suffices, and is wrong at most a stated fraction of the time.
//!
//! A [`Plan`](plan::Plan) says what to measure and judge, as plain data; [`run`](run::run) carries it
//! out on [`Experiment`](experiment::Experiment)s; an [`Outcome`](outcome::Outcome) says what came of
//! it, as plain data again. Functions ([`Group`](function::Group)) and commands
//! ([`CommandExperiment`](command::CommandExperiment)) are ready-made experiments.

pub mod batch;
mod block;
pub mod claim;
pub mod claims_file;
pub mod command;
mod error;
pub mod evidence;
pub mod experiment;
pub mod finding;
pub mod function;
mod judging;
mod measure;
pub mod memory;
pub mod names;
pub mod observations;
pub mod outcome;
pub mod plan;
pub mod predicate;
pub mod recorded;
pub mod run;
pub mod samples;
mod schedule;
mod summary;
pub mod unit;
pub mod values;

pub use error::Error;
pub use plan::share_error;
pub use std::hint::black_box;
