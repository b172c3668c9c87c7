//! Suites of workloads as text: the answer, its three intervals, the workloads that disagree, and the builds.

use ascertain_engine::claim::{Bound, Judging, Test};
use ascertain_engine::experiment::Arm;
use ascertain_engine::finding::{FailedWorkload, Remark, StartedProgram, UnlikeFact, WorkloadFailure};
use ascertain_engine::outcome::{ArmFacts, ClaimResult, Decision, Outcome};
use ascertain_engine::suite::{
    BuildGroup, Ends, Estimate, LEAST_SAMPLE, LeftOutWorkload, Suite, SuiteComparison, UnlikeStarts, WorkloadDrift,
    WorkloadLack, WorkloadRatio, split_name,
};
use ascertain_engine::unit::Unit;

use crate::figure::Figure;
use crate::text::{capitalised, counted, escape_controls, listed, quoted};

/// The number 1, to which no end of an interval may be rounded.
const SAME_SPEED: [f64; 1] = [1.0];
/// The largest number of names in a sentence.
const MOST_NAMES: usize = 6;
/// The facts about a build, with the word that stands for each. A fact with a word is printed only if it is not `no`.
const FACTS: [(&str, &str); 8] = [
    ("compiler", ""),
    ("optimisation", ""),
    ("pgo", "PGO"),
    ("lto", "LTO"),
    ("jit", "JIT"),
    ("free_threading", "free threading"),
    ("tail_calls", "tail calls"),
    ("allocator", "allocator"),
];

/// Returns the sentences about a suite: its samples, and then each comparison and each version with several builds.
pub(crate) fn sentences(suite: &Suite, outcome: &Outcome) -> Vec<String> {
    let comparisons = suite.comparisons.iter().flat_map(|of| comparison(of, &conditions(suite)));
    let groups = suite.builds.iter().flat_map(builds);
    let identities = identities(suite, &outcome.facts);
    let conditions = conditions(suite);
    let sample = (!suite.sample.is_empty()).then(|| format!("A sample{conditions} is {}.", suite.sample));
    comparisons.chain(groups).chain(claimed(suite, outcome)).chain(sample).chain(identities).collect()
}

/// Returns the conditions of a suite in parentheses, after a space. Empty for the only suite of an experiment.
pub(crate) fn conditions(suite: &Suite) -> String {
    match suite.conditions.is_empty() {
        true => String::new(),
        false => format!(" ({})", escape_controls(&suite.conditions.to_string())),
    }
}

/// Returns a sentence for each claim about the mean of two runtimes: which of the intervals contains the claimed ratio?
fn claimed(suite: &Suite, outcome: &Outcome) -> Vec<String> {
    let name = |arm: &Arm| {
        let level = arm.point.get(&suite.factor).map(ToString::to_string).unwrap_or_default();
        split_name(&level).0.map_or(level.clone(), String::from)
    };
    let sentence = |claim: &ClaimResult| {
        let [Test::Versus { candidate, baseline, bound, .. }] = claim.asked.tests.as_slice() else { return None };
        if !suite.has(&claim.experiment, candidate) || !suite.has(&claim.experiment, baseline) {
            return None;
        }
        let is_it = |of: &&SuiteComparison| {
            let names = [of.candidate.as_str(), of.baseline.as_str()];
            [[name(candidate), name(baseline)], [name(baseline), name(candidate)]].iter().any(|pair| pair[..] == names)
        };
        let comparison = suite.comparisons.iter().find(is_it)?;
        let mean = comparison.mean?;
        // The suite may have the two runtimes the other way round.
        let is_swapped = comparison.candidate == name(baseline);
        let turned = |ends: Ends| match is_swapped {
            true => Ends { low: ends.high.map(f64::recip), high: ends.low.map(f64::recip), ..ends },
            false => ends,
        };
        let [this_suite, like_these] = [mean.this_suite, mean.like_these].map(|ends| ends.map(turned));
        let (value, is_in): (String, Box<dyn Fn(Ends) -> bool>) = match *bound {
            Bound::AtLeast(least) | Bound::AtMost(least) => {
                (least.to_string(), Box::new(move |ends| ends.contains(least)))
            }
            Bound::Within(low, high) => (
                format!("{low} to {high}"),
                Box::new(move |ends: Ends| {
                    ends.low.is_none_or(|end| end <= high) && ends.high.is_none_or(|end| end >= low)
                }),
            ),
        };
        let interval = |ends: Ends| {
            let middle = ends.low.zip(ends.high).map(|(low, high)| (low * high).sqrt());
            Figure::new(middle, ends.low, ends.high, &SAME_SPEED).range
        };
        let what = match (this_suite.map(&is_in), like_these.map(&is_in)) {
            (Some(true), _) => format!("agrees with this suite and these builds ({})", interval(this_suite?)),
            (Some(false), Some(true)) => format!(
                "is outside the interval of this suite, but inside the interval of workloads like these ({}): other \
                 workloads explain the difference",
                interval(like_these?)
            ),
            (Some(false), Some(false)) => format!(
                "is outside both intervals, so even other workloads like these ({}) do not explain the difference",
                interval(like_these?)
            ),
            _ => return None,
        };
        Some(format!("{}: the claimed {value} {what}.", quoted(&claim.id)))
    };
    let of_suite =
        outcome.claims.iter().filter(|claim| claim.asked.judging == Judging::Rate && claim.asked.is_comparison());
    of_suite.filter_map(sentence).collect()
}

