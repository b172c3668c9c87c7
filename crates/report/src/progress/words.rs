//! What the line says.

use std::time::Duration;

use ascertain_engine::claim::Judging;
use ascertain_engine::finding::Remark;
use ascertain_engine::outcome::Verdict;
use ascertain_engine::run::{Doing, Progress, Standing};
use ascertain_engine::unit::{Unit, significant};
use unicode_width::UnicodeWidthStr;

use crate::alphabet::Alphabet;
use crate::finding;
use crate::outlook::span;
use crate::standing::of_so_many;
use crate::text::{counted, cut, cut_middle, escape_controls};

impl Alphabet {
    fn separator(self) -> &'static str {
        if self == Alphabet::Unicode { " · " } else { " - " }
    }

    pub(super) fn ellipsis(self) -> char {
        if self == Alphabet::Unicode { '…' } else { '~' }
    }

    /// The text as it can be shown on a line: what the alphabet lacks is a `?` where there is nothing like it.
    pub(super) fn of(self, text: &str) -> String {
        let text = escape_controls(text);
        match self {
            Alphabet::Unicode => text,
            Alphabet::Ascii => self.shown(&text).replace(|c: char| !c.is_ascii(), "?"),
        }
    }
}

/// So wide is the bar, where there is room for it.
const BAR: usize = 10;
/// Where it is: of many claims there is more to say.
const WIDE: usize = 110;
const LESS_WIDE: usize = 75;
/// Names are not cut shorter.
const LEAST_NAME: usize = 8;
/// And those of what is waited for, of which the ends tell one from another, not than that.
const LEAST_WAITED: usize = 16;
/// And what there is to say of what is measured: how it begins says the most.
const LEAST_REMARK: usize = 24;
/// Sooner than that nobody asks what is being waited for.
const PATIENCE_NS: u64 = 1_000_000_000;

/// How far a run is, in a line of at most `width` columns, by what it does now, what there is to say of that, and how
/// much later it is than when the progress was told: the time left, what there is to say, which claim or experiment,
/// what is waited for, how that stands, and the verdicts so far. What there is no room for is left out, the least
/// important first.
#[must_use]
pub fn of_run(
    progress: &Progress,
    (doing, remark, later): (Option<(Doing, u64)>, Option<Remark>, Duration),
    width: usize,
    alphabet: Alphabet,
) -> String {
    let elapsed = progress.elapsed + later;
    let waiting = waiting(progress, doing, alphabet);
    // Of two commands, the one that is waited for is named; and what is said of what is measured names it well enough.
    let is_named = waiting.is_some() && progress.is_comparison && progress.claims == 1;
    let remark = remark.map_or_else(String::new, |remark| alphabet.of(&finding::remark(&remark)));
    let name = if is_named || !remark.is_empty() { String::new() } else { alphabet.of(&progress.what) };
    let ([seen, estimate], is_early) = standing(progress, doing);
    let [shorter, standing] = [&seen, &(seen.clone() + &estimate)].map(|words| alphabet.of(words));
    let [verdicts, fewer] = verdicts(progress);
    let ellipsis = alphabet.ellipsis();
    let name = match progress.is_comparison {
        true => Waiting { name, since: String::new() }.part(2, ellipsis),
        false => {
            let short = cut(&name, LEAST_NAME, ellipsis);
            Part { cut: Some(cut), ..Part::new(2, name).or(short) }
        }
    };
    let start = cut(&remark, LEAST_REMARK, ellipsis);
    let parts = [
        Part::new(0, time_left(progress, doing, elapsed)),
        Part { cut: Some(cut), ..Part::new(0, remark).or(start) },
        name,
        waiting.map_or_else(Part::default, |waiting| waiting.part(if is_early { 3 } else { 1 }, ellipsis)),
        Part::new(if is_early { 1 } else { 5 }, standing).or(shorter),
        Part::new(4, verdicts).or(fewer),
    ];
    // By the width alone, lest the line jumps when a count has one digit more.
    let least = if progress.claims > 1 && !progress.is_comparison { WIDE } else { LESS_WIDE };
    let bar = if width >= least { bar(share(progress, elapsed), alphabet) + " " } else { String::new() };
    let line = joined(&parts, width.saturating_sub(bar.width()), alphabet);
    bar + &line
}

/// A part of a line.
#[derive(Default)]
struct Part {
    /// The greater, the sooner it is left out.
    rank: u8,
    text: String,
    /// What stands for it where there is less room.
    short: String,
    /// What follows either.
    tail: String,
    /// A name may be cut to any width in between, by this.
    cut: Option<fn(&str, usize, char) -> String>,
}

