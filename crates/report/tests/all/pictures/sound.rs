use std::time::Duration;

use super::claims::claim;
use super::*;

/// An experiment with two metrics. Its first metric has values by key.
struct ByKey(Spec);

impl Experiment for ByKey {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn open(&self, _: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Ok(Box::new(Numbers))
    }
}

/// An experiment with one value by key, and another value that differs in each trial.
struct Numbers;

impl Session for Numbers {
    fn verify(&mut self, _: ArmId) -> Result<(), TargetError> {
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        out.push_sample(keyed("ns1", 0, 1e9));
        out.push(1, (trial.number % 1_000 * 1_000 + arm as u64) as f64 + 1e6);
        Ok(())
    }
}

#[test]
fn runs_of_all_shapes_have_sound_pictures() {
    for shape in SHAPES.iter().map(|shape| shape()) {
        let pictures = all(&read(&shape));
        check(&pictures);
        let expected: &[&str] = match shape.name {
            "nothing-yet" | "all-censored" => &[],
            // A metric whose values are all equal has no picture, but a sentence on the page.
            "constant" => &["constant-same-evidence", "constant-same-ratios"],
            "one-observation" => &["one-in-time-evidence", "one-in-time-rate"],
            "holds-and-refuted" => {
                &["example-time-quantiles", "example-fast-8x-naive-ratios", "claims-ratios", "claims-rates"]
            }
            "censored" => &["censored-steady-ratios", "example-time-quantiles"],
            "sixteen-arms" => &["compare-wall-medians", "compare-wall-quantiles", "claims-ratios"],
            "heat-map" => &["example-time-matrix"],
            "curve" => &["example-rate-curve"],
            "sweep" => &["example-time-elements-sweep"],
            "service-level" => &["slo-rate", "slo-values", "slo-wall-quantiles"],
            _ => &["example-time-trials"][..usize::from(shape.commands.is_empty())],
        };
        for id in expected {
            with_id(&pictures, id);
        }
    }
}

#[test]
fn pictures_of_runs_without_values() {
    for (position, expected) in [(1, 0), (5, 2)] {
        let shape = SHAPES[position]();
        assert!(matches!(shape.name, "nothing-yet" | "all-censored"));
        let pictures = all(&read(&shape));
        // If all values were stopped at the time limit, only the e-values and the rate are drawn.
        assert_eq!(pictures.len(), expected, "{:?}", ids(&pictures));
    }
    let run = read(&SHAPES[2]());
    assert_eq!(pictures::of_experiment(&run, "another"), []);
    assert_eq!(pictures::of_claim(&run, 99), []);
}

#[test]
fn a_run_that_has_just_ended_shows_on_a_terminal() {
    let mut state = 1_u64;
    let mut work = move |rounds: u64| {
        for _ in 0..rounds {
            state = ascertain_engine::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        state
    };
    let group = Group::new("work").function("little", move || work(100)).function("much", move || work(300));
    let arms = [arm("little"), arm("much")];
    let metrics = &group.spec().metrics;
    let rate = claim(
        "rate",
        Judging::Rate,
        vec![Test::predicate(arm("much"), Predicate::parse("time <= 1 h", metrics).unwrap())],
        0.5,
    );
    let plan = Plan {
        claims: vec![
            Claim::order("work", &metrics[0], &arms[1], &arms[0]),
            Claim { experiment: "work".into(), ..rate },
        ],
        tables: vec![Table { experiment: "work".into(), arms: arms.to_vec() }],
        config: Config { exact_trials: Some(20), max_time: Duration::MAX, ..Config::default() },
        ..Plan::default()
    };
    let done = run::run(&plan, &[&group], Recording::None, &Default::default(), &mut Silent).unwrap();
    let plots = pictures::for_terminal(&done.outcome, &done.observations);
    let ids: Vec<&str> = plots.iter().map(|plot| plot.id.as_str()).collect();
    assert_eq!(ids, ["medians", "rate-1", "quantiles-1"]);
    let Layer::Intervals { rows, .. } = &plots[0].layers[0] else { panic!("rows") };
    let medians: Vec<Option<f64>> =
        done.outcome.points.iter().filter(|p| p.metric == "time").map(|p| p.median).collect();
    assert_eq!(rows.iter().map(|row| Some(row.value)).collect::<Vec<_>>(), medians);
    assert_eq!(rules(&plots[2]), [(Which::Y, 3.6e12, "claimed: <= 60 min")]);
}

#[test]
fn a_terminal_shows_the_metric_beside_one_that_is_told_by_key() {
    let metrics = vec![Metric::time("server", "of each").by_key(), Metric::time("all", "of all")];
    let variants = ["a", "b"].map(|name| (name, "one").into()).into();
    let experiment = ByKey(Spec { metrics, variants, ..Spec::new("keys", "") });
    let predicate = Predicate::parse("all <= 1 h", &experiment.0.metrics).unwrap();
    let rate = claim("rate", Judging::Rate, vec![Test::predicate(arm("a"), predicate)], 0.5);
    let plan = Plan {
        claims: vec![Claim { experiment: "keys".into(), ..rate }],
        tables: vec![Table { experiment: "keys".into(), arms: vec![arm("a"), arm("b")] }],
        config: Config { exact_trials: Some(20), max_time: Duration::MAX, ..Config::default() },
        ..Plan::default()
    };
    let done = run::run(&plan, &[&experiment], Recording::None, &Default::default(), &mut Silent).unwrap();
    let plots = pictures::for_terminal(&done.outcome, &done.observations);
    assert_eq!(plots.iter().map(|plot| plot.id.as_str()).collect::<Vec<_>>(), ["rate-1", "quantiles-1"]);
}
