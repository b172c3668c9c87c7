//! What the protocols are written in, under the names of the standard library, so that a model checker can run the
//! same code.
//!
//! | built with | types | shows |
//! |---|---|---|
//! | nothing | the standard library's, and the kernel's futex | |
//! | `--cfg model="loom"` | loom's | acquire and release, on any machine that Rust allows |
//! | `--cfg model="portable"` | as with nothing, and no assembly | what ThreadSanitizer can see |
//! | `--cfg model="tso"` | those of `ascertain-tso` | store buffers of x86, asymmetric barriers, and time |
//!
//! Beyond the standard library: `UnsafeCell` is used through `with` and `with_mut`, and `Futex` is an `AtomicU32`
//! that threads can sleep on. Loom treats sequentially consistent accesses as acquire and release: use `fence`.
//! An unbounded loop that waits for another thread must call `spin_loop` or `thread::yield_now` in each round; a
//! bounded one must not run at all in a model.

#[cfg(not(model = "loom"))]
mod cell;
#[cfg(model = "loom")]
mod loom;
#[cfg(not(any(model = "loom", model = "tso")))]
mod native;
#[cfg(model = "tso")]
mod tso;

#[cfg(model = "loom")]
pub(crate) use loom::*;
#[cfg(not(any(model = "loom", model = "tso")))]
pub(crate) use native::*;
#[cfg(model = "tso")]
pub(crate) use tso::*;
