//! Plots in characters.
