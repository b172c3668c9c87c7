//! Findings in words.

use ascertain_engine::finding::{Dissent, Estimated, Reason, Remark, Threat, Unlike};
use ascertain_engine::outcome::{ClaimResult, Decision};
use ascertain_engine::unit::{Unit, significant};

use crate::outlook;
use crate::text::{counted, escape_controls, grouped, sorted};

/// Less than that nobody would be short of: it was ended by something else than the time.
const SLOW_NS: f64 = 2e9;

/// The reason without what differs from claim to claim, so that those of many can be said at once.
pub(crate) fn kind(found: &Reason) -> String {
    match found {
        // What each of them takes is said beside them.
        Reason::TooLong { .. } => "the shortest possible verdict does not fit in the time".into(),
        Reason::TooEarly { most_trials: None, is_interrupted: true, .. } => {
            "fewer trials than a verdict takes, when it was interrupted".into()
        }
        Reason::TooEarly { most_trials: None, .. } => {
            "fewer trials than a verdict takes; give more with --max-time".into()
        }
        Reason::TooEarly { .. } => "fewer trials were allowed than a verdict takes".into(),
        found => reason(found),
    }
}

/// "alone it takes 12 s", "alone each takes 12 s to 3 min": what claims take that did not fit in the time.
pub(crate) fn needed<'a>(reasons: impl Iterator<Item = &'a Reason>) -> Option<String> {
    let needed_s = reasons.filter_map(|found| match found {
        Reason::TooLong { needed_ns, .. } => Some(needed_ns / 1e9),
        _ => None,
    });
    let all_s = sorted(needed_s.collect(), |seconds| *seconds);
    let (least, most) = (outlook::span(*all_s.first()?), outlook::span(*all_s.last()?));
    let way_out = format!("give more than `--max-time {}`", outlook::allowance(*all_s.last()?));
    Some(match all_s.len() {
        1 => format!("alone it takes {least}; {way_out}"),
        _ if least == most => format!("alone each takes {least}; {way_out}"),
        _ => format!("alone each takes {least} to {most}; {way_out}"),
    })
}

/// Why a claim has no verdict, or an arm no figures: "needs neon, which this CPU lacks", without the arm's name.
pub(crate) fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Unavailable { lack, .. } => lack.to_string(),
        Reason::Failed { is_wrong: true, how, .. } => format!("wrong answer: {how}"),
        Reason::Failed { how, .. } => how.clone(),
        Reason::TimeUp { was_tried: true, .. } => {
            "the time was up before its turn came; give more with --max-time".to_string()
        }
        Reason::TimeUp { was_tried: false, all_tried_ns } => {
            let way_out = match all_tried_ns {
                Some(all_tried_ns) => {
                    let [about, time] =
                        [outlook::span(all_tried_ns / 1e9), outlook::allowance(2.0 * all_tried_ns / 1e9)];
                    format!("to try all takes about {about}: give `--max-time {time}` or more")
                }
                None => "give more with --max-time".into(),
            };
            format!("the time was up before it could be tried; {way_out}")
        }
        Reason::TooLong { needed_ns, trials, at_error } => {
            let trials = if *trials > 0 { format!("{}, ", counted(*trials, "trial")) } else { String::new() };
            let needed_s = needed_ns / 1e9;
            let easier = at_error.map_or_else(String::new, |at| outlook::at_error(at, "trial"));
            let [needed, time] = [outlook::span(needed_s), outlook::allowance(needed_s)];
            format!("its shortest possible verdict takes {trials}{needed}; give `--max-time {time}` or more{easier}")
        }
        Reason::TooEarly { least, most_trials, is_interrupted, is_shared } => {
            let way_out = match most_trials {
                Some(most) => format!(", and no more than {most} were allowed"),
                // More time is no way out for who did not want to wait; how it goes on is said beside it.
                None if *is_interrupted => ", and it was interrupted".into(),
                None => match least.takes_ns.filter(|takes_ns| *takes_ns >= SLOW_NS) {
                    None => "; give more with --max-time".into(),
                    Some(_) if least.verdict.is_none() => format!(": {}", outlook::ways_out(least)),
                    // Each has some of the time: what all need together is not known.
                    Some(takes_ns) if *is_shared => format!(
                        " for this claim alone; others share the time, so give more than `--max-time {}`",
                        outlook::allowance(takes_ns / 1e9)
                    ),
                    Some(takes_ns) => format!("; give `--max-time {}` or more", outlook::allowance(takes_ns / 1e9)),
                },
            };
            format!("{}{way_out}", outlook::needed(least))
        }
        Reason::Withdrawn { verdict, decision, trials } => {
            let said = decision.map_or_else(|| verdict.word(), Decision::word);
            format!(
                "it changed during the run: after {trials} trials the answer was \u{201c}{said}\u{201d}, which later ones \
                 contradict, so it is withdrawn"
            )
        }
        Reason::BothStopped { pairs, all } => format!(
            "in {pairs} of {all} pairs both were stopped at their time limits, which longer ones would tell apart"
        ),
        Reason::LeftOpen { trials: 1, has_met_limit: false, .. } => {
            "the trial that was cut off counts against either answer".into()
        }
        Reason::LeftOpen { trials, has_met_limit: false, .. } => {
            format!("the {trials} trials that were cut off count against either answer")
        }
        Reason::LeftOpen { trials, all, .. } => {
            let are = if *trials == 1 { "is" } else { "are" };
            format!(
                "{trials} of {all} trials {are} left open by what was cut off, which counts against either answer; a \
                 longer time limit would tell more"
            )
        }
        Reason::UnfinishedSet { trials, measured } => {
            format!("a set of {trials} trials is judged at its end, and the last one ended after {measured}")
        }
        Reason::Said { words } => words.clone(),
    }
}

