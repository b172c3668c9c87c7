//! Reasons, warnings and remarks of the engine as text.

use ascertain_engine::claim::Judging;
use ascertain_engine::finding::{Dissent, EndedBy, Estimated, Least, Reason, Remark, Threat, Unlike};
use ascertain_engine::outcome::{ClaimResult, Decision};
use ascertain_engine::unit::{Unit, significant};

use crate::text::{counted, escape_controls, grouped, sorted};
use crate::{outlook, stores, suite};

/// The shortest time that a message recommends as `--max-time` or `--for`, in nanoseconds. If a verdict needs less time than this,
/// the time limit was not the reason why the run ended, so the message names no time.
const SLOW_NS: f64 = 2e9;

/// Returns a reason without the numbers that differ between claims, so that claims can be grouped by reason.
pub(crate) fn kind(found: &Reason) -> String {
    match found {
        // The time that each claim needs is printed next to the claim.
        Reason::TooLong { .. } => "the fewest trials that a verdict needs do not fit in the time".into(),
        Reason::TooEarly { most_trials: None, is_interrupted: true, .. } => {
            "interrupted before there were enough trials for a verdict".into()
        }
        Reason::TooEarly { most_trials: None, ended_by, .. } => match ended_by {
            EndedBy::Limit => "too few trials for a verdict; allow more time with --max-time".into(),
            EndedBy::Duration => "too few trials for a verdict; measure for a longer time with --for".into(),
            EndedBy::Early => "the run ended before there were enough trials for a verdict".into(),
        },
        Reason::TooEarly { .. } => "the limit on trials is too low for a verdict".into(),
        found => reason(found),
    }
}

/// For claims that did not fit in the run's time, returns the time that they need: "alone it needs 12 s", "alone each
/// needs 12 s to 3 min". `None` if there are no such claims.
pub(crate) fn needed<'a>(reasons: impl Iterator<Item = &'a Reason>) -> Option<String> {
    let needed_s = reasons.filter_map(|found| match found {
        Reason::TooLong { needed_ns, run_ns, .. } => Some((needed_ns / 1e9, *run_ns)),
        _ => None,
    });
    let (all_s, runs_ns): (Vec<f64>, Vec<Option<f64>>) = needed_s.unzip();
    let all_s = sorted(all_s, |seconds| *seconds);
    let (least, most) = (outlook::span(*all_s.first()?), outlook::span(*all_s.last()?));
    let takes = match all_s.len() {
        1 => format!("it needs {least}"),
        _ if least == most => format!("each needs {least}"),
        _ => format!("each needs {least} to {most}"),
    };
    // All claims have the same time of the run.
    let way_out = match runs_ns.into_iter().flatten().next() {
        Some(run_ns) => format!("use `--max-time {}` or more", outlook::allowance(run_ns / 1e9)),
        None => format!("use more than `--max-time {}`", outlook::allowance(*all_s.last()?)),
    };
    Some(format!("alone {takes}; {way_out}"))
}

