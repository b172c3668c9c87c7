//! Measures expressions with `ascertain-streams` and with RTLola's interpreter, in the same rounds and in random order.
//!
//! Usage: rtlola ROUNDS. Checks that both compute the same sums of results.

use std::convert::Infallible;
use std::error::Error;
use std::time::Instant;

use ascertain_streams::{Engine, OneClock, Plan, Recorded, Unit};
use rtlola_interpreter::monitor::{Change, Incremental, RawVerdict, Verdicts, VerdictRepresentation};
use rtlola_interpreter::time::RelativeNanos;
use rtlola_interpreter::{ConfigBuilder, Value};

/// Observations that RTLola reads in a round. Ours are the same, read several times.
const OBSERVATIONS: usize = 1 << 17;
const PASSES: usize = 16;
/// The time between two observations in nanoseconds.
const STEP_NS: u64 = 1_000_000;

struct Case {
    name: &'static str,
    ours: &'static str,
    /// The specification for RTLola. Its last output is the result; other streams read `x` at every observation, and
    /// `y` at every tenth.
    theirs: &'static str,
    /// The relative tolerance of the comparison of sums. RTLola also has results before the first window is full.
    tolerance: f64,
}

const CASES: [Case; 5] = [
    Case {
        name: "offset",
        ours: "time / lag(time, 1)",
        theirs: "input x: Float64\ninput y: Float64\noutput r := x / x.offset(by: -1).defaults(to: 1000000000000.0)",
        tolerance: 1e-6,
    },
    Case {
        name: "hold",
        ours: "time / hold(every(time, 10))",
        theirs: "input x: Float64\ninput y: Float64\noutput r @x := x / y.hold().defaults(to: 1.0)",
        tolerance: 1e-9,
    },
    Case {
        name: "mean so far",
        ours: "mean(time)",
        theirs: "input x: Float64\ninput y: Float64\n\
                 output s: Float64 := s.offset(by: -1).defaults(to: 0.0) + x\n\
                 output n @x := n.offset(by: -1).defaults(to: 0.0) + 1.0\n\
                 output r := s / n",
        tolerance: 1e-9,
    },
    Case {
        name: "mean of the last 10",
        ours: "mean(window(time, 10, 1))",
        theirs: "input x: Float64\ninput y: Float64\n\
                 output r := x.aggregate(over_discrete: 10, using: average).defaults(to: 0.0)",
        tolerance: 1e-3,
    },
    Case {
        name: "mean of a second, ten times a second",
        ours: "mean(window(time, 1 s, step 100 ms))",
        theirs: "input x: Float64\ninput y: Float64\n\
                 output r @10Hz := x.aggregate(over: 1s, using: average).defaults(to: 0.0)",
        tolerance: 0.02,
    },
];

/// A verdict that has no results. A monitor that only watches triggers could use it.
#[derive(Clone, Debug)]
struct Silent;

impl VerdictRepresentation for Silent {
    type Tracing = rtlola_interpreter::monitor::NoTracer;

    fn create(_: RawVerdict) -> Silent {
        Silent
    }

    fn is_empty(&self) -> bool {
        true
    }
}

/// The sum of the results of a verdict.
trait Summed: VerdictRepresentation {
    fn sum(&self) -> f64;
}

impl Summed for Silent {
    fn sum(&self) -> f64 {
        0.0
    }
}

impl Summed for Incremental {
    fn sum(&self) -> f64 {
        let last = self.last().and_then(|(_, changes)| changes.last());
        match last {
            Some(Change::Value(_, Value::Float(value))) => value.into_inner(),
            _ => 0.0,
        }
    }
}

/// A way to compute an expression.
#[derive(Clone, Copy)]
enum Way {
    Ours,
    /// RTLola, with the results of each event.
    Results,
    /// RTLola, without results.
    Silent,
}

const WAYS: [Way; 3] = [Way::Ours, Way::Results, Way::Silent];

/// Computes an expression. Returns million observations per second and the sum of the results.
fn measure(case: &Case, way: Way, times: &[f64]) -> Result<(f64, f64), Box<dyn Error>> {
    match way {
        Way::Ours => ours(case, times),
        Way::Results => theirs::<Incremental>(case, times),
        Way::Silent => theirs::<Silent>(case, times),
    }
}