/// Why a claim has no verdict, with the arm that it is about before it where that does not name itself: "`sleep x`
/// ended with exit code 1", not "sleep x: `sleep x` ended …". None where there is a verdict.
pub(crate) fn reasons(claim: &ClaimResult) -> Option<String> {
    all(claim.reasons.iter())
}

/// That it is too early to tell, and why else there is no verdict.
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

/// A sign that the trials are not alike.
pub(crate) fn unlike(sign: &Unlike) -> String {
    let percent = |share: &f64| share * 100.0;
    match sign {
        Unlike::NoneFits { of } => format!("it changed during the run: no single {} fits all trials", estimated(*of)),
        Unlike::Left { of } => {
            format!("it changed during the run: the {} left the interval that earlier trials allow", estimated(*of))
        }
        Unlike::Interferes { after_candidate, after_baseline } => format!(
            "what a trial ended with shows in the next one ({:.0} % won after a trial that ended with itself, {:.0} % \
             after one that ended with the reference), so no coin seems to have decided these",
            percent(after_candidate),
            percent(after_baseline)
        ),
        Unlike::Neighbours { correlation } => {
            let how = if *correlation > 0.0 { "alike" } else { "opposite" };
            format!("neighbouring trials tend to be {how} (lag-1 correlation {correlation:.2})")
        }
        Unlike::Drifts { early, late } => format!(
            "it changed during the run: {:.1} % of the first half of the trials, {:.1} % of the second",
            percent(early),
            percent(late)
        ),
        Unlike::Said { words } => words.clone(),
    }
}

fn estimated(of: Estimated) -> &'static str {
    match of {
        Estimated::Rate => "rate",
        Estimated::Ratio => "ratio",
        Estimated::Difference => "difference",
    }
}

