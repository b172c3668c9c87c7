//! Rows column by column.

use crate::experiment::Arm;
use crate::unit::Unit;
use crate::values::Values;

/// The values of one metric of one arm under one key, in the order measured, column by column.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The experiment's id.
    pub experiment: String,
    /// The arm.
    pub arm: Arm,
    /// The metric's name.
    pub metric: String,
    /// The values' unit.
    pub unit: Unit,
    /// Which of several series: a server, a pair of cores; empty for a scalar.
    pub key: String,
    /// The trials' numbers.
    pub trials: Vec<u64>,
    /// When, since the measurement began, in nanoseconds; empty where all are zero.
    pub offsets_ns: Vec<u64>,
    /// The values in `unit`. One that is not a number was not observed.
    pub values: Values,
}
