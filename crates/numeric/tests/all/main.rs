//! The tests of all techniques in one program, so that the generic functions are compiled only once.
#![allow(missing_docs)]

mod alignment;
mod cbrt;
mod common;
mod decimal;
mod dot_and_moments;
mod exact;
mod exact_values;
#[cfg(target_os = "linux")]
mod guard_pages;
mod neon;
mod polynomial;
mod same_bits;
mod subset;
mod variants;
