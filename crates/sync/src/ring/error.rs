//! Why nothing was pushed or popped.

use std::fmt;

/// Why an item was not pushed. It is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError<T> {
    /// There is no room: pop, or wait for longer.
    Full(T),
    /// The consumer is gone: nobody will ever pop it.
    Closed(T),
}

impl PushError<()> {
    pub(super) fn with<T>(self, item: T) -> PushError<T> {
        match self {
            Self::Full(()) => PushError::Full(item),
            Self::Closed(()) => PushError::Closed(item),
        }
    }
}

impl<T> fmt::Display for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the ring was full until the deadline: pop faster, or make it larger",
            Self::Closed(_) => "the ring's consumer is gone",
        })
    }
}

impl<T: fmt::Debug> std::error::Error for PushError<T> {}

/// Why no item was popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PopError {
    /// There is none yet: wait for longer.
    Empty,
    /// There is none, and the producer is gone.
    Closed,
}

impl fmt::Display for PopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the ring was empty until the deadline",
            Self::Closed => "the ring is empty and its producer is gone",
        })
    }
}

impl std::error::Error for PopError {}
