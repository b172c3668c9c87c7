//! Those of the model of x86.

#![allow(unused_imports)] // one list for all protocols: what one of them stops using stays

pub(crate) use super::cell::UnsafeCell;
pub(crate) use crate::model::tso::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Futex, Instant, Mutex, fence, spin_loop, thread,
};
pub(crate) use std::sync::atomic::{Ordering, compiler_fence};
