//! The text of the progress line.

use std::time::Duration;

use ascertain_engine::claim::{Judging, Measure};
use ascertain_engine::experiment::Better;
use ascertain_engine::finding::Remark;
use ascertain_engine::outcome::Verdict;
use ascertain_engine::run::{Activity, Progress, Standing};
use ascertain_engine::unit::{Unit, significant};
use unicode_width::UnicodeWidthStr;

use crate::amount::one_size;
use crate::finding;
use crate::outlook::span;
use crate::standing::of_so_many;
use crate::text::{counted, cut, cut_middle, escape_controls};

/// The width of the progress bar, in columns.
const BAR: usize = 10;
/// The smallest width of a line with a progress bar, in columns. The first number is for a run of many claims, the
/// second for any other run.
const LEAST_WIDTHS: [usize; 2] = [110, 75];
/// The smallest width of a shortened name or remark, in columns. If there is less space, the name or remark is left
/// out.
const LEAST_ROOM: usize = 16;
/// The time for which an arm must be running before the line names it, in nanoseconds.
const PATIENCE_NS: u64 = 1_000_000_000;

/// The current activity of a run, and how long it has lasted, in nanoseconds; `None` if the activity is unknown.
pub(super) type Now<'a> = Option<(Activity<'a>, u64)>;

/// A function that shortens a text to a number of columns.
type Cut = fn(&str, usize) -> String;

/// Returns the progress of a run as a line of at most `width` columns. `later` is the time that has passed since the
/// progress was reported. The items of the line have a fixed order. A name or remark that is too long is shortened; any
/// other item that does not fit is left out.
pub(super) fn run_line(
    progress: &Progress,
    (now, remark, later): (Now, Option<Remark>, Duration),
    width: usize,
) -> String {
    let elapsed = progress.elapsed + later;
    let are_many = progress.claims > 1 && !progress.is_comparison;
    let remark = remark.map_or_else(String::new, |remark| escape_controls(&finding::remark(&remark)));
    // A remark already makes clear what is measured.
    let name = if remark.is_empty() { escape_controls(&progress.what) } else { String::new() };
    let (activity, arm) = activity(progress, now);
    let is_early = progress.least.is_some_and(|least| progress.trials < least);
    // With many claims, the name of the current claim is before its counts. Otherwise the name of the command is last.
    let (claim, command) = if are_many { (name, String::new()) } else { (String::new(), name) };
    let parts: [(String, Option<Cut>); 8] = [
        (time_left(progress, now, elapsed), None),
        (remark, Some(cut)),
        (verdicts(progress), None),
        (claim, Some(cut_middle)),
        (standing(progress, now), None),
        (if is_early { String::new() } else { estimate(progress) }, None),
        (activity, None),
        (arm.map_or(command, escape_controls), Some(cut_middle)),
    ];
    // Only the width decides on the bar, so that the line does not jump when a number gets another
    // digit.
    let has_bar = width >= LEAST_WIDTHS[usize::from(!are_many)];
    let bar = if has_bar { bar(share(progress, elapsed)) + " " } else { String::new() };
    bar.clone() + &joined(&parts, width.saturating_sub(bar.width()))
}

/// Joins the items that fit in `width` columns, in their order, with dots between them. An item that does not fit is
/// shortened by its function, or left out if it has none.
fn joined(parts: &[(String, Option<Cut>)], width: usize) -> String {
    let mut line = String::new();
    for (text, shorten) in parts.iter().filter(|(text, _)| !text.is_empty()) {
        let gap = if line.is_empty() { "" } else { " · " };
        let room = width.saturating_sub(line.width() + gap.width());
        match shorten {
            _ if text.width() <= room => line += &format!("{gap}{text}"),
            Some(shorten) if room >= LEAST_ROOM => line += &format!("{gap}{}", shorten(text, room)),
            _ if line.is_empty() => line = cut(text, room),
            _ => {}
        }
    }
    line
}

