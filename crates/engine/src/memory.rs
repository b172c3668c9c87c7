//! Checks, before anything is measured, whether the data of the arms fits in memory.

use ascertain_sys::machine::Machine;
use serde::{Deserialize, Serialize};

use crate::experiment::{Arm, Experiment, Unavailable};
use crate::unit::Unit;

/// The error for a run that needs more than half of the memory. The other half is reserved for other processes and the
/// system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("needs {} of memory, more than half of the {} in total", with_bytes(*.needed_bytes), with_bytes(*.memory_bytes))]
pub struct Shortage {
    /// Memory that the data of the arms needs, in bytes.
    pub needed_bytes: u64,
    /// Memory of the machine, or the memory limit of its control group, in bytes.
    pub memory_bytes: u64,
}

/// Formats a size, followed by the exact number of bytes: `8.327 GB (8326799360 bytes)`.
fn with_bytes(bytes: u64) -> String {
    format!("{} ({bytes} bytes)", Unit::Byte.human(bytes as f64))
}

/// Checks that `needed_bytes` fit in memory. Succeeds if the size of the memory is unknown.
///
/// # Errors
/// If `needed_bytes` is more than half of the memory.
pub fn has_room(needed_bytes: u64, machine: &Machine) -> Result<(), Shortage> {
    match machine.memory_limit_bytes.unwrap_or(machine.memory_bytes) {
        0 => Ok(()),
        memory_bytes if needed_bytes <= memory_bytes / 2 => Ok(()),
        memory_bytes => Err(Shortage { needed_bytes, memory_bytes }),
    }
}

/// Checks that this machine has everything that measuring the arm needs, including the memory.
///
/// # Errors
/// Returns the reason why this machine cannot measure the arm, as text for the user.
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
