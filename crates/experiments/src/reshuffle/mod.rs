//! The exact test by reshuffling: is the difference between two rows of bins due to chance?

mod experiment;

pub use experiment::Reshuffle;
