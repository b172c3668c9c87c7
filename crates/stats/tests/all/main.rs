//! The tests of all methods in one program.
#![allow(missing_docs)]

mod betting;
mod calibration;
mod changes;
mod csm;
mod eprocess;
mod intervals;
mod judge;
mod order;
mod order_calibration;
mod order_programs;
mod power;
mod quantile_sequence;
mod streams;
mod student;
mod tail_calibration;
mod vectors;
