//! Synchronisation whose fast side costs next to nothing.
//!
//! Each module is a technique that can be used alone, with its guarantee, its cost as measured and
//! when not to use it in a `README.md` of its own.

mod primitives;
