//! Tables and sentences for a terminal.
//!
//! Functions return text; whether it may have colour, and how wide it is, the caller decides. Names of
//! commands and variants are shown harmlessly: nothing in them reaches the terminal as an escape.

mod claims;
mod draw;
mod tables;

pub use crate::text::{harmless, harmless_lines};
pub use claims::{Shown, checked};
pub use draw::Style;
pub use tables::{check_table, compare_table, judgement, left_out, points_table, sentences, slo, threats};
