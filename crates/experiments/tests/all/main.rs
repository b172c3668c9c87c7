//! The rules that every experiment must follow, and measurements of the shipped experiments at small sizes.
#![allow(missing_docs)]

mod default_time;

use std::time::Duration;

use ascertain_engine::claim::Test;
use ascertain_engine::experiment::{Accepts, Arm, Experiment, Factor, Level, Variant};
use ascertain_engine::finding::{Reason, Unavailable};
use ascertain_engine::memory;
use ascertain_engine::outcome::Outcome;
use ascertain_engine::plan::{Config, Plan, Table};
use ascertain_engine::run::{Recording, Silent, run};
use ascertain_experiments::{registry, shipped_claims};
use ascertain_sys::{affinity, machine};

fn arms(experiment: &dyn Experiment, levels: &[(&str, Level)]) -> Vec<Arm> {
    let spec = experiment.spec();
    let place =
        |point: ascertain_engine::experiment::Point, (name, level): &(&str, Level)| point.with(name, level.clone());
    let point = levels.iter().fold(spec.default_point(), place);
    let arm = |variant: &Variant| Arm { variant: variant.name.clone(), point: point.clone() };
    spec.variants.iter().map(|variant| experiment.trimmed(&arm(variant))).collect()
}

fn experiment(id: &str) -> &'static dyn Experiment {
    registry().into_iter().find(|experiment| experiment.spec().id == id).unwrap()
}

fn measure(id: &str, levels: &[(&str, Level)]) -> Outcome {
    let table = Table { experiment: id.into(), arms: arms(experiment(id), levels) };
    let config = Config { table_trials: Some(5), max_time: Duration::MAX, seed: 1, ..Config::default() };
    let plan = Plan { claims: Vec::new(), tables: vec![table], config, ..Plan::default() };
    run(&plan, &registry(), Recording::None, &Default::default(), &mut Silent).unwrap().outcome
}

#[test]
fn specs_are_whole() {
    for experiment in registry() {
        let spec = experiment.spec();
        assert!(!spec.variants.is_empty() && !spec.metrics.is_empty(), "{}", spec.id);
        for heading in ["**Question.**", "**Source.**", "**Why the claim might be false", "**Design.**", "**Threats.**"]
        {
            assert!(spec.readme.contains(heading), "{}: {heading}", spec.id);
        }
        let mut names: Vec<&str> = spec.variants.iter().map(|variant| variant.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), spec.variants.len(), "{}", spec.id);
    }
}

/// If users may pass their own link, store or server, the default is an emulated one, and reports must mention that.
#[test]
fn what_stands_in_for_the_real_thing_says_so() {
    for spec in registry().into_iter().map(|experiment| experiment.spec()) {
        let given: Vec<&str> = spec.emulates.iter().flat_map(|emulates| &emulates.unless).map(String::as_str).collect();
        assert!(given.iter().all(|name| spec.factors.iter().any(|factor| factor.name == *name)), "{}", spec.id);
        let arm_of = |variant: usize, point| Arm { variant: spec.variants[variant].name.clone(), point };
        let arm = |point| arm_of(0, point);
        let is_emulated = |variant| spec.emulated(&arm_of(variant, spec.default_point())).is_some();
        assert_eq!((0..spec.variants.len()).any(is_emulated), spec.emulates.is_some(), "{}", spec.id);
        for name in given {
            assert_eq!(spec.emulated(&arm(spec.default_point().with(name, "example.org"))), None, "{}", spec.id);
        }
        let is_real = |factor: &Factor| {
            let is_anybodys = matches!(factor.accepts, Accepts::Anything | Accepts::Address { .. });
            is_anybodys && ["url", "listener", "zone", "server", "trace"].contains(&&*factor.name)
        };
        let may_be_real = spec.factors.iter().any(is_real);
        assert!(!may_be_real || spec.emulates.is_some(), "{} is measured on an emulation", spec.id);
    }
}

/// If a policy of `cache-race` uses only the disk, no link is emulated. In a replay, however, the times of the disk may
/// be emulated.
#[test]
fn who_never_asks_the_link_is_not_emulated() {
    let spec = experiment("cache-race").spec();
    let is_emulated = |variant: &str, trace: &str| {
        let arm = Arm { variant: variant.into(), point: spec.default_point().with("trace", trace) };
        spec.emulated(&arm).is_some()
    };
    assert_eq!(
        ["never", "throttled", "always", "percentile"].map(|variant| is_emulated(variant, "live")),
        [false, false, true, true]
    );
    assert!(is_emulated("never", "stalls"));
}

