//! Peers in C and C++, compiled when they are first asked for.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use ascertain_engine::experiment::Unavailable;
use ascertain_sys::Error;
use ascertain_sys::compiled::{Function, Library, Plain, Source, compile};

/// A function of a source, which is compiled once for as long as the program runs: a run asks several times. `needs` is
/// what the machine lacks where there is none.
pub fn function<I: Plain, O: Plain>(source: &Source, name: &str, needs: &str) -> Result<Function<I, O>, Unavailable> {
    static COMPILED: LazyLock<Mutex<HashMap<Source, Result<Library, Unavailable>>>> = LazyLock::new(Mutex::default);
    let lacks = |error: Error| Unavailable::Program { program: needs.into(), error: error.to_string() };
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let library = compiled.entry(source.clone()).or_insert_with(|| compile(source).map_err(lacks)).clone()?;
    library.function(name).map_err(lacks)
}