/// Returns a ratio and an interval as text, such as `1.24 (1.21 to 1.27)`.
pub(crate) fn figure(ratio: Estimate, ends: Option<Ends>) -> String {
    let (low, high) = ends.map_or((None, None), |ends| (ends.low, ends.high));
    let bound =
        |sign: &str, number: f64| format!("{sign} {}", Figure::new(Some(number), None, None, &SAME_SPEED).value);
    match (ratio.value(), ratio.low, ratio.high) {
        (Some(value), ..) if low.is_some() || high.is_some() => {
            Figure::new(Some(value), low, high, &SAME_SPEED).to_string()
        }
        (Some(value), ..) => Figure::new(Some(value), Some(value * 0.99), Some(value * 1.01), &[]).value,
        (None, Some(low), None) => bound("more than", low),
        (None, None, Some(high)) => bound("less than", high),
        _ => "unknown".into(),
    }
}

/// Returns only the ends of an interval as text.
fn range(ratio: Estimate, ends: Ends) -> String {
    Figure::new(ratio.value().or(ratio.low), ends.low, ends.high, &SAME_SPEED).range
}

/// Returns how fast the candidate is, as text: `1.24 times as fast as`.
fn times(ratio: Estimate) -> String {
    format!("{} times as fast as", figure(ratio, None))
}

/// Returns the headline of a comparison, which is also the title of its picture: the ratio of the means, and the
/// workloads that disagree.
pub(crate) fn headline(comparison: &SuiteComparison) -> String {
    let [candidate, baseline] = [&comparison.candidate, &comparison.baseline].map(|name| quoted(name));
    let Some(mean) = &comparison.mean else {
        return format!("{candidate} and {baseline} have no workload in common");
    };
    let same = if comparison.is_same_build { ", which is the same build" } else { "" };
    let against: Vec<String> = disagreeing(comparison)
        .iter()
        .map(|workload| format!("{} ({})", escape_controls(&workload.workload), figure(workload.ratio, None)))
        .collect();
    let against = match against.as_slice() {
        [] => String::new(),
        names => format!("; against the trend: {}", listed(names, MOST_NAMES)),
    };
    let open = if mean.decision == Some(Decision::Undecided) { ", which is not decided" } else { "" };
    format!("{candidate} is {} {baseline}{same}{open}{against}", times(mean.ratio))
}

