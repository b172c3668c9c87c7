//! Outcomes of runs for tests. Each function returns the same outcome each time.

use std::fs;
use std::path::Path;

use ascertain_engine::claim::{Bound, Effect, Hypothesis, Judging, Measure, Test};
use ascertain_engine::experiment::{Arm, Better, Metric, Point};
use ascertain_engine::finding::{AtError, Reason, Threat, Unavailable, Unlike};
use ascertain_engine::outcome::{Absence, ClaimResult, Decision, LeftOut, Outcome, PointSummary, SCHEMA, Verdict};
use ascertain_engine::predicate::Predicate;
use ascertain_engine::unit::Unit;
use ascertain_report::hyperfine::CommandTimes;
use ascertain_report::judgement::Judgement;
use ascertain_sys::machine::Machine;

/// Compares a text with a file in `golden/`. With `BLESS=1`, writes the text to the file instead.
pub fn compare_with_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{name} differs; look, then bless it\n--- is\n{text}\n--- was\n{golden}");
}

pub fn machine() -> Machine {
    Machine {
        cpu_model: "Example 9000".into(),
        architecture: "x86_64".into(),
        cpus_online: 2,
        cpus_allowed: 2,
        memory_bytes: 8_000_000_000,
        kernel: "Linux 6.18.0".into(),
        clock_step_ns: 10.0,
        ..Machine::default()
    }
}

pub fn outcome(points: Vec<PointSummary>, claims: Vec<ClaimResult>) -> Outcome {
    Outcome {
        schema: SCHEMA.into(),
        run_id: "20261121T093000Z-5eed".into(),
        machine: machine(),
        cpu_times: None,
        threats: vec![Threat::Governor { governor: "schedutil".into() }],
        seed: 42,
        interrupted: false,
        points,
        claims,
        left_out: Vec::new(),
        facts: Vec::new(),
        by_key: Vec::new(),
        remarks: Vec::new(),
        suites: Vec::new(),
        windows: None,
    }
}

/// Creates a reason with this text.
pub fn reason(words: &str) -> Reason {
    Reason::Unavailable { arm: None, lack: Unavailable::other(words) }
}

pub fn arm(variant: &str, point: &Point) -> Arm {
    Arm { variant: variant.into(), point: point.clone() }
}

pub fn measure(metric: &str, unit: Unit) -> Measure {
    Measure { metric: metric.into(), unit, better: Better::Lower, inputs: Vec::new() }
}

/// Creates a claim without any trials.
pub fn blank(id: &str, says: &str, judging: Judging, test: Test) -> ClaimResult {
    ClaimResult {
        id: id.into(),
        says: says.into(),
        source: String::new(),
        source_value: String::new(),
        experiment: "sum".into(),
        emulated: None,
        asked: Hypothesis { judging, margin: None, tests: vec![test] },
        verdict: Verdict::Undecided,
        reasons: vec![],
        decision: None,
        trials: 0,
        successes: 0,
        ties: 0,
        unknown: 0,
        decided: None,
        basis: None,
        interferes: false,
        undiagnosed: false,
        elapsed_ns: 0,
        rate: None,
        rate_low: None,
        rate_high: None,
        rate_claimed: 0.5,
        error: 0.001,
        ratio: None,
        ratio_low: None,
        ratio_high: None,
        ratio_min: None,
        ratio_max: None,
        difference_below: None,
        drifted: false,
        log_e_holds: None,
        log_e_refuted: None,
        unlike: Vec::new(),
        median: None,
        broken: Vec::new(),
        counters: Vec::new(),
        tails: Vec::new(),
        tail_hint: None,
    }
}

/// Returns the claim as it is after this many successes in this many trials.
pub fn counted(mut claim: ClaimResult, verdict: Verdict, successes: u64, trials: u64) -> ClaimResult {
    claim.verdict = verdict;
    claim.trials = trials;
    claim.elapsed_ns = trials * 31_250_000;
    claim.successes = successes;
    claim.rate = Some(successes as f64 / (trials - claim.ties) as f64);
    claim
}

