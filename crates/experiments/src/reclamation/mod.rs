//! Readers of objects that are replaced and freed: hazard pointers and epochs over each barrier, and others' ways.

mod contestants;
mod experiment;
mod limits;
mod ours;
mod peers;
mod session;

pub use experiment::Reclamation;
