//! Pictures of runs of all shapes: whether they say what was recorded, and nothing that was not.
#![allow(missing_docs)]

mod shapes;

use std::collections::BTreeSet;

use ascertain::claim::{Bound, Claim, Judging, Scale as Compared, Test};
use ascertain::experiment::{self, Arm, Experiment, Footprint, Metric, Point, Reduce, Sample};
use ascertain::function::Group;
use ascertain::outcome::{LeftOut, Verdict};
use ascertain::plan::{Config, Plan, Table};
use ascertain::predicate::Predicate;
use ascertain::recorded::{self, RecordedRun};
use ascertain::run::{self, Recording, Silent};
use ascertain_report::pictures::{self, Picture};
use ascertain_report::plot::{Layer, Plot, Scale, Which};
use shapes::{Random, SHAPES, Shape, arm, keyed, scalar};

fn read(shape: &Shape) -> RecordedRun {
    let runs = tempfile::tempdir().unwrap();
    recorded::read(&shape.write(runs.path())).unwrap()
}

fn all(run: &RecordedRun) -> Vec<Picture> {
    let claims = (0..run.outcome.claims.len()).flat_map(|claim| pictures::of_claim(run, claim));
    let experiments = run.header.experiments.iter().flat_map(|spec| pictures::of_experiment(run, &spec.id));
    pictures::overview(run).into_iter().chain(claims).chain(experiments).collect()
}

fn ids(pictures: &[Picture]) -> Vec<&str> {
    pictures.iter().map(|picture| picture.plot.id.as_str()).collect()
}

fn with_id<'a>(pictures: &'a [Picture], id: &str) -> &'a Picture {
    pictures.iter().find(|picture| picture.plot.id == id).unwrap_or_else(|| panic!("{id}: {:?}", ids(pictures)))
}

fn lines(plot: &Plot) -> Vec<&[[f64; 2]]> {
    let lines = plot.layers.iter().filter_map(|layer| match layer {
        Layer::Line { points, .. } => Some(points.as_slice()),
        _ => None,
    });
    lines.collect()
}

fn dots(plot: &Plot) -> Vec<&[[f64; 2]]> {
    let dots = plot.layers.iter().filter_map(|layer| match layer {
        Layer::Dots { points, .. } => Some(points.as_slice()),
        _ => None,
    });
    dots.collect()
}

fn rules(plot: &Plot) -> Vec<(Which, f64, &str)> {
    let rules = plot.layers.iter().filter_map(|layer| match layer {
        Layer::Rule { on, at, label } => Some((*on, *at, label.as_str())),
        _ => None,
    });
    rules.collect()
}

/// The points of all marks, an interval's estimate and the middle of a range among them.
fn marks(layer: &Layer) -> (Option<usize>, Vec<[f64; 2]>) {
    match layer {
        Layer::Line { series, points, .. } | Layer::Dots { series, points, .. } | Layer::Area { series, points } => {
            (*series, points.clone())
        }
        Layer::Band { series, ranges } => (*series, ranges.iter().map(|range| [range.x, range.low]).collect()),
        Layer::Intervals { series, rows } => (*series, rows.iter().map(|row| [row.value, row.y]).collect()),
        Layer::Cells { cells, .. } => (None, cells.iter().map(|cell| [cell.x as f64, cell.y as f64]).collect()),
        Layer::Rule { .. } => (None, Vec::new()),
    }
}

fn has_place(scale: &Scale, value: f64) -> bool {
    value.is_finite()
        && match scale {
            Scale::Linear => true,
            Scale::Log => value > 0.0,
            Scale::Nines => value > 0.0 && value < 1.0,
            Scale::Names(names) => value.fract() == 0.0 && (0.0..names.len() as f64).contains(&value),
        }
}

