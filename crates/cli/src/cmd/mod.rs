//! One file for each subcommand, with its arguments and the function `execute`.

pub mod barrierd;
pub mod calibrate_here;
pub mod check;
pub mod clean;
mod commands;
pub mod compare;
pub mod completions;
pub mod continue_run;
pub mod cost;
pub mod explain;
pub mod fsmonitor;
pub mod get;
pub mod history;
pub mod judge;
pub mod list;
pub mod listen;
pub mod ls;
pub mod man;
mod parameters;
pub mod permute;
pub mod power;
mod printed;
pub mod put;
pub mod pyperf;
pub mod report;
pub mod run;
pub mod slo;
