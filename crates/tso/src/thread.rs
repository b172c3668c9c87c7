//! The threads of a model, as in `std::thread`.

use std::sync::{Arc, Mutex};

use crate::explorer::step;
use crate::machine::{Op, ThreadId};

pub use crate::atomic::spin_loop as yield_now;

/// A thread whose end can be waited for.
#[derive(Debug)]
pub struct JoinHandle<T> {
    thread: ThreadId,
    result: Arc<Mutex<Option<T>>>,
}

/// Starts a thread.
///
/// # Panics
///
/// Outside of a model.
#[track_caller]
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let result = Arc::new(Mutex::new(None));
    let slot = result.clone();
    // The system call empties the buffer.
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
    /// Waits for the thread's end. A panic of the thread ends the model before.
    ///
    /// # Errors
    ///
    /// None: the type is the standard library's.
    #[track_caller]
    pub fn join(self) -> std::thread::Result<T> {
        step(Op::Join(self.thread), |_, _| ());
        Ok(self.result.lock().unwrap().take().expect("a thread that has ended has a result"))
    }
}
