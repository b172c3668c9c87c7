//! Observations that limit the result of a cost calculation.

use serde::Serialize;

use crate::text::{counted, escape_controls, listed, quoted};

/// An observation that limits the result of a cost calculation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum CostFinding {
    /// Only one machine of a type was measured, so the result does not apply to other machines of this type.
    TheseMachinesOnly {
        /// The types of which only one machine was measured.
        machine_types: Vec<String>,
        /// `true` if this is so only for some of the workloads.
        is_partial: bool,
    },
    /// The runs measured programs that were built in different ways. A part of the difference may be an effect of the
    /// builds.
    UnlikeBuilds {
        /// The differences, as text.
        differences: Vec<String>,
    },
    /// Other people recorded the figures of a type.
    RecordedByOthers {
        /// Types of the machines.
        machine_types: Vec<String>,
        /// Origin of the figures.
        source: String,
    },
    /// A CPU of a type is only a part of a core, or it is unknown whether a CPU is a whole core.
    Cores {
        /// Types whose CPUs are whole cores.
        whole: Vec<String>,
        /// Types whose CPUs are parts of a core.
        parts: Vec<String>,
        /// Types whose number of cores is not known.
        unknown: Vec<String>,
    },
    /// Some workloads left CPUs idle. They pay only for the cores in use, or have no cost.
    PartLoad {
        /// Number of such workloads.
        workloads: u64,
        /// `true` if these workloads have no cost, because only full load was requested or because other workloads have
        /// full load.
        is_left_out: bool,
    },
    /// No workload kept all CPUs busy, so the cost of a machine under full load is unknown.
    NoFullLoad {
        /// `true` if only figures under full load were requested.
        is_required: bool,
        /// `true` if one of the types has such a figure, which has no counterpart.
        is_known_for_one: bool,
    },
    /// The number of threads was not recorded, so it is taken as 1.
    OneThreadAssumed {
        /// Number of CPUs that the work kept busy on average, if it was recorded.
        busy_cpus: Option<f64>,
    },
    /// Each run counts as a separate machine, because evidence does not identify machines.
    RunsAsMachines,
    /// Runs of different types come from machines that look alike.
    LookAlike {
        /// The two types.
        machine_types: [String; 2],
    },
    /// A workload was recorded for one of two types only, or under another load.
    Unmatched {
        /// The type that lacks the workloads.
        machine_type: String,
        /// Names of the workloads.
        workloads: Vec<String>,
    },
    /// Copies of a figure were counted once: the same value to six digits or more, for the same type and workload.
    Copies {
        /// Number of figures that were dropped.
        figures: u64,
    },
    /// A price is older than a year.
    OldPrice {
        /// The price file and the line.
        place: String,
        /// Type of the machine.
        machine_type: String,
        /// Date of the price.
        date: String,
        /// Age of the price, in days.
        days: u64,
    },
    /// A price has no date.
    UndatedPrice {
        /// The price file and the line.
        place: String,
        /// Type of the machine.
        machine_type: String,
    },
    /// A price has a date in the future.
    FuturePrice {
        /// The price file and the line.
        place: String,
        /// Type of the machine.
        machine_type: String,
        /// Date of the price.
        date: String,
    },
    /// There are fewer than three priced workloads, so there is no interval for other workloads.
    FewWorkloads {
        /// Number of priced workloads.
        workloads: u64,
    },
}

