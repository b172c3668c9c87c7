//! Model checkers of our own, compiled with `--cfg model="tso"` only.

pub mod tso;
