use super::*;

pub fn claim(id: &str, judging: Judging, tests: Vec<Test>, rate: f64) -> Claim {
    let claim = Claim::order("example", &Metric::time("time", ""), &arm("a"), &arm("b"));
    Claim { id: id.into(), says: String::new(), asked: Hypothesis { judging, margin: None, tests }, rate, ..claim }
}

fn with_margin(mut claim: Claim, margin: f64) -> Claim {
    claim.asked.margin = Some(margin);
    claim
}

fn versus(scale: Effect, bound: Bound) -> Test {
    Test::Versus { measure: (&Metric::time("time", "")).into(), candidate: arm("b"), baseline: arm("a"), scale, bound }
}

fn predicate(metrics: &[Metric], text: &str) -> Test {
    Test::predicate(arm("a"), Predicate::parse(text, metrics).unwrap())
}

/// Creates a run with a claim of every kind, about two functions that take 1,000 and 500 ns.
fn every_kind(trials: u64) -> Shape {
    let mut shape = Shape::of_functions("every-kind", &["a", "b"], trials, |_, arm, random| {
        let time_ns = random.time_ns(if arm.variant == "a" { 1000.0 } else { 500.0 }, 0.1);
        vec![scalar(time_ns), Sample { metric: 1, ..scalar(2.0) }]
    });
    shape.spec.metrics.push(Metric { name: "size".into(), ..shape.spec.metrics[0].clone() });
    let metrics = shape.spec.metrics.clone();
    let (ratio, difference) = (Effect::Ratio, Effect::Difference);
    let rate = Judging::Rate;
    shape.claims = vec![
        claim("at least", rate, vec![versus(ratio, Bound::AtLeast(1.5))], 0.5),
        claim("at most", rate, vec![versus(ratio, Bound::AtMost(2.5))], 0.9),
        claim("within", rate, vec![versus(ratio, Bound::Within(1.5, 2.5))], 0.5),
        claim("by", rate, vec![versus(difference, Bound::AtLeast(400.0))], 0.5),
        claim("both", rate, vec![versus(ratio, Bound::AtLeast(1.5)), predicate(&metrics, "time <= 1 us")], 0.3),
        claim("two metrics", rate, vec![predicate(&metrics, "time <= 2 us and size <= 3 ns")], 0.9),
        with_margin(claim("margin", rate, vec![predicate(&metrics, "time <= 1200 ns")], 0.9), 0.05),
        claim("exact", Judging::Exact, vec![predicate(&metrics, "size <= 3 ns")], 0.5),
        claim("exact ratio", Judging::Exact, vec![versus(ratio, Bound::AtLeast(1.5))], 0.5),
        claim("order", Judging::Order, vec![versus(ratio, Bound::AtLeast(1.0))], 0.5),
        with_margin(claim("order-margin", Judging::Order, vec![versus(ratio, Bound::AtLeast(1.0))], 0.5), 0.1),
    ];
    shape
}

#[test]
fn claims_of_every_kind_have_their_pictures() {
    for trials in [1, 2, 40, 300] {
        let run = read(&every_kind(trials));
        check(&all(&run));
        let kinds = |claim: usize| -> Vec<String> {
            let pictures = pictures::of_claim(&run, claim);
            ids(&pictures).iter().map(|id| id.rsplit('-').next().unwrap().to_string()).collect()
        };
        assert_eq!(kinds(0), ["ratios", "evidence"]);
        assert_eq!(kinds(1), ["ratios", "rate", "evidence"], "the rate is not a half");
        assert_eq!(kinds(3), ["ratios", "evidence"]);
        assert_eq!(kinds(4), ["ratios", "rate", "evidence"]);
        assert_eq!(kinds(5), ["rate", "evidence"], "two metrics");
        let values: &[&str] = if trials == 1 { &["rate", "evidence"] } else { &["values", "rate", "evidence"] };
        assert_eq!(kinds(6), values, "a constant value is not drawn");
        assert_eq!(kinds(7), [""; 0], "the claim is exact");
        assert_eq!(kinds(9), ["ratios", "evidence"]);
        assert_eq!(kinds(10), ["ratios"], "its evidence is the interval");
    }
}

