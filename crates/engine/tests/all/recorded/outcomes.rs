//! Tests of outcomes that are computed from the rows of a run without a written outcome.

use std::fs;
use std::time::Duration;

use ascertain_engine::claim::{Bound, Claim, Effect, Judging, Test};
use ascertain_engine::evidence::Writer;
use ascertain_engine::experiment::{Better, Metric, TargetError, Trial};
use ascertain_engine::finding::{Reason, Unavailable};
use ascertain_engine::outcome::{ClaimResult, Outcome, Verdict};
use ascertain_engine::plan::{Config, Plan, Table};
use ascertain_engine::recorded::State;
use ascertain_engine::run::{Recording, Silent, run};
use ascertain_engine::unit::Unit;

use super::{Ran, record, record_one};
use crate::common::{Scripted, arm, noisy, plan, versus, with_margin};

/// Returns times that include ties and time-outs.
fn uneven(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
    Ok(match (variant, trial.seed % 7) {
        ("hangs", 0) | ("hangs too", 0 | 1) => f64::INFINITY,
        ("hangs" | "hangs too", _) => 10.0,
        ("tied", 0..4) => 100.0,
        ("tied", rest) => 98.0 + rest as f64,
        ("base", _) => 100.0,
        _ => return noisy(variant, trial),
    })
}

/// Returns claims of every kind.
fn claims(experiment: &Scripted) -> Vec<Claim> {
    let rate = |id: &str, bound| versus(id, "fast", "slow", bound, Judging::Rate);
    let order = |id: &str, a: &str, b: &str| versus(id, a, b, Bound::AtLeast(1.0), Judging::Order);
    let mut difference = rate("difference", Bound::AtLeast(5.0));
    if let Test::Versus { scale, .. } = &mut difference.asked.tests[0] {
        *scale = Effect::Difference;
    }
    let mut every = rate("every", Bound::AtLeast(1.05));
    every.asked.tests.extend(versus("", "even", "odd", Bound::AtLeast(0.9), Judging::Rate).asked.tests);
    let sometimes = || experiment.predicate("", "even", "time <= 105 ns", 0.5);
    vec![
        rate("at least", Bound::AtLeast(1.05)),
        rate("at most", Bound::AtMost(1.2)),
        rate("within", Bound::Within(1.05, 1.2)),
        rate("refuted", Bound::AtLeast(2.0)),
        difference,
        every,
        experiment.predicate("predicate", "hangs", "time <= 20 ns", 0.8),
        Claim { id: "sets".into(), look_every: 7, ..sometimes() },
        Claim { id: "few".into(), max_trials: Some(33), ..sometimes() },
        with_margin(Claim { id: "give or take".into(), error: Some(1e-6), ..sometimes() }, 0.1),
        versus("exact", "even", "odd", Bound::Within(0.9, 1.1), Judging::Exact),
        order("faster", "fast", "slow"),
        order("equal", "even", "odd"),
        order("tied", "tied", "base"),
        order("time-outs", "hangs too", "hangs"),
        with_margin(order("margin", "even", "odd"), 0.03),
        versus("missing", "missing", "slow", Bound::AtLeast(1.0), Judging::Rate),
    ]
}

fn experiment() -> Scripted {
    let variants = ["slow", "fast", "even", "odd", "hangs", "hangs too", "tied", "base", "missing"];
    Scripted { missing: &["missing"], ..Scripted::new(&variants, uneven) }
}

/// Compares outcomes, except for data that rows do not contain: the CPU times, the costs of trials, and the limits.
fn assert_same(read: &Outcome, written: &Outcome) {
    let [read, written] = [read, written]
        .map(|outcome| Outcome { claims: outcome.claims.iter().map(without_cost).collect(), ..outcome.clone() });
    for (read, written) in read.claims.iter().zip(&written.claims) {
        assert_eq!(read, written);
    }
    let (cpu_times, threats) = (read.cpu_times, read.threats.clone());
    assert_eq!(read, Outcome { cpu_times, threats, ..written });
}

