//! Sizes that are asked for and don't fit in memory: a mistake, said before anything is measured.

use std::slice;

use anyhow::bail;
use ascertain_engine::experiment::{Accepts, Arm, Experiment, Factor, Level};
use ascertain_engine::memory::{self, Shortage};
use ascertain_sys::machine::Machine;

/// Refuses an arm that the levels in `given`, which are factors' names, make too large for the machine.
pub fn check(experiment: &dyn Experiment, arm: &Arm, given: &[&str], machine: &Machine) -> anyhow::Result<()> {
    let sizes = Sizes { experiment, arm, machine };
    let Err(shortage) = sizes.fits(arm) else { return Ok(()) };
    // Not what was asked for, but what the experiment does anyway: this machine lacks the memory for it.
    let Some((factor, level)) = sizes.too_large(given) else { return Ok(()) };
    let name = &factor.name;
    let way_out = match sizes.largest(factor) {
        Some(largest) => format!("the largest that fits is {name}={largest}"),
        None if sizes.fits(&sizes.with(factor, factor.default.clone())).is_ok() => {
            format!("{name}={} fits", factor.default)
        }
        None => "take less of everything that --at names".into(),
    };
    bail!("--at {name}={level}: `{}` at {} {shortage}; {way_out}", experiment.spec().id, arm.point)
}

struct Sizes<'a> {
    experiment: &'a dyn Experiment,
    arm: &'a Arm,
    machine: &'a Machine,
}

impl<'a> Sizes<'a> {
    fn bytes(&self, arm: &Arm) -> u64 {
        self.experiment.memory_bytes(slice::from_ref(arm))
    }

    fn fits(&self, arm: &Arm) -> Result<(), Shortage> {
        memory::has_room(self.bytes(arm), self.machine)
    }

    fn with(&self, factor: &Factor, level: impl Into<Level>) -> Arm {
        Arm { point: self.arm.point.clone().with(&factor.name, level), ..self.arm.clone() }
    }

    /// The factor that was given and would be smaller by default; of several, the one that would need the least then.
    fn too_large(&self, given: &[&str]) -> Option<(&'a Factor, &'a Level)> {
        let factors = self.experiment.spec().factors.iter().filter(|factor| given.contains(&factor.name.as_str()));
        let by_default = factors.map(|factor| (self.bytes(&self.with(factor, factor.default.clone())), factor));
        let smaller = by_default.filter(|(bytes, _)| *bytes < self.bytes(self.arm));
        let (_, factor) = smaller.min_by_key(|(bytes, _)| *bytes)?;
        Some((factor, self.arm.point.get(&factor.name)?))
    }

    /// The largest whole number that fits.
    fn largest(&self, factor: &Factor) -> Option<u64> {
        let Accepts::Integers { min, max } = factor.accepts else { return None };
        let fits = |level: u64| self.fits(&self.with(factor, level)).is_ok();
        let (mut fitting, mut too_large) = (min, max);
        while fitting + 1 < too_large {
            let middle = fitting + (too_large - fitting) / 2;
            *if fits(middle) { &mut fitting } else { &mut too_large } = middle;
        }
        fits(fitting).then_some(fitting)
    }
}
