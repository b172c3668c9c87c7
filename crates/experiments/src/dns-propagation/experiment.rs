//! x
mod propagation;
