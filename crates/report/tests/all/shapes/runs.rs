//! Recorded runs of different shapes.

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Factor, Footprint, Level, Metric, Plot, Point, Sample, Status,
};
use ascertain_engine::unit::Unit;

use super::{Random, Shape, arm, keyed, scalar};

/// All shapes except the largest one.
pub const SHAPES: &[fn() -> Shape] = &[
    one_observation,
    nothing_yet,
    holds_and_refuted,
    undecided,
    censored,
    all_censored,
    constant,
    killed,
    one_variant,
    sixteen_arms,
    hostile,
    service_level,
    sweep,
    heat_map,
    curve,
];

/// A run with a million observations.
pub const MILLION: fn() -> Shape = || {
    Shape::of_functions("million", &["naive", "fast"], 500_000, |_, arm, random| {
        vec![scalar(random.time_ns(if arm.variant == "fast" { 900.0 } else { 1000.0 }, 0.2))]
    })
    .claiming("million.fast", "fast", "naive", 1.05)
    .claiming_rate("million.in-time", "naive", "time <= 2 us", 0.95)
};

fn one_observation() -> Shape {
    let shape = Shape::of_functions("one-observation", &["only"], 1, |_, _, _| vec![scalar(1234.5)]);
    shape.claiming_rate("one.in-time", "only", "time <= 2 us", 0.9)
}

fn nothing_yet() -> Shape {
    Shape::of_functions("nothing-yet", &["naive", "fast"], 0, |_, _, _| Vec::new())
        .claiming("nothing.fast", "fast", "naive", 2.0)
        .killed()
}

fn naive_and_fast(_: u64, arm: &Arm, random: &mut Random) -> Vec<Sample> {
    vec![scalar(random.time_ns(if arm.variant == "fast" { 105.0 } else { 1000.0 }, 0.08))]
}

fn holds_and_refuted() -> Shape {
    Shape::of_functions("holds-and-refuted", &["naive", "fast"], 200, naive_and_fast)
        .claiming("example.fast-8x-naive", "fast", "naive", 8.0)
        .claiming("example.fast-10x-naive", "fast", "naive", 10.0)
        .claiming_rate("example.in-time", "naive", "time <= 1500 ns", 0.85)
        .claiming_rate("example.never-slow", "naive", "time <= 1500 ns", 0.9999)
}

fn undecided() -> Shape {
    Shape::of_commands("undecided", &["sort -n big.txt", "sort big.txt"], 60, |_, _, random| commands(random, 23e6))
}

/// Returns the samples of one command: wall, user and system time, peak memory, exit code.
fn commands(random: &mut Random, wall_ns: f64) -> Vec<Sample> {
    let wall_ns = random.time_ns(wall_ns, 0.04);
    let values = [wall_ns, wall_ns * 0.8, 1.4e6, 4_571_136.0, 0.0];
    let sample = |(metric, value)| Sample { metric, ..scalar(value) };
    values.into_iter().enumerate().map(sample).collect()
}

fn cut_off(at: f64) -> Sample {
    Sample { status: Status::Censored, ..scalar(at) }
}

fn censored() -> Shape {
    Shape::of_functions("censored", &["steady", "hangs"], 90, |trial, arm, random| {
        let time_ns = random.time_ns(5e6, 0.1);
        vec![if arm.variant == "hangs" && trial % 4 == 1 { cut_off(20e6) } else { scalar(time_ns) }]
    })
    .claiming("censored.steady", "steady", "hangs", 1.0)
}

fn all_censored() -> Shape {
    let shape = Shape::of_functions("all-censored", &["hangs"], 20, |_, _, _| vec![cut_off(10e3)]);
    shape.claiming_rate("censored.in-time", "hangs", "time <= 2 us", 0.9)
}

fn constant() -> Shape {
    Shape::of_functions("constant", &["here", "there"], 40, |_, _, _| vec![scalar(64.0)]).claiming(
        "constant.same",
        "here",
        "there",
        1.0,
    )
}

fn killed() -> Shape {
    Shape::of_functions("killed", &["naive", "fast"], 30, naive_and_fast)
        .claiming("example.fast-8x-naive", "fast", "naive", 8.0)
        .killed()
}

fn one_variant() -> Shape {
    Shape::of_functions("one-variant", &["alone"], 300, |_, _, random| vec![scalar(random.time_ns(75_000.0, 0.3))])
}

fn sixteen_arms() -> Shape {
    const LINES: [&str; 16] = [
        "compress --level 0 big.tar",
        "compress --level 1 big.tar",
        "compress --level 2 big.tar",
        "compress --level 3 big.tar",
        "compress --level 4 big.tar",
        "compress --level 5 big.tar",
        "compress --level 6 big.tar",
        "compress --level 7 big.tar",
        "compress --level 8 big.tar",
        "compress --level 9 big.tar",
        "compress --level 9 --threads 2 --block-size 64KiB --no-checksum big.tar",
        "compress --level 9 --threads 2 --block-size 128KiB --no-checksum big.tar",
        "other-compressor big.tar",
        "other-compressor --fast big.tar",
        "other-compressor --best big.tar",
        "true",
    ];
    Shape::of_commands("sixteen-arms", &LINES, 60, |_, arm, random| {
        let place = LINES.iter().position(|line| *line == arm.variant).unwrap_or(0);
        let wall_ns = if place == 15 { 0.6e6 } else { 20e6 * 1.35_f64.powi(place as i32) };
        commands(random, wall_ns)
    })
}