/// Returns whether the mean is shown to be faster or slower: by its verdict or, if it was not judged, by its interval
/// for this suite. `None` if it is neither.
pub(crate) fn trend(comparison: &SuiteComparison) -> Option<Decision> {
    let mean = comparison.mean?;
    let by_interval = || match mean.this_suite? {
        Ends { low: Some(low), .. } if low > 1.0 => Some(Decision::Faster),
        Ends { high: Some(high), .. } if high < 1.0 => Some(Decision::Slower),
        _ => None,
    };
    match mean.decision {
        Some(decision) => Some(decision).filter(|decision| matches!(decision, Decision::Faster | Decision::Slower)),
        None => by_interval(),
    }
}

/// Returns the workloads whose verdict is the opposite of the mean's verdict. Intervals at 95 % would name a workload
/// in a fifth of all comparisons of ten workloads, even if no workload differed.
pub(crate) fn disagreeing(comparison: &SuiteComparison) -> Vec<&WorkloadRatio> {
    let opposite = match trend(comparison) {
        Some(Decision::Faster) => Decision::Slower,
        Some(_) => Decision::Faster,
        None => return Vec::new(),
    };
    comparison.workloads.iter().filter(|workload| workload.decision == Some(opposite)).collect()
}

/// Returns the verdicts on single workloads: "By workload: 7 are faster (calls, …), and 3 are not decided (regex, …)."
fn verdicts(comparison: &SuiteComparison) -> Option<String> {
    let of = |word: &str, is_it: &dyn Fn(Decision) -> bool| {
        let decided = comparison.workloads.iter().filter(|workload| workload.decision.is_some_and(is_it));
        let names: Vec<String> = decided.map(|workload| escape_controls(&workload.workload)).collect();
        let are = if names.len() == 1 { "is" } else { "are" };
        (!names.is_empty()).then(|| format!("{} {are} {word} ({})", names.len(), listed(&names, MOST_NAMES)))
    };
    let faster = of("faster", &|decision| decision == Decision::Faster);
    let slower = of("slower", &|decision| decision == Decision::Slower);
    let open = of("not decided", &|decision| !matches!(decision, Decision::Faster | Decision::Slower));
    let all: Vec<String> = [faster, slower, open].into_iter().flatten().collect();
    (!all.is_empty() && comparison.workloads.len() > 1).then(|| format!("By workload: {}.", all.join("; ")))
}

/// Returns the sentences about a single comparison.
pub(crate) fn sentences_of(of: &SuiteComparison) -> Vec<String> {
    comparison(of, "")
}

fn comparison(comparison: &SuiteComparison, conditions: &str) -> Vec<String> {
    let Some(mean) = &comparison.mean else {
        let headline = format!("{}{conditions}.", headline(comparison));
        return [headline].into_iter().chain(left_out(comparison)).collect();
    };
    let mut parts = vec![format!(
        "{}{conditions} (geometric mean of {}).",
        headline(comparison),
        counted(comparison.workloads.len(), "workload")
    )];
    let verdict = mean.decision.map(|decision| match decision {
        Decision::Faster => ", and the verdict is faster".to_string(),
        Decision::Slower => ", and the verdict is slower".into(),
        _ => ", which is not decided".into(),
    });
    let mut intervals = Vec::new();
    let verdict = verdict.unwrap_or_default();
    intervals.push(match mean.this_suite {
        Some(ends) => format!("this suite with these builds {}{verdict}", range(mean.ratio, ends)),
        None => format!("this suite with these builds: no interval{}{verdict}", without_interval(comparison)),
    });
    match mean.like_these {
        Some(ends) => intervals.push(format!(
            "workloads like these {} (Student's t with {}, not exact)",
            range(mean.ratio, ends),
            counted(ends.degrees as u64, "degree") + " of freedom"
        )),
        None => intervals.push(format!("workloads like these: no interval from fewer than {LEAST_SAMPLE} workloads")),
    }
    parts.push(format!("95 % intervals: {}.", intervals.join("; ")));
    if !comparison.is_paired {
        parts.push(format!(
            "The samples are not paired: everything that changed between the two measurements is part of the ratios. \
             {}.",
            counts(comparison)
        ));
    }
    parts.extend(verdicts(comparison));
    parts.extend(extremes(comparison));
    parts.extend(
        comparison
            .control
            .as_ref()
            .map(|control| format!("The negative control is {}.", figure(control.ratio, control.interval))),
    );
    parts.extend(left_out(comparison));
    parts.extend(drifts(&comparison.drifts));
    parts.extend(comparison.starts.as_ref().map(|starts| unlike_starts(starts, comparison)));
    vec![parts.join(" ")]
}