/// Returns the time left: "18 s left", or "up to 18 s left" if an answer may come earlier. If the number of trials is
/// limited, the time is estimated from the remaining trials. Returns "first trial" or "first pair" as long as it can't
/// be estimated.
fn time_left(progress: &Progress, now: Now, elapsed: Duration) -> String {
    let left_s = progress.max_time.saturating_sub(elapsed).as_secs_f64();
    if is_unknown(progress) {
        return format!("first {}", noun(progress));
    }
    let trials_left = progress.most_trials.map(|most| most.saturating_sub(progress.trials));
    match (trials_left, progress.trial_ns) {
        _ if left_s == 0.0 => "last trial".into(),
        (Some(trials), Some(trial_ns)) => {
            let in_trial_ns = match now {
                Some((Activity::Measuring { trial_ns, .. }, _)) => trial_ns,
                _ => 0,
            };
            let of_trials_s = (trials as f64 * trial_ns - in_trial_ns as f64).max(0.0) / 1e9;
            format!("{} left", whole(of_trials_s.min(left_s).ceil()))
        }
        (Some(_), None) if whole(left_s) == "no end" => format!("{} elapsed", whole(elapsed.as_secs_f64())),
        // The run may end at any time with its answer.
        _ if is_only(progress) => format!("up to {} left", whole(left_s.ceil())),
        _ => format!("{} left", whole(left_s.ceil())),
    }
}

/// Returns whether the duration of the run is still unknown. A run for a single answer may extend the default time
/// limit. It decides this after its first trial, so its duration is unknown until then.
fn is_unknown(progress: &Progress) -> bool {
    let is_first = progress.trials == 0 && progress.trial_ns.is_none();
    is_only(progress) && is_first && progress.least.is_some()
}

/// Returns whether the run ends as soon as it has its answer. This applies to a comparison, and to a run with at most
/// one claim.
fn is_only(progress: &Progress) -> bool {
    progress.is_comparison || progress.claims <= 1
}

fn noun(progress: &Progress) -> &'static str {
    if progress.is_comparison { "pair" } else { "trial" }
}

/// Returns a sentence about the shortest time to an answer, estimated during the first trial. For example: "at least 13
/// pairs are needed: over 52 s, if all take as long as the first one". `None` if the first trial has ended, or if the
/// limit on trials is too low for an answer. Also `None` for several claims, because their arms may be measured in
/// turn.
pub(super) fn expected(progress: &Progress, now: Now) -> Option<String> {
    let least = progress.least.filter(|least| progress.most_trials.is_none_or(|most| most >= *least))?;
    let time = least_time(progress, now).filter(|_| progress.claims == 1 && is_unknown(progress))?;
    let are = if least == 1 { "is" } else { "are" };
    Some(format!(
        "at least {} {are} needed: {time}, if all take as long as the first one",
        counted(least, noun(progress))
    ))
}

/// Writes a time, rounded down to whole seconds: "0 s", "84 s".
fn whole(seconds: f64) -> String {
    match seconds.floor() {
        0.0 => "0 s".into(),
        seconds => span(seconds),
    }
}

fn share(progress: &Progress, elapsed: Duration) -> f64 {
    if is_unknown(progress) {
        return 0.0;
    }
    let of_time = elapsed.as_secs_f64() / progress.max_time.as_secs_f64().max(1e-9);
    let of_trials = progress.most_trials.map_or(0.0, |most| progress.trials as f64 / most.max(1) as f64);
    of_time.max(of_trials).min(1.0)
}

