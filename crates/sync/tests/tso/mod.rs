//! Tests of the protocols. They explore every order of the protocols' steps on x86 with store buffers:
//! `RUSTFLAGS='--cfg model="tso"' cargo test --release -p ascertain-sync --lib`.
//!
//! These tests are part of the library's unit tests, not of its integration tests. In this model, the library itself
//! takes its primitive types from a dev-dependency. A library can use a dev-dependency only when it is compiled for its
//! unit tests.
//!
//! The largest programs take 20 seconds each, in a release build. They run only with `ASCERTAIN_MODEL_DEPTH=full`.

mod event_count;
mod reclamation;

use std::fmt::Display;

use ascertain_sys::testing::left_out;

/// Returns whether the largest programs run too. If not, reports that `program` is left out.
fn is_full_depth(program: impl Display) -> bool {
    let is_full = std::env::var("ASCERTAIN_MODEL_DEPTH").is_ok_and(|depth| depth == "full");
    if !is_full {
        left_out(format_args!("{program} runs only with ASCERTAIN_MODEL_DEPTH=full"));
    }
    is_full
}
