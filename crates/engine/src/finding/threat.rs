//! Threats: properties of the machine or the run that may change times.

use serde::{Deserialize, Serialize};

use crate::experiment::Arm;

/// A property of the machine or the run that may change times. The times may then differ from the times of another run
/// or another machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Threat {
    /// The CPU's frequency depends on the load, because of its frequency governor.
    Governor {
        /// Name of the governor, such as `powersave`.
        governor: String,
    },
    /// The CPU may temporarily raise its frequency (turbo boost).
    Boost,
    /// `ASCERTAIN_CPU` limited the program to older instruction sets than the machine has.
    ForcedLevel {
        /// Name of the level, such as `avx2`.
        level: String,
    },
    /// The machine is a virtual machine, which may share its hardware with other virtual machines.
    VirtualMachine {
        /// Name of the hypervisor, such as `kvm`.
        hypervisor: String,
    },
    /// A control group limits the CPU time of this process.
    Quota {
        /// The limit, as a number of CPUs: 1.5 means 1.5 s of CPU time per second.
        cpus: f64,
    },
    /// Other work on the machine competes for the CPUs.
    Load {
        /// Load average over the last minute.
        load_1m: f64,
        /// Number of CPUs of the machine that are online.
        cpus: usize,
    },
    /// The measured programs have few CPUs, and share them with all other processes.
    FewCpus {
        /// Number of CPUs that this process may use.
        cpus: usize,
        /// Number of CPUs of the machine that are online. `None` in runs that did not record it.
        #[serde(default)]
        online: Option<usize>,
    },
    /// The clock advances in large steps, so it cannot measure short times.
    CoarseClock {
        /// Size of the clock's steps, in nanoseconds.
        step_ns: f64,
    },
    /// Reading the clock needs a system call, so it takes longer than on other machines.
    SlowClock {
        /// Name of the clock source, such as `hpet`.
        source: String,
    },
    /// The hypervisor gave CPU time to other virtual machines although this machine requested it (steal).
    Steal {
        /// Share of the requested CPU time that other virtual machines got, from 0 to 1.
        share: f64,
    },
    /// A command failed in some trials, but the run was told to ignore failures. The times in these trials are times of
    /// failed executions.
    IgnoredFailures {
        /// The command that failed.
        arm: Arm,
        /// The exit code of the command, if it was the same in all failures; else `None`.
        exit: Option<f64>,
        /// Number of trials in which the command failed.
        trials: usize,
        /// Total number of trials of the command.
        all: usize,
    },
    /// A command was stopped at its time limit in some trials.
    Stopped {
        /// The command that was stopped.
        arm: Arm,
        /// The time limit, in nanoseconds.
        limit_ns: f64,
        /// Number of trials in which the command was stopped.
        trials: usize,
        /// Total number of trials of the command.
        all: usize,
    },
    /// Other people recorded these figures on their machines. Ascertain did not measure them, and knows only the
    /// contents of the file.
    RecordedByOthers {
        /// Type of the machines, such as `c7g.16xlarge`.
        machine_type: String,
        /// Number of whole cores of such a machine; `None` if it is not known.
        cores: Option<u64>,
        /// Origin of the figures, with its licence if that is known.
        source: String,
    },
    /// Compared runtimes were built in different ways. Their difference may come from the build, and not from the
    /// version.
    UnlikeBuilds {
        /// The facts in which the builds differ.
        facts: Vec<UnlikeFact>,
    },
    /// The negative control differs between two runtimes, although its work is done by the same shared library. A cause
    /// outside of the runtimes then affects the comparison.
    ControlDiffers {
        /// The runtime whose control differs from the baseline's control.
        candidate: String,
        /// The runtime with which it is compared.
        baseline: String,
        /// The factor by which the control is faster in the candidate.
        ratio: f64,
    },
}

/// A fact in which compared builds differ, such as the compiler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnlikeFact {
    /// Name of the fact.
    pub fact: String,
    /// The different values, each with the names of the arms that have it.
    pub values: Vec<(String, Vec<String>)>,
}
