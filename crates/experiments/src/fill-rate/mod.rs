//! Balls into bins: how full is a row of bins when its first bin is full?

mod draw;
mod experiment;

pub use draw::{drawn, thrown};
pub use experiment::FillRate;
