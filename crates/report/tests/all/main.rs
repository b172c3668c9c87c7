//! Tests of the output of runs, for people and for other tools.
#![allow(missing_docs)]

mod allocations;
mod common;
mod cost;
mod exports;
mod fastest;
mod golden;
mod history;
mod html;
mod left_out;
mod permutation;
mod pictures;
mod power;
mod properties;
mod sentences;
mod series;
mod shapes;
mod size;
mod tails;
mod time_limits;