fn without_cost(claim: &ClaimResult) -> ClaimResult {
    let mut claim = ClaimResult { elapsed_ns: 0, ..claim.clone() };
    for reason in &mut claim.reasons {
        if let Reason::TooEarly { least, most_trials, run_ns, .. } = reason {
            (least.takes_ns, *most_trials, *run_ns) = (None, None, None);
        }
    }
    claim
}

/// Returns a configuration that waits for narrow intervals, but at most for this time.
fn precise_for(precision_time: Duration) -> Config {
    let (precision, median_precision, precision_time) = (Some(0.02), Some(0.02), Some(precision_time));
    Config { max_trials: Some(150), precision, median_precision, precision_time, ..Config::default() }
}

#[test]
fn rows_say_what_the_run_said() {
    let experiment = experiment();
    let arms = ["missing", "odd", "fast"].map(arm).to_vec();
    let tables = vec![Table { experiment: "scripted".into(), arms }];
    for (seed, config) in [
        Config { max_trials: Some(150), ..Config::default() },
        Config { exact_trials: Some(60), error: 0.01, ..Config::default() },
        Config { max_trials: Some(120), precision: Some(0.005), table_trials: Some(30), ..Config::default() },
        precise_for(Duration::from_secs(1000)),
        // The time for narrow intervals is over before some claims are decided.
        precise_for(Duration::from_nanos(1)),
        Config { median_precision: None, ..precise_for(Duration::from_nanos(1)) },
    ]
    .into_iter()
    .enumerate()
    {
        let plan = Plan { tables: tables.clone(), ..plan(claims(&experiment), config) };
        let plan = Plan { config: Config { seed: seed as u64, ..plan.config }, ..plan };
        let ran = record_one(&experiment, &plan);
        let finished = ran.read();
        assert_eq!((finished.state, &finished.outcome), (State::Finished, ran.outcome()));
        let killed = ran.killed();
        let read = killed.read();
        assert_eq!(read.state, State::Killed);
        assert_same(&read.outcome, killed.outcome());
        assert_eq!(read.paths, finished.paths, "a path is the same from rows alone");
        assert_eq!(read.series, finished.series);
    }
}

/// Tests claims that share an arm but are in several lanes (groups of arms). Some of the other arms are unavailable.
#[test]
fn lanes_are_as_they_were() {
    let names: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    let experiment = Scripted {
        missing: &["3", "8", "20"],
        ..Scripted::new(&names.iter().map(String::as_str).collect::<Vec<_>>(), |variant, trial| {
            let coin = (trial.seed >> (variant.parse::<u32>().unwrap() % 40)) % 10 < 5;
            Ok(if coin { 100.0 } else { 110.0 })
        })
    };
    let order = |name: &String| versus(name, name, "0", Bound::AtLeast(1.0), Judging::Order);
    let mut claims: Vec<Claim> = names[1..].iter().map(order).collect();
    claims.push(experiment.predicate("alone", "0", "time <= 105 ns", 0.5));
    let config = Config { max_trials: Some(40), ..Config::default() };
    let ran = record_one(&experiment, &plan(claims, config)).killed();
    assert_same(&ran.read().outcome, ran.outcome());
}

