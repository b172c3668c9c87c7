//! What the techniques give, in one program: what they are generic over is compiled once.
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
