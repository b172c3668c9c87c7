//! Tests of the experiment.