fn hostile() -> Shape {
    const LINES: [&str; 3] = [
        "echo '<script>alert(1)</script>' \"&amp;\"",
        "printf '\u{1b}[31m' </style><img src=x onerror=alert(1)> ]]> -->",
        "a\u{202e}evil\u{2066} `tick` \u{0}\u{7} 和🚀",
    ];
    let mut shape = Shape::of_commands("hostile", &LINES, 40, |_, arm, random| {
        commands(random, if arm.variant == LINES[0] { 9e6 } else { 5e6 })
    });
    shape.spec.title = "<b>commands</b>".into();
    shape.spec.readme = "**Question <i>?</i>.** <script>alert(1)</script> ![x](http://example.org/x.png)\n".into();
    shape.command_line = &["ascertain", "compare", LINES[0], LINES[1], LINES[2]];
    shape
}

fn service_level() -> Shape {
    let mut shape = Shape::of_commands("service-level", &["curl -fsS localhost/health"], 800, |_, _, random| {
        let mut samples = commands(random, 30e6);
        if random.uniform() < 0.004 {
            (samples[0].status, samples[4].status) = (Status::Failed, Status::Failed);
            samples[4].value = 22.0;
        }
        samples
    });
    shape.spec.id = "slo".into();
    shape.commands[0].id = "slo".into();
    shape.command_line = &["ascertain", "slo", "--at-least", "97%", "--within", "100ms"];
    shape.claiming_rate("slo", "curl -fsS localhost/health", "exit == 0 and wall <= 100 ms", 0.97)
}

fn with_factor(mut shape: Shape, name: &str, levels: &[u64]) -> Shape {
    shape.spec.factors = vec![Factor {
        name: name.into(),
        about: "how many".into(),
        default: Level::Integer(levels[0]),
        accepts: Accepts::Integers { min: 1, max: 1 << 30 },
    }];
    let at = |arm: &Arm, level: u64| Arm { point: Point::default().with(name, level), ..arm.clone() };
    shape.arms = shape.arms.iter().flat_map(|arm| levels.iter().map(|&level| at(arm, level))).collect();
    shape
}

fn sweep() -> Shape {
    let shape = Shape::of_functions("sweep", &["naive", "kahan", "kahan-avx512"], 25, |_, arm, random| {
        let elements = arm.point.get("elements").and_then(Level::integer).unwrap_or(1) as f64;
        let each_ns = match arm.variant.as_str() {
            "naive" => 1.0,
            "kahan" => 4.0,
            _ => 0.1 + 0.2 * (elements / 4e6).min(1.0),
        };
        vec![scalar(random.time_ns(20.0 + each_ns * elements, 0.05))]
    });
    // A trial can have at most 16 arms.
    let levels: Vec<u64> = (8..=24).step_by(4).map(|power| 1 << power).collect();
    let mut shape = with_factor(shape, "elements", &levels);
    shape.spec.plots = vec![Plot::Sweep {
        metric: "time".into(),
        factor: "elements".into(),
        footprints: vec![Footprint { at: Point::default(), bytes_each: 4.0 }],
    }];
    shape
}

fn heat_map() -> Shape {
    let mut shape = Shape::of_functions("heat-map", &["cores"], 12, |_, _, random| {
        let pairs = (0..8_u32).flat_map(|from| (0..8_u32).map(move |to| (from, to))).filter(|(from, to)| from != to);
        let cell = |(from, to): (u32, u32)| {
            let far = if from / 4 == to / 4 { 40.0 } else { 130.0 };
            keyed(format!("{from}-{to}"), 0, random.time_ns(far, 0.1))
        };
        pairs.map(cell).collect()
    });
    shape.spec.plots = vec![Plot::Matrix { metric: "time".into() }];
    shape
}

fn curve() -> Shape {
    let mut shape = Shape::of_functions("curve", &["transfer"], 15, |_, _, random| {
        let servers = ["near", "far"].into_iter().flat_map(|server| (0..60_u64).map(move |step| (server, step)));
        let mut at = |(server, step): (&'static str, u64)| {
            let most = if server == "near" { 110e6 } else { 60e6 };
            let bytes_per_s = most * (1.0 - (-(step as f64) / 8.0).exp()) * (1.0 + 0.1 * random.normal());
            keyed(server, step * 50_000_000, bytes_per_s.max(0.0))
        };
        servers.map(&mut at).collect()
    });
    shape.spec.metrics = vec![Metric::new("rate", "bytes arriving", Unit::BytePerSecond, Better::Higher)];
    shape.spec.plots = vec![Plot::Curve { metric: "rate".into() }];
    shape.arms = vec![arm("transfer")];
    shape
}

/// Creates a run with this many claims about a dozen variants.
pub fn many_claims(claims: usize) -> Shape {
    const VARIANTS: [&str; 12] = [
        "naive",
        "pairwise",
        "kahan",
        "neumaier",
        "kahan-avx2",
        "kahan-avx512",
        "kahan-avx512-fma",
        "neumaier-avx2",
        "neumaier-avx512",
        "block-twosum",
        "exact",
        "exact-avx512",
    ];
    let mut shape = Shape::of_functions("many-claims", &VARIANTS, 60, |_, arm, random| {
        let place = VARIANTS.iter().position(|variant| *variant == arm.variant).unwrap_or(0);
        vec![scalar(random.time_ns(1000.0 / (1.0 + place as f64), 0.1))]
    });
    for claim in 0..claims {
        let (candidate, baseline) = (VARIANTS[1 + claim % 11], VARIANTS[claim % 5]);
        let id = format!("sum.{candidate}-faster-than-{baseline}-{claim}");
        shape = if claim % 7 == 6 {
            shape.claiming_rate(&id, candidate, "time <= 500 ns", 0.9)
        } else {
            shape.claiming(&id, candidate, baseline, 1.0 + (claim % 5) as f64 / 4.0)
        };
    }
    shape
}
