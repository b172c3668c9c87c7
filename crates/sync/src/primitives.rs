//! What the protocols are written in: the standard library's atomics.

#[allow(unused_imports)] // until the modules are in
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence};
