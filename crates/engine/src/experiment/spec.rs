//! An experiment as plain data.

use serde::{Deserialize, Serialize};

use super::{Factor, Metric, Point};

/// An experiment as plain data; what `run.json` keeps of it, so that a report needs no code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The name on the command line, in claims and in evidence: `fill-rate`.
    pub id: String,
    /// A line for lists.
    pub title: String,
    /// What `ascertain explain` prints: question, source, why the claim might be false, design,
    /// threats, units.
    pub readme: String,
    /// The alternatives; the first is what a predicate speaks of unless it names another.
    pub variants: Vec<Variant>,
    /// What is swept.
    pub factors: Vec<Factor>,
    /// What is observed; the first is what tables and comparisons show first.
    pub metrics: Vec<Metric>,
    /// What a report draws besides the pictures that it draws of every experiment.
    #[serde(default)]
    pub plots: Vec<Plot>,
}

impl Spec {
    /// The metric's index.
    pub fn metric(&self, name: &str) -> Option<usize> {
        self.metrics.iter().position(|metric| metric.name == name)
    }

    /// The point at which every factor has its default level.
    pub fn default_point(&self) -> Point {
        Point(self.factors.iter().map(|f| (f.name.clone(), f.default.clone())).collect())
    }
}

/// One of the alternatives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// A line about it.
    pub about: String,
}

/// A picture of an experiment, as data, so that a report needs no code of the experiment's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plot {
    /// A metric over a factor's levels: a line a variant, with its band.
    Sweep {
        /// The metric's name.
        metric: String,
        /// The factor's name.
        factor: String,
        /// The memory that a level touches, so that the picture can mark where the caches end; the first
        /// that fits counts, and where none does nothing is marked.
        footprints: Vec<Footprint>,
    },
    /// A metric with keys such as `0-3`: a cell each, coloured by the median.
    Matrix {
        /// The metric's name.
        metric: String,
    },
    /// A metric over the time since the measurement began: a line a key, with its band.
    Curve {
        /// The metric's name.
        metric: String,
    },
}

/// How much memory one of a factor's units touches at some points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Footprint {
    /// The levels that a point must have for this to be true of it.
    pub at: Point,
    /// Bytes for each unit of the swept factor.
    pub bytes_each: f64,
}
