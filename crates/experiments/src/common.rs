//! What experiments share.

use ascertain::experiment::{Accepts, Factor, Level, Unavailable};
use ascertain_sys::machine::Machine;

/// A factor, with words and a level of any kind.
pub fn factor(name: &str, about: &str, default: impl Into<Level>, accepts: Accepts) -> Factor {
    Factor { name: name.into(), about: about.into(), default: default.into(), accepts }
}

/// Whether an arm's data fit in memory beside everything else.
pub fn has_room(bytes: u64, machine: &Machine) -> Result<(), Unavailable> {
    let memory = machine.memory_bytes;
    match bytes > memory / 2 {
        true => Err(Unavailable(format!("{bytes} bytes are more than half of this machine's memory ({memory} bytes)"))),
        false => Ok(()),
    }
}
