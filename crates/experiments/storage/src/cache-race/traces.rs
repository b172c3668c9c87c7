//! Requests whose times on either side are known: recorded, or made up.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use ascertain_transfer::race::Times;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, LogNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a file of recorded times begins with.
pub const HEADER: &str = "cache_ns,origin_ns";
/// Neighbours are alike, and stay together when a trial is drawn.
const BLOCK: usize = 100;
const STALLS: usize = 10_000;

/// The source's counts.
pub const FIREFOX: [usize; 3] = [5_574, 938, 13];

/// Times of a file: a line a request.
///
/// # Errors
/// The line that is none, for people.
pub fn read(path: &Path) -> Result<Vec<Times>, String> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
    let mut lines = text.lines().map(str::trim_end).enumerate();
    match lines.next() {
        Some((_, HEADER)) => {}
        _ => return Err(named(&format!("its first line is not `{HEADER}`"))),
    }
    let times = lines.map(|(index, line)| {
        let times = line.split_once(',').and_then(|(cache, origin)| {
            let time = |text: &str| text.parse().ok().map(Duration::from_nanos);
            Some(Times { cache: time(cache)?, origin: time(origin)? })
        });
        times.ok_or_else(|| named(&format!("line {} is not two whole numbers of nanoseconds", index + 1)))
    });
    let times = times.collect::<Result<Vec<_>, _>>()?;
    if times.is_empty() { Err(named(&"it has no requests")) } else { Ok(times) }
}

/// Adds to a file; a new one gets its first line.
///
/// # Errors
/// As the system says.
pub fn append(path: &Path, times: &[Times]) -> io::Result<()> {
    let mut file = std::fs::File::options().append(true).create(true).open(path)?;
    let mut text = if file.metadata()?.len() == 0 { format!("{HEADER}\n") } else { String::new() };
    for Times { cache, origin } in times {
        text += &format!("{},{}\n", cache.as_nanos(), origin.as_nanos());
    }
    file.write_all(text.as_bytes())
}

/// As many, drawn with replacement in blocks of neighbours.
pub fn drawn(times: &[Times], seed: u64) -> Vec<Times> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut drawn = Vec::with_capacity(times.len() + BLOCK);
    while drawn.len() < times.len() {
        let from = rng.random_range(0..times.len());
        drawn.extend(times.iter().cycle().skip(from).take(BLOCK.min(times.len())));
    }
    drawn.truncate(times.len());
    drawn
}

/// Made up so that racing after 2 ms gives the source's counts: 5,574 requests, of which 951 race; the cache wins 938.
/// Nothing else of it is the source's.
pub fn firefox() -> Vec<Times> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2017);
    let [requests, cache_won, network_won] = FIREFOX;
    let mut between = |from: u64, to: u64| Duration::from_micros(rng.random_range(from..to));
    let mut times: Vec<_> = (0..requests)
        .map(|index| {
            if index < network_won {
                Times { cache: between(150_000, 1_000_000), origin: between(30_000, 120_000) }
            } else if index < network_won + cache_won {
                Times { cache: between(2_100, 30_000), origin: between(40_000, 200_000) }
            } else {
                Times { cache: between(100, 1_900), origin: between(40_000, 200_000) }
            }
        })
        .collect();
    times.shuffle(&mut rng);
    times
}

/// A cache that takes about 1 ms, and for so many requests, some in a row, from 20 to 400 ms; an origin of about 40 ms.
pub fn stalls(permille: u64, seed: u64) -> Vec<Times> {
    /// Of a stall, on average.
    const REQUESTS: f64 = 3.0;
    let share = permille as f64 / 1_000.0;
    let begins = share / (1.0 - share) / REQUESTS;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let around = |ms: f64, spread: f64| LogNormal::new((ms / 1e3_f64).ln(), spread).expect("spreads are finite");
    let (fast, origin) = (around(1.0, 0.8), around(40.0, 0.3));
    let mut is_stalled = false;
    let one = |_| {
        is_stalled = rng.random::<f64>() < if is_stalled { 1.0 - 1.0 / REQUESTS } else { begins };
        let cache_s = if is_stalled { rng.random_range(0.02..0.4) } else { fast.sample(&mut rng) };
        let origin_s: f64 = origin.sample(&mut rng);
        Times { cache: Duration::from_secs_f64(cache_s), origin: Duration::from_secs_f64(origin_s) }
    };
    (0..STALLS).map(one).collect()
}

/// The quantile of these times, by nearest rank.
pub fn quantile(times: &mut [Duration], permille: u64) -> Duration {
    times.sort_unstable();
    let rank = (times.len() as u64 * permille).div_ceil(1_000).max(1);
    times[rank as usize - 1]
}
