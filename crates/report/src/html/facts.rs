//! The facts about a run: when, on which machine, and with which software.

use ascertain_engine::outcome::Outcome;
use ascertain_engine::recorded::{RecordedRun, State};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::{Cache, Machine};

use super::markup::Html;
use crate::figure::error_in_words;
use crate::text::{counted, grouped};

/// Returns the name and the text of each fact about a run, in display order.
pub(super) fn facts(run: &RecordedRun) -> Vec<(&'static str, Html)> {
    let header = &run.header;
    let machine = &run.outcome.machine;
    let text = |words: String| Html::text(&words);
    let rows = [
        ("Started", text(moment(&header.started))),
        ("State", text(state(run.state).into())),
        ("CPU", text(cpu(machine))),
        ("Caches", text(caches(&machine.caches))),
        ("Memory", text(memory(machine))),
        ("System", text(system(machine))),
        ("Clock", text(clock(machine))),
        ("Ascertain", text(format!("version {}", header.ascertain_version))),
        ("Seed", text(run.outcome.seed.to_string())),
        ("Error budget", text(budget(header.plan.config.error, &run.outcome))),
        ("Observations", text(grouped(run.rows))),
        ("Run", Html(format!("<code>{}</code>", Html::text(&header.run_id)))),
    ];
    rows.into_iter().filter(|(_, value)| !value.0.is_empty()).collect()
}

/// Writes a time for people: `2026-11-21T09:30:12.000Z` as "2026-11-21 09:30:12 UTC".
pub(super) fn moment(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(11..19)) {
        (Some(date), Some(time)) => format!("{date} {time} UTC"),
        _ => rfc3339.to_string(),
    }
}

/// Returns the facts about the machine that are most important for the results, in one line.
pub(super) fn in_short(machine: &Machine) -> String {
    let virtualisation = machine.virtualisation.as_ref().map(|hypervisor| format!("virtual machine ({hypervisor})"));
    let parts = [machine.cpu_model.clone(), counted(machine.cpus_allowed, "CPU"), machine.kernel.clone()];
    joined(parts.map(Some).into_iter().chain([virtualisation]))
}

fn state(state: State) -> &'static str {
    match state {
        State::Finished => "finished",
        State::Interrupted => "interrupted",
        State::Running => "still running",
        State::Killed => "killed before the end",
    }
}

/// Returns a notice if a run was interrupted, killed, or has not ended; `None` for a finished run.
pub(super) fn notice(state: State) -> Option<&'static str> {
    match state {
        State::Finished => None,
        State::Interrupted => Some(
            "This run was interrupted before its end. All of its trials are judged here; undecided claims might have \
             been decided later.",
        ),
        State::Running => Some(
            "This run has not ended. The page shows the trials that were recorded when the page was made; make the \
             page again to see later trials. Verdicts that were reached do not change.",
        ),
        State::Killed => Some(
            "This run was killed before its end. The recorded trials were judged again for this page; at most the last \
             second is lost.",
        ),
    }
}

fn cpu(machine: &Machine) -> String {
    let allowed = match (machine.cpus_allowed, machine.cpus_online) {
        (allowed, online) if allowed == online => counted(online, "CPU"),
        (allowed, online) => format!("{allowed} of {}", counted(online, "CPU")),
    };
    let quota = machine.cpu_quota.map(|quota| format!("a CPU quota of {quota} CPUs"));
    let governor = machine.governor.as_ref().map(|governor| format!("governor {governor}"));
    let boost = machine.boost.map(|on| if on { "boost on" } else { "boost off" }.to_string());
    let forced = machine.forced_level.as_ref().map(|level| format!("limited to the level {level}"));
    let parts = [Some(machine.cpu_model.clone()), Some(machine.architecture.clone()), forced, Some(allowed)];
    joined(parts.into_iter().chain([quota, governor, boost]))
}

fn caches(caches: &[Cache]) -> String {
    let cache = |cache: &Cache| {
        let kind = match cache.kind.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        let shared = if cache.shared_by > 1 { format!(", shared by {}", cache.shared_by) } else { String::new() };
        Some(format!("L{}{kind} {}{shared}", cache.level, binary(cache.size_bytes)))
    };
    caches.iter().filter_map(cache).collect::<Vec<_>>().join("; ")
}

/// Writes the size of a cache with a binary prefix, because most sizes are powers of two.
fn binary(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

fn memory(machine: &Machine) -> String {
    let bytes = |bytes: u64| Unit::Byte.human(bytes as f64);
    let limit = machine.memory_limit_bytes.map(|limit| format!("limited to {}", bytes(limit)));
    joined([Some(machine.memory_bytes).filter(|&all| all > 0).map(bytes), limit])
}

fn system(machine: &Machine) -> String {
    let virtualisation = match &machine.virtualisation {
        Some(hypervisor) => format!("virtual machine ({hypervisor})"),
        None => "no virtual machine detected".into(),
    };
    let container = machine.container.as_ref().map(|manager| format!("container ({manager})"));
    joined([Some(machine.os.clone()), Some(machine.kernel.clone()), Some(virtualisation), container])
}

fn clock(machine: &Machine) -> String {
    let step = (machine.clock_step_ns > 0.0)
        .then(|| format!("steps of {}", Unit::Nanosecond.exact((machine.clock_step_ns * 10.0).round() / 10.0)));
    joined([machine.clock_source.clone(), step])
}

fn budget(error: f64, outcome: &Outcome) -> String {
    let claims = match outcome.claims.len() {
        0 => return "nothing was judged".into(),
        1 => "its one verdict".to_string(),
        n => format!("any of the {n} verdicts"),
    };
    format!("{}: the highest chance that {claims} is wrong", error_in_words(error))
}

fn joined(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_sizes_are_for_people() {
        assert_eq!(moment("2026-11-21T09:30:12.000Z"), "2026-11-21 09:30:12 UTC");
        assert_eq!(moment("then"), "then");
        assert_eq!([48 << 10, 2 << 20, 1000].map(binary), ["48 KiB", "2 MiB", "1000 B"]);
    }
}