pub fn with_ratio(mut claim: ClaimResult, ratio: f64, low: f64, high: f64) -> ClaimResult {
    (claim.ratio, claim.ratio_low, claim.ratio_high) = (Some(ratio), Some(low), Some(high));
    claim
}

pub fn with_rate(mut claim: ClaimResult, claimed: f64, low: f64, high: f64) -> ClaimResult {
    (claim.rate_claimed, claim.rate_low, claim.rate_high) = (claimed, Some(low), Some(high));
    claim
}

fn sourced(mut claim: ClaimResult, source: &str, value: &str) -> ClaimResult {
    (claim.source, claim.source_value, claim.error) = (source.into(), value.into(), 0.001 / 7.0);
    claim
}

pub fn at_least_8(id: &str, says: &str) -> ClaimResult {
    let point = Point::default().with("elements", 187_500).with("type", "f32");
    let test = Test::Versus {
        measure: measure("time", Unit::Nanosecond),
        candidate: arm("kahan-avx512", &point.clone().with("accumulators", 4)),
        baseline: arm("naive", &point.with("accumulators", 1)),
        scale: Effect::Ratio,
        bound: Bound::AtLeast(8.0),
    };
    blank(id, says, Judging::Rate, test)
}

pub fn predicate(id: &str, says: &str, variant: &str, predicate: &str) -> ClaimResult {
    let metric = |name, unit, better| Metric::new(name, "", unit, better);
    let metrics = [
        metric("wall", Unit::Nanosecond, Better::Lower),
        metric("time", Unit::Nanosecond, Better::Lower),
        metric("exit", Unit::One, Better::Lower),
        metric("size", Unit::Byte, Better::Lower),
        metric("rate", Unit::One, Better::Higher),
        metric("error", Unit::One, Better::Lower),
        metric("fill_rate", Unit::One, Better::Higher),
        metric("network_won", Unit::One, Better::Lower),
    ];
    let arm = arm(variant, &Point::default().with("bins", 1000).with("capacity", 30_000));
    let test = Test::predicate(arm, Predicate::parse(predicate, &metrics).unwrap());
    blank(id, says, Judging::Rate, test)
}

/// Returns the outcome of a check of the shipped claims, in which each verdict occurs.
pub fn check() -> Outcome {
    const SUM: &str = "000_301083b0e46b265c.txt";
    const CSM: &str = "003_2964419153cb9bf0.txt";
    let naive = at_least_8(
        "sum.kahan-avx512-8x-naive",
        "Kahan summation with AVX-512 is at least 8 times as fast as the naive loop",
    );
    let refuted = counted(with_ratio(naive, 6.104, 5.912, 6.288), Verdict::Refuted, 0, 18);
    let kahan = at_least_8("sum.kahan-avx512-32x-kahan", "… and at least 32 times as fast as scalar Kahan summation");
    let holds = counted(with_ratio(kahan, 34.71, 33.02, 36.4), Verdict::Holds, 17, 18);
    let fill = predicate(
        "fill-rate.98-percent",
        "1,000 bins of 30,000 are filled to at least 97.5 % before one of them overflows, 98 % of the time",
        "exact",
        "fill_rate >= 0.975",
    );
    let mut fill = counted(with_rate(fill, 0.98, 0.9812, 0.99963), Verdict::Holds, 1241, 1250);
    fill.unlike = vec![Unlike::Neighbours { correlation: 0.15 }];
    let neumaier = predicate("sum.neumaier-error", "Neumaier's sum is within 1e-7", "neumaier", "error <= 0.0000001");
    let mut exact = counted(neumaier, Verdict::Holds, 1, 1);
    exact.asked.judging = Judging::Exact;
    let pairwise = at_least_8("sum.pairwise", "Pairwise summation costs nothing");
    let undecided =
        counted(with_rate(with_ratio(pairwise, 1.002, 0.991, 1.013), 0.5, 0.412, 0.597), Verdict::Undecided, 212, 420);
    let mut unavailable = at_least_8("sum.neon", "NEON is as fast as AVX2");
    (unavailable.verdict, unavailable.reasons) = (Verdict::Unavailable, vec![needs_neon()]);
    let mut deferred = at_least_8("sum.large", "Out of cache it makes no difference");
    (deferred.verdict, deferred.reasons) = (Verdict::Deferred, vec![too_long(192e9)]);
    let claims = [refuted, holds, undecided, exact, unavailable, deferred].map(|claim| sourced(claim, SUM, "8x"));
    let mut claims: Vec<ClaimResult> = claims.into();
    claims.insert(2, sourced(fill, CSM, "98 %"));
    let mut outcome = outcome(points(), claims);
    outcome.left_out = vec![LeftOut {
        experiment: "sum".into(),
        arm: Arm { variant: "kahan-neon".into(), point: Point::default().with("elements", 187_500) },
        absence: Absence::Unavailable,
        reason: needs_neon(),
    }];
    outcome
}