impl CostFinding {
    /// Returns the finding as a sentence, in which names are marked.
    pub(super) fn sentence(&self) -> String {
        let types = |names: &[String]| listed(&names.iter().map(|name| quoted(name)).collect::<Vec<_>>(), 6);
        match self {
            Self::TheseMachinesOnly { machine_types, is_partial } => {
                let names: Vec<String> = machine_types.iter().map(|name| quoted(name)).collect();
                let were = if names.len() == 1 { "was" } else { "were" };
                let some = if *is_partial { " for some workloads" } else { "" };
                format!(
                    "This is about these machines only: one machine of {} {were} measured{some}, and other machines \
                     may differ.",
                    names.join(" and one of ")
                )
            }
            Self::UnlikeBuilds { differences } => {
                let differences: Vec<String> = differences.iter().map(|text| escape_controls(text)).collect();
                format!(
                    "The builds that were measured are unlike: {}. A part of the difference may come from the builds, \
                     and not from the machines.",
                    listed(&differences, 6)
                )
            }
            Self::RecordedByOthers { machine_types, source } => format!(
                "Other people recorded the figures of {} ({source}); Ascertain did not measure them.",
                types(machine_types)
            ),
            Self::Cores { whole, parts, unknown } => cores(&types(whole), &types(parts), &types(unknown)),
            Self::PartLoad { workloads, is_left_out: true } => format!(
                "{} left CPUs idle and {} no cost, because the answer is about work that uses all CPUs.",
                counted(*workloads, "workload"),
                if *workloads == 1 { "has" } else { "have" }
            ),
            Self::PartLoad { workloads, is_left_out: false } => format!(
                "{} left CPUs idle. The cost is the cost of the cores in use, as if all other cores did as much work.",
                counted(*workloads, "workload")
            ),
            Self::NoFullLoad { is_required, is_known_for_one } => {
                let none = match is_known_for_one {
                    true => "No workload has figures under full load on both types",
                    false => "No figure under full load is known",
                };
                let so = match is_required {
                    true => {
                        ", so there is no cost: the speed with all CPUs busy can't be computed from the speed with \
                         fewer CPUs."
                    }
                    false => ". With all CPUs busy, the machines may be slower than computed here.",
                };
                format!("{none}{so}")
            }
            Self::OneThreadAssumed { busy_cpus } => {
                let busy = busy_cpus.filter(|cpus| *cpus >= 1.5);
                let busy = busy.map_or_else(String::new, |cpus| format!(", although it kept {cpus:.1} CPUs busy"));
                format!("The number of threads is not recorded; the work counts as one thread{busy}.")
            }
            Self::RunsAsMachines => {
                "Each run counts as a separate machine. If two runs come from the same machine, the intervals are too \
                 narrow."
                    .into()
            }
            Self::LookAlike { machine_types: [one, other] } => format!(
                "The runs of {} and {} come from machines that look alike: same processor, CPUs, memory and kernel. \
                 Check the types.",
                quoted(one),
                quoted(other)
            ),
            Self::Unmatched { machine_type, workloads } => format!(
                "{} has no comparable figure of {}: {}.",
                quoted(machine_type),
                counted(workloads.len() as u64, "workload"),
                types(workloads)
            ),
            Self::Copies { figures } => format!(
                "Left out {} of the file, because the same value is already there with another date or machine.",
                counted(*figures, "figure")
            ),
            Self::OldPrice { place, machine_type, date, days } => format!(
                "{place}: the price of {} dates from {date}, {} ago; look up the present price.",
                quoted(machine_type),
                match days / 365 {
                    1 => "over a year".to_string(),
                    years => format!("over {years} years"),
                }
            ),
            Self::UndatedPrice { place, machine_type } => {
                format!("{place}: the price of {} has no date, so it may be old.", quoted(machine_type))
            }
            Self::FuturePrice { place, machine_type, date } => {
                format!(
                    "{place}: the price of {} has the date {date}, which is in the future; check the date.",
                    quoted(machine_type)
                )
            }
            Self::FewWorkloads { workloads } => format!(
                "With {}, nothing can be stated about other workloads; that needs at least three workloads.",
                counted(*workloads, "workload")
            ),
        }
    }
}

/// Returns a sentence about the CPUs of all types. The arguments list the types whose CPUs are whole cores, are parts
/// of a core, or are unknown; each list may be empty.
fn cores(whole: &str, parts: &str, unknown: &str) -> String {
    let clauses = [
        (whole, "a CPU is a whole core"),
        (parts, "a CPU is only a part of a core"),
        (unknown, "the number of whole cores is not known"),
    ];
    let clauses = clauses.into_iter().filter(|(types, _)| !types.is_empty());
    let clauses: Vec<String> = clauses.map(|(types, fact)| format!("on {types}, {fact}")).collect();
    let sentence = clauses.join("; ");
    format!("{}.", crate::text::capitalised(&sentence))
}
