//! One file a subcommand.

pub mod barrierd;
pub mod calibrate_here;
pub mod check;
mod commands;
pub mod compare;
pub mod completions;
pub mod explain;
pub mod history;
pub mod judge;
pub mod list;
pub mod man;
mod parameters;
pub mod permute;
pub mod power;
pub mod report;
pub mod resume;
pub mod run;
mod sizes;
pub mod slo;
