//! Do the claims of a file hold: `cargo run --release --example claims -- claims.toml`.
#![allow(clippy::print_stdout)]

use std::path::PathBuf;

use ascertain::engine::run::Silent;
use ascertain::report::sentence;
use ascertain::{RunContext, carry_out, check};

fn main() -> Result<(), ascertain::Error> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/claims.toml");
    let path = std::env::args().nth(1).unwrap_or_else(|| beside.into());
    let claims = check::read(&[PathBuf::from(path)], &[])?;
    let (request, plan) = check::Check::new(claims).plan();
    let mut silent = Silent;
    let done = carry_out(request, plan, RunContext { evidence: None, ..RunContext::new(&mut silent) })?;
    done.run.outcome.claims.iter().for_each(|claim| println!("{}: {}", claim.id, sentence::claim(claim)));
    std::process::exit(i32::from(done.ending() != ascertain::Ending::Done))
}