/// Returns the reason why the mean has no interval for this suite, after a comma. Empty if it is not known.
fn without_interval(comparison: &SuiteComparison) -> String {
    let is_alone = |workload: &&WorkloadRatio| workload.values.contains(&1);
    let alone: Vec<String> =
        comparison.workloads.iter().filter(is_alone).map(|of| escape_controls(&of.workload)).collect();
    match (alone.as_slice(), comparison.is_paired) {
        ([], _) => String::new(),
        (_, true) => ", because there is a single trial".into(),
        (names, false) => format!(", because of a single process in {}", listed(names, MOST_NAMES)),
    }
}

/// Returns the numbers of values of both sides: "`a` has 20 processes, and `b` has 6 processes for each workload".
fn counts(comparison: &SuiteComparison) -> String {
    let of = |side: usize| {
        let counts = comparison.workloads.iter().map(|workload| workload.values[side]);
        let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
        match (least, most) {
            (1, 1) => "1 process".to_string(),
            (least, most) if least == most => format!("{most} processes"),
            (least, most) => format!("{least} to {most} processes"),
        }
    };
    let [candidate, baseline] = [&comparison.candidate, &comparison.baseline].map(|name| quoted(name));
    format!("For each workload, {candidate} has {}, and {baseline} has {}", of(0), of(1))
}

/// Returns the lowest and the highest mean without one of the workloads.
fn extremes(comparison: &SuiteComparison) -> Option<String> {
    let known = comparison.without.iter().filter_map(|without| Some((without.ratio.value()?, &without.workload)));
    let least = known.clone().min_by(|one, other| one.0.total_cmp(&other.0))?;
    let most = known.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let word = |(ratio, workload): (f64, &String)| {
        let ratio = figure(Estimate { low: Some(ratio), high: Some(ratio) }, None);
        format!("{ratio} (without {})", escape_controls(workload))
    };
    Some(format!("If any one workload is left out, the mean is {} to {}.", word(least), word(most)))
}

fn left_out(comparison: &SuiteComparison) -> Option<String> {
    let of = |LeftOutWorkload { workload, arms, reason }: &LeftOutWorkload| {
        let names: Vec<String> = arms.iter().map(|arm| quoted(arm)).collect();
        let why = match reason {
            WorkloadLack::Failed => format!("missing in {}", names.join(" and ")),
            WorkloadLack::BothStopped => "both reached the time limit".into(),
            WorkloadLack::OtherUnit => "its two sides have different units".into(),
        };
        format!("{} ({why})", escape_controls(workload))
    };
    let all: Vec<String> = comparison.left_out.iter().map(of).collect();
    (!all.is_empty()).then(|| format!("Left out on both sides: {}.", all.join(", ")))
}

fn drifts(drifts: &[WorkloadDrift]) -> Option<String> {
    let of = |drift: &WorkloadDrift| {
        let percent = ((drift.ratio - 1.0) * 100.0).round();
        format!("{} of {} ({percent:+} %)", escape_controls(&drift.workload), quoted(&drift.arm))
    };
    let all: Vec<String> = drifts.iter().take(MOST_NAMES).map(of).collect();
    let more = drifts.len().saturating_sub(MOST_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!all.is_empty()).then(|| {
        format!(
            "Not steady: the measured pass still differs from the passes before it, for {}{more}. A longer `warm_ms` \
             shows more.",
            all.join(", ")
        )
    })
}

