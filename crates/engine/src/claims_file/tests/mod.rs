//! Tests of claims files, on a small registry of their own.

mod claims;
mod mistakes;
mod mutations;
mod registry;
mod schema;
mod wrong_values;
mod wrong_words;
