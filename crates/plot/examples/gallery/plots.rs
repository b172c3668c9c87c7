//! Plots of every kind. Their data is generated, and is the same in each run.

use ascertain_plot::{Axis, Cell, Interval, Layer, Plot, Prefixes, Range, Scale, Which};

/// The unit of times in nanoseconds, with its prefixes.
pub const TIME: Prefixes = &[(60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
pub const SIZE: Prefixes = &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
pub const RATE: Prefixes = &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")];
pub const NONE: Prefixes = &[];

/// Returns plots of every kind, and plots that are hard to draw.
pub fn all() -> Vec<Plot> {
    let mut plots = vec![
        quantiles(4),
        strip(1),
        strip(100),
        strip(100_000),
        evidence(),
        density(),
        sweep(),
        heat(32, 32),
        heat(2, 2),
        heat(6, 4),
        curves(),
        forest(3),
        forest(40),
        sixteen(),
        long_names(),
        hostile(),
        one_point(),
        empty(),
        rules(),
    ];
    plots.extend(extremes());
    plots
}

/// Pseudo-random numbers between 0 and 1 (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns an approximately normal number: the sum of twelve uniform ones.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

fn plot(id: &str, title: &str, x: Axis, y: Axis, series: &[&str], layers: Vec<Layer>) -> Plot {
    let series = series.iter().map(|name| (*name).to_string()).collect();
    Plot {
        id: id.into(),
        title: title.into(),
        alt: format!("{title}, of data made up for a gallery."),
        x,
        y,
        series,
        layers,
    }
}

fn line(series: usize, points: Vec<[f64; 2]>) -> Layer {
    Layer::Line { series: Some(series), points, steps: false, dashed: false }
}

fn rule(on: Which, at: f64, label: &str) -> Layer {
    Layer::Rule { on, at, label: label.into() }
}

/// Quantiles of the times of each series, with their confidence bands.
pub fn quantiles(series: usize) -> Plot {
    let names = ["naive", "kahan", "kahan-avx512-fma", "neumaier-avx512"];
    let shares: Vec<f64> = (-30..=36).map(|i| 1.0 / (1.0 + 10f64.powf(-f64::from(i) / 12.0))).collect();
    let mut layers = Vec::new();
    for index in 0..series {
        let time = |share: f64| {
            let place = (share / (1.0 - share)).ln();
            1.2e6 * 1.5f64.powi(index as i32) * (0.05 * place + (0.4 * place - 1.1).exp() * 0.1 + 1.0)
        };
        let wide = |share: f64| 0.015 + 0.02 * (share / (1.0 - share)).ln().abs() / 2.0;
        let range = |share: &f64| {
            let high = if *share > 0.998 { f64::INFINITY } else { time(*share) * (1.0 + wide(*share)) };
            Range { x: *share, low: time(*share) * (1.0 - wide(*share)), high }
        };
        layers.push(Layer::Band { series: Some(index), ranges: shares.iter().map(range).collect() });
        layers.push(line(index, shares.iter().map(|share| [*share, time(*share)]).collect()));
    }
    layers.push(rule(Which::Y, 10e6, "limit 10 ms"));
    let (x, y) = (Axis::new("quantile", Scale::Logit, NONE), Axis::new("time", Scale::Log, TIME));
    plot("quantiles", "Time by quantile, with 95 % bands", x, y, &names[..series], layers)
}

/// The ratio of each pair of times, in the order in which they were measured.
pub fn strip(trials: usize) -> Plot {
    let mut chance = Chance(7);
    let ratio = |chance: &mut Chance, trial: usize| {
        let outlier = if chance.next() > 0.99 { 1.4 } else { 1.0 };
        [trial as f64, 1.06 * (0.03 * chance.normal()).exp() * outlier]
    };
    let points: Vec<[f64; 2]> = (1..=trials).map(|trial| ratio(&mut chance, trial)).collect();
    let (wins, losses): (Vec<_>, Vec<_>) = points.iter().partition(|point| point[1] >= 1.0);
    let ties: Vec<[f64; 2]> = (1..=trials / 20).map(|trial| [(trial * 19) as f64, 1.0]).collect();
    let layers = vec![
        rule(Which::Y, 1.0, "as fast"),
        Layer::Dots { series: Some(0), points: wins, hollow: false },
        Layer::Dots { series: Some(1), points: losses, hollow: false },
        Layer::Dots { series: Some(2), points: ties, hollow: true },
    ];
    let (x, y) = (Axis::new("trial", Scale::Linear, NONE), Axis::new("ratio", Scale::Log, NONE));
    let id = format!("strip-{trials}");
    plot(&id, "Paired ratios in the order measured", x, y, &["faster", "slower", "tie"], layers)
}

/// The e-value of each verdict after each trial, and the threshold at which a verdict is reached.
pub fn evidence() -> Plot {
    let mut chance = Chance(3);
    let mut paths = [vec![[0.0, 1.0]], vec![[0.0, 1.0]]];
    let mut logs = [0.0f64, 0.0];
    for trial in 1..=60 {
        let step = if chance.next() < 0.75 { 0.25 } else { -0.45 };
        for (log, direction) in logs.iter_mut().zip([1.0, -1.0]) {
            *log = (*log + direction * step).max(-6.0);
        }
        for (path, log) in paths.iter_mut().zip(logs) {
            path.push([f64::from(trial), 10f64.powf(log * 0.8)]);
        }
    }
    let layers = paths.into_iter().enumerate().map(|(series, points)| Layer::Line {
        series: Some(series),
        points,
        steps: true,
        dashed: false,
    });
    let layers = layers.chain([rule(Which::Y, 1000.0, "decides at 1 / error = 1,000")]).collect();
    let x = Axis::new("trial", Scale::Linear, NONE);
    let y = Axis::new("evidence", Scale::Log, NONE).showing(0.01, 3000.0);
    plot("evidence", "The evidence for each verdict after each trial", x, y, &["holds", "refuted"], layers)
}

/// The density of a rate, with its interval and the claimed rate.
pub fn density() -> Plot {
    let density = |rate: f64| (3972.0 * (rate / 0.993).ln() + 28.0 * ((1.0 - rate) / 0.007).ln()).exp() * 300.0;
    let points = (0..=200).map(|i| 0.975 + f64::from(i) * 0.000_124).map(|rate| [rate, density(rate)]).collect();
    let layers = vec![
        Layer::Area { series: Some(0), points },
        Layer::Intervals {
            series: Some(1),
            rows: vec![Interval {
                y: 20.0,
                value: 0.993,
                low: 0.9885,
                high: 0.9962,
                label: "0.993 (0.989 to 0.996)".into(),
            }],
        },
        rule(Which::X, 0.98, "claimed: at least 98 %"),
    ];
    let (x, y) = (Axis::new("rate", Scale::Linear, NONE), Axis::new("density", Scale::Linear, NONE));
    plot("density", "The rate that 3972 of 4000 trials support", x, y, &["density", "interval"], layers)
}

/// Throughput by array size, with the sizes of the caches.
pub fn sweep() -> Plot {
    let names = ["naive", "kahan", "avx512"];
    let mut layers = Vec::new();
    for (series, peak) in [6e9, 2e9, 160e9].into_iter().enumerate() {
        let rate = |size: f64| peak / (1.0 + 2000.0 / size) / (1.0 + size / 4e7 * peak / 1e11);
        let sizes: Vec<f64> = (10..=26).map(|power| 2f64.powi(power)).collect();
        let range = |x: &f64| Range { x: *x, low: rate(*x) * 0.85, high: rate(*x) * 1.12 };
        layers.push(Layer::Band { series: Some(series), ranges: sizes.iter().map(range).collect() });
        layers.push(line(series, sizes.iter().map(|x| [*x, rate(*x)]).collect()));
    }
    layers.extend([
        rule(Which::X, 49152.0, "L1d 48 KiB"),
        rule(Which::X, 1_048_576.0, "L2 1 MiB"),
        rule(Which::X, 33_554_432.0, "L3 32 MiB"),
    ]);
    let (x, y) = (Axis::new("size", Scale::Log, SIZE), Axis::new("throughput", Scale::Log, RATE));
    plot("sweep", "Throughput by size of the array", x, y, &names, layers)
}

/// A heat map of the latencies between several nodes, for each pair of nodes and both directions.
pub fn heat(columns: usize, rows: usize) -> Plot {
    let mut chance = Chance(columns as u64);
    let mut cells = Vec::new();
    for y in 0..rows {
        for x in 0..columns {
            let apart = (x as f64 - y as f64).abs() / 8.0;
            let value = 20.0 + 400.0 * (1.0 - (-apart).exp()) + 30.0 * chance.next();
            // One pair was not measured.
            if (x, y) != (1, 3) {
                cells.push(Cell { x, y, value });
            }
        }
    }
    let names = |count: usize| match count {
        32 => (0..count).map(|index| index.to_string()).collect(),
        _ => (0..count).map(|index| format!("eu-central-{index}-frankfurt")).collect(),
    };
    let layers = vec![Layer::Cells { cells, domain: None, label: "time of a message, median".into(), unit: TIME }];
    let x = Axis::new("to", Scale::Names(names(columns)), NONE);
    let y = Axis::new("from", Scale::Names(names(rows)), NONE);
    plot(&format!("heat-{columns}x{rows}"), "How long a message takes", x, y, &[], layers)
}

/// Curves: the share of servers that know of a change, over time.
pub fn curves() -> Plot {
    let names = ["gossip, fan-out 2", "gossip, fan-out 4", "tree", "broadcast"];
    let mut layers = Vec::new();
    for (series, pace) in [40e6, 22e6, 14e6, 60e6].into_iter().enumerate() {
        let share = |time: f64| 1.0 / (1.0 + (-(time - 5.0 * pace) / pace).exp());
        let times: Vec<f64> = (0..=100).map(|i| f64::from(i) * 4e6).collect();
        let range = |x: &f64| Range { x: *x, low: share(*x - pace * 0.3), high: share(*x + pace * 0.3) };
        layers.push(Layer::Band { series: Some(series), ranges: times.iter().map(range).collect() });
        layers.push(line(series, times.iter().map(|x| [*x, share(*x)]).collect()));
    }
    let x = Axis::new("time since the change", Scale::Linear, TIME);
    let y = Axis::new("share of servers that know", Scale::Linear, NONE).showing(0.0, 1.0);
    plot("curves", "How a change spreads", x, y, &names, layers)
}

/// A forest plot of ratios with their intervals.
pub fn forest(rows: usize) -> Plot {
    let mut chance = Chance(rows as u64);
    let mut groups: [Vec<Interval>; 3] = Default::default();
    for row in 0..rows {
        let value = (0.25 * chance.normal()).exp();
        let wide = 1.02 + 0.3 * chance.next();
        let high = if row == 1 { f64::INFINITY } else { value * wide };
        let low = value / wide;
        let range = if row == 1 { format!("at least {low:.2}") } else { format!("{low:.2} to {high:.1}") };
        let interval = Interval { y: row as f64, value, low, high, label: format!("{value:.1} ({range})") };
        let group = if interval.low > 1.0 { 0 } else { 1 + usize::from(interval.high < 1.0) };
        groups[group].push(interval);
    }
    let layers = groups.into_iter().enumerate().map(|(series, rows)| Layer::Intervals { series: Some(series), rows });
    let layers = [rule(Which::X, 1.0, "as fast as before")].into_iter().chain(layers).collect();
    let names = (0..rows).map(|row| format!("bench {row} of the whole suite, elements={}", 1 << (row % 20))).collect();
    let x = Axis::new("times as fast as before", Scale::Log, NONE);
    let y = Axis::new("", Scale::Names(names), NONE);
    plot(&format!("forest-{rows}"), "Effect of the change", x, y, &["faster", "undecided", "slower"], layers)
}

/// Sixteen series in one plot.
pub fn sixteen() -> Plot {
    let names: Vec<String> = (0..16).map(|index| format!("variant {index}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let curve = |series: usize| {
        let point = |i: i32| [f64::from(i), (f64::from(i) / 30.0 + series as f64 / 5.0).sin() + series as f64 * 0.35];
        line(series, (0..=200).map(point).collect())
    };
    let (x, y) = (Axis::new("trial", Scale::Linear, NONE), Axis::new("score", Scale::Linear, NONE));
    plot("sixteen", "Sixteen variants", x, y, &names, (0..16).map(curve).collect())
}

/// A forest plot with names that are wider than any picture.
pub fn long_names() -> Plot {
    let long = "target/release/app --with-every-option=enabled --input /very/long/path/to/some/file.json".repeat(3);
    let mut plot = forest(3);
    plot.id = "long-names".into();
    plot.title = format!("What `{long}` did");
    plot.series[0] = long.clone();
    plot.x.label = long.clone();
    plot.y.label = long.clone();
    if let Scale::Names(names) = &mut plot.y.scale {
        names[1] = long.clone();
    }
    plot.layers.push(rule(Which::X, 1.4, &long));
    plot
}

/// Names with markup and control characters.
pub fn hostile() -> Plot {
    let mut plot = sweep();
    plot.id = "<b>\"'".into();
    plot.title = "</title><script>alert(1)</script>".into();
    plot.alt = "\u{1b}[31mred\u{0} & \u{ffff}".into();
    plot.series = ["<script>alert('1')</script>", "\u{202e}evil \"quoted\"", "和 🚀 naïve"].map(String::from).to_vec();
    plot.x.label = "]]>--><b>".into();
    plot.layers.push(rule(Which::Y, 1e10, "\u{7}<img src=x onerror=alert(1)>"));
    plot
}

pub fn one_point() -> Plot {
    let layers =
        vec![line(0, vec![[12.0, 34e6]]), Layer::Dots { series: Some(0), points: vec![[12.0, 34e6]], hollow: false }];
    let (x, y) = (Axis::new("trial", Scale::Linear, NONE), Axis::new("time", Scale::Linear, TIME));
    plot("one-point", "One observation", x, y, &["sleep"], layers)
}

pub fn empty() -> Plot {
    let (x, y) = (Axis::new("trial", Scale::Linear, NONE), Axis::new("time", Scale::Log, TIME));
    plot("empty", "Nothing was measured", x, y, &["sleep"], Vec::new())
}

/// A plot with more labelled lines ([`Layer::Rule`]) than fit side by side, some of them outside the plot.
pub fn rules() -> Plot {
    let mut plot = quantiles(2);
    plot.id = "rules".into();
    for share in [0.5, 0.9, 0.95, 0.99, 0.999] {
        plot.layers.push(rule(Which::X, share, &format!("agreed share {share}")));
    }
    plot.layers.push(rule(Which::X, 0.999_999_999, "out of sight"));
    for limit in [2e6, 2.1e6, 2.2e6, 1e12] {
        plot.layers.push(rule(Which::Y, limit, &format!("limit {} ms", limit / 1e6)));
    }
    plot
}

/// Plots with the largest and smallest numbers of an `f64`, and with missing numbers.
pub fn extremes() -> Vec<Plot> {
    let points = vec![[1e-300, -1e300], [1.0, f64::NAN], [1e300, f64::INFINITY], [2.0, 1e300], [-3.0, 0.0]];
    let scales = [Scale::Linear, Scale::Log, Scale::Logit, Scale::Names(Vec::new())];
    let named = |(index, scale): (usize, Scale)| {
        let x = Axis::new("x", scale.clone(), SIZE);
        let y = Axis::new("y", scale, TIME);
        let layers = vec![line(0, points.clone()), Layer::Dots { series: None, points: points.clone(), hollow: true }];
        plot(&format!("extreme-{index}"), "Numbers at the limits", x, y, &["all"], layers)
    };
    scales.into_iter().enumerate().map(named).collect()
}
