//! Tests of suites.
