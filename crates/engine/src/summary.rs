//! Summarises a run: computes the statistics of each arm and metric, and finds the threats to the results. Verdicts are
//! computed elsewhere.

use ascertain_stats::Moments;
use ascertain_sys::machine::{CpuTimes, Machine, cpu_times};

use crate::claim::{Judging, Test};
use crate::command::{CommandSet, EXIT, OnFailure, WALL};
use crate::experiment::{Arm, Metric, Spec};
use crate::finding::{Reason, Threat};
use crate::judging;
use crate::observations::{ArmValues, Observations, median_interval};
use crate::outcome::{ArmFacts, ClaimResult, Outcome, PointSummary, SCHEMA, TailHint};
use crate::plan::{Plan, Registry, UseCase};
use crate::suite;
use crate::values::{Bounds, Values};

/// The facts about a run that are known before anything is measured.
pub(crate) struct RunFacts<'a> {
    pub registry: &'a Registry<'a>,
    pub machine: &'a Machine,
    /// CPU times of the machine when the run began; `None` if the system does not report them.
    pub cpu_times: Option<CpuTimes>,
    pub plan: &'a Plan,
    pub run_id: &'a str,
}

/// Returns the outcome of a run from its observations and the results of its claims.
pub(crate) fn summarise(
    facts: &RunFacts,
    observations: &Observations,
    mut claims: Vec<ClaimResult>,
    interrupted: bool,
) -> Outcome {
    let spec = |id: &str| facts.registry.iter().map(|experiment| experiment.spec()).find(|spec| spec.id == id);
    let with_spec = observations.arms().iter().filter_map(|values| Some((values, spec(&values.experiment)?)));
    let cpu_times = facts.cpu_times.zip(cpu_times()).map(|(before, now)| now.since(&before));
    let mut threats = threats_of_machine(facts.machine);
    threats.extend(cpu_times.and_then(threats_of_steal));
    threats.extend(threats_of_commands(&facts.plan.commands, observations));
    let points: Vec<PointSummary> = with_spec.clone().flat_map(|(values, spec)| summarise_arm(values, spec)).collect();
    let suites = suite::suites(observations, &spec, &claims, facts.plan.config.error);
    for threat in suites.iter().flat_map(|suite| suite::threats(suite, observations)) {
        // Two suites of the same runtimes have the same builds.
        if !threats.contains(&threat) {
            threats.push(threat);
        }
    }
    let several = claims.len() > 1;
    for claim in &mut claims {
        claim.median = median(claim, &points);
        claim.tail_hint = tail_hint(claim, facts, observations);
        for reason in &mut claim.reasons {
            if let Reason::TooEarly { is_interrupted, is_shared, .. } = reason {
                (*is_interrupted, *is_shared) = (interrupted, several);
            }
        }
    }
    Outcome {
        schema: SCHEMA.to_string(),
        run_id: facts.run_id.to_string(),
        machine: facts.machine.clone(),
        cpu_times,
        threats,
        seed: facts.plan.config.seed,
        interrupted,
        points,
        by_key: with_spec.flat_map(|(values, spec)| summarise_by_key(values, spec)).collect(),
        claims,
        left_out: observations.left_out(),
        facts: observations.arms().iter().filter(|values| !values.facts.0.is_empty()).map(facts_of).collect(),
        remarks: Vec::new(),
        suites,
        windows: None,
    }
}

fn facts_of(values: &ArmValues) -> ArmFacts {
    let ArmValues { experiment, arm, facts, .. } = values;
    ArmFacts { experiment: experiment.clone(), arm: arm.clone(), facts: facts.clone() }
}

/// Returns a hint about the tails of a claim of `compare` that was not asked about tails.
fn tail_hint(claim: &ClaimResult, facts: &RunFacts, observations: &Observations) -> Option<TailHint> {
    let [Test::Versus { measure, candidate, baseline, .. }] = claim.asked.tests.as_slice() else { return None };
    if facts.plan.use_case != UseCase::Compare || !claim.tails.is_empty() {
        return None;
    }
    let experiment = facts.registry.iter().find(|experiment| experiment.spec().id == claim.experiment)?;
    let metric = experiment.spec().metric(&measure.metric)?;
    let set = facts.plan.commands.iter().find(|set| set.id == claim.experiment);
    let limit = set.and_then(|set| set.time_limit).filter(|_| metric == WALL);
    let values = |arm: &Arm| {
        observations.arms().iter().find(|values| values.experiment == claim.experiment && values.arm == *arm)
    };
    let arms = [values(candidate)?, values(baseline)?];
    judging::tail_hint(claim, arms, metric, limit.map(|limit| limit.as_nanos() as f64))
}

/// Returns the median of the metric that the claim's predicate compares. Returns `None` if the claim is not about the
/// rate at which a predicate is true, or if the predicate compares several metrics.
fn median(claim: &ClaimResult, points: &[PointSummary]) -> Option<f64> {
    let [Test::Predicate { arm, measure: Some(measure), .. }] = claim.asked.tests.as_slice() else { return None };
    let is_it = |point: &&PointSummary| point.metric == measure.metric && point.is_of(&claim.experiment, arm);
    points.iter().find(is_it).filter(|_| claim.asked.judging == Judging::Rate)?.median
}

