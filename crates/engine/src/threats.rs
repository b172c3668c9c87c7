//! What threatens a run's results.

use ascertain_sys::machine::{CpuTimes, Machine};

use crate::command::{CommandSet, EXIT, OnFailure, WALL};
use crate::finding::Threat;
use crate::observations::{ArmValues, Observations};
use crate::values::Bounds;

/// Steps from here on are called coarse.
const COARSE_STEP_NS: f64 = 100.0;
/// Clock sources that a program can read without a system call.
const FAST_CLOCKS: [&str; 5] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "tdx-tsc"];
/// A load below this share of the CPUs is that of a quiet machine.
const QUIET_LOAD: f64 = 0.25;
/// From this share of the wanted time on, what others got is worth a word.
const STEAL: f64 = 0.01;

/// What may make times on this machine differ from run to run or from other machines.
pub(crate) fn of_machine(machine: &Machine) -> Vec<Threat> {
    let governor = machine.governor.clone().filter(|name| name != "performance");
    let slow_clock = machine.clock_source.clone().filter(|name| !FAST_CLOCKS.contains(&name.as_str()));
    let few = (1..=2).contains(&machine.cpus_allowed);
    let is_loaded = machine.load_1m > QUIET_LOAD * machine.cpus_online as f64;
    let threats = [
        governor.map(|governor| Threat::Governor { governor }),
        (machine.boost == Some(true)).then_some(Threat::Boost),
        machine.virtualisation.clone().map(|hypervisor| Threat::VirtualMachine { hypervisor }),
        machine.cpu_quota.map(|cpus| Threat::Quota { cpus }),
        is_loaded.then_some(Threat::Load { load_1m: machine.load_1m, cpus: machine.cpus_online }),
        few.then_some(Threat::FewCpus { cpus: machine.cpus_allowed }),
        (machine.clock_step_ns >= COARSE_STEP_NS).then_some(Threat::CoarseClock { step_ns: machine.clock_step_ns }),
        slow_clock.map(|source| Threat::SlowClock { source }),
    ];
    threats.into_iter().flatten().collect()
}

/// The same of how the CPUs spent their time while a measurement was made; none where others got hardly any of it.
pub(crate) fn of_steal(times: CpuTimes) -> Option<Threat> {
    times.steal_share().filter(|share| *share >= STEAL).map(|share| Threat::Steal { share })
}

/// What a reader must know of commands whose failures were ignored, or that were stopped at their time limit: which
/// ones, how, and how often. Their times are figures like any other, but not of what the command was to do.
pub(crate) fn of_commands(sets: &[CommandSet], observations: &Observations) -> Vec<Threat> {
    let with_set = observations.arms().iter().filter_map(|values| {
        let set = sets.iter().find(|set| set.id == values.experiment)?;
        Some((values, set))
    });
    with_set.flat_map(|(values, set)| [ignored_failures(values, set), stopped(values, set)]).flatten().collect()
}

fn ignored_failures(values: &ArmValues, set: &CommandSet) -> Option<Threat> {
    let exits = values.by_metric.get(EXIT).filter(|_| set.on_failure == OnFailure::Ignore)?;
    // One that met its time limit has no exit code, and a time that says so.
    let failed: Vec<f64> = exits.iter().copied().filter(|exit| *exit != 0.0 && exit.is_finite()).collect();
    let first = *failed.first()?;
    let exit = failed.iter().all(|exit| *exit == first).then_some(first);
    Some(Threat::IgnoredFailures { arm: values.arm.clone(), exit, trials: failed.len(), all: exits.len() })
}

fn stopped(values: &ArmValues, set: &CommandSet) -> Option<Threat> {
    let times = values.by_metric.get(WALL)?;
    let limit_ns = set.time_limit?.as_nanos() as f64;
    let trials = (0..times.len()).filter(|&index| times.bounds(index) == Bounds::above(limit_ns)).count();
    (trials > 0).then(|| Threat::Stopped { arm: values.arm.clone(), limit_ns, trials, all: times.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Machine {
        Machine {
            cpus_online: 8,
            cpus_allowed: 8,
            governor: Some("performance".to_owned()),
            boost: Some(false),
            clock_source: Some("tsc".to_owned()),
            clock_step_ns: 10.0,
            load_1m: 0.3,
            ..Machine::default()
        }
    }

    #[test]
    fn a_quiet_machine_has_none() {
        assert_eq!(of_machine(&quiet()), []);
        assert_eq!(of_machine(&Machine::default()), []);
    }

    #[test]
    fn hardly_any_steal_is_none() {
        let times = |steal_ns| CpuTimes { busy_ns: 1_000, idle_ns: 5_000, steal_ns };
        assert_eq!(of_steal(times(10)), None);
        assert!(of_steal(times(11)).is_some());
        assert_eq!(of_steal(CpuTimes::default()), None);
    }

    #[test]
    fn each_threat_is_noticed_alone() {
        let some = |text: &str| Some(text.to_owned());
        let cases = [
            (Machine { governor: some("powersave"), ..quiet() }, Threat::Governor { governor: "powersave".into() }),
            (Machine { boost: Some(true), ..quiet() }, Threat::Boost),
            (Machine { virtualisation: some("kvm"), ..quiet() }, Threat::VirtualMachine { hypervisor: "kvm".into() }),
            (Machine { cpu_quota: Some(1.5), ..quiet() }, Threat::Quota { cpus: 1.5 }),
            (Machine { load_1m: 4.0, ..quiet() }, Threat::Load { load_1m: 4.0, cpus: 8 }),
            (Machine { cpus_allowed: 1, ..quiet() }, Threat::FewCpus { cpus: 1 }),
            (Machine { clock_step_ns: 4e6, ..quiet() }, Threat::CoarseClock { step_ns: 4e6 }),
            (Machine { clock_source: some("hpet"), ..quiet() }, Threat::SlowClock { source: "hpet".into() }),
        ];
        for (machine, threat) in cases {
            assert_eq!(of_machine(&machine), [threat]);
        }
    }
}