/// Returns the reason why a claim has no verdict, or why an arm was not measured. The text does not name the arm:
/// "needs neon, which this CPU lacks".
pub(crate) fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Unavailable { lack, .. } => lack.to_string(),
        Reason::Failed { is_wrong: true, how, .. } => format!("wrong answer: {how}"),
        Reason::Failed { how, .. } => how.clone(),
        Reason::TimeUp { was_tried: true, .. } => {
            "the time ran out before its turn; allow more time with --max-time".to_string()
        }
        Reason::TimeUp { was_tried: false, all_tried_ns } => {
            let way_out = |ns: &f64| {
                let (about, time) = (span_ns(*ns), outlook::allowance(2.0 * ns / 1e9));
                format!("trying all arms takes about {about}: use `--max-time {time}` or more")
            };
            let way_out = all_tried_ns.as_ref().map_or_else(|| "allow more time with --max-time".into(), way_out);
            format!("the time ran out before it was tried; {way_out}")
        }
        Reason::TooLong { needed_ns, trials, at_error, run_ns } => {
            let trials = counted(*trials, "trial");
            let easier = at_error.map_or_else(String::new, |at| outlook::at_error(at, "trial"));
            let (needed, way_out) = (span_ns(*needed_ns), max_time(*needed_ns, run_ns.unwrap_or(*needed_ns)));
            format!("a verdict needs at least {trials}, {needed}{way_out}{easier}")
        }
        Reason::TooEarly { least, most_trials, is_interrupted, is_shared, ended_by, run_ns } => {
            let way_out = match most_trials {
                Some(most) => format!(", but only {most} were allowed"),
                // A user who interrupted the run did not want to wait, so the advice is not to allow more time. Another
                // message explains how to continue.
                None if *is_interrupted => ", but the run was interrupted".into(),
                None => more_time(least, *is_shared, *ended_by, *run_ns),
            };
            format!("{}{way_out}", outlook::needed(least))
        }
        Reason::Withdrawn { verdict, decision, trials } => {
            let said = decision.map_or_else(|| verdict.word(), Decision::word);
            format!(
                "the results changed during the run: after {trials} trials the answer was \u{201c}{said}\u{201d}, but \
                 later trials contradict this answer, so it is withdrawn"
            )
        }
        Reason::BothStopped { pairs, all } => format!(
            "in {pairs} of {all} pairs, both commands were stopped at their time limits; longer limits would show \
             which \
             command is faster"
        ),
        Reason::LeftOpen { trials, has_met_limit: false, .. } => match trials {
            1 => "the interrupted trial has no result and counts against both possible answers".into(),
            _ => format!("the {trials} interrupted trials have no result and count against both possible answers"),
        },
        Reason::LeftOpen { trials, all, .. } => {
            let [they, count] = if *trials == 1 { ["it has", "counts"] } else { ["they have", "count"] };
            format!(
                "{trials} of {all} trials reached the time limit, so {they} no outcome and {count} against both \
                 possible answers; a longer limit would show more"
            )
        }
        Reason::UnfinishedSet { trials, measured } if measured >= trials => {
            format!(
                "trials are judged in sets of {trials}, and it is unknown which of the last {measured} are in one set"
            )
        }
        Reason::UnfinishedSet { trials, measured } => {
            format!("trials are judged in sets of {trials}, and the last set has only {measured}")
        }
    }
}

/// Returns the clause with the option that gives a claim enough time for a verdict.
fn more_time(least: &Least, is_shared: bool, ended_by: EndedBy, run_ns: Option<f64>) -> String {
    let slow_ns = least.takes_ns.filter(|takes_ns| run_ns.unwrap_or(*takes_ns) >= SLOW_NS);
    match (ended_by, slow_ns, run_ns) {
        (EndedBy::Early, ..) => ", but the run ended before that".into(),
        (EndedBy::Duration, None, _) => "; measure for a longer time with --for".into(),
        (EndedBy::Duration, Some(own_ns), _) => format!("; use `--for {}` or more", outlook::allowance(own_ns / 1e9)),
        (EndedBy::Limit, None, _) => "; allow more time with --max-time".into(),
        (EndedBy::Limit, Some(own_ns), _) if least.verdict.is_none() => {
            format!("; use {}", outlook::ways_out(&Least { takes_ns: run_ns.or(Some(own_ns)), ..*least }))
        }
        (EndedBy::Limit, Some(own_ns), Some(run_ns)) => max_time(own_ns, run_ns),
        // Older versions did not record the time that all claims need together.
        (EndedBy::Limit, Some(own_ns), None) if is_shared => format!(
            " for this claim alone; other claims share the time, so use more than `--max-time {}`",
            outlook::allowance(own_ns / 1e9)
        ),
        (EndedBy::Limit, Some(own_ns), None) => max_time(own_ns, own_ns),
    }
}

/// Returns the clause with the time limit of a run that needs `run_ns` for all claims, and `own_ns` for this one.
fn max_time(own_ns: f64, run_ns: f64) -> String {
    let [own, of_run] = [own_ns, run_ns].map(|ns| outlook::allowance(ns / 1e9));
    let together = if own == of_run { "" } else { "for all claims, " };
    format!("; {together}use `--max-time {of_run}` or more")
}

/// Returns the reasons why a claim has no verdict; `None` if it has one. Each begins with the arm, unless the reason
/// names it: "`sleep x` ended with exit code 1", not "sleep x: `sleep x` ended …".
pub(crate) fn reasons(claim: &ClaimResult) -> Option<String> {
    all(claim.reasons.iter())
}

/// Returns the reasons why a claim has no verdict as two texts: the reason that there are too few trials, and all other
/// reasons. Each is `None` if there is no such reason.
pub(crate) fn early_and_others(claim: &ClaimResult) -> [Option<String>; 2] {
    let is_early = |found: &&Reason| matches!(found, Reason::TooEarly { .. });
    [all(claim.reasons.iter().filter(is_early)), all(claim.reasons.iter().filter(|found| !is_early(found)))]
}

