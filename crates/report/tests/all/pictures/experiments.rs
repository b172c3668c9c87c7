use super::*;

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
        let range_at = |q: f64| ranges.iter().find(|range| (range.x - q).abs() < 1e-12);
        let median = range_at(0.5).unwrap();
        assert_eq!((Some(median.low), Some(median.high)), (point.median_low, point.median_high));
        // 200 values are too few to estimate p99.9, or to bound p99 from above.
        assert!(line.iter().all(|point| (0.005 - 1e-9..=0.995 + 1e-9).contains(&point[0])));
        assert!(range_at(0.99).is_none());
        assert!(ranges.iter().all(|range| range.low.is_finite() && range.high.is_finite()));
    }
}

#[test]
fn values_that_were_cut_off_are_where_they_were() {
    let shape = SHAPES.iter().map(|shape| shape()).find(|shape| shape.name == "censored").unwrap();
    let run = read(&shape);
    let pictures = all(&run);
    let quantiles = &with_id(&pictures, "example-time-quantiles").plot;
    // A quarter of the trials of `hangs` were stopped at the time limit.
    let hangs = lines(quantiles)[1];
    assert!(hangs.iter().all(|point| point[1].is_finite() == (point[0] < 0.745)), "{hangs:?}");
    let trials = &with_id(&pictures, "example-time-trials").plot;
    assert_eq!(trials.title, "Time trial by trial");
    assert!(trials.alt.ends_with("23 values were cut off: the true values are higher than drawn."), "{}", trials.alt);
    // Values that were stopped are hollow dots at the limit.
    assert_eq!(dots(trials).iter().map(|points| points.len()).collect::<Vec<_>>(), [90, 67, 23]);
    let (_, top, label) = rules(trials)[0];
    assert_eq!((label, top), ("hollow: stopped (23)", 20e6));
    assert!(dots(trials)[2].iter().all(|point| point[1] == top));
    // Of a stopped value, only a lower bound is known. The dot is at the ratio to this bound; the true ratio is beyond
    // the dot.
    let ratios = &with_id(&pictures, "censored-steady-ratios").plot;
    assert!(!ratios.title.contains("not drawn"), "{}", ratios.title);
    let highest = dots(ratios)[0].iter().map(|point| point[1]).fold(0.0, f64::max);
    assert!(highest > 1.5 && highest < 20.0, "{highest}");
}

#[test]
fn a_sweep_marks_where_the_caches_end() {
    let shape = SHAPES.iter().map(|shape| shape()).find(|shape| shape.name == "sweep").unwrap();
    let run = read(&shape);
    let pictures = pictures::of_experiment(&run, "example");
    let plot = &with_id(&pictures, "example-time-elements-sweep").plot;
    // A series without rows has no name. Such series are combinations of a colour and a shape that no row uses.
    let named: Vec<&String> = plot.series.iter().filter(|name| !name.is_empty()).collect();
    assert_eq!(named, ["naive", "kahan", "kahan-avx512"]);
    assert_eq!(plot.x.scale, Scale::Log);
    let ends: Vec<(f64, &str)> = rules(plot).into_iter().map(|(_, at, label)| (at, label)).collect();
    assert_eq!(ends, [(12_288.0, "L1d ends"), (524_288.0, "L2 ends"), (8_388_608.0, "L3 ends")]);
    for (line, variant) in lines(plot).iter().zip(["naive", "kahan", "kahan-avx512"]) {
        for [x, y] in *line {
            let at = Point::default().with("elements", *x as u64);
            let point =
                run.outcome.points.iter().find(|point| point.arm.variant == variant && point.arm.point == at).unwrap();
            assert_eq!(Some(*y), point.median);
        }
    }
}