/// Summarises the metrics of an arm, except the metrics whose values are summarised separately for each key.
fn summarise_arm(values: &ArmValues, spec: &Spec) -> Vec<PointSummary> {
    let metrics = spec.metrics.iter().zip(&values.by_metric).filter(|(metric, _)| !metric.is_by_key);
    metrics.map(|(metric, observed)| point(values, metric, "", observed)).collect()
}

/// Summarises only the metrics of an arm whose values are summarised separately for each key, such as each server.
fn summarise_by_key(values: &ArmValues, spec: &Spec) -> Vec<PointSummary> {
    let metrics = spec.metrics.iter().zip(&values.by_key);
    let by_key = metrics.flat_map(|(metric, by_key)| by_key.iter().flatten().map(move |of_key| (metric, of_key)));
    by_key.map(|(metric, (key, observed))| point(values, metric, key, &observed.values)).collect()
}

fn point(of: &ArmValues, metric: &Metric, key: &str, observed: &Values) -> PointSummary {
    let sorted = observed.sorted();
    let (low, high) = median_interval(&sorted);
    let quantile = |q| sorted.quantile(q).and_then(Bounds::estimate).filter(|value| value.is_finite());
    // If some observations were cut off, the mean is unknown.
    let finite = sorted.as_slice().last().is_some_and(|last| last.is_finite());
    let moments: Moments = observed.iter().copied().collect();
    PointSummary {
        experiment: of.experiment.clone(),
        arm: of.arm.clone(),
        metric: metric.name.clone(),
        key: key.into(),
        unit: metric.unit,
        better: metric.better,
        is_share: metric.is_share,
        n: observed.len() as u64,
        median: quantile(0.5),
        median_low: Some(low).filter(|low| low.is_finite()),
        median_high: Some(high).filter(|high| high.is_finite()),
        p90: quantile(0.9),
        p99: quantile(0.99),
        mean: moments.mean().filter(|_| finite),
        std: moments.standard_deviation().filter(|_| finite),
        // Only a completed observation can be the smallest value: one that was cut off would have been longer.
        min: sorted.as_slice().first().copied().filter(|least| least.is_finite()),
        max: quantile(1.0),
        censored: observed.iter().filter(|value| **value == f64::INFINITY).count() as u64,
        limit: observed.limit(),
        seen: observed.most(),
    }
}

/// A clock counts as coarse if its steps are at least this long, in nanoseconds.
const COARSE_STEP_NS: f64 = 100.0;
/// Clock sources that a program can read without a system call.
const FAST_CLOCKS: [&str; 5] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "tdx-tsc"];
/// The machine counts as busy if its load average per CPU is above this number.
const QUIET_LOAD: f64 = 0.25;
/// Smallest share of the requested CPU time at which steal is reported. Steal is the CPU time that this machine
/// requested but that other virtual machines got.
const STEAL: f64 = 0.01;
/// Minimum requested CPU time, in nanoseconds, for reporting steal. Steal is requested CPU time that other virtual
/// machines got. The kernel counts steal in ticks of up to 10 ms. If less than a second was requested, a single tick
/// would exceed the share [`STEAL`].
const STEAL_WANTED_NS: u64 = 1_000_000_000;

/// Returns the properties of this machine that may change times. Because of these properties, the times may differ from
/// the times of another run or another machine.
pub(crate) fn threats_of_machine(machine: &Machine) -> Vec<Threat> {
    let governor = machine.governor.clone().filter(|name| name != "performance");
    let slow_clock = machine.clock_source.clone().filter(|name| !FAST_CLOCKS.contains(&name.as_str()));
    let few = (1..=2).contains(&machine.cpus_allowed);
    let is_loaded = machine.load_1m > QUIET_LOAD * machine.cpus_online as f64;
    let threats = [
        governor.map(|governor| Threat::Governor { governor }),
        (machine.boost == Some(true)).then_some(Threat::Boost),
        machine.forced_level.clone().map(|level| Threat::ForcedLevel { level }),
        machine.virtualisation.clone().map(|hypervisor| Threat::VirtualMachine { hypervisor }),
        machine.cpu_quota.map(|cpus| Threat::Quota { cpus }),
        is_loaded.then_some(Threat::Load { load_1m: machine.load_1m, cpus: machine.cpus_online }),
        few.then_some(Threat::FewCpus { cpus: machine.cpus_allowed, online: Some(machine.cpus_online) }),
        (machine.clock_step_ns >= COARSE_STEP_NS).then_some(Threat::CoarseClock { step_ns: machine.clock_step_ns }),
        slow_clock.map(|source| Threat::SlowClock { source }),
    ];
    threats.into_iter().flatten().collect()
}

/// Returns a [`Threat::Steal`] if the hypervisor gave at least the share [`STEAL`] of the requested CPU time to other
/// virtual machines.
pub(crate) fn threats_of_steal(times: CpuTimes) -> Option<Threat> {
    let is_long = times.busy_ns + times.steal_ns >= STEAL_WANTED_NS;
    times.steal_share().filter(|share| is_long && *share >= STEAL).map(|share| Threat::Steal { share })
}