/// What is true of every picture.
fn check(pictures: &[Picture]) {
    let mut ids = BTreeSet::new();
    for Picture { plot, table } in pictures {
        let id = &plot.id;
        assert!(ids.insert(id), "{id} twice");
        assert!(!id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'), "{id}");
        assert!(!plot.title.is_empty() && plot.alt.contains(|c: char| c.is_ascii_digit()), "{id}: {}", plot.alt);
        assert!(plot.layers.iter().any(|layer| !matches!(layer, Layer::Rule { .. })), "{id}: rules alone");
        let mut drawn = 0;
        for layer in &plot.layers {
            let (series, points) = marks(layer);
            assert!(series.is_none_or(|series| series < plot.series.len()), "{id}: {series:?}");
            drawn +=
                points.iter().filter(|[x, y]| has_place(&plot.x.scale, *x) && has_place(&plot.y.scale, *y)).count();
            if let Scale::Names(names) = &plot.y.scale {
                assert!(points.iter().all(|point| point[1] < names.len() as f64), "{id}");
            }
            if let Layer::Band { ranges, .. } = layer {
                assert!(ranges.iter().all(|range| range.low <= range.high), "{id}");
            }
        }
        assert!(drawn > 0, "{id}: nothing is drawn");
        assert!(!table.rows.is_empty(), "{id}: an empty table");
        assert!(table.rows.iter().all(|row| row.len() == table.headings.len()), "{id}");
    }
}

#[test]
fn runs_of_all_shapes_have_sound_pictures() {
    for shape in SHAPES.iter().map(|shape| shape()) {
        let pictures = all(&read(&shape));
        check(&pictures);
        let expected: &[&str] = match shape.name {
            "nothing-yet" | "all-censored" => &[],
            "one-observation" => &["example-time-medians", "one-in-time-evidence", "one-in-time-rate"],
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
fn nothing_is_made_of_nothing() {
    for (position, expected) in [(1, 0), (5, 2)] {
        let shape = SHAPES[position]();
        assert!(matches!(shape.name, "nothing-yet" | "all-censored"));
        let pictures = all(&read(&shape));
        // Where all values were cut off there still are the evidence and the rate.
        assert_eq!(pictures.len(), expected, "{:?}", ids(&pictures));
    }
    let run = read(&SHAPES[2]());
    assert_eq!(pictures::of_experiment(&run, "another"), []);
    assert_eq!(pictures::of_claim(&run, 99), []);
}

fn claim(id: &str, judging: Judging, tests: Vec<Test>, rate: f64) -> Claim {
    Claim { id: id.into(), says: String::new(), judging, tests, rate, ..Claim::order("example", &arm("a"), &arm("b")) }
}

fn versus(scale: Compared, bound: Bound) -> Test {
    Test::Versus { metric: 0, candidate: arm("b"), baseline: arm("a"), scale, bound }
}

fn predicate(metrics: &[Metric], text: &str) -> Test {
    Test::Predicate { arm: arm("a"), predicate: Predicate::parse(text, metrics).unwrap() }
}

/// A claim of every kind on two functions that take 1,000 and 500 ns.
fn every_kind(trials: u64) -> Shape {
    let mut shape = Shape::of_functions("every-kind", &["a", "b"], trials, |_, arm, random| {
        let time_ns = random.time_ns(if arm.variant == "a" { 1000.0 } else { 500.0 }, 0.1);
        vec![scalar(time_ns), Sample { metric: 1, ..scalar(2.0) }]
    });
    shape.spec.metrics.push(Metric { name: "size".into(), ..shape.spec.metrics[0].clone() });
    let metrics = shape.spec.metrics.clone();
    let (ratio, difference) = (Compared::Ratio, Compared::Difference);
    let rate = Judging::Rate;
    shape.claims = vec![
        claim("at least", rate, vec![versus(ratio, Bound::AtLeast(1.5))], 0.5),
        claim("at most", rate, vec![versus(ratio, Bound::AtMost(2.5))], 0.9),
        claim("within", rate, vec![versus(ratio, Bound::Within(1.5, 2.5))], 0.5),
        claim("by", rate, vec![versus(difference, Bound::AtLeast(400.0))], 0.5),
        claim("both", rate, vec![versus(ratio, Bound::AtLeast(1.5)), predicate(&metrics, "time <= 1 us")], 0.3),
        claim("two metrics", rate, vec![predicate(&metrics, "time <= 2 us and size <= 3 ns")], 0.9),
        Claim { margin: Some(0.05), ..claim("margin", rate, vec![predicate(&metrics, "time <= 1200 ns")], 0.9) },
        claim("exact", Judging::Exact, vec![predicate(&metrics, "size <= 3 ns")], 0.5),
        claim("exact ratio", Judging::Exact, vec![versus(ratio, Bound::AtLeast(1.5))], 0.5),
        claim("order", Judging::Order, vec![versus(ratio, Bound::AtLeast(1.0))], 0.5),
        Claim {
            margin: Some(0.1),
            ..claim("order-margin", Judging::Order, vec![versus(ratio, Bound::AtLeast(1.0))], 0.5)
        },
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
        assert_eq!(kinds(0), ["evidence", "ratios"]);
        assert_eq!(kinds(1), ["evidence", "ratios", "rate"], "the rate is not a half");
        assert_eq!(kinds(3), ["evidence", "ratios"]);
        assert_eq!(kinds(4), ["evidence", "ratios", "rate"]);
        assert_eq!(kinds(5), ["evidence", "rate"], "two metrics");
        assert_eq!(kinds(6), ["evidence", "rate", "values"]);
        assert_eq!(kinds(7), [""; 0], "there is no chance in it");
        assert_eq!(kinds(9), ["evidence", "ratios"]);
        assert_eq!(kinds(10), ["ratios"], "its evidence is the interval");
    }
}

#[test]
fn the_evidence_ends_where_the_claim_says_and_shows_what_decided() {
    let run = read(&SHAPES[2]());
    for (index, claim) in run.outcome.claims.iter().enumerate() {
        let pictures = pictures::of_claim(&run, index);
        let plot = &pictures[0].plot;
        let ends: Vec<[f64; 2]> = lines(plot).iter().map(|line| *line.last().unwrap()).collect();
        let ten = std::f64::consts::LN_10;
        // The line that holds is drawn last, in front.
        assert_eq!(ends[1], [claim.trials as f64, claim.log_e_holds.unwrap() / ten]);
        assert_eq!(ends[0], [claim.trials as f64, claim.log_e_refuted.unwrap() / ten]);
        assert!(lines(plot).iter().all(|line| line[0] == [0.0, 0.0]));
        let threshold = rules(plot)[0];
        assert_eq!((threshold.0, threshold.2), (Which::Y, "enough to decide"));
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
    shape.claims = vec![Claim::order("example", &arm("b"), &arm("a"))];
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
    assert_eq!(rules(values), [(Which::Y, 100e6, "<= 100 ms")]);
    assert_eq!(dots(values)[0].len() as u64, claim.successes);
    assert_eq!(dots(values)[1].len() as u64, claim.trials - claim.successes);
}

#[test]
fn quantiles_meet_the_summaries() {
    let run = read(&SHAPES[2]());
    let pictures = pictures::of_experiment(&run, "example");
    let plot = &with_id(&pictures, "example-time-quantiles").plot;
    assert_eq!(plot.series, ["naive", "fast"]);
    for (series, point) in run.outcome.points.iter().enumerate() {
        let line = lines(plot)[series];
        let at = |q: f64| line.iter().position(|point| (point[0] - q).abs() < 1e-12).unwrap();
        assert_eq!(Some(line[at(0.5)][1]), point.median);
        assert_eq!(Some(line[at(0.9)][1]), point.p90);
        assert_eq!(Some(line[at(0.99)][1]), point.p99);
        let Layer::Band { ranges, .. } = &plot.layers[series] else { panic!("bands are at the back") };
        let median = ranges[at(0.5)];
        assert_eq!((Some(median.low), Some(median.high)), (point.median_low, point.median_high));
        // 200 values say nothing of p99.9, and don't bound p99 from above.
        assert!(line.iter().all(|point| (0.005 - 1e-9..=0.995 + 1e-9).contains(&point[0])));
        assert_eq!(ranges[at(0.99)].high, f64::INFINITY);
    }
}

#[test]
fn values_that_were_cut_off_are_at_the_top() {
    let shape = SHAPES.iter().map(|shape| shape()).find(|shape| shape.name == "censored").unwrap();
    let run = read(&shape);
    let pictures = all(&run);
    let quantiles = &with_id(&pictures, "example-time-quantiles").plot;
    // A quarter of the trials of `hangs` were cut off.
    let hangs = lines(quantiles)[1];
    assert!(hangs.iter().all(|point| point[1].is_finite() == (point[0] < 0.745)), "{hangs:?}");
    let trials = &with_id(&pictures, "example-time-trials").plot;
    assert!(trials.title.ends_with("(23 values cut off, not drawn)"), "{}", trials.title);
    assert!(trials.alt.ends_with("23 values were cut off and count as infinite."), "{}", trials.alt);
    assert_eq!(dots(trials).iter().map(|points| points.len()).collect::<Vec<_>>(), [90, 67]);
    // A ratio against what was cut off is infinite too.
    let ratios = &with_id(&pictures, "censored-steady-ratios").plot;
    assert!(ratios.title.contains("cut off"), "{}", ratios.title);
}

#[test]
fn a_sweep_marks_where_the_caches_end() {
    let shape = SHAPES.iter().map(|shape| shape()).find(|shape| shape.name == "sweep").unwrap();
    let run = read(&shape);
    let pictures = pictures::of_experiment(&run, "example");
    let plot = &with_id(&pictures, "example-time-elements-sweep").plot;
    assert_eq!(plot.series, ["naive", "kahan", "kahan-avx512"]);
    assert_eq!(plot.x.scale, Scale::Log);
    let ends: Vec<(f64, &str)> = rules(plot).into_iter().map(|(_, at, label)| (at, label)).collect();
    assert_eq!(ends, [(12_288.0, "L1d ends"), (524_288.0, "L2 ends"), (8_388_608.0, "L3 ends")]);
    for (line, variant) in lines(plot).iter().zip(["naive", "kahan", "kahan-avx512"]) {
        for [x, y] in *line {
            let at = Point::default().with("elements", *x as u64);
            let point = run.outcome.points.iter().find(|point| point.variant == variant && point.at == at).unwrap();
            assert_eq!(Some(*y), point.median);
        }
    }
}

/// Twelve lines of which four touch more memory: no plot has more lines than there are colours.
#[test]
fn many_lines_are_drawn_in_several_plots() {
    let variants = ["a", "b", "c", "d", "e", "f"];
    let mut shape = Shape::of_functions("many", &variants, 12, |_, _, random| vec![scalar(random.time_ns(50.0, 0.2))]);
    let at = |arm: &Arm, n: u64| Arm { point: Point::default().with("n", n).with("type", "f32"), ..arm.clone() };
    shape.arms = shape.arms.iter().flat_map(|arm| [8, 64].map(|n| at(arm, n))).collect();
    let footprint = |kind: &str, bytes_each| Footprint { at: Point::default().with("type", kind), bytes_each };
    let footprints = vec![footprint("f32", 4.0), footprint("f64", 8.0)];
    shape.spec.plots = vec![experiment::Plot::Sweep { metric: "time".into(), factor: "n".into(), footprints }];
    let mut run = read(&shape);
    let mut more = run.series.clone();
    for series in &mut more {
        series.arm.variant += "2";
        let kind = if series.arm.variant < "c".to_string() { "f64" } else { "f32" };
        series.arm.point = series.arm.point.clone().with("type", kind);
    }
    run.series.extend(more);
    let pictures = all(&run);
    check(&pictures);
    let sweeps: Vec<&Plot> =
        pictures.iter().map(|picture| &picture.plot).filter(|plot| plot.id.contains("sweep")).collect();
    let counts: Vec<usize> = sweeps.iter().map(|plot| plot.series.len()).collect();
    assert_eq!(counts, [8, 2, 2]);
    assert_eq!(sweeps[0].title, "Time by n (type=f32, 1 of 3), with 95 % bands");
    assert_eq!(sweeps[2].title, "Time by n (type=f64, 3 of 3), with 95 % bands");
    let trials = &with_id(&pictures, "example-time-trials").plot;
    assert_eq!(trials.title, "Time trial by trial: 8 of 24, from the least median to the greatest");
    assert!(pictures.iter().all(|picture| picture.plot.series.len() <= 8));
}

#[test]
fn an_exact_metric_has_no_quantiles() {
    let mut shape = Shape::of_functions("exact", &["a", "b", "c"], 20, |_, arm, random| {
        let error = [("a", 1e-7), ("b", 1e-15), ("c", 0.0)].iter().find(|(name, _)| *name == arm.variant).unwrap().1;
        let exit = Sample { metric: 2, ..scalar(0.0) };
        vec![scalar(random.time_ns(50.0, 0.2)), Sample { metric: 1, ..scalar(error) }, exit]
    });
    for name in ["error", "exit"] {
        shape.spec.metrics.push(Metric { name: name.into(), ..shape.spec.metrics[0].clone() });
    }
    let pictures = all(&read(&shape));
    check(&pictures);
    assert_eq!(ids(&pictures), ["example-time-quantiles", "example-time-trials", "example-error-medians"]);
    let error = &pictures[2].plot;
    assert_eq!(error.title, "Error: the same in every trial (1 median of zero not drawn)");
    let Layer::Intervals { rows, .. } = &error.layers[0] else { panic!("rows") };
    assert!(rows.iter().all(|row| row.low == row.value && row.high == row.value));
}

#[test]
fn a_trial_of_many_samples_counts_as_one_number() {
    let mut shape = Shape::of_functions("samples", &["a"], 30, |trial, _, _| {
        (0..100).map(|sample| Sample { offset_ns: sample, ..scalar((trial * 1000 + sample) as f64) }).collect()
    });
    shape.spec.metrics[0].reduce = Reduce::Quantile(0.99);
    let pictures = all(&read(&shape));
    check(&pictures);
    let trials = &with_id(&pictures, "example-time-trials").plot;
    assert_eq!(dots(trials)[0][..2], [[0.0, 98.0], [1.0, 1098.0]]);
}

#[test]
fn what_was_taken_back_is_not_drawn() {
    let mut run = read(&SHAPES[2]());
    for point in run.outcome.points.iter_mut().filter(|point| point.variant == "fast") {
        point.n = 0;
    }
    let left_out = LeftOut {
        experiment: "example".into(),
        variant: "fast".into(),
        at: Point::default(),
        reason: "wrong answer: 3".into(),
    };
    run.outcome.left_out.push(left_out);
    for Picture { plot, .. } in pictures::of_experiment(&run, "example") {
        assert_eq!(plot.series, ["naive"], "{}", plot.id);
    }
}

/// Trials that look at their own times are brought together; names are in the order that people expect.
#[test]
fn curves_and_matrices_of_several_arms() {
    fn curve(_: u64, arm: &Arm, random: &mut Random) -> Vec<Sample> {
        let most = if arm.variant == "a" { 1e6 } else { 2e6 };
        let step = |step: u64| keyed("", step * 1_000_000 + (random.uniform() * 9e5) as u64, most * step as f64);
        (0..50).map(step).collect()
    }
    let mut shape = Shape::of_functions("curves", &["a", "b"], 20, curve);
    shape.spec.plots = vec![experiment::Plot::Curve { metric: "time".into() }];
    let pictures = all(&read(&shape));
    check(&pictures);
    assert_eq!(ids(&pictures), ["example-time-curve", "example-time-curve-2"]);
    let line = lines(&pictures[0].plot)[0];
    assert!((40..=60).contains(&line.len()), "{}", line.len());
    for [offset_ns, value] in line {
        assert!((value - offset_ns.min(49e6)).abs() < 2e6, "{offset_ns} {value}");
    }
    let mut shape = Shape::of_functions("matrices", &["a", "b"], 12, |_, _, random| {
        ["10-2", "2-10", "9-2"].map(|key| keyed(key, 0, random.time_ns(40.0, 0.1))).into()
    });
    shape.spec.plots = vec![experiment::Plot::Matrix { metric: "time".into() }];
    let pictures = all(&read(&shape));
    check(&pictures);
    assert_eq!(ids(&pictures), ["example-time-matrix", "example-time-matrix-2"]);
    assert_eq!(pictures[0].plot.y.scale, Scale::Names(["2", "9", "10"].map(String::from).into()));
}

#[test]
fn a_run_that_has_just_ended_shows_on_a_terminal() {
    let mut state = 1_u64;
    let mut work = move |rounds: u64| {
        for _ in 0..rounds {
            state = ascertain::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        state
    };
    let group = Group::new("work").function("little", move || work(100)).function("much", move || work(300));
    let arms = [arm("little"), arm("much")];
    let metrics = &group.spec().metrics;
    let rate = claim(
        "rate",
        Judging::Rate,
        vec![Test::Predicate { arm: arm("much"), predicate: Predicate::parse("time <= 1 h", metrics).unwrap() }],
        0.5,
    );
    let plan = Plan {
        claims: vec![Claim::order("work", &arms[1], &arms[0]), Claim { experiment: "work".into(), ..rate }],
        tables: vec![Table { experiment: "work".into(), arms: arms.to_vec() }],
        commands: Vec::new(),
        config: Config { exact_trials: Some(20), ..Config::default() },
    };
    let done = run::run(&plan, &[&group], Recording::None, &mut Silent).unwrap();
    let plots = pictures::for_terminal(&done.outcome, &done.observations);
    let ids: Vec<&str> = plots.iter().map(|plot| plot.id.as_str()).collect();
    assert_eq!(ids, ["medians", "rate-1", "quantiles-1"]);
    let Layer::Intervals { rows, .. } = &plots[0].layers[0] else { panic!("rows") };
    let medians: Vec<Option<f64>> =
        done.outcome.points.iter().filter(|p| p.metric == "time").map(|p| p.median).collect();
    assert_eq!(rows.iter().map(|row| Some(row.value)).collect::<Vec<_>>(), medians);
    assert_eq!(rules(&plots[2]), [(Which::Y, 3.6e12, "<= 60 min")]);
}