/// An arm that chooses its level itself has no line, only a mark at the level that it chose.
#[test]
fn a_choice_is_marked_in_a_sweep() {
    let see = |_, arm: &Arm, random: &mut Random| {
        let time = scalar(random.time_ns(50.0, 0.2));
        if arm.variant == "model" { vec![time, Sample { metric: 1, ..scalar(24.0) }] } else { vec![time] }
    };
    let mut shape = Shape::of_functions("choice", &["blocks", "model"], 12, see);
    shape.spec.metrics.push(Metric {
        name: "chosen".into(),
        unit: ascertain_engine::unit::Unit::One,
        ..shape.spec.metrics[0].clone()
    });
    let at = |variant: usize, n: u64| Arm { point: Point::default().with("n", n), ..shape.arms[variant].clone() };
    shape.arms = vec![at(0, 8), at(0, 64), at(1, 8)];
    let (metric, factor, chosen) = ("time".to_string(), "n".to_string(), "chosen".to_string());
    let sweep = experiment::Plot::Sweep { metric: metric.clone(), factor: factor.clone(), footprints: Vec::new() };
    shape.spec.plots = vec![sweep, experiment::Plot::Choice { metric, factor, chosen }];
    let run = read(&shape);
    let pictures = all(&run);
    check(&pictures);
    let Picture { plot, table, .. } = with_id(&pictures, "example-time-n-sweep");
    let name = "at the level that model chose";
    assert_eq!(plot.series, ["blocks", name]);
    let model = run.outcome.points.iter().find(|point| point.arm.variant == "model" && point.metric == "time").unwrap();
    assert_eq!(dots(plot).last().unwrap(), &[[24.0, model.median.unwrap()]]);
    assert!(table.rows.iter().any(|row| row[0] == name && row[1] == "24"), "{:?}", table.rows);
}

/// Tests twelve lines. The arms of four lines need more memory at the same level than the other arms. No plot has more
/// lines than there are colours.
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
        let kind = if series.arm.variant.as_str() < "c" { "f64" } else { "f32" };
        series.arm.point = series.arm.point.clone().with("type", kind);
    }
    run.series.extend(more);
    let pictures = all(&run);
    check(&pictures);
    let sweeps: Vec<&Plot> =
        pictures.iter().map(|picture| &picture.plot).filter(|plot| plot.id.contains("sweep")).collect();
    let counts: Vec<usize> = sweeps.iter().map(|plot| plot.series.len()).collect();
    assert_eq!(counts, [8, 2, 2]);
    assert_eq!(sweeps[0].title, "Time (type=f32) by n (1 of 2), with 95 % bands");
    assert_eq!(sweeps[2].title, "Time (type=f64) by n, with 95 % bands");
    let trials = &with_id(&pictures, "example-time-type-f32-trials").plot;
    assert_eq!(
        trials.title,
        "Time (type=f32) trial by trial: 8 of 20, from the smallest median to the largest; the table has the other medians"
    );
    // Rows of floats and rows of doubles are never in the same plot.
    for Picture { plot, table, .. } in &pictures {
        let rows = table.rows.iter().flatten().chain(&plot.series);
        assert!(plot.title.contains("(type=f") && rows.clone().all(|name| !name.contains("type=")), "{}", plot.title);
    }
    assert!(pictures.iter().all(|picture| picture.plot.series.len() <= 8));
}

/// Six variants are measured idle and busy. Each of the two levels has a plot of all variants, and no variant is left
/// out.
#[test]
fn quantiles_of_many_arms_are_drawn_by_level() {
    let variants = ["a", "b", "c", "d", "e", "f"];
    let mut shape =
        Shape::of_functions("levels", &variants, 20, |_, _, random| vec![scalar(random.time_ns(50.0, 0.2))]);
    let at = |arm: &Arm, load: &str| Arm { point: Point::default().with("load", load), ..arm.clone() };
    shape.arms = shape.arms.iter().flat_map(|arm| ["idle", "busy"].map(|load| at(arm, load))).collect();
    shape.spec.factors = vec![experiment::Factor {
        name: "load".into(),
        about: "the rest of the machine".into(),
        default: "idle".into(),
        accepts: experiment::Accepts::OneOf(["idle", "busy"].map(Into::into).to_vec()),
    }];
    let pictures = all(&read(&shape));
    check(&pictures);
    let busy = &with_id(&pictures, "example-time-quantiles").plot;
    assert_eq!(
        busy.title,
        "Time (load=busy) by quantile, with 95 % bands where both ends are known, and dashed lines where only one is"
    );
    assert!(busy.alt.starts_with("Time (load=busy) by quantile of 6 arms"), "{}", busy.alt);
    assert_eq!(busy.series, variants);
    let idle = &with_id(&pictures, "example-time-quantiles-2").plot;
    assert_eq!(
        idle.title,
        "Time (load=idle) by quantile, with 95 % bands where both ends are known, and dashed lines where only one is"
    );
    assert_eq!(idle.series, variants);
}

