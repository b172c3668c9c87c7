//! If neither of two alternatives is faster, the judge must not call one of them faster more often than promised,
//! whatever the machine does. Each test makes 3,000 runs of a hostile stream, with a look after every pair.

use ascertain_stats::OrderJudge;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus as Random;

const RUNS: u64 = 3000;

/// The behaviour of a machine in one run: a function that returns the size of the next pair's log-ratio, given the
/// past.
type Machine<'a> = Box<dyn FnMut(&OrderJudge, &mut Random) -> f64 + 'a>;

/// Counts the runs of `pairs` pairs that get a verdict, at total errors of 0.05 and 0.001. A coin draws the sign of
/// each pair. If `cut_off` returns `true` for a log-ratio, the judge only learns that the pair is unknown.
fn false_verdicts(machine: impl Fn(&mut Random) -> Machine<'static>, pairs: u64, cut_off: fn(f64) -> bool) -> [u64; 2] {
    let is_decided = |run: u64, error: f64| {
        let mut random = Random::seed_from_u64(run);
        let mut machine = machine(&mut random);
        let mut judge = OrderJudge::new(error / 2.0, error / 2.0).unwrap();
        (0..pairs).any(|_| {
            let size = machine(&judge, &mut random);
            let log_ratio = if random.random() { size } else { -size };
            let verdict = if cut_off(log_ratio) { judge.observe_unknown() } else { judge.observe(log_ratio) };
            verdict.is_some()
        })
    };
    let at_a_twentieth: Vec<u64> = (0..RUNS).filter(|&run| is_decided(run, 0.05)).collect();
    // A run that decides at 0.001 also decides at 0.05.
    let at_a_thousandth = at_a_twentieth.iter().filter(|&&run| is_decided(run, 0.001)).count();
    [at_a_twentieth.len() as u64, at_a_thousandth as u64]
}

/// Checks that the counts are at most the allowed counts plus three standard deviations, and not far below the allowed
/// counts.
fn check(machine: impl Fn(&mut Random) -> Machine<'static>, pairs: u64) {
    let counts = false_verdicts(machine, pairs, |_| false);
    assert!((20..=186).contains(&counts[0]) && counts[1] <= 8, "{counts:?}");
}

fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

#[test]
fn noise_that_stays_the_same() {
    check(|_| Box::new(|_, random| 0.05 * normal(random)), 32);
}

/// The machine has two states, and in one of them the noise is 50 times as wide.
#[test]
fn false_verdicts_in_bursts() {
    let machine = |_: &mut Random| -> Machine {
        let mut width = 0.01;
        Box::new(move |_, random| {
            if random.random_bool(0.2) {
                width = if width < 0.1 { 0.5 } else { 0.01 };
            }
            width * normal(random)
        })
    };
    check(machine, 32);
}

/// The sizes of the log-ratios grow from pair to pair in some runs, and shrink in the others.
#[test]
fn false_verdicts_under_drift() {
    let machine = |random: &mut Random| -> Machine {
        let factor = if random.random() { 1.15_f64 } else { 0.87 };
        let mut width = 0.01;
        Box::new(move |_, random| {
            width *= factor;
            width * (1.0 + 0.1 * normal(random))
        })
    };
    check(machine, 32);
}

/// In each pair, the second measurement takes longer than the first, always by almost the same amount. All sizes are
/// therefore alike, as with a real effect.
#[test]
fn position_effects() {
    check(|_| Box::new(|_, random| 0.05 + 0.002 * normal(random)), 32);
}

/// The size of each log-ratio is the one at which the wealth of either direction would grow the most.
#[test]
fn false_verdicts_by_an_adversary_who_knows_the_bet() {
    let machine = |_: &mut Random| -> Machine {
        Box::new(move |judge, random| {
            let sizes = [1e-4, 0.01, 3.0].map(|size| size * random.random_range(0.5..2.0));
            let faster = judge.log_e_holds() >= judge.log_e_refuted();
            let wealth = |size: f64| {
                let mut next = judge.clone();
                next.observe(if faster { size } else { -size });
                next.log_e_holds().max(next.log_e_refuted())
            };
            sizes.into_iter().max_by(|one, other| wealth(*one).total_cmp(&wealth(*other))).unwrap()
        })
    };
    check(machine, 16);
}

/// The clock is so coarse that most pairs tie, and all others differ by one step.
#[test]
fn false_verdicts_with_ties() {
    check(|_| Box::new(|_, random| if random.random_bool(0.6) { 0.0 } else { 0.01 }), 80);
}

#[test]
fn sizes_at_the_ends_of_what_there_is() {
    let sizes = [5e-324, 1e-310, f64::MIN_POSITIVE, 1e-300, 1e-5, 5.3, 700.0, 1500.0, f64::MAX, f64::INFINITY];
    check(move |_| Box::new(move |_, random| sizes[random.random_range(0..sizes.len())]), 32);
}

/// Replays recorded pairs in their order, starting from a random pair.
#[test]
fn recorded_machines() {
    for recorded in [include_str!("../data/bursts-of-load.txt"), include_str!("../data/steady-load.txt")] {
        let log_ratio = |line: &str| {
            let (one, other) = line.split_once(' ').unwrap();
            (one.parse::<f64>().unwrap() / other.parse::<f64>().unwrap()).ln()
        };
        let recorded: Vec<f64> = recorded.lines().filter(|line| !line.starts_with('#')).map(log_ratio).collect();
        assert!(recorded.len() == 2000);
        let machine = |random: &mut Random| -> Machine {
            let (recorded, mut pair) = (recorded.clone(), random.random_range(0..2000));
            Box::new(move |_, _| {
                pair += 1;
                recorded[pair % recorded.len()]
            })
        };
        check(machine, 32);
    }
}

/// Every pair that takes long and goes against the candidate is cut off.
#[test]
fn pairs_that_are_cut_off_when_they_go_wrong() {
    let machine = |_: &mut Random| -> Machine { Box::new(|_, random| 0.05 * normal(random).abs()) };
    let counts = false_verdicts(machine, 32, |log_ratio| log_ratio < -0.1);
    assert!(counts[0] <= 186 && counts[1] <= 8, "{counts:?}");
}