/// A table must have every variant, no arm twice, and the arms for which the publication in the experiment's README
/// gives figures.
#[test]
fn tables_show_what_the_sources_tell_figures_of() {
    for experiment in registry() {
        let (spec, arms) = (experiment.spec(), experiment.table_arms());
        let mut once: Vec<Arm> = arms.iter().map(|arm| experiment.trimmed(arm)).collect();
        assert!(once.iter().all(|arm| experiment.trimmed(arm) == *arm), "{}", spec.id);
        once.sort();
        once.dedup();
        assert_eq!(once.len(), arms.len(), "{}", spec.id);
        for variant in &spec.variants {
            assert!(arms.iter().any(|arm| arm.variant == variant.name), "{}: {}", spec.id, variant.name);
        }
        assert!(arms.iter().all(|arm| arm.point.0.len() == spec.factors.len()), "{}", spec.id);
    }
    let shown = [
        ("sum", "kahan", "accumulators", vec![1.into(), 4.into()]),
        ("sum", "accurate-exact", "accumulators", vec![1.into()]),
        ("polynomial", "c-additions", "level", ["O0", "O1", "O3"].map(Level::from).to_vec()),
        ("polynomial", "direct", "level", vec!["O3".into()]),
        ("decimal", "std", "digits", vec!["any".into(); 6]),
    ];
    for (id, variant, factor, levels) in shown {
        let experiment = experiment(id);
        let arms = experiment.table_arms().into_iter().filter(|arm| arm.variant == variant);
        assert_eq!(arms.map(|arm| arm.point.get(factor).unwrap().clone()).collect::<Vec<_>>(), levels, "{id}");
    }
}

/// A factor without effect on an arm must not appear in the arm's name, and its levels must not be compared.
#[test]
fn arms_have_no_levels_of_what_means_nothing_to_them() {
    let has = |id: &str, variant: &str, levels: &[(&str, Level)], factor: &str| {
        let all = arms(experiment(id), levels);
        all.iter().find(|arm| arm.variant == variant).unwrap().point.get(factor).is_some()
    };
    let url: &[(&str, Level)] = &[("url", "s3://bucket".into())];
    let rate: &[(&str, Level)] = &[("rate", 100.into())];
    let record: &[(&str, Level)] = &[("record", "a.example".into()), ("expect", "x".into())];
    let stalls: &[(&str, Level)] = &[("trace", "stalls".into())];
    for (id, variant, levels, factor, expected) in [
        ("transfer", "one-stream", &[][..], "block", false),
        ("transfer", "model", &[], "connections", false),
        ("transfer", "blocks", &[], "block", true),
        ("transfer", "blocks", &[], "rate_kb_s", true),
        ("transfer", "blocks", url, "rate_kb_s", false),
        ("transfer", "blocks", url, "connections", true),
        ("https-throughput", "plain", &[], "cipher", false),
        ("https-throughput", "tls1.3", &[], "cipher", true),
        ("https-throughput", "plain", &[], "measured_ms", false),
        ("https-throughput", "plain", rate, "measured_ms", true),
        ("https-throughput", "plain", rate, "mb", false),
        ("cache-race", "never", &[], "percentile", false),
        ("cache-race", "percentile", &[], "percentile", true),
        ("cache-race", "after", stalls, "page_cache", false),
        ("cache-race", "after", stalls, "stalls_permille", true),
    ] {
        assert_eq!(has(id, variant, levels, factor), expected, "{id}: {variant}, {factor}");
    }
    if cfg!(target_os = "linux") {
        assert!(!has("dns-propagation", "watch", record, "replicas"));
        assert!(
            !has("dns-propagation", "together", &[], "record") && has("dns-propagation", "together", &[], "rtt_ms")
        );
        // A factor that the user has set for another variant is kept, so that the arm can report it.
        assert!(has("dns-propagation", "together", record, "record"));
    }
}

/// Each variant of `sum` that this machine supports must be measured. The other variants must report what they need.
#[test]
fn sums_are_measured_or_say_what_they_need() {
    for (kind, accumulators) in [("f32", 4), ("f64", 1)] {
        let levels = [("elements", 1000.into()), ("type", kind.into()), ("accumulators", Level::Integer(accumulators))];
        let outcome = measure("sum", &levels);
        let measured = outcome.points.iter().filter(|point| point.metric == "time" && point.n == 5).count();
        assert_eq!(measured + outcome.left_out.len(), experiment("sum").spec().variants.len());
        assert!(
            outcome.left_out.iter().all(|arm| matches!(arm.reason, Reason::Unavailable { .. })),
            "{:?}",
            outcome.left_out
        );
        let errors = outcome.points.iter().filter(|point| point.metric == "error" && point.n > 0);
        for point in errors {
            assert!(point.median.unwrap() < 1e-12 && point.std == Some(0.0), "the error is not random: {point:?}");
        }
        let loads =
            outcome.points.iter().filter(|point| point.arm.variant.starts_with("load") && point.metric == "error");
        assert!(loads.into_iter().all(|point| point.n == 0), "only sums have an error");
    }
}

/// The claim about the name server in this process must only use arms that are also in the table of `dns-load`.
#[test]
fn the_claim_about_our_name_server_needs_no_other_arms() {
    let claims = shipped_claims().unwrap().claims;
    let claim = claims.iter().find(|claim| claim.experiment == "dns-load").unwrap();
    let of_table = experiment("dns-load").table_arms();
    assert!(claim.arms().into_iter().all(|arm| of_table.contains(arm)), "{:?}", claim.arms());
}

