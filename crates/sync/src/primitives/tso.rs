//! Those of `ascertain-tso`, which is a dev-dependency: only the crate's own tests can be built so.

#![allow(unused_imports)] // one list for all protocols: what one of them stops using stays

pub(crate) use super::cell::UnsafeCell;
pub(crate) use ascertain_tso::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Futex, Instant, Mutex, fence, spin_loop, thread,
};
pub(crate) use std::sync::atomic::{Ordering, compiler_fence};