/// Returns more claims than fit on a screen. Some are refuted, at various distances from the claimed value; others are
/// unavailable for two reasons.
pub fn many() -> Outcome {
    let mut check = check();
    for times in 1..=21_u32 {
        let claim =
            at_least_8(&format!("sum.kahan-avx512-8x-{times}"), "At this many accumulators it is 8 times as fast");
        let ratio = f64::from(times) * 0.31;
        let claim = counted(with_ratio(claim, ratio, ratio * 0.98, ratio * 1.03), Verdict::Refuted, 0, 18);
        check.claims.push(sourced(claim, "000_301083b0e46b265c.txt", "8x, or 6 to 10x by the second table"));
    }
    check.claims[8].emulated = Some("a loop that stands in for one, in this process".into());
    let fill = predicate("fill-rate.of-random", "It is full nine times in ten", "random", "fill_rate >= 0.975");
    let refuted = counted(with_rate(with_ratio(fill, 0.912, 0.91, 0.914), 0.9, 0.001, 0.1), Verdict::Refuted, 3, 70);
    check.claims.push(sourced(refuted, "ours", "90 %"));
    for id in ["sum.neon-2x", "sum.neon-4x", "sum.neon-8x", "sum.neon-exact"] {
        let mut unavailable = at_least_8(id, "NEON is faster");
        (unavailable.verdict, unavailable.reasons) = (Verdict::Unavailable, vec![needs_neon()]);
        check.claims.push(unavailable);
    }
    check
}

pub fn summary(experiment: &str, variant: &str, at: Point, measure: &Measure, median: f64) -> PointSummary {
    PointSummary {
        experiment: experiment.into(),
        arm: Arm { variant: variant.into(), point: at },
        metric: measure.metric.clone(),
        unit: measure.unit,
        better: measure.better,
        key: String::new(),
        is_share: false,
        n: 43,
        median: Some(median),
        median_low: Some(median * 0.997),
        median_high: Some(median * 1.004),
        p90: Some(median * 1.1),
        p99: Some(median * 1.3),
        mean: Some(median * 1.01),
        std: Some(median * 0.03),
        min: Some(median * 0.98),
        max: Some(median * 1.4),
        censored: 0,
        limit: None,
        seen: None,
    }
}

fn points() -> Vec<PointSummary> {
    let mut points = Vec::new();
    for (variant, accumulators, median) in
        [("naive", 1, 152_381.5), ("kahan-avx512", 4, 24_963.2), ("kahan-avx512", 8, 23_117.0)]
    {
        let at = Point::default().with("accumulators", accumulators).with("elements", 187_500).with("type", "f32");
        points.push(summary("sum", variant, at, &measure("time", Unit::Nanosecond), median));
    }
    let fill = Measure { metric: "fill_rate".into(), unit: Unit::One, better: Better::Higher, inputs: Vec::new() };
    let mut point = summary("fill-rate", "exact", Point::default().with("bins", 1000), &fill, 0.9861);
    (point.median_high, point.p99) = (None, None);
    points.push(point);
    points
}