/// What a session says of an arm, for the middle of a sentence: "3 of 4 servers say so; ns2 answers "old", for 12 s".
pub(crate) fn remark(remark: &Remark) -> String {
    let time = |ns: u64| outlook::span(ns as f64 / 1e9);
    match remark {
        Remark::Agreement { agree, all, after_ns, .. } if agree == all => {
            let of_all = if *all == 1 { "the server says".into() } else { format!("all {all} servers say") };
            match (*after_ns, *all) {
                (0, _) => format!("{of_all} so, and did from the beginning"),
                (_, 1) => format!("{of_all} so after {}", time(*after_ns)),
                (_, _) => format!("{of_all} so, the last of them after {}", time(*after_ns)),
            }
        }
        Remark::Agreement { agree, all, others, .. } => {
            let other = |Dissent { server, says, for_ns }: &Dissent| match says {
                Some(says) => format!("; {server} answers {says}, for {}", time(*for_ns)),
                None => format!("; {server} does not answer, for {}", time(*for_ns)),
            };
            let others: String = others.iter().map(other).collect();
            let of_all = if *all == 1 { "1 server says".into() } else { format!("{all} servers say") };
            format!("{agree} of {of_all} so{others}")
        }
        Remark::Done { changes, before_ns, low_ns, high_ns } => {
            let of_changes = if *changes > 1 { format!(" in {changes} changes") } else { String::new() };
            format!("done came {}{of_changes}", done(*before_ns, *low_ns, *high_ns))
        }
        Remark::Held { server, held_ns } => format!(
            "{server} had it {} before all others: its NOTIFY was held back, as Knot does for a second",
            outlook::span(held_ns / 1e9)
        ),
        Remark::Limited { servers, interval_ns } => {
            let server = |(server, interval_ns): &(String, u64)| format!("{server} every {}", time(*interval_ns));
            format!(
                "a limit for answers, as NSD has one, was met: from each port {} was asked, others every {}",
                servers.iter().map(server).collect::<Vec<_>>().join(" and "),
                time(*interval_ns)
            )
        }
        Remark::FewPorts { server, replicas, ports, chance } => format!(
            "behind {server} there may be more than {}, and the last of all may have it later: if there were {} that \
             are asked alike, {ports} ports would miss one in {} of 100 changes; more `ports` tell",
            if *replicas == 1 { "1 replica".into() } else { format!("the {replicas} replicas that were seen") },
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
            // Segments are not always full: tickets of TLS take one each.
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
            format!("{} {have} no address that could be asked", servers.join(", "))
        }
        Remark::Overload { limited, trials, wanted_per_s, sent_per_s, late_ns, refused } => {
            let mut reasons = Vec::new();
            if *sent_per_s < 0.99 * wanted_per_s || *refused == 0 && *late_ns == 0.0 {
                let [sent, wanted] = [*sent_per_s, *wanted_per_s].map(significant);
                reasons.push(format!("only {sent} of {wanted} requests a second were sent"));
            }
            if *late_ns > 0.0 {
                let late = outlook::span(late_ns / 1e9);
                reasons.push(format!("one request of a hundred was sent {late} late or later"));
            }
            if *refused > 0 {
                reasons.push(format!("the system refused to send {}", counted(*refused, "request")));
            }
            format!(
                "in {limited} of {} this machine could not ask as it should, so that the figures are not the server's \
                 alone; in the last of those {}",
                counted(*trials, "trial"),
                reasons.join(", and ")
            )
        }
        Remark::RecognisesNull { null, neutral } => {
            let work = match (null.read_bytes, neutral.read_bytes) {
                (Some(null), Some(neutral)) if null < neutral => {
                    format!("it read {} bytes instead of {}", grouped(null), grouped(neutral))
                }
                _ => {
                    let span = |ns: u64| outlook::span(ns as f64 / 1e9);
                    format!("it took {} of CPU time instead of {}", span(null.cpu_ns), span(neutral.cpu_ns))
                }
            };
            format!("with its output to /dev/null it does less work: in one trial {work}; leave out --output null")
        }
        Remark::Failure { said } => format!("when it failed first, it said `{said}`"),
        Remark::NoFigure { how } => format!("in the last trial without the figure, the command {how}"),
    }
}

/// "0.5 s (0.4 s to 0.6 s) before the last server had the change"; the ends of an interval may lie on both sides.
fn done(before_ns: f64, low_ns: f64, high_ns: Option<f64>) -> String {
    let span = |ns: f64| outlook::span(ns.abs() / 1e9);
    let side = |ns: f64| if ns < 0.0 { "after" } else { "before" };
    let last = "the last server had the change";
    match high_ns {
        None if low_ns < 0.0 => format!("at most {} after {last}, or before it", span(low_ns)),
        None => format!("{} or more before {last}", span(low_ns)),
        Some(high_ns) if side(low_ns) == side(high_ns) => {
            // The nearer end first.
            let [near, far] = if low_ns < 0.0 { [high_ns, low_ns] } else { [low_ns, high_ns] };
            format!("{} ({} to {}) {} {last}", span(before_ns), span(near), span(far), side(before_ns))
        }
        Some(high_ns) => format!(
            "{} {} {last} (from {} after to {} before)",
            span(before_ns),
            side(before_ns),
            span(low_ns),
            span(high_ns)
        ),
    }
}