/// Returns the sentences about what runs at each start of one side only.
fn unlike_starts(UnlikeStarts { candidate, baseline }: &UnlikeStarts, of: &SuiteComparison) -> String {
    let side = |hooks: &[String], name: &str| {
        (!hooks.is_empty()).then(|| format!("{} at each start of {}", escape_controls(&hooks.join(", ")), quoted(name)))
    };
    let sides = [side(candidate, &of.candidate), side(baseline, &of.baseline)];
    let sides: Vec<String> = sides.into_iter().flatten().collect();
    format!("These run on one side only: {}. So environments are compared, and not only runtimes.", sides.join("; "))
}

fn builds(group: &BuildGroup) -> Vec<String> {
    let BuildGroup { version, builds, copies, baseline, ratio, like_these, range: widest, two_builds, most } = group;
    let number = |number: f64| figure(Estimate { low: Some(number), high: Some(number) }, None);
    let mut sentences = Vec::new();
    if let (Some(baseline), Some(ratio)) = (baseline, ratio) {
        let estimate = Estimate { low: Some(*ratio), high: Some(*ratio) };
        sentences.push(match like_these {
            Some(ends) if builds.len() < LEAST_SAMPLE => format!(
                "{} is {} times as fast as builds like these of {} (95 % interval, Student's t, not exact).",
                quoted(version),
                figure(estimate, Some(*ends)),
                quoted(baseline)
            ),
            Some(ends) => format!(
                "Builds like these of {} are {} times as fast as {} (95 % interval, Student's t, not exact).",
                quoted(version),
                figure(estimate, Some(*ends)),
                quoted(baseline)
            ),
            None => format!(
                "{} of {}: no interval for builds like these from fewer than {LEAST_SAMPLE}.",
                capitalised(&counted(builds.len(), "different build")),
                quoted(version)
            ),
        });
    }
    if let Some(widest) = widest {
        let further = two_builds.map_or(String::new(), |two| {
            format!("; two further builds would differ by less than {} times in 95 of 100 cases", number(two))
        });
        let most = most.as_ref().map_or(String::new(), |(workload, factor)| {
            format!(", and most in {} ({} times)", escape_controls(workload), number(*factor))
        });
        sentences.push(format!(
            "{} of {} differ by up to {} times in the mean{most}{further}.",
            capitalised(&counted(builds.len(), "different build")),
            quoted(version),
            number(*widest)
        ));
    }
    if !copies.is_empty() {
        let names: Vec<String> = copies.iter().map(|name| quoted(name)).collect();
        sentences.push(format!("Copies of a build do not count as builds: {}.", names.join(", ")));
    }
    sentences
}

/// Returns a sentence for each runtime with its build: version, compiler and options.
fn identities(suite: &Suite, facts: &[ArmFacts]) -> Vec<String> {
    let of_suite = facts.iter().filter(|of| suite.has(&of.experiment, &of.arm));
    let is_compared = |level: &str| {
        let name = split_name(level).0.unwrap_or(level);
        let is_it = |other: &String| other == name || *other == format!("{name} ({})", split_name(level).1);
        suite.comparisons.iter().any(|of| is_it(&of.candidate) || is_it(&of.baseline))
    };
    let sentence = |of: &ArmFacts| {
        let level = of.arm.point.get(&suite.factor)?.to_string();
        let fact = |name: &str| of.facts.get(name).map(|value| escape_controls(&value.to_string()));
        let part = |(name, word): &(&str, &str)| {
            let value = fact(name)?;
            match *word {
                "" => Some(value),
                "PGO" | "LTO" => Some(format!("{word} {value}")),
                _ if value == "no" => None,
                _ => Some(format!("{word} {value}")),
            }
        };
        let parts: Vec<String> = [fact("implementation"), fact("version")].into_iter().flatten().collect();
        let parts = [parts.join(" ")].into_iter().chain(FACTS.iter().filter_map(part)).chain(fact("path"));
        let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        let name = split_name(&level).0.unwrap_or(&level).to_string();
        is_compared(&level).then(|| format!("{}: {}.", quoted(&name), parts.join(", ")))
    };
    let mut sentences: Vec<String> = of_suite.filter_map(sentence).collect();
    sentences.dedup();
    sentences
}