/// Returns a threat for each command that failed in trials in which failures were ignored, and for each command that
/// was stopped at its time limit. Times of such trials look like other times, but the command did not do the intended
/// work.
pub(crate) fn threats_of_commands(sets: &[CommandSet], observations: &Observations) -> Vec<Threat> {
    let with_set = observations.arms().iter().filter_map(|values| {
        let set = sets.iter().find(|set| set.id == values.experiment)?;
        Some((values, set))
    });
    with_set.flat_map(|(values, set)| [ignored_failures(values, set), stopped(values, set)]).flatten().collect()
}

fn ignored_failures(values: &ArmValues, set: &CommandSet) -> Option<Threat> {
    let ignores = matches!(set.on_failure, OnFailure::Ignore | OnFailure::IgnoreCodes(_));
    let exits = values.by_metric.get(EXIT).filter(|_| ignores)?;
    // A command that was stopped at its time limit has no exit code.
    let failed: Vec<f64> = exits.iter().copied().filter(|exit| *exit != 0.0 && exit.is_finite()).collect();
    let first = *failed.first()?;
    let exit = failed.iter().all(|exit| *exit == first).then_some(first);
    Some(Threat::IgnoredFailures { arm: values.arm.clone(), exit, trials: failed.len(), all: exits.len() })
}

fn stopped(values: &ArmValues, set: &CommandSet) -> Option<Threat> {
    let times = values.by_metric.get(WALL)?;
    let limit_ns = set.time_limit?.as_nanos() as f64;
    let trials = (0..times.len()).filter(|&index| times.bounds(index) == Bounds::above(limit_ns)).count();
    (trials > 0).then(|| Threat::Stopped { arm: values.arm.clone(), limit_ns, trials, all: times.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Metric, Point};

    /// Interrupts a command after 0.6 s or 2.9 s, although a complete execution takes 3 s. The minimum must ignore
    /// these shorter times.
    #[test]
    fn the_least_is_of_what_came_to_its_end() {
        let spec = Spec { id: "sleep".into(), metrics: vec![Metric::time("wall", "")], ..Spec::default() };
        let arm = Arm { variant: "sleep 3".into(), point: Point::default() };
        let of = |values: &[Bounds]| {
            let mut observations = Observations::default();
            let place = observations.arm(&spec, &arm);
            for (trial, value) in (0..).zip(values) {
                observations.push(place, trial, &[*value]);
            }
            summarise_arm(&observations.arms()[place], &spec).remove(0)
        };
        for cut_off in [0.6e9, 2.9e9] {
            let point = of(&[Bounds::above(cut_off), Bounds::exact(3.2e9), Bounds::exact(3.1e9)]);
            assert_eq!((point.min, point.max, point.seen), (Some(3.1e9), None, Some(3.2e9)));
        }
        let point = of(&[Bounds::above(0.6e9)]);
        assert_eq!((point.min, point.max, point.limit), (None, None, Some(0.6e9)));
    }

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
        assert_eq!(threats_of_machine(&quiet()), []);
        assert_eq!(threats_of_machine(&Machine::default()), []);
    }

    #[test]
    fn hardly_any_steal_is_none() {
        let times = |busy_ns, steal_ns| CpuTimes { busy_ns, idle_ns: 5_000_000_000, steal_ns };
        assert_eq!(threats_of_steal(times(1_000_000_000, 10_000_000)), None);
        assert!(threats_of_steal(times(1_000_000_000, 11_000_000)).is_some());
        assert_eq!(threats_of_steal(CpuTimes::default()), None);
        // In a short run, a single tick of the kernel's accounting is not enough to report steal.
        assert_eq!(threats_of_steal(times(0, 10_000_000)), None);
    }

    #[test]
    fn each_threat_is_noticed_alone() {
        let some = |text: &str| Some(text.to_owned());
        let cases = [
            (Machine { governor: some("powersave"), ..quiet() }, Threat::Governor { governor: "powersave".into() }),
            (Machine { boost: Some(true), ..quiet() }, Threat::Boost),
            (Machine { virtualisation: some("kvm"), ..quiet() }, Threat::VirtualMachine { hypervisor: "kvm".into() }),
            (Machine { cpu_quota: Some(1.5), ..quiet() }, Threat::Quota { cpus: 1.5 }),
            (Machine { load_1m: 4.0, ..quiet() }, Threat::Load { load_1m: 4.0, cpus: 8 }),
            (Machine { cpus_allowed: 1, ..quiet() }, Threat::FewCpus { cpus: 1, online: Some(8) }),
            (Machine { clock_step_ns: 4e6, ..quiet() }, Threat::CoarseClock { step_ns: 4e6 }),
            (Machine { clock_source: some("hpet"), ..quiet() }, Threat::SlowClock { source: "hpet".into() }),
        ];
        for (machine, threat) in cases {
            assert_eq!(threats_of_machine(&machine), [threat]);
        }
    }
}
