#![doc = include_str!("README.md")]

mod counter;
mod free_list;
mod lock;
mod method;

pub use counter::Counter;
pub use free_list::FreeList;
pub use lock::{Held, Lock, Revoked};
pub use method::{BEST_FIRST, Method};

pub use ascertain_sys::rseq::{Unavailable, WORDS};
