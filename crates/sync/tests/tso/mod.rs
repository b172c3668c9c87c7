//! The protocols in every order of their steps on x86 with store buffers:
//! `RUSTFLAGS='--cfg model="tso"' cargo test --release -p ascertain-sync --lib`.
//!
//! A part of the crate's own tests, not tests beside it: the types that it is built on come from a dev-dependency here,
//! which only the former can use.

mod event_count;
mod reclamation;