/// A claim about clusters of CPUs needs four CPUs or more; a claim about one pair needs two.
#[test]
fn claims_about_core_latency_need_enough_cpus() {
    let claims = shipped_claims().unwrap().claims;
    let shown = |id: &str, cpus_allowed: usize| {
        let machine = machine::Machine { cpus_allowed, ..machine::describe() };
        let claim = claims.iter().find(|claim| claim.id == id).unwrap();
        let mut observed = claim.asked.tests.iter().flat_map(Test::observed);
        let experiment = experiment("core-latency");
        observed
            .try_for_each(|(arm, metric)| experiment.shows(arm, experiment.spec().metric(metric).unwrap(), &machine))
    };
    for cpus in [1, 2, 3] {
        let lack = shown("core-latency.clusters", cpus).unwrap_err();
        assert_eq!(lack, Unavailable::Cpus { needed: 4, usable: cpus });
    }
    assert_eq!(shown("core-latency.clusters", 4), Ok(()));
    assert_eq!(shown("core-latency.compare-and-swap-measures", 2), Ok(()));
}

#[test]
fn sizes_over_memory_are_refused_before_time_is_spent() {
    let small = machine::Machine { memory_bytes: 1 << 30, memory_limit_bytes: None, ..machine::describe() };
    for (id, elements, needed) in [("sum", 1 << 30, "needs 8.590 GB"), ("polynomial", 1 << 30, "needs 8.590 GB")] {
        let experiment = experiment(id);
        let large = arms(experiment, &[("elements", Level::Integer(elements))]);
        let reason = memory::available(experiment, &large[0], &small).unwrap_err().to_string();
        assert!(
            reason.contains(needed) && reason.contains("more than half of the 1.074 GB (1073741824 bytes) in total"),
            "{id}: {reason}"
        );
        assert_eq!(
            experiment.memory_bytes(&large),
            experiment.memory_bytes(&large[..1]),
            "{id}: arms share their data"
        );
    }
}

/// With each variant of `fill-rate`, the same seed must give the same fill rates, and all must be between 0 and 1.
#[test]
fn fill_rates_are_shares_and_repeat() {
    let levels = [("bins", Level::Integer(10)), ("capacity", Level::Integer(50))];
    let shares = || -> Vec<_> {
        let points = measure("fill-rate", &levels).points;
        points.into_iter().filter(|point| point.metric == "fill_rate").map(|p| (p.n, p.min, p.max)).collect()
    };
    let first = shares();
    assert_eq!(first, shares());
    assert!(first.iter().all(|(n, min, max)| *n == 5 && min.unwrap() > 0.1 && max.unwrap() <= 1.0), "{first:?}");
}

/// Each variant must report what it needs, or be measured with five threads without losing a count. Many machines have
/// fewer CPUs than that.
#[test]
fn data_of_cpus_is_measured_or_says_what_it_needs() {
    let outcome = measure("per-cpu", &[("threads", Level::Integer(5))]);
    let timed = outcome.points.iter().filter(|point| point.metric == "time" && point.n == 5).count();
    let others = outcome.points.iter().filter(|point| ["restarts", "switches_seen"].contains(&point.metric.as_str()));
    let others = others.filter(|point| point.n == 5 && point.min.unwrap() >= 0.0).count();
    let all = experiment("per-cpu").spec().variants.len();
    assert_eq!(timed + others + outcome.left_out.len(), all, "{:?}", outcome.left_out);
    assert!(timed >= 7, "the variants without requirements");
}

/// Each trial must measure all pairs of a few CPUs, and the same pairs for each variant. This must also work while
/// other threads keep the CPUs busy.
#[test]
fn latencies_are_measured_by_pair() {
    let cpus = affinity::allowed();
    let pinned = std::thread::spawn(move || affinity::pin_current_thread(cpus[0])).join().unwrap();
    // A filter of system calls may forbid pinning.
    if ascertain_sys::testing::or_left_out(pinned).is_none() {
        return;
    }
    for (lines, load) in [(1, 0), (2, 1)] {
        let levels = [("lines", Level::Integer(lines)), ("load_per_cpu", Level::Integer(load))];
        let outcome = measure("core-latency", &levels);
        if affinity::allowed().len() < 2 {
            assert!(
                outcome.left_out.iter().all(|arm| matches!(
                    arm.reason,
                    Reason::Unavailable { lack: Unavailable::Cpus { needed: 2, .. }, .. }
                )),
                "{:?}",
                outcome.left_out
            );
            ascertain_sys::testing::left_out("there is but one CPU");
            continue;
        }
        for variant in ["cas", "load-store"] {
            let point = outcome.points.iter().find(|point| point.arm.variant == variant && point.metric == "latency");
            let point = point.unwrap_or_else(|| panic!("{variant}: {:?}", outcome.points));
            assert!(point.n == 5 && point.min.unwrap() > 0.0, "{point:?}");
        }
        assert!(outcome.left_out.iter().all(|arm| arm.arm.variant == "core-to-core-latency"), "{:?}", outcome.left_out);
    }
}
