//! Suites of a run: from the observed values to comparisons.

use std::collections::BTreeSet;

use ascertain_stats::{MeanPart, mean_interval};

use super::builds::{BuildLogs, group};
use super::compare::{Pairs, add_pairs, lacking, order_decision, trial_means};
use super::{
    BuildGroup, ERROR, LEAST_SAMPLE, LeftOutWorkload, Suite, SuiteComparison, UnlikeStarts, WorkloadDrift,
    WorkloadLack, other_levels,
};
use crate::claim::{Judging, Test};
use crate::experiment::{Arm, Level, Plot, Point, Spec};
use crate::finding::{Threat, UnlikeFact};
use crate::observations::{ArmValues, Observations};
use crate::outcome::{ClaimResult, Decision};

/// The facts that describe how a runtime was built, apart from its version. Runtimes that differ in one of them are
/// unlike builds.
const BUILD_FACTS: [&str; 8] =
    ["compiler", "optimisation", "pgo", "lto", "jit", "free_threading", "tail_calls", "allocator"];
/// The fact that identifies a build by its content.
const BUILD: &str = "build";
/// The fact with the version of a runtime.
const VERSION: &str = "version";
/// The fact with what runs at each start: names with digests of their content, separated by blanks.
const AT_START: &str = "at_start";
/// The fact that describes a sample.
const SAMPLE: &str = "sample";
/// A drift within a process is reported from this change of the logarithm: 2 %.
const LEAST_DRIFT: f64 = 0.02;

/// Two means of logarithms are the same if they differ by less than this, which is only rounding.
const SAME_LOG: f64 = 1e-9;

/// Splits a level such as `old=/opt/a/bin/python3` into the name that the user gave and the rest. A level without a
/// name is its own name. A path that begins with `/` or `.` has no name, so it may contain `=`.
pub fn split_name(level: &str) -> (Option<&str>, &str) {
    match level.split_once('=') {
        Some((name, rest)) if !name.is_empty() && !level.starts_with(['/', '.', '~']) => (Some(name), rest),
        _ => (None, level),
    }
}

/// The metrics and the factor of a forest plot.
struct Forest<'a> {
    metric: usize,
    mean: &'a str,
    factor: &'a str,
    drift: Option<usize>,
    control: &'a str,
}

/// An arm of a suite with its name.
struct Member<'a> {
    name: String,
    values: &'a ArmValues,
}

impl Member<'_> {
    fn fact(&self, fact: &str) -> Option<String> {
        self.values.facts.get(fact).map(ToString::to_string)
    }

    /// Returns the version to which the build belongs: the name that the user gave, or else the version that the
    /// runtime reports.
    fn version(&self, factor: &str) -> String {
        let level = self.values.arm.point.get(factor).map(ToString::to_string).unwrap_or_default();
        let given = split_name(&level).0.map(String::from);
        given.or_else(|| self.fact(VERSION)).unwrap_or_else(|| self.name.clone())
    }
}

/// Returns the suites of a run: one for each experiment with a forest plot, and for each combination of the levels of
/// other factors.
pub(crate) fn suites<'s>(
    observations: &Observations,
    spec: &impl Fn(&str) -> Option<&'s Spec>,
    claims: &[ClaimResult],
    error: f64,
) -> Vec<Suite> {
    let mut groups: Vec<(&'s Spec, Forest<'s>, Vec<&ArmValues>)> = Vec::new();
    for values in observations.arms() {
        let Some(spec) = spec(&values.experiment) else { continue };
        let Some(forest) = spec.plots.iter().find_map(|plot| Forest::new(spec, plot)) else { continue };
        if values.of_keys(forest.metric).next().is_none() {
            continue;
        }
        let others = |arm: &Arm| other_levels(arm, forest.factor);
        let is_alike =
            |of: &Vec<&ArmValues>| of[0].experiment == values.experiment && others(&of[0].arm) == others(&values.arm);
        match groups.iter_mut().find(|(_, _, of)| is_alike(of)) {
            Some((_, _, of)) => of.push(values),
            None => groups.push((spec, forest, vec![values])),
        }
    }
    let suites = groups.iter().filter(|(_, _, arms)| arms.len() > 1);
    let mut suites: Vec<Suite> =
        suites.map(|(spec, forest, arms)| suite(spec, forest, arms, (claims, error))).collect();
    let all: Vec<(String, Point)> = suites.iter().map(|of| (of.experiment.clone(), of.levels.clone())).collect();
    for suite in &mut suites {
        let others = || all.iter().filter(|(experiment, _)| *experiment == suite.experiment);
        let is_special = |factor: &String, level: &Level| others().any(|(_, other)| other.get(factor) != Some(level));
        suite.conditions = suite.levels.only(is_special);
    }
    suites
}

