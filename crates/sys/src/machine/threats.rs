//! What threatens a measurement on a machine.

use super::{CpuTimes, Machine};

/// Steps from here on are called coarse.
const COARSE_STEP_NS: f64 = 100.0;
/// Clock sources that a program can read without a system call.
const FAST_CLOCKS: [&str; 5] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "tdx-tsc"];
/// A load below this share of the CPUs is that of a quiet machine.
const QUIET_LOAD: f64 = 0.25;
/// From this share of the wanted time on, what others got is worth a word.
const STEAL: f64 = 0.01;

/// What may make times on this machine differ from run to run or from other machines, each as a
/// plain sentence; empty if nothing is known.
///
/// ```
/// use ascertain_sys::machine::{Machine, threats};
///
/// let machine = Machine { cpus_online: 8, cpus_allowed: 8, load_1m: 6.0, ..Machine::default() };
/// assert_eq!(threats(&machine), ["The load is 6.0 on 8 CPUs: other work competes for them."]);
/// ```
#[must_use]
pub fn threats(machine: &Machine) -> Vec<String> {
    let mut threats = Vec::new();
    if let Some(governor) = machine.governor.as_deref().filter(|name| *name != "performance") {
        threats.push(format!(
            "The CPU's frequency governor is `{governor}`, not `performance`: its speed changes \
             with the load."
        ));
    }
    if machine.boost == Some(true) {
        threats
            .push("The CPU may boost its frequency: its speed depends on heat and on what other cores do.".to_owned());
    }
    if let Some(hypervisor) = &machine.virtualisation {
        threats.push(format!(
            "This is a virtual machine ({hypervisor}): neighbours share its CPUs, caches and \
             memory, and steal time shows only a part of that."
        ));
    }
    if let Some(cpus) = machine.cpu_quota {
        threats.push(format!(
            "A control group grants {cpus} CPUs' worth of time: whoever has used that up is \
             stopped until the next period."
        ));
    }
    if machine.load_1m > QUIET_LOAD * machine.cpus_online as f64 {
        threats.push(format!(
            "The load is {:.1} on {}: other work competes for them.",
            machine.load_1m,
            cpus(machine.cpus_online)
        ));
    }
    if (1..=2).contains(&machine.cpus_allowed) {
        threats.push(format!(
            "Only {} may be used: what is measured shares them with everything else.",
            cpus(machine.cpus_allowed)
        ));
    }
    if machine.clock_step_ns >= COARSE_STEP_NS {
        threats.push(format!("The clock moves in steps of {} ns: shorter times can't be told.", machine.clock_step_ns));
    }
    if let Some(source) = machine.clock_source.as_deref().filter(|name| !FAST_CLOCKS.contains(name)) {
        threats.push(format!("The clock source is `{source}`: reading it takes a system call."));
    }
    threats
}

/// The same of how the CPUs spent their time while a measurement was made; none where others got hardly any of it.
///
/// ```
/// use ascertain_sys::machine::{CpuTimes, steal};
///
/// let times = CpuTimes { busy_ns: 9_000_000_000, idle_ns: 0, steal_ns: 1_000_000_000 };
/// let threat = "The hypervisor gave 10 % of the CPU time that was wanted during the run to others (steal).";
/// assert_eq!(steal(times).as_deref(), Some(threat));
/// ```
#[must_use]
pub fn steal(times: CpuTimes) -> Option<String> {
    let share = times.steal_share().filter(|share| *share >= STEAL)?;
    let percent = (100.0 * share).round();
    Some(format!("The hypervisor gave {percent} % of the CPU time that was wanted during the run to others (steal)."))
}

fn cpus(count: usize) -> String {
    if count == 1 { "1 CPU".to_owned() } else { format!("{count} CPUs") }
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
        assert_eq!(threats(&quiet()), [""; 0]);
        assert_eq!(threats(&Machine::default()), [""; 0]);
    }

    #[test]
    fn hardly_any_steal_is_none() {
        let times = |steal_ns| CpuTimes { busy_ns: 1_000, idle_ns: 5_000, steal_ns };
        assert_eq!(steal(times(10)), None);
        assert!(steal(times(11)).is_some());
        assert_eq!(steal(CpuTimes::default()), None);
    }

    #[test]
    fn each_threat_is_one_sentence_that_names_it() {
        let some = |text: &str| Some(text.to_owned());
        let cases = [
            (Machine { governor: some("powersave"), ..quiet() }, "`powersave`"),
            (Machine { boost: Some(true), ..quiet() }, "boost"),
            (Machine { virtualisation: some("kvm"), ..quiet() }, "kvm"),
            (Machine { cpu_quota: Some(1.5), ..quiet() }, "1.5 CPUs' worth"),
            (Machine { load_1m: 4.0, ..quiet() }, "4.0 on 8 CPUs"),
            (Machine { cpus_allowed: 1, ..quiet() }, "Only 1 CPU "),
            (Machine { clock_step_ns: 4e6, ..quiet() }, "4000000 ns"),
            (Machine { clock_source: some("hpet"), ..quiet() }, "`hpet`"),
        ];
        for (machine, words) in cases {
            let found = threats(&machine);
            assert_eq!(found.len(), 1, "{words}: {found:?}");
            assert!(found[0].contains(words) && found[0].ends_with('.'), "{found:?}");
        }
    }
}