fn all<'a>(reasons: impl Iterator<Item = &'a Reason>) -> Option<String> {
    let said = reasons.map(|found| match found {
        Reason::Failed { arm: Some(arm), line: Some(line), .. } if arm.to_string() == *line => reason(found),
        Reason::Unavailable { arm: Some(arm), .. } | Reason::Failed { arm: Some(arm), .. } => {
            format!("{arm}: {}", reason(found))
        }
        _ => reason(found),
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// Returns in words how the trials of a claim differ from each other, for example because the rate changed.
pub(crate) fn unlike(sign: &Unlike, claim: &ClaimResult) -> String {
    let percent = |share: &f64| share * 100.0;
    match sign {
        Unlike::NoneFits { of } => {
            format!("the {0} changed during the run: no single {0} fits all trials", estimated(*of))
        }
        Unlike::Left { of } => {
            format!(
                "the {} changed during the run: it is now outside the interval of the earlier trials",
                estimated(*of)
            )
        }
        Unlike::Interferes { after_candidate, after_baseline } => format!(
            "a trial affects the next trial: the candidate won {:.0} % of the trials if it had run last in the \
             previous trial, and {:.0} % if the reference had run last",
            percent(after_candidate),
            percent(after_baseline)
        ),
        Unlike::Neighbours { correlation } => {
            let how = if *correlation > 0.0 { "similar" } else { "opposite" };
            format!("neighbouring trials tend to be {how} (lag-1 correlation {correlation:.2})")
        }
        Unlike::Drifts { early, late } => format!(
            "the results changed during the run: {} {:.1} % of the first half of the trials, and {:.1} % of the \
             second half",
            if claim.asked.judging == Judging::Order { "the candidate won" } else { "the claim was true in" },
            percent(early),
            percent(late)
        ),
    }
}

fn estimated(of: Estimated) -> &'static str {
    match of {
        Estimated::Rate => "rate",
        Estimated::Ratio => "ratio",
        Estimated::Difference => "difference",
    }
}

/// Returns a remark about an arm, in lower case for the middle of a sentence: "3 of 4 servers agree; ns2 has answered
/// "old" for 12 s".
pub(crate) fn remark(remark: &Remark) -> String {
    let time = |ns: u64| span_ns(ns as f64);
    match remark {
        Remark::Agreement { agree, all, after_ns, .. } if agree == all => {
            let of_all = if *all == 1 { "the server agrees".into() } else { format!("all {all} servers agree") };
            match (*after_ns, *all) {
                (0, _) => format!("{of_all}, from the beginning"),
                (_, 1) => format!("{of_all} after {}", time(*after_ns)),
                (_, _) => format!("{of_all}, the last of them after {}", time(*after_ns)),
            }
        }
        Remark::Agreement { agree, all, others, .. } => {
            let other = |Dissent { server, says, for_ns }: &Dissent| match says {
                Some(says) => format!("; {server} has answered {says} for {}", time(*for_ns)),
                None => format!("; {server} has not answered for {}", time(*for_ns)),
            };
            let others: String = others.iter().map(other).collect();
            let of_all = if *all == 1 { "1 server agrees".into() } else { format!("{all} servers agree") };
            format!("{agree} of {of_all}{others}")
        }
        Remark::Done { changes, before_ns, low_ns, high_ns } => {
            let of_changes = if *changes > 1 { format!(" in {changes} changes") } else { String::new() };
            format!("done was reported {}{of_changes}", done(*before_ns, *low_ns, *high_ns))
        }
        Remark::Held { server, held_ns } => format!(
            "{server} had the change {} before all other servers, because its NOTIFY was delayed (Knot delays NOTIFY \
             by a \
             second)",
            span_ns(*held_ns)
        ),
        Remark::Limited { servers, interval_ns } => {
            let server = |(server, interval_ns): &(String, u64)| format!("{server} every {}", time(*interval_ns));
            format!(
                "servers that limit how often they answer, as NSD does, were queried less often: each port queried {}, \
                 and all other servers every {}",
                servers.iter().map(server).collect::<Vec<_>>().join(" and "),
                time(*interval_ns)
            )
        }
        Remark::FewPorts { server, replicas, ports, chance } => format!(
            "{server} may have more than {}, and an unseen replica may get the change later. If {} replicas share the \
             queries equally, {ports} ports miss a replica in {} of 100 changes; use more `ports`",
            if *replicas == 1 { "1 replica".into() } else { format!("the {replicas} replicas seen") },
            replicas + 1,
            significant(chance * 100.0)
        ),
        Remark::Flights { body_bytes, compression, flights, first_segments, expected_segments, trim_bytes } => {
            let bytes = |count: u64| format!("{} {}", grouped(count), if count == 1 { "byte" } else { "bytes" });
            let body = bytes(*body_bytes);
            let compressed = compression.as_ref().map_or_else(String::new, |by| format!(" (compressed by {by})"));
            let first = counted(*first_segments, "segment");
            if *flights < 2 {
                return format!("in the last trial the page's {body}{compressed} came in one flight of {first}");
            }
            // A segment is not always full. For example, each TLS ticket has its own segment.
            let differs = match expected_segments {
                expected if expected.abs_diff(*first_segments) <= 2 => String::new(),
                expected => format!(" (expected: {expected})"),
            };
            format!(
                "trim {} of the page's {body}{compressed} to save a round trip: in the last trial the page came in \
                 {flights} flights, and the first had {first}{differs}",
                bytes(*trim_bytes)
            )
        }
        Remark::NoAddress { servers } => {
            let have = if servers.len() == 1 { "has" } else { "have" };
            format!("{} {have} no address to send queries to", servers.join(", "))
        }
        Remark::Overload { limited, trials, wanted_per_s, sent_per_s, late_ns, refused } => {
            let mut reasons = Vec::new();
            if *sent_per_s < 0.99 * wanted_per_s || *refused == 0 && *late_ns == 0.0 {
                let [sent, wanted] = [*sent_per_s, *wanted_per_s].map(significant);
                reasons.push(format!("only {sent} of {wanted} requests per second were sent"));
            }
            if *late_ns > 0.0 {
                reasons.push(format!("1 % of the requests were sent {} or more too late", span_ns(*late_ns)));
            }
            if *refused > 0 {
                reasons.push(format!("the system refused to send {}", counted(*refused, "request")));
            }
            format!(
                "in {limited} of {} this machine could not send requests on schedule, so the figures are not about the \
                 server alone; in the last of these trials, {}",
                counted(*trials, "trial"),
                reasons.join(", and ")
            )
        }
        Remark::RecognisesNull { null, neutral } => {
            let work = match (null.read_bytes, neutral.read_bytes) {
                (Some(null), Some(neutral)) if null < neutral => {
                    format!("it read {} bytes instead of {}", grouped(null), grouped(neutral))
                }
                _ => format!("it took {} of CPU time instead of {}", time(null.cpu_ns), time(neutral.cpu_ns)),
            };
            format!("it does less work if its output goes to /dev/null: in one trial {work}; leave out --output null")
        }
        Remark::Failure { said } => format!("its first failure printed `{said}`"),
        Remark::NoFigure { how } => format!("in the last trial that gave no figure, the command {how}"),
        Remark::Crossover { .. }
        | Remark::Incomplete { .. }
        | Remark::Limits { .. }
        | Remark::Scaling { .. }
        | Remark::Faults { .. }
        | Remark::Bill { .. } => stores::remark(remark),
        Remark::FailedWorkloads { .. }
        | Remark::StartsAnother(_)
        | Remark::ScriptRuntime { .. }
        | Remark::PrintedErrors { .. }
        | Remark::UnstableOutput { .. }
        | Remark::Processes { .. }
        | Remark::MoreWorkloads { .. } => suite::remark(remark),
    }
}

/// Returns the time between the report "done" and the moment when the last server had the change, with its interval.
/// For example: "0.5 s (0.4 s to 0.6 s) before the last server had the change". The arguments are positive if the
/// report came before this moment, and negative if it came later. `high_ns` is `None` if it is unknown. If the interval
/// contains 0, the text says "before" or "after" for each end of the interval.
fn done(before_ns: f64, low_ns: f64, high_ns: Option<f64>) -> String {
    let side = |ns: f64| if ns < 0.0 { "after" } else { "before" };
    let [before, low, high] = [before_ns, low_ns, high_ns.unwrap_or(0.0)].map(|ns| span_ns(ns.abs()));
    let last = "the last server had the change";
    match high_ns {
        None if low_ns < 0.0 => format!("at most {low} after {last}, or before it"),
        None => format!("{low} or more before {last}"),
        Some(high_ns) if side(low_ns) == side(high_ns) => {
            // The end of the interval that is nearer to zero comes first.
            let [near, far] = if low_ns < 0.0 { [high, low] } else { [low, high] };
            format!("{before} ({near} to {far}) {} {last}", side(before_ns))
        }
        Some(_) => {
            format!("{before} {} {last} (at most {low} after it, and at most {high} before it)", side(before_ns))
        }
    }
}

/// Writes a time in words: "840 ms", "4 min 12 s".
fn span_ns(ns: f64) -> String {
    outlook::span(ns / 1e9)
}

/// Returns a threat to the results of a run as two clauses: the fact and its consequence.
pub(crate) fn threat(threat: &Threat) -> (String, &'static str) {
    match threat {
        Threat::Governor { governor } => (
            format!("The CPU's frequency governor is `{governor}`, not `performance`"),
            "its speed changes with the load",
        ),
        Threat::Boost => {
            ("The CPU may boost its frequency".into(), "its speed depends on heat and on what other cores do")
        }
        Threat::ForcedLevel { level } => (
            format!("ASCERTAIN_CPU limited this program to the level `{level}`"),
            "without this limit, it may use faster instructions of this machine",
        ),
        Threat::VirtualMachine { hypervisor } => (
            format!("This is a virtual machine ({hypervisor})"),
            "neighbours share its CPUs, caches and memory, and steal time shows only a part of that",
        ),
        Threat::Quota { cpus } => (
            format!("A control group limits the CPU time to the time of {cpus} CPUs"),
            "a process that has used it up is stopped until the next period",
        ),
        Threat::Load { load_1m, cpus } => {
            (format!("The load is {load_1m:.1} on {}", counted(*cpus, "CPU")), "other work competes for them")
        }
        Threat::FewCpus { cpus, online } => {
            let fact = match online {
                Some(online) if online == cpus => format!("This machine has only {}", counted(*cpus, "CPU")),
                Some(online) => format!("Only {cpus} of {} may be used", counted(*online, "CPU")),
                None => format!("Only {} may be used", counted(*cpus, "CPU")),
            };
            (fact, "other processes compete for the same CPU time")
        }
        Threat::CoarseClock { step_ns } => {
            (format!("The clock moves in steps of {step_ns} ns"), "shorter times can't be measured")
        }
        Threat::SlowClock { source } => (format!("The clock source is `{source}`"), "reading it takes a system call"),
        Threat::Steal { share } => {
            let percent = (100.0 * share).round();
            let fact = "of the CPU time that this machine needed during the run (steal)";
            (format!("The hypervisor withheld {percent} % {fact}"), "")
        }
        Threat::IgnoredFailures { arm, exit, trials, all } => {
            // Shells and the metric `exit` add 128 to the number of the signal that killed a command.
            let code = match exit {
                None => "an exit code other than 0".to_owned(),
                Some(status) if *status > 128.0 => {
                    format!("status {status}, which stands for signal {},", status - 128.0)
                }
                Some(status) => format!("exit code {status}"),
            };
            let fact = format!("`{arm}` ended with {code} in {trials} of {}", counted(*all, "trial"));
            (fact, "its measured times include failed runs")
        }
        Threat::RecordedByOthers { machine_type, source, .. } => (
            format!("Other people recorded these figures on `{machine_type}` ({source})"),
            "Ascertain did not measure them, and can't check the conditions",
        ),
        Threat::Stopped { arm, limit_ns, trials, all } => {
            let limit = Unit::Nanosecond.exact(*limit_ns);
            let fact =
                format!("`{arm}` was stopped at its time limit of {limit} in {trials} of {}", counted(*all, "trial"));
            (fact, "the full times of these trials are unknown")
        }
        Threat::UnlikeBuilds { facts } => {
            (suite::unlike_builds(facts), "a difference may come from the build, and not from the version")
        }
        Threat::ControlDiffers { candidate, baseline, ratio } => {
            let times = significant(*ratio);
            (
                format!("The negative control is {times} times as fast in `{candidate}` as in `{baseline}`"),
                "its work is done by the same library, so something outside of the runtimes differs",
            )
        }
    }
}

/// Returns the threat as a whole sentence.
pub(crate) fn threat_sentence(found: &Threat) -> String {
    match threat(found) {
        (fact, "") => format!("{fact}."),
        (fact, so) => format!("{fact}: {so}."),
    }
}

/// Returns the threats as clauses, without their consequences. The facts about the machine and its load form one
/// clause: "this is a virtual machine (kvm) with only 2 CPUs, and its load is 3.6".
pub(crate) fn threat_facts(threats: &[Threat]) -> Vec<String> {
    let is_small = |threat: &Threat| matches!(threat, Threat::FewCpus { cpus, online } if *online == Some(*cpus));
    let small = threats.iter().find(|threat| is_small(threat));
    let mut facts = Vec::new();
    if let Some(small @ Threat::FewCpus { cpus, .. }) = small {
        let virtual_machine = threats.iter().find(|threat| matches!(threat, Threat::VirtualMachine { .. }));
        let mut fact = match virtual_machine {
            Some(found) => format!("{} with only {}", threat_fact(found), counted(*cpus, "CPU")),
            None => threat_fact(small),
        };
        for threat in threats {
            if let Threat::Load { load_1m, .. } = threat {
                fact += &format!(", and its load is {load_1m:.1}");
            }
        }
        facts.push(fact);
    }
    let is_said = |threat: &Threat| {
        let is_of_machine =
            matches!(threat, Threat::VirtualMachine { .. } | Threat::FewCpus { .. } | Threat::Load { .. });
        small.is_some() && is_of_machine
    };
    facts.extend(threats.iter().filter(|threat| !is_said(threat)).map(threat_fact));
    facts
}

/// Returns the fact of a threat as a clause, without its consequence.
fn threat_fact(found: &Threat) -> String {
    let fact = escape_controls(&threat(found).0);
    let mut chars = fact.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn done_is_on_the_right_side_of_the_last_server() {
        let said = |before_ns, low_ns, high_ns| {
            remark(&Remark::Done { changes: 1, before_ns, low_ns, high_ns })
                .replace(" the last server had the change", "")
        };
        assert_eq!(said(5e8, 4e8, Some(6e8)), "done was reported 500 ms (400 ms to 600 ms) before");
        assert_eq!(said(-5e8, -6e8, Some(-4e8)), "done was reported 500 ms (400 ms to 600 ms) after");
        assert_eq!(
            said(1e8, -2e8, Some(4e8)),
            "done was reported 100 ms before (at most 200 ms after it, and at most 400 ms before it)"
        );
        assert_eq!(said(2e9, 2e9, None), "done was reported 2 s or more before");
        assert_eq!(said(2e9, -1e9, None), "done was reported at most 1 s after, or before it");
    }

    #[test]
    fn who_asks_was_the_limit_for_a_reason() {
        let said = |sent_per_s, late_ns, refused| {
            let said =
                remark(&Remark::Overload { limited: 2, trials: 3, wanted_per_s: 1000.0, sent_per_s, late_ns, refused });
            said.split_once("in the last of these trials, ").unwrap().1.to_string()
        };
        assert_eq!(said(999.9, 2e7, 0), "1 % of the requests were sent 20 ms or more too late");
        assert_eq!(said(999.0, 0.0, 1), "the system refused to send 1 request");
        // Older versions did not record the reason; their evidence gets this text.
        assert_eq!(said(500.0, 0.0, 0), "only 500.0 of 1000 requests per second were sent");
    }

    /// The remark about a web page has the exact number of bytes to remove from the page. If the server did not send
    /// the expected number of segments, the remark also has the expected number.
    #[test]
    fn a_page_is_told_what_to_trim() {
        let page = |body_bytes, flights, first_segments, trim_bytes, compression: Option<&str>| {
            let compression = compression.map(String::from);
            let expected_segments = 10;
            let page =
                Remark::Flights { body_bytes, compression, flights, first_segments, expected_segments, trim_bytes };
            remark(&page)
        };
        let one = page(11_238, 1, 8, 0, None);
        assert_eq!(one, "in the last trial the page's 11,238 bytes came in one flight of 8 segments");
        let trim = "trim 362 bytes of the page's 11,600 bytes (compressed by br) to save a round trip: in the last \
                    trial the page came in 2 flights, and the first had 10 segments";
        assert_eq!(page(11_600, 2, 10, 362, Some("br")), trim);
        assert!(page(40_000, 3, 20, 1, None).ends_with("the first had 20 segments (expected: 10)"));
    }
}