/// Returns the activity, "preparing, 4 s" or "running 4 s", and the name of the running arm. In the first second of an
/// activity, the text is empty or has no time. The name is `None` while preparing. It is also `None` in the first
/// second of a measurement, unless earlier trials took at least a second.
fn activity<'a>(progress: &Progress, now: Now<'a>) -> (String, Option<&'a str>) {
    let is_slow = progress.trial_ns.is_some_and(|trial_ns| trial_ns >= PATIENCE_NS as f64);
    match now {
        Some((Activity::Opening, ..PATIENCE_NS)) => ("preparing".into(), None),
        Some((Activity::Opening, since_ns)) => (format!("preparing, {}", whole(since_ns as f64 / 1e9)), None),
        Some((Activity::Measuring { arm, .. }, since_ns @ PATIENCE_NS..)) => {
            (format!("running {}", whole(since_ns as f64 / 1e9)), Some(arm))
        }
        Some((Activity::Measuring { arm, .. }, _)) if is_slow => (String::new(), Some(arm)),
        _ => (String::new(), None),
    }
}

/// Returns the text of the line while an experiment is being prepared, with the time so far.
pub(super) fn preparing(experiment: &str, elapsed: Duration) -> String {
    let words = [&escape_controls(experiment), "checking what can be measured here", &whole(elapsed.as_secs_f64())];
    words.join(" · ")
}

/// Returns the shortest time to an answer, estimated from the current trial: "over 52 s". If the duration of the whole
/// trial can already be estimated, the text is "about 52 s". `None` if nothing can be estimated.
fn least_time(progress: &Progress, now: Now) -> Option<String> {
    let Some((Activity::Measuring { trial_ns, whole_ns, .. }, _)) = now else { return None };
    let about = if whole_ns.is_some() { "about" } else { "over" };
    let trial_ns = whole_ns.unwrap_or(trial_ns / PATIENCE_NS * PATIENCE_NS);
    let seconds = trial_ns as f64 / 1e9 * progress.least? as f64;
    (seconds > 0.0).then(|| format!("{about} {}", whole(seconds)))
}

