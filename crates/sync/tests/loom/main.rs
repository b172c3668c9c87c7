//! Tests of the protocols under loom, which explores every execution that Rust's memory model allows:
//! `RUSTFLAGS='--cfg model="loom"' cargo test --release -p ascertain-sync --test loom`.
#![cfg(model = "loom")]
#![allow(missing_docs)]

mod event_count;
#[path = "../all/common/missing.rs"]
mod missing;
mod reclamation;
mod ring;

/// Explores only executions in which running threads are interrupted at most three times. For some programs, all
/// executions would be too many.
pub(crate) fn bounded(program: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(program);
}