impl<'a> Forest<'a> {
    fn new(spec: &Spec, plot: &'a Plot) -> Option<Forest<'a>> {
        let Plot::Forest { metric, mean, factor, drift, control } = plot else { return None };
        Some(Forest { metric: spec.metric(metric)?, mean, factor, drift: spec.metric(drift), control })
    }
}

fn suite(spec: &Spec, forest: &Forest, arms: &[&ArmValues], (claims, error): (&[ClaimResult], f64)) -> Suite {
    let members = members(arms, forest.factor);
    let (baseline, others) = members.split_first().expect("a suite has at least two arms");
    let mut all = Vec::new();
    let comparisons = others.iter().map(|candidate| {
        let (mut comparison, pairs) = comparison(candidate, baseline, forest, error);
        if let Some(mean) = &mut comparison.mean {
            let claim = claim_about(claims, (&spec.id, forest.mean), [candidate, baseline]);
            mean.decision = claim.and_then(|claim| match spec.metric(forest.mean) {
                Some(metric) if is_judged(metric, [candidate, baseline], &pairs) => claim.decision,
                _ => order_decision(trial_means(&pairs).into_iter().map(|(_, range)| range), claim.error),
            });
        }
        all.push((candidate.name.clone(), pairs));
        comparison
    });
    let comparisons: Vec<SuiteComparison> = comparisons.collect();
    let logs = logs_of_builds(all);
    Suite {
        experiment: spec.id.clone(),
        metric: spec.metrics[forest.metric].name.clone(),
        factor: forest.factor.into(),
        levels: other_levels(&baseline.values.arm, forest.factor),
        conditions: Point::default(),
        sample: baseline.fact(SAMPLE).unwrap_or_default(),
        builds: build_groups(&members, forest.factor, &logs),
        comparisons,
    }
}

/// Returns the logarithms of each build's ratios. Means of builds are comparable only over the same workloads, so only
/// those count that all builds completed in all trials.
fn logs_of_builds(all: Vec<(String, Vec<Pairs>)>) -> Vec<Option<BuildLogs>> {
    let is_exact = |of: &Pairs| of.ranges.iter().all(|[low, high]| low == high);
    let with_pairs = || all.iter().map(|(_, pairs)| pairs).filter(|pairs| !pairs.is_empty());
    let is_common = |name: &str| with_pairs().all(|pairs| pairs.iter().any(|of| of.workload == name && is_exact(of)));
    let names = with_pairs().flatten().map(|of| &of.workload);
    let common: BTreeSet<String> = names.filter(|name| is_common(name)).cloned().collect();
    let logs = all.into_iter().map(|(name, mut pairs)| {
        pairs.retain(|of| common.contains(&of.workload));
        build_logs(&name, &pairs)
    });
    logs.collect()
}

/// Returns the arms with their names. A name is the level of the factor, or the name that the user gave. If several
/// arms have the same name, the rest of their levels is appended.
fn members<'a>(arms: &[&'a ArmValues], factor: &str) -> Vec<Member<'a>> {
    let level = |arm: &ArmValues| arm.arm.point.get(factor).map(ToString::to_string).unwrap_or_default();
    let levels: Vec<String> = arms.iter().map(|arm| level(arm)).collect();
    let short = |level: &str| split_name(level).0.unwrap_or(level).to_string();
    let named = arms.iter().zip(&levels).map(|(values, level)| {
        let name = short(level);
        let is_shared = levels.iter().filter(|other| short(other) == name).count() > 1;
        let name = if is_shared { format!("{name} ({})", split_name(level).1) } else { name };
        Member { name, values }
    });
    named.collect()
}

fn comparison(candidate: &Member, baseline: &Member, forest: &Forest, error: f64) -> (SuiteComparison, Vec<Pairs>) {
    let (of_candidate, of_baseline) = (candidate.values, baseline.values);
    let keys: BTreeSet<&str> =
        [of_candidate, of_baseline].iter().flat_map(|arm| arm.of_keys(forest.metric).map(|(key, _)| key)).collect();
    let names = [candidate.name.as_str(), baseline.name.as_str()];
    let mut comparison = SuiteComparison {
        candidate: names[0].into(),
        baseline: names[1].into(),
        is_same_build: candidate.fact(BUILD).is_some_and(|build| Some(build) == baseline.fact(BUILD)),
        starts: starts(candidate, baseline),
        ..SuiteComparison::default()
    };
    let mut all = Vec::new();
    for key in keys {
        let find = |arm: &ArmValues| {
            let found = arm.of_keys(forest.metric).find(|(other, _)| *other == key);
            found.map(|(_, values)| values.by_trial().collect::<Vec<_>>()).unwrap_or_default()
        };
        let pairs = Pairs::new(key, find(of_candidate).into_iter(), find(of_baseline).into_iter());
        match pairs {
            Ok(pairs) if key == forest.control => comparison.control = Some(pairs.ratio(error)),
            Ok(pairs) => all.push(pairs),
            Err(_) if key == forest.control => {}
            Err((reason, fails)) => {
                let arms =
                    if reason == WorkloadLack::Failed { lacking(names, fails) } else { names.map(String::from).into() };
                comparison.left_out.push(LeftOutWorkload { workload: key.into(), arms, reason });
            }
        }
    }
    add_pairs(&mut comparison, &all, error);
    comparison.drifts = [candidate, baseline].into_iter().flat_map(|member| drifts(member, forest)).collect();
    (comparison, all)
}