/// What threatens a run's results: the fact, and what follows from it.
pub(crate) fn threat(threat: &Threat) -> (String, &'static str) {
    match threat {
        Threat::Governor { governor } => (
            format!("The CPU's frequency governor is `{governor}`, not `performance`"),
            "its speed changes with the load",
        ),
        Threat::Boost => {
            ("The CPU may boost its frequency".into(), "its speed depends on heat and on what other cores do")
        }
        Threat::VirtualMachine { hypervisor } => (
            format!("This is a virtual machine ({hypervisor})"),
            "neighbours share its CPUs, caches and memory, and steal time shows only a part of that",
        ),
        Threat::Quota { cpus } => (
            format!("A control group grants {cpus} CPUs' worth of time"),
            "whoever has used that up is stopped until the next period",
        ),
        Threat::Load { load_1m, cpus } => {
            (format!("The load is {load_1m:.1} on {}", counted(*cpus, "CPU")), "other work competes for them")
        }
        Threat::FewCpus { cpus } => {
            (format!("Only {} may be used", counted(*cpus, "CPU")), "what is measured shares them with everything else")
        }
        Threat::CoarseClock { step_ns } => {
            (format!("The clock moves in steps of {step_ns} ns"), "shorter times can't be told")
        }
        Threat::SlowClock { source } => (format!("The clock source is `{source}`"), "reading it takes a system call"),
        Threat::Steal { share } => {
            let percent = (100.0 * share).round();
            let fact = "of the CPU time that was wanted during the run to others (steal)";
            (format!("The hypervisor gave {percent} % {fact}"), "")
        }
        Threat::IgnoredFailures { arm, exit, trials, all } => {
            // Shells and the metric `exit` add 128 to the number of the signal that ended a command.
            let code = match exit {
                None => "an exit code other than 0".to_owned(),
                Some(status) if *status > 128.0 => {
                    format!("status {status}, which stands for signal {},", status - 128.0)
                }
                Some(status) => format!("exit code {status}"),
            };
            let fact = format!("`{arm}` ended with {code} in {trials} of {}", counted(*all, "trial"));
            (fact, "its times are those of a command that fails")
        }
        Threat::Stopped { arm, limit_ns, trials, all } => {
            let limit = Unit::Nanosecond.exact(*limit_ns);
            let fact =
                format!("`{arm}` was stopped at its time limit of {limit} in {trials} of {}", counted(*all, "trial"));
            (fact, "all that is known of those is that they take longer")
        }
        Threat::Said { words } => (words.trim_end_matches('.').to_string(), ""),
    }
}

/// The whole sentence.
pub(crate) fn threat_sentence(found: &Threat) -> String {
    match threat(found) {
        (fact, "") => format!("{fact}."),
        (fact, so) => format!("{fact}: {so}."),
    }
}

/// The facts alone, for the middle of a sentence.
pub(crate) fn threat_fact(found: &Threat) -> String {
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
        assert_eq!(said(5e8, 4e8, Some(6e8)), "done came 500 ms (400 ms to 600 ms) before");
        assert_eq!(said(-5e8, -6e8, Some(-4e8)), "done came 500 ms (400 ms to 600 ms) after");
        assert_eq!(said(1e8, -2e8, Some(4e8)), "done came 100 ms before (from 200 ms after to 400 ms before)");
        assert_eq!(said(2e9, 2e9, None), "done came 2 s or more before");
        assert_eq!(said(2e9, -1e9, None), "done came at most 1 s after, or before it");
    }

    #[test]
    fn who_asks_was_the_limit_for_a_reason() {
        let said = |sent_per_s, late_ns, refused| {
            let said =
                remark(&Remark::Overload { limited: 2, trials: 3, wanted_per_s: 1000.0, sent_per_s, late_ns, refused });
            said.split_once("in the last of those ").unwrap().1.to_string()
        };
        assert_eq!(said(999.9, 2e7, 0), "one request of a hundred was sent 20 ms late or later");
        assert_eq!(said(999.0, 0.0, 1), "the system refused to send 1 request");
        // Also of a version that did not note why.
        assert_eq!(said(500.0, 0.0, 0), "only 500.0 of 1000 requests a second were sent");
    }

    /// The sentence names exact bytes, and says where the server's window was another than expected.
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