/// Returns the counts of trials and the estimate so far: "lost 13 of 13 pairs, 7.5 % longer".
pub fn headline(progress: &Progress) -> String {
    let parts = [counts(progress), estimate(progress)].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns the counts of trials: "lost 13 of 13 pairs", "true in 15 of 18 trials", "3 trials".
fn counts(progress: &Progress) -> String {
    match progress.standing {
        None => counted(progress.trials, "trial"),
        Some(Standing { judging: Judging::Order, trials, successes, failures, .. }) if failures > successes => {
            format!("lost {failures} of {trials} pairs")
        }
        Some(Standing { judging: Judging::Order, trials, successes, .. }) => {
            format!("won {successes} of {trials} pairs")
        }
        Some(Standing { trials, successes, .. }) => format!("true in {successes} of {trials} trials"),
    }
}

/// Returns the estimate so far: "7.5 % longer" for a ratio of times, "ratio 8.10" for another ratio, "5.000 ms" for a
/// difference or a single metric.
fn estimate(progress: &Progress) -> String {
    match &progress.standing {
        Some(Standing { estimate: Some(value), is_ratio: true, unit: Some(Unit::Nanosecond), .. }) => {
            let time =
                Measure { metric: "time".into(), unit: Unit::Nanosecond, better: Better::Lower, inputs: Vec::new() };
            if *value > 0.0 { one_size(&time, *value) } else { String::new() }
        }
        Some(Standing { estimate: Some(value), is_ratio: true, .. }) => {
            let ratio = if (0.1..10.0).contains(value) { format!("{value:.2}") } else { significant(*value) };
            format!("ratio {ratio}")
        }
        Some(Standing { estimate: Some(value), unit, .. }) => {
            unit.map_or_else(|| significant(*value), |unit| unit.human(*value))
        }
        _ => String::new(),
    }
}

/// Returns the state of the trials. During the first pair, the text has the number of pairs that an answer needs, and
/// their least time: "13+ pairs: over 52 s". Then it has the number of the current pair: "pair 4 of 13+". Once an
/// answer is possible, it has the counts of trials.
fn standing(progress: &Progress, now: Now) -> String {
    let (trials, noun) = (progress.trials, noun(progress));
    match progress.least.filter(|least| trials < *least) {
        None => counts(progress),
        Some(least) if trials > 0 => format!("{noun} {} of {least}+", trials + 1),
        Some(_) if !matches!(now, Some((Activity::Measuring { .. }, _))) => String::new(),
        Some(least) => match least_time(progress, now) {
            Some(time) => format!("{least}+ {noun}s: {time}"),
            None => format!("{least}+ {noun}s"),
        },
    }
}

/// Returns the number of claims by verdict: "12 hold, 3 refuted, 3 no verdict, 5 open". Empty if there is only one
/// claim.
fn verdicts(progress: &Progress) -> String {
    let [hold, refuted, others @ ..] = progress.closed;
    let closed = hold + refuted + others.iter().sum::<usize>();
    match progress.claims {
        0 | 1 => String::new(),
        all if progress.is_comparison => format!("{closed} of {all} decided"),
        all => {
            let open = all.saturating_sub(closed);
            let counts = [
                (hold, of_so_many(hold, Verdict::Holds.word())),
                (refuted, Verdict::Refuted.word()),
                (others.iter().sum(), "no verdict"),
                (open, "open"),
            ];
            let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
            counts.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Returns a progress bar that is filled to this share, from 0 to 1.
pub(super) fn bar(share: f64) -> String {
    let filled = (share * BAR as f64).round() as usize;
    "━".repeat(filled.min(BAR)) + &"╌".repeat(BAR.saturating_sub(filled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alphabet::Alphabet;
    use ascertain_engine::finding::Dissent;
    use ascertain_engine::run::Now;

    /// Returns the progress of a run after 12 s of 2 min.
    fn progress() -> Progress {
        Progress {
            at_ns: 0,
            elapsed: Duration::from_secs(12),
            max_time: Duration::from_secs(120),
            closed: [112, 13, 2, 6, 1, 0],
            claims: 181,
            what: "sum.kahan-avx512-8x-naive".into(),
            standing: Some(Standing {
                judging: Judging::Rate,
                trials: 18,
                successes: 15,
                failures: 3,
                estimate: Some(8.1),
                is_ratio: true,
                unit: None,
            }),
            is_comparison: false,
            trials: 18,
            most_trials: None,
            least: None,
            trial_ns: Some(2e6),
            now: Now::default(),
        }
    }

    fn at(progress: &Progress, width: usize) -> String {
        run_line(progress, (None, None, Duration::from_secs(1)), width)
    }

    #[test]
    fn parts_that_do_not_fit_are_left_out() {
        let all = "━╌╌╌╌╌╌╌╌╌ 1 min 47 s left · 112 hold, 13 refuted, 9 no verdict, 47 open · sum.kahan-avx512-8x-naive · \
                   true in 15 of 18 trials · ratio 8.10";
        assert_eq!(at(&progress(), 200), all);
        let lines = [
            (
                103,
                "1 min 47 s left · 112 hold, 13 refuted, 9 no verdict, 47 open · sum.kahan-avx512-8x-naive · ratio 8.10",
            ),
            (88, "1 min 47 s left · 112 hold, 13 refuted, 9 no verdict, 47 open · sum.kahan-a…512-8x-naive"),
            (82, "1 min 47 s left · 112 hold, 13 refuted, 9 no verdict, 47 open · sum.kaha…-8x-naive"),
            (45, "1 min 47 s left · sum.kahan-avx512-8x-naive"),
            (20, "1 min 47 s left"),
            (8, "1 min 4…"),
        ];
        for (width, line) in lines {
            assert_eq!(at(&progress(), width), line);
        }
        for width in 1..200 {
            assert!(at(&progress(), width).width() <= width, "{width}");
        }
    }

    #[test]
    fn a_bar_stays_where_it_is_when_counts_grow() {
        for (width, claims, has_bar) in [(79, 181, false), (139, 181, true), (79, 1, true), (39, 1, false)] {
            for trials in [9, 99, 999, 99_999, 9_999_999] {
                let standing = progress().standing.map(|standing| Standing { trials, successes: trials, ..standing });
                let line = at(&Progress { claims, trials, standing, ..progress() }, width);
                assert_eq!(line.starts_with(['━', '╌']), has_bar, "{width} columns: {line}");
            }
        }
    }

    #[test]
    fn what_is_said_of_what_is_measured_is_said_first() {
        let others = ["ns2.example.org", "ns3.example.org"].map(|server| Dissent {
            server: server.into(),
            says: (server != "ns3.example.org").then(|| "\"old\"".into()),
            for_ns: 12_000_000_000,
        });
        let remark = Remark::Agreement { agree: 2, all: 4, after_ns: 0, others: others.into() };
        let at = |width| {
            let now = (None, Some(remark.clone()), Duration::from_secs(1));
            run_line(&progress(), now, width)
        };
        let all = "2 of 4 servers agree; ns2.example.org has answered \"old\" for 12 s; ns3.example.org has not answered \
                   for 12 s";
        assert!(at(320).contains(&format!("1 min 47 s left · {all} · 112 hold")), "{}", at(320));
        assert_eq!(at(79), "1 min 47 s left · 2 of 4 servers agree; ns2.example.org has answered \"old\" for…");
        assert_eq!(at(44), "1 min 47 s left · 2 of 4 servers agree; ns2…");
        for width in 1..320 {
            assert!(at(width).width() <= width, "{width}");
        }
    }

    #[test]
    fn a_slow_comparison_counts_its_pairs() {
        let two = Progress {
            closed: [0; 6],
            claims: 1,
            what: "sleep 2".into(),
            standing: progress().standing.map(|standing| Standing {
                judging: Judging::Order,
                trials: 3,
                successes: 3,
                failures: 0,
                estimate: Some(1.1),
                unit: Some(Unit::Nanosecond),
                ..standing
            }),
            is_comparison: true,
            trials: 3,
            least: Some(13),
            trial_ns: Some(4e9),
            ..progress()
        };
        assert_eq!(at(&two, 79), "━╌╌╌╌╌╌╌╌╌ up to 1 min 47 s left · pair 4 of 13+ · sleep 2");
        assert_eq!(at(&two, 39), "up to 1 min 47 s left · pair 4 of 13+");
        let several = Progress { closed: [1, 1, 0, 0, 0, 0], claims: 3, trials: 20, ..two.clone() };
        assert!(at(&several, 79).ends_with("2 of 3 decided · won 3 of 3 pairs · sleep 2"), "{}", at(&several, 79));
        // A run of a given number of trials does not end earlier because of its answer. Its time can be estimated as
        // soon as one trial has ended.
        let endless = Progress { max_time: Duration::MAX, most_trials: Some(5), ..two.clone() };
        assert_eq!(at(&endless, 79), "━━━━━━╌╌╌╌ 8 s left · pair 4 of 13+ · sleep 2");
        let first = Progress { trials: 0, trial_ns: None, ..endless };
        assert_eq!(at(&first, 79), "╌╌╌╌╌╌╌╌╌╌ first pair · sleep 2");
        let alone = Progress { claims: 0, least: None, is_comparison: false, standing: None, ..first };
        assert_eq!(at(&alone, 79), "╌╌╌╌╌╌╌╌╌╌ 13 s elapsed · 0 trials · sleep 2");
        let table = Progress { max_time: Duration::from_secs(30), most_trials: None, ..alone };
        assert_eq!(at(&table, 79), "━━━━╌╌╌╌╌╌ up to 17 s left · 0 trials · sleep 2");
        let over = Progress { elapsed: Duration::from_secs(300), ..two };
        assert_eq!(at(&over, 79), "━━━━━━━━━━ last trial · pair 4 of 13+ · sleep 2");
    }

    /// The time left is unknown until the first trial has ended, because the run may then extend the default time. The
    /// line shows no time left until then.
    #[test]
    fn the_first_pair_says_what_all_take() {
        let first = Progress {
            elapsed: Duration::ZERO,
            max_time: Duration::from_secs(30),
            closed: [0; 6],
            claims: 1,
            is_comparison: true,
            trials: 0,
            least: Some(13),
            trial_ns: None,
            ..progress()
        };
        let long = "python3 -c \"import json, time, random; time.sleep(3.2)\"";
        let at = |trial_s: f64, whole_s: Option<f64>, since_s: f64, width| {
            let [trial_ns, since_ns] = [trial_s, since_s].map(|seconds| (seconds * 1e9) as u64);
            let doing =
                Activity::Measuring { arm: long, trial_ns, whole_ns: whole_s.map(|seconds| (seconds * 1e9) as u64) };
            let said = run_line(&first, (Some((doing, since_ns)), None, Duration::from_secs_f64(trial_s)), width);
            said.trim_start_matches(['━', '╌', ' ']).to_string()
        };
        assert_eq!(at(1.2, None, 1.2, 79), "first pair · 13+ pairs: over 13 s · running 1 s · python3 …eep(3.2)\"");
        assert_eq!(at(2.6, None, 2.6, 60), "first pair · 13+ pairs: over 26 s · running 2 s");
        assert_eq!(at(4.4, Some(6.2), 1.4, 44), "first pair · 13+ pairs: about 80 s");
        assert_eq!(at(6.4, None, 3.4, 140), format!("first pair · 13+ pairs: over 78 s · running 3 s · {long}"));
        // If lines can't be overwritten, the sentence is printed only once.
        let once = |trial_s: f64, whole_s: Option<f64>| {
            let [trial_ns, whole_ns] = [Some(trial_s), whole_s].map(|time| time.map(|seconds| (seconds * 1e9) as u64));
            let doing = Activity::Measuring { arm: long, trial_ns: trial_ns.unwrap_or(0), whole_ns };
            expected(&first, Some((doing, 0))).unwrap_or_default()
        };
        assert_eq!(once(0.9, None), "");
        assert_eq!(once(4.2, None), "at least 13 pairs are needed: over 52 s, if all take as long as the first one");
        assert_eq!(
            once(4.2, Some(6.2)),
            "at least 13 pairs are needed: about 80 s, if all take as long as the first one"
        );
        let doing = Activity::Measuring { arm: long, trial_ns: 4_000_000_000, whole_ns: None };
        let of_five = Progress { most_trials: Some(5), ..first.clone() };
        assert_eq!(expected(&of_five, Some((doing, 0))), None, "the run is limited to five pairs");
        let of_many = Progress { claims: 211, is_comparison: false, ..first.clone() };
        assert_eq!(expected(&of_many, Some((doing, 0))), None, "the run has a given time");
        let piloted = Progress { trial_ns: Some(4e9), ..first };
        assert_eq!(expected(&piloted, Some((doing, 0))), None, "a better estimate was printed already");
        assert!(!is_unknown(&piloted));
    }

    #[test]
    fn what_ascii_lacks_is_replaced_and_what_steers_is_escaped() {
        let in_us = Standing {
            estimate: Some(2e3),
            is_ratio: false,
            unit: Some(Unit::Nanosecond),
            ..progress().standing.unwrap()
        };
        let odd = Progress { what: "größe \x1b[31m".into(), standing: Some(in_us), ..progress() };
        let line = Alphabet::Ascii.in_line(&run_line(&odd, (None, None, Duration::ZERO), 80));
        assert_eq!(line, r"1 min 48 s left - 112 hold, 13 refuted, 9 no verdict, 47 open - gr??e \u{1b}[31m", "{line}");
        let wide = Alphabet::Ascii.in_line(&run_line(&odd, (None, None, Duration::ZERO), 160));
        assert!(wide.is_ascii() && wide.ends_with(r"gr??e \u{1b}[31m - true in 15 of 18 trials - 2.000 us"), "{wide}");
    }
}