/// Returns what runs at each start of one side only; `None` if the same runs on both sides.
fn starts(candidate: &Member, baseline: &Member) -> Option<UnlikeStarts> {
    let [one, other] = [candidate, baseline].map(|member| member.fact(AT_START).unwrap_or_default());
    let only = |here: &str, there: &str| -> Vec<String> {
        let is_there = |hook: &&str| there.split(' ').any(|other| other == *hook);
        let hooks = here.split(' ').filter(|hook| !hook.is_empty() && !is_there(hook));
        hooks.map(|hook| hook.rsplit_once(':').map_or(hook, |(name, _)| name).to_string()).collect()
    };
    let starts = UnlikeStarts { candidate: only(&one, &other), baseline: only(&other, &one) };
    (starts != UnlikeStarts::default()).then_some(starts)
}

/// Returns the workloads of an arm whose passes still change: the interval of the change excludes 2 % in either
/// direction.
fn drifts(member: &Member, forest: &Forest) -> Vec<WorkloadDrift> {
    let Some(metric) = forest.drift else { return Vec::new() };
    let drift = |(key, values): (&str, &crate::observations::KeyValues)| {
        let logs: Vec<f64> = values.values.iter().filter(|v| **v > 0.0 && v.is_finite()).map(|v| v.ln()).collect();
        let interval = mean_interval(&logs, ERROR).ok()??;
        let is_beyond = interval.low > LEAST_DRIFT || interval.high < -LEAST_DRIFT;
        is_beyond.then(|| WorkloadDrift { workload: key.into(), arm: member.name.clone(), ratio: interval.mean.exp() })
    };
    member.values.of_keys(metric).filter(|(key, _)| *key != forest.control).filter_map(drift).collect()
}

/// Returns the claim that compares the mean of these two arms.
fn claim_about<'a>(
    claims: &'a [ClaimResult],
    (experiment, mean): (&str, &str),
    [of_candidate, of_baseline]: [&Member; 2],
) -> Option<&'a ClaimResult> {
    let is_it = |claim: &&ClaimResult| {
        let is_pair = matches!(claim.asked.tests.as_slice(), [Test::Versus { measure, candidate, baseline, .. }]
            if measure.metric == mean && *candidate == of_candidate.values.arm && *baseline == of_baseline.values.arm);
        claim.experiment == experiment && claim.asked.judging == Judging::Order && is_pair
    };
    claims.iter().find(is_it)
}

/// Returns whether the claim was judged by the same trial means as the mean of these pairs. The claim's means can have
/// other workloads: they include a workload in all trials before it failed. They never include a workload that any arm
/// of the run lacks.
fn is_judged(metric: usize, [candidate, baseline]: [&Member; 2], pairs: &[Pairs]) -> bool {
    let Ok(judged) = Pairs::new("", candidate.values.by_trial(metric), baseline.values.by_trial(metric)) else {
        return false;
    };
    let is_near = |one: f64, other: f64| one == other || (one - other).abs() < SAME_LOG;
    let judged = judged.trials.iter().zip(&judged.ranges);
    let means = trial_means(pairs);
    judged.len() == means.len()
        && judged.zip(&means).all(|((trial, range), (other, mean))| {
            trial == other && range.iter().zip(mean).all(|(one, other)| is_near(*one, *other))
        })
}

pub(super) fn build_logs(name: &str, pairs: &[Pairs]) -> Option<BuildLogs> {
    let middle = |[low, high]: [f64; 2]| (low == high).then_some(low);
    let of_trial = |(trial, range): (u64, [f64; 2])| Some((trial, middle(range)?));
    let trials: Vec<(u64, f64)> = trial_means(pairs).into_iter().filter_map(of_trial).collect();
    let of_workload = |pairs: &Pairs| {
        let logs: Vec<f64> = pairs.ranges.iter().copied().filter_map(middle).collect();
        Some((pairs.workload.clone(), MeanPart::new(1.0, &logs)?.mean))
    };
    let workloads: Vec<(String, f64)> = pairs.iter().map(of_workload).collect::<Option<_>>()?;
    let mean = workloads.iter().map(|(_, log)| log).sum::<f64>() / workloads.len() as f64;
    (!workloads.is_empty()).then_some(BuildLogs { name: name.into(), mean, trials: Some(trials), workloads })
}

