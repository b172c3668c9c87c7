//! Number of pairs that `OrderJudge` needs for recorded programs, compared with a `Judge` that uses only the sign of
//! each log-ratio ("signs alone").
//!
//! `tests/data/programs.txt` has 400 pairs of each program and describes how they were recorded. `noisy` burns 6.0 or
//! 6.3 ms times a random factor. One of the two commands of `gzip`, `sort`, `sha256`, `shell`, `awk`, `wc`, `grep`,
//! `find`, `zstd`, `perl` and `jq` has 3 to 20 % more to do. `python` starts and sums up 1,000 or 40,000 numbers. The
//! two commands of `same-true`, `same-gzip` and `same-wc` do the same work.
//!
//! METHODOLOGY.md has the table that this prints:
//! `cargo test -p ascertain-stats real_programs -- --nocapture`.

use ascertain_stats::{Judge, OrderJudge, Verdict};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus as Random;

const RECORDED: &str = include_str!("../data/programs.txt");

/// Mean number of consecutive pairs that a stream takes from a recording.
const BLOCK: usize = 40;

/// Maximum number of pairs in a stream. A stream that is still undecided counts as if it had reached its verdict at
/// this number.
const MOST_PAIRS: usize = 3000;

/// Total number of pairs after which no more streams of a program are drawn. The total is of the pairs that signs alone
/// need, over all streams so far. At least [`LEAST_STREAMS`] streams are drawn in any case.
const ENOUGH_PAIRS: usize = 6000;

const LEAST_STREAMS: u64 = 8;

/// Error probability of each of the two verdicts.
const ERROR: f64 = 0.0005;

/// The log-ratio of a pair's two times, and the logarithm of their product.
type Pair = (f64, f64);

/// Returns the recorded pairs of each program, by name and machine.
fn programs() -> Vec<(&'static str, Vec<Pair>)> {
    let mut programs: Vec<(&str, Vec<Pair>)> = Vec::new();
    for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("= ") {
            programs.push((name, Vec::new()));
            continue;
        }
        let (ten_thousandths, thousandths) = line.split_once(' ').unwrap();
        let pair = (ten_thousandths.parse::<f64>().unwrap() * 1e-4, thousandths.parse::<f64>().unwrap() * 1e-3);
        programs.last_mut().unwrap().1.push(pair);
    }
    programs
}

/// Returns blocks of recorded pairs from random positions. Within a block the pairs are in the order of the recording.
fn stream(pairs: &[Pair], seed: u64) -> impl Iterator<Item = Pair> {
    let mut random = Random::seed_from_u64(seed);
    let mut place = random.random_range(0..pairs.len());
    std::iter::repeat_with(move || {
        place = match random.random_range(0..BLOCK) {
            0 => random.random_range(0..pairs.len()),
            _ => (place + 1) % pairs.len(),
        };
        pairs[place]
    })
    .filter(|(log_ratio, _)| *log_ratio != 0.0)
}

/// Returns the number of pairs of a stream until a verdict.
fn pairs_until(pairs: &[Pair], seed: u64, decides: impl FnMut(Pair) -> bool) -> usize {
    stream(pairs, seed).take(MOST_PAIRS).position(decides).map_or(MOST_PAIRS, |place| place + 1)
}

/// Returns how many pairs a verdict needs on average: by signs alone, and by the judge.
fn mean_pairs(pairs: &[Pair]) -> [f64; 2] {
    let (mut sums, mut streams) = ([0, 0], 0);
    while sums[0] < ENOUGH_PAIRS || streams < LEAST_STREAMS {
        let mut signs = Judge::new(0.5, ERROR).unwrap();
        let mut judge = OrderJudge::new(ERROR, ERROR).unwrap();
        sums[0] += pairs_until(pairs, streams, |(log_ratio, _)| signs.observe(log_ratio > 0.0).is_some());
        sums[1] += pairs_until(pairs, streams, |(log_ratio, _)| judge.observe(log_ratio).is_some());
        streams += 1;
    }
    sums.map(|sum| sum as f64 / streams as f64)
}

/// Returns the growth of `ln e` per pair for a gambler who knows how often pairs are won.
fn oracle_of_signs(pairs: &[Pair]) -> f64 {
    let signs: Vec<bool> = pairs.iter().filter(|pair| pair.0 != 0.0).map(|pair| pair.0 > 0.0).collect();
    let share = signs.iter().filter(|is_won| **is_won).count() as f64 / signs.len() as f64;
    [share, 1.0 - share].into_iter().filter(|share| *share > 0.0).map(|share| share * (2.0 * share).ln()).sum()
}

