//! C and C++ code of ours, compiled by this machine's compiler when it is needed: peers to measure
//! against, and what a compiler makes of a loop.
//!
//! A function that can be called is defined by `ASCERTAIN(name, input, output)`, which stands for
//!
//! ```c
//! int64_t ascertain_name(const input *in, size_t in_count, output *out, size_t out_count)
//! ```
//!
//! so that one wrapper calls them all; and it has the compiler note in the object what the two types are, which is compared
//! with the caller's before any call. That a function reads and writes no more than it is told that there is, no
//! compiler looks after: a source is part of this program, as its other code is.
//!
//! ```no_run
//! use ascertain_sys::compiled::{Language, Source, compile};
//!
//! let text = "#include <stdint.h>\n ASCERTAIN(count, uint32_t, uint8_t) { return in_count; }";
//! let library = compile(&Source::new(Language::C, text))?;
//! let count = library.function::<u32, u8>("count")?;
//! assert_eq!(count.call(&[1, 2, 3], &mut []), 3);
//! assert!(library.function::<u64, u8>("count").is_err());
//! # Ok::<(), ascertain_sys::Error>(())
//! ```

mod compiler;
mod library;

pub use compiler::{Language, Source, compile};
pub use library::{Function, Library, Plain};
