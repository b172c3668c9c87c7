//! `ascertain history`: one file a subcommand; without one, the list.

mod args;
mod brief;
mod compare;
mod figures;
mod list;
mod loaded;
mod prune;
mod trend;

pub use args::{Args, execute};
