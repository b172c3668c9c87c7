//! One file a subcommand.

pub mod check;
mod commands;
pub mod compare;
pub mod completions;
pub mod explain;
pub mod judge;
pub mod list;
pub mod man;
pub mod power;
pub mod resume;
pub mod run;
pub mod slo;