/// There are five lines for each of two widths, in two plots. A sentence replaces the plot whose values are all zero.
#[test]
fn a_sweep_that_is_the_same_everywhere_is_said() {
    let variants = ["a", "b", "c", "d", "e"];
    let mut shape = Shape::of_functions("zeros", &variants, 12, |_, _, _| vec![scalar(0.0)]);
    let at = |arm: &Arm, n: u64| Arm { point: Point::default().with("n", n).with("width", 1), ..arm.clone() };
    shape.arms = shape.arms.iter().flat_map(|arm| [8, 64].map(|n| at(arm, n))).collect();
    shape.spec.plots =
        vec![experiment::Plot::Sweep { metric: "time".into(), factor: "n".into(), footprints: Vec::new() }];
    let mut run = read(&shape);
    let mut wide = run.series.clone();
    for series in &mut wide {
        let n = series.arm.point.get("n").unwrap().integer().unwrap();
        series.arm.point = series.arm.point.clone().with("width", 2);
        series.values = vec![n as f64; series.values.len()].into();
    }
    run.series.extend(wide);
    let pictures = all(&run);
    check(&pictures);
    let sweeps: Vec<&str> = ids(&pictures).into_iter().filter(|id| id.contains("sweep")).collect();
    assert_eq!(sweeps, ["example-time-n-sweep"]);
    let drawn = &with_id(&pictures, "example-time-n-sweep").plot;
    assert_eq!((drawn.title.as_str(), drawn.series.len()), ("Time by n (width=2), with 95 % bands", 5));
    assert_eq!(drawn.y.scale, Scale::Linear);
    assert!(lines(drawn).iter().all(|line| **line == [[8.0, 8.0], [64.0, 64.0]]));
    let page = ascertain_report::html::page(&[run]).replace(['\u{a0}', '\u{202f}'], " ");
    let said = "<code>time</code> was 0 ns for 5 arms at every level of <code>n</code>.";
    assert!(page.contains(said));
}

/// If a coarse clock returns only 0 and 4 ms, the curve has steps, because there is nothing between the two values.
#[test]
fn values_that_recur_are_drawn_in_steps() {
    let ticks = |trial: u64, arm: &Arm, random: &mut Random| {
        let ticks = [0.0, 4e6][usize::from(trial.is_multiple_of(5))];
        vec![scalar(if arm.variant == "ticks" { ticks } else { random.time_ns(1e6, 0.2) })]
    };
    let pictures = all(&read(&Shape::of_functions("ticks", &["ticks", "flows"], 60, ticks)));
    check(&pictures);
    let plot = &with_id(&pictures, "example-time-quantiles").plot;
    for layer in &plot.layers {
        match layer {
            Layer::Line { steps, series, points, .. } => {
                assert!(steps, "both lines have the same form");
                let is_tick = |y: f64| y == 0.0 || y == 4e6;
                assert!(*series != Some(0) || points.iter().all(|point| is_tick(point[1])));
            }
            Layer::Band { ranges, .. } => {
                let is_level = |pair: &[Range]| {
                    pair[0].x == pair[1].x || (pair[0].low, pair[0].high) == (pair[1].low, pair[1].high)
                };
                assert!(ranges.windows(2).all(is_level), "{ranges:?}");
            }
            _ => {}
        }
    }
    let flows = all(&read(&Shape::of_functions("flows", &["flows"], 60, ticks)));
    let line = &with_id(&flows, "example-time-quantiles").plot.layers[1];
    assert!(matches!(line, Layer::Line { steps: false, .. }));
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
    assert_eq!(dots(trials)[0][..2], [[1.0, 98.0], [2.0, 1098.0]]);
}

#[test]
fn what_was_taken_back_is_not_drawn() {
    let mut run = read(&SHAPES[2]());
    for point in run.outcome.points.iter_mut().filter(|point| point.arm.variant == "fast") {
        point.n = 0;
    }
    let left_out = LeftOut {
        experiment: "example".into(),
        arm: Arm { variant: "fast".into(), point: Point::default() },
        absence: Absence::Failed,
        reason: crate::common::reason("wrong answer: 3"),
    };
    run.outcome.left_out.push(left_out);
    for Picture { plot, .. } in pictures::of_experiment(&run, "example") {
        assert_eq!(plot.series, ["naive"], "{}", plot.id);
    }
}