fn ours(case: &Case, times: &[f64]) -> Result<(f64, f64), Box<dyn Error>> {
    let plan = Plan::new(case.ours, &OneClock::new(&[("time", Unit::TIME)]))?;
    let mut sum = 0.0;
    let start = Instant::now();
    for _ in 0..PASSES {
        sum = 0.0;
        Engine::new(&plan)?.run(&mut Recorded::new(&[times]), |results| {
            sum += results.lows.iter().filter(|value| !value.is_nan()).sum::<f64>();
            true
        })?;
    }
    Ok(((times.len() * PASSES) as f64 / start.elapsed().as_secs_f64() / 1e6, sum))
}

fn theirs<V: Summed>(case: &Case, times: &[f64]) -> Result<(f64, f64), Box<dyn Error>> {
    let mut monitor = ConfigBuilder::new()
        .spec_str(case.theirs)
        .offline::<RelativeNanos>()
        .with_array_events::<2, Infallible, [Value; 2]>()
        .with_verdict::<V>()
        .output_time::<RelativeNanos>()
        .monitor()?;
    // The values are converted beforehand.
    let values = times.iter().map(|time| Value::try_from(*time)).collect::<Result<Vec<_>, _>>();
    let values = values.map_err(|error| format!("{error:?}"))?;
    let mut sum = 0.0;
    let start = Instant::now();
    for (index, value) in values.into_iter().enumerate() {
        let second = if index % 10 == 0 { value.clone() } else { Value::None };
        let verdicts: Verdicts<V, RelativeNanos> = monitor.accept_event([value, second], index as u64 * STEP_NS)?;
        sum += verdicts.event.sum() + verdicts.timed.iter().map(|(_, verdict)| verdict.sum()).sum::<f64>();
    }
    Ok((times.len() as f64 / start.elapsed().as_secs_f64() / 1e6, sum))
}

fn main() -> Result<(), Box<dyn Error>> {
    let rounds: usize = std::env::args().nth(1).ok_or("usage: rtlola ROUNDS")?.parse()?;
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let times: Vec<f64> = (0..OBSERVATIONS).map(|_| 50e3 + (random() % 100_000) as f64).collect();
    let mut all: Vec<(usize, usize)> = (0..CASES.len() * WAYS.len()).map(|index| (index / WAYS.len(), index % WAYS.len())).collect();
    let mut speeds = vec![vec![Vec::new(); WAYS.len()]; CASES.len()];
    for round in 0..rounds {
        for last in (1..all.len()).rev() {
            all.swap(last, random() as usize % (last + 1));
        }
        let mut sums = [[0.0; WAYS.len()]; CASES.len()];
        for (case, way) in &all {
            let (speed, sum) = measure(&CASES[*case], WAYS[*way], &times)?;
            speeds[*case][*way].push(speed);
            sums[*case][*way] = sum;
        }
        for (case, [ours, theirs, _]) in CASES.iter().zip(sums).filter(|_| round == 0) {
            if (ours / theirs - 1.0).abs() > case.tolerance {
                return Err(format!("{}: our results add up to {ours}, and RTLola's to {theirs}", case.name).into());
            }
        }
    }
    println!("  million observations per second, median of {rounds} rounds (least to most)");
    for (case, speeds) in CASES.iter().zip(&speeds) {
        let [ours, results, silent] = &speeds[..] else { continue };
        let ratios = |theirs: &[f64]| ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect::<Vec<f64>>();
        println!("  {}: {}", case.name, case.ours);
        println!("    ascertain {}; RTLola {}, without results {}", shown(ours), shown(results), shown(silent));
        println!("    ratio {}, without RTLola's results {}", shown(&ratios(results)), shown(&ratios(silent)));
    }
    Ok(())
}

/// Writes the median, the least and the most of some numbers.
fn shown(numbers: &[f64]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let [least, .., most] = sorted[..] else { return format!("{:.2}", sorted[0]) };
    format!("{:.2} ({least:.2} to {most:.2})", sorted[sorted.len() / 2])
}
