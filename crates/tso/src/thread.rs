//! The threads of a model, as in `std::thread`.

use std::sync::{Arc, Mutex};

use crate::explorer::step;
use crate::machine::{Op, ThreadId};

pub use crate::atomic::spin_loop as yield_now;

/// A handle of a thread of the model, which can wait for its end.
#[derive(Debug)]
pub struct JoinHandle<T> {
    thread: ThreadId,
    result: Arc<Mutex<Option<T>>>,
}

/// Starts a thread.
///
/// # Panics
///
/// If called outside of a model.
#[track_caller]
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let result = Arc::new(Mutex::new(None));
    let slot = result.clone();
    // Starting a thread is a system call, which empties the store buffer.
    let thread = step(Op::Fence, |state, thread| {
        state.drain(thread);
        state.add_thread(Box::new(move || {
            let value = body();
            *slot.lock().unwrap() = Some(value);
        }))
    });
    JoinHandle { thread, result }
}

impl<T> JoinHandle<T> {
    /// Waits for the end of the thread. If the thread panics, the whole model ends instead.
    ///
    /// # Errors
    ///
    /// This never fails; the return type is that of the standard library.
    #[track_caller]
    pub fn join(self) -> std::thread::Result<T> {
        step(Op::Join(self.thread), |_, _| ());
        Ok(self.result.lock().unwrap().take().expect("a thread that has ended has a result"))
    }
}
