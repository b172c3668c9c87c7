//! Whether what is to be measured fits in memory, asked before anything is measured.

use ascertain_sys::machine::Machine;
use serde::{Deserialize, Serialize};

use crate::experiment::{Arm, Experiment, Unavailable};
use crate::unit::Unit;

/// More memory than a run may take: half of what there is, so that the rest of the machine can go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("needs {} of memory, more than half of the {} that there are", said(*.needed_bytes), said(*.memory_bytes))]
pub struct Shortage {
    /// What would be needed.
    pub needed_bytes: u64,
    /// What there is: the machine's, or what its control group may have of that.
    pub memory_bytes: u64,
}

/// `8.327 GB (8326799360 bytes)`.
fn said(bytes: u64) -> String {
    format!("{} ({bytes} bytes)", Unit::Byte.human(bytes as f64))
}

/// Whether there is room for so many bytes. Where the machine does not tell what it has, there is.
///
/// # Errors
/// When they are more than half of the memory.
pub fn has_room(needed_bytes: u64, machine: &Machine) -> Result<(), Shortage> {
    match machine.memory_limit_bytes.unwrap_or(machine.memory_bytes) {
        0 => Ok(()),
        memory_bytes if needed_bytes <= memory_bytes / 2 => Ok(()),
        memory_bytes => Err(Shortage { needed_bytes, memory_bytes }),
    }
}

/// Whether this machine can measure the arm: it has the memory, and whatever else the experiment asks for.
///
/// # Errors
/// The reason why not, for people.
pub fn available(experiment: &dyn Experiment, arm: &Arm, machine: &Machine) -> Result<(), Unavailable> {
    let needed_bytes = experiment.memory_bytes(std::slice::from_ref(arm));
    has_room(needed_bytes, machine).map_err(Unavailable::Memory)?;
    experiment.available(arm, machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_half_of_the_memory() {
        let machine = Machine { memory_bytes: 1000, ..Machine::default() };
        assert_eq!(has_room(500, &machine), Ok(()));
        assert_eq!(has_room(501, &machine), Err(Shortage { needed_bytes: 501, memory_bytes: 1000 }));
        let limited = Machine { memory_limit_bytes: Some(100), ..machine };
        assert_eq!(has_room(51, &limited), Err(Shortage { needed_bytes: 51, memory_bytes: 100 }));
    }

    #[test]
    fn a_machine_that_does_not_tell_is_not_full() {
        assert_eq!(has_room(1 << 40, &Machine::default()), Ok(()));
    }
}