impl Part {
    fn new(rank: u8, text: String) -> Part {
        Part { rank, short: text.clone(), text, ..Part::default() }
    }

    /// The same with what stands for it where there is less room, unless that takes more: "1 neither" for "1 failed".
    fn or(self, short: String) -> Part {
        if short.width() < self.text.width() { Part { short, ..self } } else { self }
    }
}

/// As much of the parts as there is room for.
fn joined(parts: &[Part], room: usize, alphabet: Alphabet) -> String {
    let mut kept: Vec<&Part> = parts.iter().filter(|part| !part.text.is_empty()).collect();
    let separator = alphabet.separator();
    let least = |kept: &[&Part]| {
        let gaps = separator.width() * kept.len().saturating_sub(1);
        kept.iter().map(|part| part.short.width() + part.tail.width()).sum::<usize>() + gaps
    };
    while least(&kept) > room && kept.len() > 1 {
        let last = kept.iter().map(|part| part.rank).max();
        kept.retain(|part| Some(part.rank) != last);
    }
    let mut spare = room.saturating_sub(least(&kept));
    let mut give = |part: &Part| {
        let more = part.text.width() - part.short.width();
        let text = match part.cut {
            _ if more <= spare => part.text.clone(),
            Some(cut) => cut(&part.text, part.short.width() + spare, alphabet.ellipsis()),
            None => part.short.clone(),
        };
        spare -= text.width().saturating_sub(part.short.width());
        text + &part.tail
    };
    // Names take what is left.
    let others: Vec<Option<String>> = kept.iter().map(|part| part.cut.is_none().then(|| give(part))).collect();
    let texts = kept.iter().zip(others).map(|(part, text)| text.unwrap_or_else(|| give(part)));
    let line = texts.collect::<Vec<_>>().join(separator);
    cut(&line, room, alphabet.ellipsis())
}

/// "18 s left", "up to 18 s left"; of a run of so many trials, about what they take; and what is waited for before any
/// of that is known.
fn time_left(progress: &Progress, doing: Option<(Doing, u64)>, elapsed: Duration) -> String {
    let left_s = progress.max_time.saturating_sub(elapsed).as_secs_f64();
    if is_unknown(progress) {
        return format!("first {}", noun(progress));
    }
    let trials_left = progress.most_trials.map(|most| most.saturating_sub(progress.trials));
    match (trials_left, progress.trial_ns) {
        _ if left_s == 0.0 => "last trial".into(),
        (Some(trials), Some(trial_ns)) => {
            let of_trials_s = (trials as f64 * trial_ns - in_trial(doing).unwrap_or(0) as f64).max(0.0) / 1e9;
            format!("{} left", whole(of_trials_s.min(left_s).ceil()))
        }
        (Some(_), None) if whole(left_s) == "no end" => format!("{} gone", whole(elapsed.as_secs_f64())),
        // An answer may come at any time.
        _ if is_only(progress) => format!("up to {} left", whole(left_s.ceil())),
        _ => format!("{} left", whole(left_s.ceil())),
    }
}

/// Whether the first trial of an only question has yet to show how long an answer takes: the time that there is as a
/// rule may be too short, or be made longer.
fn is_unknown(progress: &Progress) -> bool {
    let is_first = progress.trials == 0 && progress.trial_ns.is_none();
    is_only(progress) && is_first && progress.least.is_some()
}

/// Whether the run ends as soon as it has one answer, or one for each command, or a table's trials.
fn is_only(progress: &Progress) -> bool {
    progress.is_comparison || progress.claims <= 1
}

fn noun(progress: &Progress) -> &'static str {
    if progress.is_comparison { "pair" } else { "trial" }
}

/// "at least 13 pairs are needed: over 52 s, by the first one so far", as soon as anything is known of what an answer
/// takes and before the first trial has ended. Of one question: several may be of commands that take turns. Whoever asks
/// for fewer trials is told nothing.
pub(super) fn expected(progress: &Progress, doing: Option<(Doing, u64)>) -> Option<String> {
    let least = progress.least.filter(|least| progress.most_trials.is_none_or(|most| most >= *least))?;
    let is_asked = progress.claims == 1 && is_unknown(progress);
    let takes = least_s(progress, doing).filter(|seconds| is_asked && *seconds > 0.0)?;
    let are = if least == 1 { "is" } else { "are" };
    let least = counted(least, noun(progress));
    Some(format!("at least {least} {are} needed: {} {}, by the first one so far", about(doing), whole(takes)))
}

