//! The `ascertain` command.
fn main() {}