/// Returns a comparison of three commands, one with control characters and markup.
pub fn compare() -> Outcome {
    let names =
        ["sort -n big.txt", "sort -n --parallel=2 --buffer-size=50% big.txt", "awk '{ print | \"sort`\" }' \x1b[31m"];
    let mut points = Vec::new();
    for (name, wall_ns) in names.iter().zip([23.412e6, 22.254e6, 24.63e6]) {
        for (metric, unit, value) in [
            ("wall", Unit::Nanosecond, wall_ns),
            ("user", Unit::Nanosecond, wall_ns * 0.8),
            ("system", Unit::Nanosecond, 1.42e6),
            ("memory_peak", Unit::Byte, 4_571_136.0),
            ("exit", Unit::One, 0.0),
        ] {
            points.push(summary("compare", name, Point::default(), &measure(metric, unit), value));
        }
    }
    let faster = with_ratio(order(names[1], names[0]), 1.0521, 1.0469, 1.0579);
    let slower = with_ratio(order(names[2], names[0]), 0.9506, 0.9312, 0.9631);
    let claims = vec![decided(faster, Decision::Faster, 41, 43, 1), decided(slower, Decision::Slower, 2, 43, 0)];
    // The order of the points must not matter: tables have the reference first.
    points.reverse();
    points.sort_by_key(|point| point.metric != "wall");
    outcome(points, claims)
}

/// Returns a comparison of two commands by this metric, with some counters and notes about missing ones.
pub fn counted_commands(metric: &str, unit: Unit) -> Outcome {
    let names = ["app --old", "app --new"];
    let mut points = Vec::new();
    for (name, share) in names.iter().zip([1.0, 0.88]) {
        for (metric, unit, value) in [
            ("wall", Unit::Nanosecond, 23.412e6),
            ("user", Unit::Nanosecond, 20e6 * share),
            ("memory_peak", Unit::Byte, 4_571_136.0 * share),
            ("instructions", Unit::One, 1_234_567_890.0 * share),
            ("page_faults", Unit::One, 1_250.0 * share),
            ("context_switches", Unit::One, 2.0),
        ] {
            points.push(summary("compare", name, Point::default(), &measure(metric, unit), value));
        }
    }
    let by = |metric: &str, unit| {
        let mut claim = order(names[1], names[0]);
        if let Test::Versus { measure: by, .. } = &mut claim.asked.tests[0] {
            *by = measure(metric, unit);
        }
        claim
    };
    let fewer = |metric| {
        let fewer = with_ratio(by(metric, Unit::One), 1.0 / 0.88, 1.0 / 0.89, 1.0 / 0.865);
        decided(fewer, Decision::Faster, 41, 43, 0)
    };
    let mut missing = counted(by("cycles", Unit::One), Verdict::Unavailable, 0, 0);
    missing.reasons = vec![reason("this machine has no such counter")];
    let equal = decided(by("context_switches", Unit::One), Decision::Undecided, 0, 43, 43);
    let counters = vec![fewer("instructions"), missing, fewer("page_faults"), equal];
    let less = with_ratio(by(metric, unit), 1.0 / 0.88, 1.0 / 0.89, 1.0 / 0.865);
    outcome(points, vec![ClaimResult { counters, ..decided(less, Decision::Faster, 41, 43, 1) }])
}

/// Returns a comparison of two functions that have a throughput.
pub fn functions() -> Outcome {
    let time = measure("time", Unit::Nanosecond);
    let throughput =
        Measure { metric: "throughput".into(), unit: Unit::BytePerSecond, better: Better::Higher, inputs: Vec::new() };
    let mut points = Vec::new();
    for (name, time_ns) in [("loop", 8123.0), ("chunks", 1024.5)] {
        points.push(summary("sums", name, Point::default(), &time, time_ns));
        points.push(summary("sums", name, Point::default(), &throughput, 80e3 / (time_ns * 1e-9)));
    }
    let mut claim = decided(with_ratio(order("chunks", "loop"), 7.929, 7.81, 8.04), Decision::Faster, 14, 14, 0);
    if let Test::Versus { measure, .. } = &mut claim.asked.tests[0] {
        *measure = time;
    }
    outcome(points, vec![claim])
}