/// Returns the growth of `ln e` per pair for a gambler who knows how often pairs with similar features are won.
///
/// The chance of winning a pair is estimated from the other pairs whose features have the nearest ranks. Several
/// numbers of such pairs are tried, and the greatest growth is returned.
fn oracle(pairs: &[Pair], features: &[fn(&Pair) -> f64]) -> f64 {
    let pairs: Vec<Pair> = pairs.iter().copied().filter(|pair| pair.0 != 0.0).collect();
    let mut ranks = vec![Vec::new(); pairs.len()];
    for feature in features {
        let mut sorted: Vec<usize> = (0..pairs.len()).collect();
        sorted.sort_by(|one, other| feature(&pairs[*one]).total_cmp(&feature(&pairs[*other])));
        sorted.into_iter().enumerate().for_each(|(rank, pair)| ranks[pair].push(rank as f64));
    }
    let distance = |one: usize, other: usize| -> f64 {
        ranks[one].iter().zip(&ranks[other]).map(|(one, other)| (one - other).powi(2)).sum()
    };
    let nearest = [15, 30, 60, 120];
    let mut growths = [0.0; 4];
    for pair in 0..pairs.len() {
        let mut others: Vec<usize> = (0..pairs.len()).filter(|other| *other != pair).collect();
        others.sort_by(|one, other| distance(pair, *one).total_cmp(&distance(pair, *other)));
        for (growth, count) in growths.iter_mut().zip(nearest) {
            let alike =
                others[..count].iter().filter(|other| (pairs[**other].0 > 0.0) == (pairs[pair].0 > 0.0)).count();
            *growth += (2.0 * (alike as f64 + 1.0) / (count as f64 + 2.0)).ln() / pairs.len() as f64;
        }
    }
    growths.into_iter().fold(f64::MIN, f64::max)
}

/// Returns the number of pairs that an oracle needs. `growth` is the oracle's growth of `ln e` per pair. Returns a dash
/// if it is not positive: the recording is then too short to estimate how often pairs are won.
fn oracle_pairs(growth: f64) -> String {
    if growth > 0.0 { format!("{:.0}", -ERROR.ln() / growth) } else { "–".into() }
}

#[test]
#[expect(clippy::print_stdout, reason = "the table of METHODOLOGY.md")]
fn real_programs_need_at_most_the_pairs_of_signs_alone() {
    let mut missed = Vec::new();
    println!("| program | signs alone | judge | judge / signs | oracle: signs | and sizes | and levels |");
    for (name, pairs) in programs().iter().filter(|(name, _)| !name.starts_with("same")) {
        let [by_signs, by_sizes] = mean_pairs(pairs);
        let signs = oracle_of_signs(pairs);
        let sizes = oracle(pairs, &[|pair| pair.0.abs()]);
        let levels = oracle(pairs, &[|pair| pair.0.abs(), |pair| pair.1]);
        let (share, oracle_share) = (by_sizes / by_signs, signs / sizes);
        println!(
            "| {name} | {by_signs:.0} | {by_sizes:.0} | {share:.2} | {} | {} | {} |",
            oracle_pairs(signs),
            oracle_pairs(sizes),
            oracle_pairs(levels)
        );
        let goal = if (0.0..=0.7).contains(&oracle_share) { 0.8 } else { 1.05 };
        if share > goal {
            missed.push(format!("{name}: {share:.2} of {by_signs:.0} pairs, goal {goal}, oracle {oracle_share:.2}"));
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

/// A coin decides the sign of each recorded pair, as if the two commands were equal.
#[test]
fn false_verdicts_on_recorded_programs() {
    const RUNS: u64 = 1500;
    let programs = programs();
    let mut counts = [0, 0];
    for run in 0..RUNS {
        let mut coin = Random::seed_from_u64(1_000_000 + run);
        let (_, pairs) = &programs[(run % programs.len() as u64) as usize];
        let pairs: Vec<f64> = stream(pairs, run).take(32).map(|(d, _)| if coin.random() { d } else { -d }).collect();
        let is_decided = |error: f64| {
            let mut judge = OrderJudge::new(error / 2.0, error / 2.0).unwrap();
            let verdicts: Vec<Option<Verdict>> = pairs.iter().map(|d| judge.observe(*d)).collect();
            verdicts.last().unwrap().is_some()
        };
        if is_decided(0.05) {
            counts[0] += 1;
            counts[1] += u64::from(is_decided(0.001));
        }
    }
    // The counts may exceed their bound by three standard deviations, and must not be far below it.
    assert!((10..=100).contains(&counts[0]) && counts[1] <= 6, "{counts:?}");
}

/// One command takes 18 to 21 ms, the other 10 or 30 ms, each including the start of a process. Each wins half of the
/// pairs, so neither is faster. A judge that bet on the sum of both times called one command faster in half of the
/// runs.
#[test]
fn commands_of_unequal_spread_have_no_faster_one() {
    const RUNS: u64 = 400;
    let decided = (0..RUNS).filter(|run| {
        let mut random = Random::seed_from_u64(*run);
        let mut judge = OrderJudge::new(ERROR, ERROR).unwrap();
        let verdicts = (0..200).map(|_| {
            let mut start_ms = || 1.0 - 0.3 * random.random::<f64>().ln();
            let (narrow_ms, wide_ms) = (start_ms(), start_ms());
            let narrow_ms = narrow_ms + f64::from(random.random_range(18..22));
            let wide_ms = wide_ms + if random.random() { 10.0 } else { 30.0 };
            judge.observe(f64::ln(narrow_ms / wide_ms))
        });
        verdicts.last().unwrap().is_some()
    });
    let decided = decided.count();
    assert!(decided <= 4, "{decided} of {RUNS}");
}
