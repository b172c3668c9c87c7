//! The Kahan–Babuška summation, without Neumaier's comparison.

use std::hint::black_box;
use std::marker::PhantomData;

use super::Method;
use super::compensated::{total, two_sum};
use crate::sum::accumulate::Accumulator;
use crate::sum::element::Element;
use crate::sum::method::two_sum::blocks;
use crate::sum::vector::{Fma, Vector};