/// "about" where a part of the trial says how long the whole of it takes, and else "over".
fn about(doing: Option<(Doing, u64)>) -> &'static str {
    let is_known = matches!(doing, Some((Doing::Measuring { whole_ns: Some(_), .. }, _)));
    if is_known { "about" } else { "over" }
}

/// A time in whole seconds: "0 s", "84 s".
fn whole(seconds: f64) -> String {
    match seconds.floor() {
        0.0 => "0 s".into(),
        seconds => span(seconds),
    }
}

/// How long the trial has taken that is measured now, in nanoseconds.
fn in_trial(doing: Option<(Doing, u64)>) -> Option<u64> {
    match doing {
        Some((Doing::Measuring { trial_ns, .. }, _)) => Some(trial_ns),
        _ => None,
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

/// What is waited for, and for how long: "sleep 2" and ", running 4 s".
struct Waiting {
    name: String,
    since: String,
}

impl Waiting {
    fn part(self, rank: u8, ellipsis: char) -> Part {
        let short = cut_middle(&self.name, LEAST_WAITED, ellipsis);
        Part { cut: Some(cut_middle), tail: self.since, ..Part::new(rank, self.name).or(short) }
    }
}

/// "sleep 2, running 4 s", where that takes long.
fn waiting(progress: &Progress, doing: Option<(Doing, u64)>, alphabet: Alphabet) -> Option<Waiting> {
    let (doing, since_ns) = doing?;
    let said = whole(since_ns as f64 / 1e9);
    let (name, since) = match doing {
        Doing::Opening => ("making ready".into(), format!(", {said}")),
        Doing::Measuring { .. } if since_ns < PATIENCE_NS && !is_slow(progress) => return None,
        Doing::Measuring { arm, .. } => (alphabet.of(arm), format!(", running {said}")),
    };
    Some(Waiting { name, since: if since_ns < PATIENCE_NS { String::new() } else { since } })
}

/// While an experiment is made ready, which has taken so long.
pub(super) fn preparing(experiment: &str, elapsed: Duration, alphabet: Alphabet) -> String {
    let words = [&alphabet.of(experiment), "finding out what can be measured here", &whole(elapsed.as_secs_f64())];
    words.join(alphabet.separator())
}

fn is_slow(progress: &Progress) -> bool {
    progress.trial_ns.is_some_and(|trial_ns| trial_ns >= PATIENCE_NS as f64)
}

/// What all trials will take at the least that an answer needs, by what the first one says of that while it is
/// measured.
fn least_s(progress: &Progress, doing: Option<(Doing, u64)>) -> Option<f64> {
    let Some((Doing::Measuring { trial_ns, whole_ns, .. }, _)) = doing else { return None };
    let trial_s = whole_ns.unwrap_or(trial_ns / PATIENCE_NS * PATIENCE_NS) as f64 / 1e9;
    Some(trial_s * progress.least? as f64)
}

/// How what is measured stands, in a few words: "lost 13 of 13 pairs, 0.93 times as fast", "true in 15 of 18 trials,
/// 8.10 times", "3 trials".
pub fn headline(progress: &Progress) -> String {
    seen_so_far(progress).concat()
}

/// The same as what was seen and the estimate.
fn seen_so_far(progress: &Progress) -> [String; 2] {
    let Some(standing) = &progress.standing else { return [format!("{} trials", progress.trials), String::new()] };
    let Standing { judging, trials, successes, failures, .. } = *standing;
    let estimate = standing.estimate.map_or_else(String::new, |value| format!(", {}", shown(value, standing)));
    let seen = match judging {
        Judging::Order if failures > successes => format!("lost {failures} of {trials} pairs"),
        Judging::Order => format!("won {successes} of {trials} pairs"),
        _ => format!("true in {successes} of {trials} trials"),
    };
    [seen, estimate]
}

/// The estimate: "8.10 times", or of a difference or an only metric "5.000 ms".
fn shown(value: f64, standing: &Standing) -> String {
    match standing.unit {
        unit if standing.is_ratio => {
            let times = if (0.1..10.0).contains(&value) { format!("{value:.2}") } else { significant(value) };
            let as_fast = if unit == Some(Unit::Nanosecond) { " as fast" } else { "" };
            format!("{times} times{as_fast}")
        }
        Some(unit) => unit.human(value),
        None => significant(value),
    }
}

/// "pair 4 of 13+", and whether it is as early as that; else the rate and the ratio so far. In the first pair what all
/// will take is known as well: as many times twice what its first half took, and more than it has taken until then.
fn standing(progress: &Progress, doing: Option<(Doing, u64)>) -> ([String; 2], bool) {
    let (trials, noun) = (progress.trials, noun(progress));
    let Some(least) = progress.least.filter(|least| trials < *least) else { return (seen_so_far(progress), false) };
    let said = match (trials, doing) {
        (0, Some((Doing::Measuring { trial_ns, .. }, _))) => {
            let takes = least_s(progress, doing).filter(|_| trial_ns >= PATIENCE_NS).map(whole);
            format!("{least}+ {noun}s{}", takes.map_or_else(String::new, |takes| format!(": {} {takes}", about(doing))))
        }
        (0, _) => String::new(),
        _ => format!("{noun} {} of {least}+", trials + 1),
    };
    ([said, String::new()], true)
}

/// "12 hold, 3 refuted, 1 undecided, 2 unavailable, 5 open", where there are several claims; and with those together
/// that are neither.
fn verdicts(progress: &Progress) -> [String; 2] {
    let closed: usize = progress.closed.iter().sum();
    let open = progress.claims.saturating_sub(closed);
    let counts: Vec<(usize, &str)> = progress.closed.iter().copied().zip(Verdict::ALL.map(Verdict::word)).collect();
    let others = counts[2..].iter().map(|(count, _)| count).sum();
    let said = |counts: &[(usize, &str)]| {
        let said = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {}", of_so_many(*count, word)));
        said.collect::<Vec<_>>().join(", ")
    };
    match progress.claims {
        0 | 1 => [String::new(), String::new()],
        all if progress.is_comparison => [format!("{closed} of {all} decided"), format!("{closed}/{all}")],
        _ => [
            said(&[&counts[..], &[(open, "open")]].concat()),
            said(&[counts[0], counts[1], (others, "neither"), (open, "open")]),
        ],
    }
}

/// A bar that is filled to this share.
pub(super) fn bar(share: f64, alphabet: Alphabet) -> String {
    let filled = (share * BAR as f64).round() as usize;
    let [full, empty] = match alphabet {
        Alphabet::Unicode => ["━", "╌"],
        Alphabet::Ascii => ["#", "-"],
    };
    full.repeat(filled.min(BAR)) + &empty.repeat(BAR.saturating_sub(filled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ascertain_engine::finding::Dissent;
    use ascertain_engine::run::Now;

    /// A run that was told of after 12 s of 2 min.
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
        of_run(progress, (None, None, Duration::from_secs(1)), width, Alphabet::Unicode)
    }

    #[test]
    fn what_there_is_no_room_for_is_left_out() {
        let all = "━╌╌╌╌╌╌╌╌╌ 1 min 47 s left · sum.kahan-avx512-8x-naive · true in 15 of 18 trials, 8.10 times · \
                   112 hold, 13 refuted, 2 undecided, 6 unavailable, 1 failed, 47 open";
        assert_eq!(at(&progress(), 200), all);
        let lines = [
            (
                100,
                "1 min 47 s left · sum.kahan-av… · true in 15 of 18 trials · 112 hold, 13 refuted, 9 neither, 47 open",
            ),
            (79, "1 min 47 s left · sum.kahan-avx512-… · 112 hold, 13 refuted, 9 neither, 47 open"),
            (39, "1 min 47 s left · sum.kahan-avx512-8x-…"),
            (20, "1 min 47 s left"),
            (8, "1 min 4…"),
        ];
        for (width, line) in lines {
            assert_eq!(at(&progress(), width).replace("╌", "").replace("━", "").trim_start(), line);
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
            of_run(&progress(), now, width, Alphabet::Unicode)
        };
        let all = "2 of 4 servers say so; ns2.example.org answers \"old\", for 12 s; ns3.example.org does not answer, \
                   for 12 s";
        assert!(at(320).contains(&format!("1 min 47 s left · {all} · true in 15 of 18 trials")), "{}", at(320));
        assert_eq!(at(79), "1 min 47 s left · 2 of 4 servers say so; ns2.example.org answers \"old\", for 12…");
        assert_eq!(at(44), "1 min 47 s left · 2 of 4 servers say so; ns…");
        for width in 1..320 {
            assert!(at(width).width() <= width, "{width}");
        }
    }

    #[test]
    fn fewer_words_are_never_longer() {
        for closed in [[0, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 1]] {
            let few = Progress { closed, claims: 3, ..progress() };
            for width in 1..120 {
                assert!(at(&few, width).width() <= width, "{closed:?} at {width}");
            }
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
        assert_eq!(at(&two, 79), "━╌╌╌╌╌╌╌╌╌ up to 1 min 47 s left · sleep 2 · pair 4 of 13+");
        assert_eq!(at(&two, 39), "up to 1 min 47 s left · pair 4 of 13+");
        let several = Progress { closed: [1, 1, 0, 0, 0, 0], claims: 3, trials: 20, ..two.clone() };
        assert!(at(&several, 79).ends_with("sleep 2 · won 3 of 3 pairs · 2 of 3 decided"), "{}", at(&several, 79));
        // So many are asked for, whatever is decided: what they take is known once one has ended.
        let endless = Progress { max_time: Duration::MAX, most_trials: Some(5), ..two.clone() };
        assert_eq!(at(&endless, 79), "━━━━━━╌╌╌╌ 8 s left · sleep 2 · pair 4 of 13+");
        let first = Progress { trials: 0, trial_ns: None, ..endless };
        assert_eq!(at(&first, 79), "╌╌╌╌╌╌╌╌╌╌ first pair · sleep 2");
        let alone = Progress { claims: 0, least: None, is_comparison: false, standing: None, ..first };
        assert_eq!(at(&alone, 79), "╌╌╌╌╌╌╌╌╌╌ 13 s gone · sleep 2 · 0 trials");
        let table = Progress { max_time: Duration::from_secs(30), most_trials: None, ..alone };
        assert_eq!(at(&table, 79), "━━━━╌╌╌╌╌╌ up to 17 s left · sleep 2 · 0 trials");
        let over = Progress { elapsed: Duration::from_secs(300), ..two };
        assert_eq!(at(&over, 79), "━━━━━━━━━━ last trial · sleep 2 · pair 4 of 13+");
    }

    /// How long an answer takes is known when the first run has ended, and what is left of the time that there is as a
    /// rule is said of no run that needs more.
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
                Doing::Measuring { arm: long, trial_ns, whole_ns: whole_s.map(|seconds| (seconds * 1e9) as u64) };
            let said = of_run(
                &first,
                (Some((doing, since_ns)), None, Duration::from_secs_f64(trial_s)),
                width,
                Alphabet::Unicode,
            );
            said.trim_start_matches(['━', '╌', ' ']).to_string()
        };
        assert_eq!(at(1.2, None, 1.2, 65), "first pair · python3…ep(3.2)\", running 1 s · 13+ pairs: over 13 s");
        assert_eq!(at(2.6, None, 2.6, 60), "first pair · 13+ pairs: over 26 s");
        assert_eq!(at(4.4, Some(6.2), 1.4, 60), "first pair · 13+ pairs: about 80 s");
        assert_eq!(at(6.4, None, 3.4, 140), format!("first pair · {long}, running 3 s · 13+ pairs: over 78 s"));
        // Where nothing can be drawn over, it is said once.
        let once = |trial_s: f64, whole_s: Option<f64>| {
            let [trial_ns, whole_ns] = [Some(trial_s), whole_s].map(|time| time.map(|seconds| (seconds * 1e9) as u64));
            let doing = Doing::Measuring { arm: long, trial_ns: trial_ns.unwrap_or(0), whole_ns };
            expected(&first, Some((doing, 0))).unwrap_or_default()
        };
        assert_eq!(once(0.9, None), "");
        assert_eq!(once(4.2, None), "at least 13 pairs are needed: over 52 s, by the first one so far");
        assert_eq!(once(4.2, Some(6.2)), "at least 13 pairs are needed: about 80 s, by the first one so far");
        let doing = Doing::Measuring { arm: long, trial_ns: 4_000_000_000, whole_ns: None };
        let of_five = Progress { most_trials: Some(5), ..first.clone() };
        assert_eq!(expected(&of_five, Some((doing, 0))), None, "five are asked for");
        let of_many = Progress { claims: 211, is_comparison: false, ..first.clone() };
        assert_eq!(expected(&of_many, Some((doing, 0))), None, "they have a time that is known");
        let piloted = Progress { trial_ns: Some(4e9), ..first };
        assert_eq!(expected(&piloted, Some((doing, 0))), None, "that was said with more known");
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
        let line = of_run(&odd, (None, None, Duration::ZERO), 79, Alphabet::Ascii);
        assert_eq!(line, r"1 min 48 s left - gr??e \u{1b}[31m - 112 hold, 13 refuted, 9 neither, 47 open", "{line}");
        let wide = of_run(&odd, (None, None, Duration::ZERO), 160, Alphabet::Ascii);
        assert!(
            wide.is_ascii() && wide.contains(r"gr??e \u{1b}[31m - true in 15 of 18 trials, 2.000 us - 112"),
            "{wide}"
        );
    }
}
