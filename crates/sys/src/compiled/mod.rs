//! C and C++ code of ours, compiled by this machine's compiler when it is needed: peers to measure
//! against, and what a compiler makes of a loop.
//!
//! Every function has one C interface and a name that begins with `ascertain_`, so that one wrapper calls them all,
//! and nothing else that the object has or links to:
//!
//! ```c
//! int64_t ascertain_name(const void *input, size_t input_count, void *output, size_t output_count);
//! ```
//!
//! ```no_run
//! use ascertain_sys::compiled::{Language, Source, compile};
//!
//! let text = "#include <stddef.h>\n#include <stdint.h>\n\
//!     int64_t ascertain_count(const void *in, size_t n, void *out, size_t m) { return n; }";
//! let library = compile(&Source::new(Language::C, text))?;
//! let count = library.function("count")?;
//! assert_eq!(count.call(&[1_u32, 2, 3], &mut [] as &mut [u8]), 3);
//! # Ok::<(), ascertain_sys::Error>(())
//! ```

mod compiler;
mod library;

pub use compiler::{Language, Source, compile};
pub use library::{Function, Library, Plain};