#[test]
fn the_evidence_ends_where_the_claim_says_and_shows_what_decided() {
    let run = read(&SHAPES[2]());
    for (index, claim) in run.outcome.claims.iter().enumerate() {
        let pictures = pictures::of_claim(&run, index);
        let plot = &pictures.last().unwrap().plot;
        let ends: Vec<[f64; 2]> = lines(plot).iter().map(|line| *line.last().unwrap()).collect();
        let ten = std::f64::consts::LN_10;
        // The e-values for *holds* are drawn last, in front of the others.
        assert_eq!(ends[1], [claim.trials as f64, claim.log_e_holds.unwrap() / ten]);
        assert_eq!(ends[0], [claim.trials as f64, claim.log_e_refuted.unwrap() / ten]);
        assert!(lines(plot).iter().all(|line| line[0] == [0.0, 0.0]));
        let threshold = rules(plot)[0];
        assert_eq!((threshold.0, threshold.2), (Which::Y, "threshold"));
        assert!((threshold.1 - (1.0 / claim.error).log10()).abs() < 1e-12);
        let decided = rules(plot).into_iter().find(|rule| rule.0 == Which::X);
        let is_decided = matches!(claim.verdict, Verdict::Holds | Verdict::Refuted);
        assert_eq!(decided.is_some(), is_decided);
        if let Some((_, at, label)) = decided {
            assert!(label.starts_with(claim.verdict.word()), "{label}");
            let [[x, y]] = dots(plot)[0] else { panic!("one dot") };
            assert!(*x == at && *y >= threshold.1);
        }
    }
}

#[test]
fn ratios_stand_in_order_with_the_claims_own_interval_at_the_end() {
    let run = read(&SHAPES[2]());
    let (claim, path) = (&run.outcome.claims[0], &run.paths[0]);
    let pictures = pictures::of_claim(&run, 0);
    let plot = &with_id(&pictures, "example-fast-8x-naive-ratios").plot;
    let mut shown: Vec<[f64; 2]> = dots(plot).concat();
    shown.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let expected: Vec<[f64; 2]> =
        path.statistics.iter().enumerate().map(|(index, value)| [index as f64 + 1.0, *value]).collect();
    assert_eq!(shown, expected);
    assert!(dots(plot)[0].iter().all(|point| point[1] >= 8.0) && dots(plot)[1].iter().all(|point| point[1] < 8.0));
    assert_eq!(rules(plot), [(Which::Y, 8.0, "claimed: at least 8")]);
    assert_eq!(lines(plot)[0].last(), Some(&[claim.trials as f64, claim.ratio.unwrap()]));
    let Some(Layer::Band { ranges, .. }) = plot.layers.first() else { panic!("the band is at the back") };
    let last = ranges.last().unwrap();
    assert_eq!((Some(last.low), Some(last.high)), (claim.ratio_low, claim.ratio_high));
    assert!(ranges.windows(2).all(|pair| pair[0].low <= pair[1].low && pair[0].high >= pair[1].high));
}

#[test]
fn only_ties_are_hollow_and_decide_nothing() {
    let mut shape = Shape::of_functions("ties", &["a", "b"], 40, |_, _, _| vec![scalar(64.0)]);
    shape.claims = vec![Claim::order("example", &Metric::time("time", ""), &arm("b"), &arm("a"))];
    let run = read(&shape);
    let pictures = all(&run);
    check(&pictures);
    let ratios = &with_id(&pictures, "b-ratios").plot;
    assert_eq!(ratios.series[..3], ["faster", "slower", "tie, not counted"]);
    assert_eq!(dots(ratios).iter().map(|points| points.len()).collect::<Vec<_>>(), [0, 0, 40]);
    assert!(ratios.layers.iter().any(|layer| matches!(layer, Layer::Dots { hollow: true, .. })));
    let evidence = &with_id(&pictures, "b-evidence").plot;
    assert!(lines(evidence).iter().all(|line| line.iter().all(|point| point[1].abs() < 1e-9)));
}

#[test]
fn the_density_of_a_rate_is_one() {
    let shape = SHAPES.iter().map(|shape| shape()).find(|shape| shape.name == "service-level").unwrap();
    let run = read(&shape);
    let claim = &run.outcome.claims[0];
    let pictures = pictures::of_claim(&run, 0);
    let plot = &with_id(&pictures, "slo-rate").plot;
    let Layer::Area { points, .. } = &plot.layers[0] else { panic!("the density is at the back") };
    let area: f64 = points.windows(2).map(|p| (p[1][0] - p[0][0]) * (p[0][1] + p[1][1]) / 2.0).sum();
    assert!((area - 1.0).abs() < 1e-3, "{area}");
    let peak = points.iter().max_by(|a, b| a[1].total_cmp(&b[1])).unwrap();
    assert_eq!(Some(peak[0]), claim.rate);
    let Some(Layer::Intervals { rows, .. }) = plot.layers.iter().find(|l| matches!(l, Layer::Intervals { .. })) else {
        panic!("no interval")
    };
    assert_eq!((Some(rows[0].low), Some(rows[0].high)), (claim.rate_low, claim.rate_high));
    assert_eq!(rules(plot), [(Which::X, 0.97, "claimed: 97 %")]);
    let values = &with_id(&pictures, "slo-values").plot;
    assert_eq!(rules(values), [(Which::Y, 100e6, "claimed: <= 100 ms")]);
    assert_eq!(dots(values)[0].len() as u64, claim.successes);
    assert_eq!(dots(values)[1].len() as u64, claim.trials - claim.successes);
}
