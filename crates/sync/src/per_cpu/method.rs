//! The ways to data of a CPU's own.

use std::fmt;

use ascertain_sys::rseq::{Area, Unavailable};

/// How data is kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// By CPU, with restartable sequences.
    Restartable,
    /// By thread: threads are dealt out to shards, whose atomics and locks they rarely have to share.
    Sharded,
}

/// The methods, the best first. The last is to be had everywhere.
pub const BEST_FIRST: [Method; 2] = [Method::Restartable, Method::Sharded];

impl Method {
    /// Whether this program has it here.
    ///
    /// # Errors
    /// Why it has not.
    pub fn is_available(self) -> Result<(), Unavailable> {
        self.area().map(drop)
    }

    /// The best that this program has here.
    #[must_use]
    pub fn best() -> Self {
        BEST_FIRST.into_iter().find(|method| method.is_available().is_ok()).unwrap_or(Self::Sharded)
    }

    /// What the best method here makes.
    pub(super) fn first<T>(with_method: impl Fn(Self) -> Result<T, Unavailable>) -> T {
        let made = BEST_FIRST.into_iter().find_map(|method| with_method(method).ok());
        made.expect("the last method is to be had everywhere")
    }

    /// What sequences need; none where they are not used.
    pub(super) fn area(self) -> Result<Option<Area>, Unavailable> {
        match self {
            Self::Restartable => Area::find().map(Some),
            Self::Sharded => Ok(None),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Restartable => "restartable sequences",
            Self::Sharded => "sharded atomics",
        })
    }
}
