//! C and C++ functions for experiments, compiled when they are first needed.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use ascertain_sys::Error;
use ascertain_sys::compiled::{Function, Library, Plain, Source, compile};

use super::Unavailable;

/// Returns a function from a C or C++ source. Each source is compiled only once per process, because a run requests the
/// same function several times.
///
/// # Errors
/// Returns [`Unavailable::Program`] if the source cannot be compiled, or if it has no such function. `needs` describes
/// the required compiler, for instance `a C compiler`.
pub fn compiled_function<I: Plain, O: Plain>(
    source: &Source,
    name: &str,
    needs: &str,
) -> Result<Function<I, O>, Unavailable> {
    static COMPILED: LazyLock<Mutex<HashMap<Source, Result<Library, Unavailable>>>> = LazyLock::new(Mutex::default);
    let lacks = |error: Error| Unavailable::Program { program: needs.into(), error: error.to_string() };
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let library = compiled.entry(source.clone()).or_insert_with(|| compile(source).map_err(lacks)).clone()?;
    library.function(name).map_err(lacks)
}