/// Returns the claim that `compare` creates for a command and its reference.
pub fn order(candidate: &str, baseline: &str) -> ClaimResult {
    let test = Test::Versus {
        measure: measure("wall", Unit::Nanosecond),
        candidate: arm(candidate, &Point::default()),
        baseline: arm(baseline, &Point::default()),
        scale: Effect::Ratio,
        bound: Bound::AtLeast(1.0),
    };
    blank("compare", "", Judging::Order, test)
}

pub fn decided(mut claim: ClaimResult, decision: Decision, won: u64, pairs: u64, ties: u64) -> ClaimResult {
    claim.ties = ties;
    claim.decision = Some(decision);
    let verdict = match decision {
        Decision::Faster | Decision::Same | Decision::NotSlower | Decision::NotFaster => Verdict::Holds,
        Decision::Slower => Verdict::Refuted,
        Decision::Undecided => Verdict::Undecided,
    };
    counted(claim, verdict, won, pairs)
}

/// Returns a service-level objective that holds.
pub fn slo() -> Outcome {
    let command = "curl -fsS http://localhost:8080/health";
    let claim = predicate("slo", "", command, "exit == 0 and wall <= 50 ms");
    let claim = with_ratio(with_rate(claim, 0.99, 0.99003, 0.99976), 43.1e6, 42.0e6, 45.2e6);
    let claim = ClaimResult { median: Some(31.2e6), ..counted(claim, Verdict::Holds, 2190, 2196) };
    let wall = summary("slo", command, Point::default(), &measure("wall", Unit::Nanosecond), 31.2e6);
    outcome(vec![wall], vec![claim])
}

pub fn judgement() -> Judgement {
    Judgement {
        verdict: Verdict::Holds,
        trials: 4000,
        successes: 3972,
        method: "csm".into(),
        rate_claimed: 0.98,
        error: 0.001,
        log_level: Some(-17.238_559_826_956_475),
        log_e_holds: Some(9.25),
        log_e_refuted: None,
        rate: Some(0.993),
        rate_low: Some(0.984_175_52),
        rate_high: Some(0.997_725_32),
        credible_low: Some(0.987_526_32),
        credible_high: Some(0.996_376_92),
    }
}

pub fn times() -> Vec<CommandTimes> {
    let parameters = |value: &str| vec![("n".to_string(), value.to_string())];
    vec![
        CommandTimes {
            command: "sleep 0.01".into(),
            line: "sleep 0.01".into(),
            environment: Vec::new(),
            parameters: parameters("1"),
            wall_s: vec![0.011_774_023, 0.011_481_099, 0.011_558_005, 0.011_600_333],
            user_s: vec![0.0007, 0.0006, 0.0007, 0.0006],
            system_s: vec![0.0006, 0.0007, 0.0006, 0.0007],
            memory_bytes: vec![1_830_912.0; 4],
            counts: vec![("instructions", vec![1e6, 1e6 + 1.0, 1e6, 1e6])],
            printed: vec![("throughput".into(), Some("byte/second"), vec![2e6, 2e6, 2e6, 3e6])],
            exit_codes: vec![Some(0); 4],
        },
        CommandTimes {
            command: "sh -c \"a | `b`\"".into(),
            line: "sh -c \"$A | `b`\"".into(),
            environment: vec![("A".into(), "a".into())],
            parameters: parameters("2"),
            wall_s: vec![0.021_504_91, 0.021_738_392, 0.021_573_053, 0.021_332_151],
            user_s: vec![0.001; 4],
            system_s: vec![0.0003; 4],
            memory_bytes: Vec::new(),
            counts: Vec::new(),
            printed: Vec::new(),
            exit_codes: vec![Some(0), Some(1), None, Some(0)],
        },
    ]
}

pub fn too_long(needed_ns: f64) -> Reason {
    Reason::TooLong { needed_ns, trials: 15, at_error: Some(AtError { error: 0.05, trials: 9 }), run_ns: None }
}

fn needs_neon() -> Reason {
    Reason::Unavailable { arm: None, lack: Unavailable::Feature { feature: "neon".into() } }
}