/// Each part has a bar in its own colour, in the row of each arm.
#[test]
fn a_waterfall_of_parts() {
    fn parts(_: u64, arm: &Arm, _: &mut Random) -> Vec<Sample> {
        let (last_ns, waits_ns) = if arm.variant == "small" { (20e6, None) } else { (40e6, Some(5e6)) };
        let waits = waits_ns.map(|waits_ns| keyed("TLS", 10_000_000, waits_ns));
        let parts = [keyed("connect", 0, 10e6), keyed("first byte", 15_000_000, 15e6)];
        parts.into_iter().chain(waits).chain([keyed("last byte", 30_000_000, last_ns)]).collect()
    }
    let mut shape = Shape::of_functions("waterfall", &["small", "large"], 11, parts);
    shape.spec.metrics[0].reduce = Reduce::Sum;
    shape.spec.plots = vec![experiment::Plot::Waterfall { metric: "time".into() }];
    let run = read(&shape);
    assert_eq!(run.outcome.points.iter().map(|point| point.median).collect::<Vec<_>>(), [Some(45e6), Some(70e6)]);
    let pictures = all(&run);
    check(&pictures);
    assert_eq!(ids(&pictures), ["example-time-waterfall"]);
    let Picture { plot, table, .. } = &pictures[0];
    assert_eq!(plot.series, ["connect", "TLS", "first byte", "last byte"]);
    assert_eq!(plot.y.scale, Scale::Names(["small", "large"].map(String::from).into()));
    let Layer::Intervals { rows: last, .. } = &plot.layers[7] else { panic!("{:?}", plot.layers) };
    let last: Vec<_> = last.iter().map(|part| (part.y, part.low, part.high, part.label.as_str())).collect();
    assert_eq!(last, [(0.0, 30e6, 50e6, "last byte: 20.00 ms"), (1.0, 30e6, 70e6, "last byte: 40.00 ms")]);
    assert_eq!(table.rows[1], ["large", "11", "10.00 ms", "5.000 ms", "15.00 ms", "40.00 ms"]);
}

/// A share that reaches 1 in every trial still has a curve worth drawing.
#[test]
fn curves_that_end_alike() {
    let pictures_of = |see| {
        let mut shape = Shape::of_functions("shares", &["a"], 3, see);
        shape.spec.plots = vec![experiment::Plot::Curve { metric: "time".into() }];
        all(&read(&shape))
    };
    let step = |_, _: &Arm, _: &mut Random| (0..9).map(|at| keyed("", at, f64::from(u8::from(at > 4)))).collect();
    assert_eq!(ids(&pictures_of(step)), ["example-time-curve"]);
    assert_eq!(pictures_of(|_, _, _| (0..9).map(|at| keyed("", at, 1.0)).collect()).len(), 0);
}

/// Metrics by key have a row with its own median and interval for each key. The rows must be the same if the summaries
/// are computed from the recorded values of a killed run.
#[test]
fn what_is_told_by_key_has_a_row_for_each() {
    let mut shape = Shape::of_functions("keys", &["a", "b"], 21, |trial, arm, _| {
        let slower = if arm.variant == "a" { 0.0 } else { 1e9 };
        let at = |key: &'static str, ns: f64| keyed(key, 0, slower + ns + trial as f64 * 1e6);
        vec![Sample { metric: 1, ..scalar(trial as f64) }, at("ns1", 100e6), at("ns2", 400e6)]
    });
    shape.spec.metrics = vec![Metric::time("server", "of each").by_key(), Metric::time("all", "of all")];
    for is_finished in [true, false] {
        shape.is_finished = is_finished;
        let Outcome { points, by_key, .. } = &read(&shape).outcome;
        let ms = |ns: Option<f64>| ns.map(|ns| (ns / 1e6).round());
        let of = |point: &PointSummary| (point.arm.variant.clone(), point.key.clone(), point.n, ms(point.median));
        let row = |variant: &str, key: &str, ms: f64| (variant.to_string(), key.to_string(), 21, Some(ms));
        let rows = [row("a", "ns1", 110.0), row("a", "ns2", 410.0), row("b", "ns1", 1_110.0), row("b", "ns2", 1_410.0)];
        assert_eq!(by_key.iter().map(of).collect::<Vec<_>>(), rows);
        assert!(by_key.iter().all(|point| point.median_low < point.median && point.median < point.median_high));
        assert!(points.iter().all(|point| point.metric == "all" && point.n == 21), "{points:?}");
        let at =
            read(&shape).outcome.with_keys().into_iter().map(|point| format!("{} {}", point.metric, point.arm.point));
        let in_history = ["all ", "all ", "server key=ns1", "server key=ns2", "server key=ns1", "server key=ns2"];
        assert_eq!(at.collect::<Vec<_>>(), in_history);
        let page = ascertain_report::html::page(&[read(&shape)]);
        assert!(page.contains("example by key") && page.contains(">ns2<"), "{page}");
        let csv = ascertain_report::csv::outcome(&read(&shape).outcome);
        assert_eq!(csv.lines().filter(|line| line.ends_with(",ns2") && line.contains(",server,")).count(), 2, "{csv}");
        let markdown = ascertain_report::markdown::outcome(&read(&shape).outcome, &Default::default());
        assert!(
            markdown.contains("example by key") && markdown.contains("| `b` | `ns2` | 21 | 1.410 s |"),
            "{markdown}"
        );
    }
}