/// A claim on a metric that the machine could not observe belongs to a lane, like any other claim. Otherwise the rows
/// would not fit the lanes of the plan.
#[test]
fn what_could_not_be_shown_is_unavailable() {
    let mut experiment = Scripted { hidden: &[1], ..Scripted::new(&["slow", "fast"], uneven) };
    experiment.spec.metrics.push(Metric::new("depth", "", Unit::One, Better::Higher));
    let mut claims = vec![experiment.predicate("depth", "slow", "depth >= 2", 0.5)];
    claims.push(experiment.predicate("time", "fast", "time >= 0 ns", 0.5));
    let arms = ["slow", "fast"].map(arm).to_vec();
    let config = Config { table_trials: Some(40), ..Config::default() };
    let tables = vec![Table { experiment: "scripted".into(), arms }];
    let ran = record_one(&experiment, &Plan { tables, ..plan(claims, config) });
    let lacks = |lack| Reason::Unavailable { arm: Some(arm("slow")), lack };
    assert_eq!(ran.read().outcome.claims[0].reasons, [lacks(Unavailable::other("needs a spyglass"))]);
    let again = ran.killed().read().outcome;
    assert_eq!(again.claims[0].verdict, Verdict::Unavailable);
    assert_eq!(again.claims[0].reasons, [lacks(Unavailable::Metric { metric: "depth".into() })]);
    assert_eq!(again.claims[1].verdict, Verdict::Holds);
}

/// Tests two experiments whose trials alternate in the file.
#[test]
fn experiments_may_alternate() {
    let first = experiment();
    let mut second = experiment();
    second.spec.id = "second".into();
    let mut all = claims(&first);
    all.extend(claims(&second).into_iter().map(|claim| {
        let id = format!("{} there", claim.id);
        Claim { id, experiment: "second".into(), error: None, ..claim }
    }));
    let config = Config { max_trials: Some(50), ..Config::default() };
    let ran = record(&[&first, &second], &plan(all, config)).killed();
    let place = |line: &String| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        (line["trial"].as_u64().unwrap(), line["experiment"].as_str().unwrap().to_string())
    };
    let mut lines: Vec<String> = ran.lines().iter().map(|line| line.replace("} \n", "}\n")).collect();
    lines.sort_by_cached_key(place);
    let text = lines.concat();
    fs::write(ran.file("trials.jsonl"), format!("{} \n", text.trim_end())).unwrap();
    assert_eq!(place(&lines[0]).1, "scripted");
    let read = ran.read();
    assert_same(&read.outcome, ran.outcome());
    let first_of_second = read.series.iter().position(|series| series.experiment == "second").unwrap();
    assert!(read.series[first_of_second..].iter().all(|series| series.experiment == "second"));
}

/// Reading a killed run gives the same outcome as continuing it without new trials.
#[test]
fn a_run_may_be_cut_anywhere() {
    let experiment = experiment();
    let some = |claim: &Claim| ["at least", "equal", "sets", "exact"].contains(&claim.id.as_str());
    let claims = claims(&experiment).into_iter().filter(some).map(|claim| match claim.look_every {
        1 => claim,
        _ => Claim { look_every: 2, ..claim },
    });
    let config = Config { max_trials: Some(7), ..Config::default() };
    let ran = record_one(&experiment, &plan(claims.collect(), config)).killed();
    let lines = ran.lines();
    let mut text = String::new();
    for line in 0..=lines.len() {
        fs::write(ran.file("trials.jsonl"), &text).unwrap();
        let cut = ran.read();
        assert!(cut.rows as usize <= line);
        assert_same(&cut.outcome, &continued_without_trials(&ran, &experiment));
        if let Some(next) = lines.get(line) {
            fs::write(ran.file("trials.jsonl"), format!("{text}{}", &next[..next.len() - 1])).unwrap();
            assert_eq!(ran.read(), cut, "half a line is ignored");
            text.push_str(next);
        }
    }
    assert_eq!(ran.read().rows as usize, lines.len());
}

/// Returns the outcome of continuing a run without measuring anything.
fn continued_without_trials(ran: &Ran, experiment: &Scripted) -> Outcome {
    let copy = tempfile::tempdir().unwrap();
    for file in ["run.json", "trials.jsonl"] {
        fs::copy(ran.file(file), copy.path().join(file)).unwrap();
    }
    let (writer, recorded) = Writer::resume(copy.path(), None).unwrap();
    let plan = recorded.header.plan.clone();
    let config = Config { max_trials: Some(0), ..plan.config.clone() };
    let recording = Recording::Continue(Box::new((writer, recorded)));
    let outcome =
        run(&Plan { config, ..plan }, &[experiment], recording, &Default::default(), &mut Silent).unwrap().outcome;
    // The machine is described anew each time, and its load changes.
    Outcome { machine: ran.outcome().machine.clone(), threats: ran.outcome().threats.clone(), ..outcome }
}