/// Returns the versions with several different builds. `logs` has an entry for each member except the first, whose
/// ratios are all 1.
fn build_groups(members: &[Member], factor: &str, logs: &[Option<BuildLogs>]) -> Vec<BuildGroup> {
    let workloads = logs.iter().flatten().next().map(|of| of.workloads.clone()).unwrap_or_default();
    let zero = workloads.into_iter().map(|(workload, _)| (workload, 0.0)).collect();
    let first = BuildLogs { name: members[0].name.clone(), mean: 0.0, trials: None, workloads: zero };
    let logs: Vec<Option<BuildLogs>> = [Some(first)].into_iter().chain(logs.iter().cloned()).collect();
    let mut versions: Vec<VersionBuilds> = Vec::new();
    for (member, logs) in members.iter().zip(logs) {
        let Some(logs) = logs else { continue };
        let version = member.version(factor);
        let identity = member.fact(BUILD).unwrap_or_else(|| member.name.clone());
        let place = versions.iter().position(|known| known.version == version).unwrap_or_else(|| {
            versions.push(VersionBuilds { version, ..VersionBuilds::default() });
            versions.len() - 1
        });
        let known = &mut versions[place];
        match known.identities.contains(&identity) {
            true => known.copies.push(member.name.clone()),
            false => {
                known.identities.push(identity);
                known.builds.push(logs);
            }
        }
    }
    let Some((base, others)) = versions.split_first() else { return Vec::new() };
    let is_asked =
        |one: &VersionBuilds| one.builds.len() > 1 || !one.copies.is_empty() && one.builds.len() + one.copies.len() > 2;
    let mut found = Vec::new();
    if is_asked(base) {
        found.push(group((&base.version, &base.builds), base.copies.clone(), None));
    }
    let has_sample = base.builds.len() >= LEAST_SAMPLE;
    for other in others.iter().filter(|other| is_asked(other) || has_sample) {
        let against = Some((base.version.as_str(), base.builds.as_slice()));
        found.push(group((&other.version, &other.builds), other.copies.clone(), against));
    }
    found
}

/// The builds of one version.
#[derive(Default)]
struct VersionBuilds {
    version: String,
    builds: Vec<BuildLogs>,
    /// The identity of each build.
    identities: Vec<String>,
    /// Names of members that are copies of one of the builds.
    copies: Vec<String>,
}

/// Returns the threats to the results of a suite: unlike builds, and negative controls that differ.
pub(crate) fn threats(suite: &Suite, observations: &Observations) -> Vec<Threat> {
    unlike_builds(suite, observations).into_iter().chain(control_differs(suite)).collect()
}

/// Returns a threat if the runtimes of a suite were built in different ways.
fn unlike_builds(suite: &Suite, observations: &Observations) -> Option<Threat> {
    let arms: Vec<&ArmValues> = observations
        .arms()
        .iter()
        .filter(|arm| suite.has(&arm.experiment, &arm.arm) && !arm.facts.is_empty())
        .collect();
    let members = members(&arms, &suite.factor);
    let compared = |name: &str| suite.comparisons.iter().any(|of| of.candidate == name || of.baseline == name);
    let members: Vec<&Member> = members.iter().filter(|member| compared(&member.name)).collect();
    let unlike = |fact: &&str| {
        let mut values: Vec<(String, Vec<String>)> = Vec::new();
        for member in &members {
            let value = member.fact(fact).unwrap_or_else(|| "unknown".into());
            match values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, names)) => names.push(member.name.clone()),
                None => values.push((value, vec![member.name.clone()])),
            }
        }
        (values.len() > 1).then(|| UnlikeFact { fact: fact.replace('_', " "), values })
    };
    let facts: Vec<UnlikeFact> = BUILD_FACTS.iter().filter_map(unlike).collect();
    (!facts.is_empty()).then_some(Threat::UnlikeBuilds { facts })
}

/// Returns a threat for each comparison whose negative control differs.
fn control_differs(suite: &Suite) -> Vec<Threat> {
    let differs = |comparison: &SuiteComparison| {
        let control = comparison.control.as_ref()?;
        let is_decided = matches!(control.decision, Some(Decision::Faster | Decision::Slower));
        let ratio = control.ratio.value().filter(|ratio| is_decided && ratio.ln().abs() > LEAST_DRIFT)?;
        let (candidate, baseline) = (comparison.candidate.clone(), comparison.baseline.clone());
        Some(Threat::ControlDiffers { candidate, baseline, ratio })
    };
    suite.comparisons.iter().filter_map(differs).collect()
}
