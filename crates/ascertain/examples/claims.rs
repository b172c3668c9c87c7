//! Judges the claims of a file: `cargo run --release --example claims -- claims.toml`.
#![allow(clippy::print_stdout)]

use std::path::PathBuf;

use ascertain::engine::run::Silent;
use ascertain::report::sentence;
use ascertain::{Request, RunContext, check, run};

fn main() -> Result<(), ascertain::Error> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/claims.toml");
    let path = std::env::args().nth(1).unwrap_or_else(|| beside.into());
    let claims = check::read(&[PathBuf::from(path)], &[])?;
    let request = Request::Check(check::Check::new(claims));
    let mut silent = Silent;
    let result = run(request, RunContext { evidence: None, ..RunContext::new(&mut silent) })?;
    result.outcome.claims.iter().for_each(|claim| println!("{}: {}", claim.id, sentence::claim(claim)));
    std::process::exit(i32::from(result.ending() != ascertain::Ending::Done))
}