/// Rows do not show that an arm failed or gave a wrong answer. Only a written outcome does.
#[test]
fn failures_are_known_from_the_outcome_alone() {
    fn breaks(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
        match (variant, trial.number) {
            ("breaks", 20) => Err(TargetError::Failed("out of luck".into())),
            _ => noisy(variant, trial),
        }
    }
    let experiment = Scripted::new(&["even", "odd", "breaks"], breaks);
    let claims = vec![
        experiment.predicate("alone", "breaks", "time > 1000 ns", 0.9999),
        versus("broken", "breaks", "even", Bound::AtLeast(1.0), Judging::Rate),
        versus("open", "even", "odd", Bound::AtLeast(1.0), Judging::Order),
        versus("paired", "breaks", "even", Bound::AtLeast(1e-6), Judging::Rate),
    ];
    let config = Config { max_trials: Some(60), error: 1e-9, ..Config::default() };
    let ran = record_one(&experiment, &plan(claims, config));
    let finished = ran.read();
    assert_eq!((finished.state, &finished.outcome), (State::Finished, ran.outcome()));
    let verdicts = |outcome: &Outcome| outcome.claims.iter().map(|claim| claim.verdict).collect::<Vec<_>>();
    assert!(verdicts(ran.outcome()).contains(&Verdict::Failed));
    let killed = ran.killed();
    let read = killed.read();
    for (read, written) in read.outcome.claims.iter().zip(&killed.outcome().claims) {
        match written.verdict {
            Verdict::Failed => assert_eq!((read.verdict, read.trials), (Verdict::Undecided, written.trials)),
            _ => assert_eq!(without_cost(read), without_cost(written)),
        }
    }
    assert_eq!(read.outcome.points, killed.outcome().points);
    assert_eq!(read.paths, finished.paths);
}

/// If a claim reached its own time limit or was deferred, its result must contain only the trials that the run judged.
/// Later trials do not count, even if they contain the claim's arms.
#[test]
fn a_claim_that_was_closed_has_the_trials_that_it_was_judged_by() {
    let experiment = Scripted::new(&["even", "odd", "fast"], noisy);
    let mut brief = experiment.predicate("brief", "even", "time > 0 ns", 0.9);
    brief.max_time = Some(Duration::from_nanos(1));
    let open = versus("open", "even", "odd", Bound::AtLeast(1.0), Judging::Order);
    let config = Config { max_trials: Some(40), ..Config::default() };
    let ran = record_one(&experiment, &plan(vec![brief, open], config));
    let read = ran.read();
    assert_eq!(read.state, State::Finished);
    let trials: Vec<usize> = read.paths.iter().map(|path| path.trials.len()).collect();
    assert_eq!(trials, [1, 40]);
    assert_eq!(ran.killed().read().outcome.claims[0].trials, 40, "rows do not show this");
}

#[test]
fn a_run_without_a_row_is_a_run() {
    let experiment = Scripted::new(&["even", "odd"], noisy);
    let open = versus("open", "even", "odd", Bound::AtLeast(1.0), Judging::Order);
    let ran = record_one(&experiment, &plan(vec![open], Config { max_trials: Some(0), ..Config::default() }));
    let finished = ran.read();
    assert_eq!((finished.rows, finished.series.len(), finished.state), (0, 0, State::Finished));
    let read = ran.killed().read();
    assert_eq!((read.outcome.claims[0].verdict, read.state), (Verdict::Undecided, State::Killed));
    assert!(read.paths[0].trials.is_empty() && read.paths[0].evidence.is_empty());
}