/// Returns the text of a threat about unlike builds, without a full stop.
pub(crate) fn unlike_builds(facts: &[UnlikeFact]) -> String {
    let fact = |UnlikeFact { fact, values }: &UnlikeFact| {
        let value = |(value, names): &(String, Vec<String>)| format!("{value} for {}", listed(names, 3));
        let values: Vec<String> = values.iter().map(value).collect();
        format!("{fact} {}", values.join(" and "))
    };
    let facts: Vec<String> = facts.iter().map(fact).collect();
    format!("The builds are unlike: {}", facts.join("; "))
}

/// Returns a remark about runtimes, in lower case for the middle of a sentence. Empty for other remarks.
pub(crate) fn remark(remark: &Remark) -> String {
    match remark {
        Remark::FailedWorkloads { failures } => {
            let failure = |FailedWorkload { workload, kind, how }: &FailedWorkload| match kind {
                WorkloadFailure::Crash => format!("{workload} failed ({how})"),
                WorkloadFailure::Wrong => format!("{workload} gave another answer ({how})"),
                WorkloadFailure::Missing => format!("{workload} needs something that is not installed ({how})"),
            };
            let all: Vec<String> = failures.iter().map(failure).collect();
            format!("{}. These workloads are left out of every comparison with this runtime", all.join("; "))
        }
        Remark::StartsAnother(StartedProgram { given, starts, wrapper_ns, program_ns, is_followed, kept }) => {
            let [wrapper, program] = [*wrapper_ns, *program_ns].map(|ns| Unit::Nanosecond.human(ns));
            let measured = match is_followed {
                true => "the program was measured, and not the wrapper",
                false => "the wrapper was measured, so its start is part of each process",
            };
            let kept = match kept.is_empty() {
                true => String::new(),
                false => format!(". The measured program also got what the wrapper changes: {}", kept.join(" ")),
            };
            format!(
                "`{given}` starts another program, `{starts}`: an empty program takes {wrapper} through it and \
                 {program} without it; {measured}{kept}"
            )
        }
        Remark::ScriptRuntime { given, start_ns } => format!(
            "`{given}` is a script, and Ascertain does not know which program it starts. An empty program takes {} \
             through it, which is part of each process. To measure the program alone, give its own path",
            Unit::Nanosecond.human(*start_ns)
        ),
        Remark::PrintedErrors { printed } => {
            let (workload, line) = printed.first().cloned().unwrap_or_default();
            let more = match printed.len() {
                0 | 1 => String::new(),
                count => format!(", and in {} more", counted(count - 1, "workload")),
            };
            format!("the runtime printed to standard error in {workload} (`{line}`){more}; that is part of its time")
        }
        Remark::UnstableOutput { workloads } => format!(
            "the output of {} differs from run to run, so it was not compared between runtimes",
            workloads.join(", ")
        ),
        Remark::Processes { seeds, unseeded, overruled, inherited, control } => {
            let mut parts = vec![format!(
                "each workload of a trial had one hash seed for all runtimes ({} in the JSON)",
                counted(seeds.len(), "seed")
            )];
            if !unseeded.is_empty() {
                let names: Vec<String> = unseeded.iter().map(|name| escape_controls(name)).collect();
                parts.push(format!("but {} does not use it, because of its wrapper", listed(&names, MOST_NAMES)));
            }
            if !overruled.is_empty() {
                parts.push(format!("{} of your environment was overruled", overruled.join(", ")));
            }
            if !inherited.is_empty() {
                parts.push(format!("all runtimes got {} from your environment", listed(inherited, MOST_NAMES)));
            }
            parts.push(match control {
                Some((library, id)) => format!(
                    "the negative control works in {library}, which is the same file for all runtimes (build ID {})",
                    id.chars().take(12).collect::<String>()
                ),
                None => {
                    "there is no negative control, because the runtimes share no library that could do its work".into()
                }
            });
            parts.join("; ")
        }
        Remark::MoreWorkloads { count } => format!(
            "pyperformance is installed: {count} of its workloads can be added with the level `own,pyperformance` of \
             the factor `workloads`; a trial then takes minutes"
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