/// Each trial counts in the median until the last trial ends. If each trial counted only until its own end, the longest
/// trials alone would determine the end of the curve.
#[test]
fn a_share_stays_where_its_trial_ended() {
    let mut shape = Shape::of_functions("shares", &["a"], 9, |trial, _, _| {
        // Two of three trials end after 5 ms; the third takes 20 ms.
        let (last, ends_ms) = if trial % 3 == 0 { (19, 20) } else { (5, 6) };
        (0..=ends_ms).map(|ms| keyed("", ms * 1_000_000, f64::from(u8::from(ms > last)))).collect()
    });
    shape.spec.metrics = vec![Metric::share("time", "of answers", Better::Higher)];
    shape.spec.plots = vec![experiment::Plot::Curve { metric: "time".into() }];
    let pictures = all(&read(&shape));
    let line = lines(&with_id(&pictures, "example-time-curve").plot)[0];
    assert!(line.iter().all(|[offset_ns, share]| *share == f64::from(u8::from(*offset_ns > 5e6))), "{line:?}");
    assert_eq!(line.len(), 21);
}

/// A trial that is observed less often than others counts at the times between its observations, too.
#[test]
fn a_share_stays_until_its_trial_looks_again() {
    let mut shape = Shape::of_functions("shares", &["a"], 9, |trial, _, _| {
        // Three trials are observed often, and their value is 1 from the beginning. Six trials are observed half as
        // often, and their value becomes 1 only at the end.
        let (step_ms, has_it_from) = if trial % 3 == 0 { (1, 1) } else { (2, 20) };
        let times = (0..=20).step_by(step_ms);
        times.map(|ms| keyed("", ms * 1_000_000, f64::from(u8::from(ms >= has_it_from)))).collect()
    });
    shape.spec.metrics = vec![Metric::share("time", "of answers", Better::Higher)];
    shape.spec.plots = vec![experiment::Plot::Curve { metric: "time".into() }];
    let pictures = all(&read(&shape));
    let line = lines(&with_id(&pictures, "example-time-curve").plot)[0];
    assert!(line.iter().all(|[offset_ns, share]| *share == f64::from(u8::from(*offset_ns >= 20e6))), "{line:?}");
    assert_eq!(line.len(), 21);
}

/// Trials that are observed at different times are combined into one curve. Names are in natural order.
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
    let mut shape = Shape::of_functions("matrices", &["a", "b"], 12, |_, arm, random| {
        let median_ns = if arm.variant == "a" { 40.0 } else { 400.0 };
        ["10-2", "2-10", "9-2"].map(|key| keyed(key, 0, random.time_ns(median_ns, 0.1))).into()
    });
    shape.spec.plots = vec![experiment::Plot::Matrix { metric: "time".into() }];
    let pictures = all(&read(&shape));
    check(&pictures);
    assert_eq!(ids(&pictures), ["example-time-matrix", "example-time-matrix-2"]);
    assert_eq!(pictures[0].plot.y.scale, Scale::Names(["2", "9", "10"].map(String::from).into()));
    // Both plots have the same scale of colours.
    let ends = |plot: &Plot| match &plot.layers[..] {
        [Layer::Cells { cells, domain: Some(domain), .. }] => {
            assert!(cells.iter().all(|cell| (domain.0..=domain.1).contains(&cell.value)), "{domain:?}");
            *domain
        }
        layers => panic!("{layers:?}"),
    };
    let [a, b] = [0, 1].map(|index| ends(&pictures[index].plot));
    assert_eq!(a, b);
    assert!(a.0 < 60.0 && a.1 > 300.0, "{a:?}");
    let shades = |plot: &Plot| text::render(plot, 80, 20, false).lines().nth(2).map(String::from);
    let [a, b] = [0, 1].map(|index| shades(&pictures[index].plot));
    assert!(a == b && a.is_some_and(|line| line.contains('█')));
}
