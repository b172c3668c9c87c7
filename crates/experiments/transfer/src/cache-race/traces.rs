//! Traces. A trace is a list of requests whose durations at the cache and at the origin are known. It is recorded or
//! artificial.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use ascertain_transfer::race::RequestTimes;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, LogNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The first line of a file with recorded durations, which names its columns.
pub const HEADER: &str = "cache_ns,origin_ns";
/// Number of consecutive requests that [`drawn`] takes as one group, because consecutive requests have similar
/// durations.
const BLOCK: usize = 100;
const STALLS: usize = 10_000;

/// The counts that were published for Firefox: all requests, races that the cache won, and races that the network won.
pub const FIREFOX: [usize; 3] = [5_574, 938, 13];

/// Reads a file of recorded durations, which has one line per request.
///
/// # Errors
/// Returns a message that contains the path and the number of the invalid line.
pub fn read(path: &Path) -> Result<Vec<RequestTimes>, String> {
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
            Some(RequestTimes { cache: time(cache)?, origin: time(origin)? })
        });
        times.ok_or_else(|| named(&format!("line {} is not two whole numbers of nanoseconds", index + 1)))
    });
    let times = times.collect::<Result<Vec<_>, _>>()?;
    if times.is_empty() { Err(named(&"it contains no requests")) } else { Ok(times) }
}

/// Appends the durations of requests to a file. If the file is new, writes [`HEADER`] first.
///
/// # Errors
/// Returns the system's error.
pub fn append(path: &Path, times: &[RequestTimes]) -> io::Result<()> {
    let mut file = std::fs::File::options().append(true).create(true).open(path)?;
    let mut text = if file.metadata()?.len() == 0 { format!("{HEADER}\n") } else { String::new() };
    for RequestTimes { cache, origin } in times {
        text += &format!("{},{}\n", cache.as_nanos(), origin.as_nanos());
    }
    file.write_all(text.as_bytes())
}

/// Returns a random sample of as many requests as `times` contains (a block bootstrap). Draws groups of [`BLOCK`]
/// consecutive requests with replacement.
pub fn drawn(times: &[RequestTimes], seed: u64) -> Vec<RequestTimes> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut drawn = Vec::with_capacity(times.len() + BLOCK);
    while drawn.len() < times.len() {
        let from = rng.random_range(0..times.len());
        drawn.extend(times.iter().cycle().skip(from).take(BLOCK.min(times.len())));
    }
    drawn.truncate(times.len());
    drawn
}

/// Returns artificial requests with the published counts of Firefox. If they race after 2 ms, 951 of 5,574 requests
/// race, and the cache wins 938 of these races. Everything else about them is invented.
pub fn firefox() -> Vec<RequestTimes> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2017);
    let [requests, cache_won, network_won] = FIREFOX;
    let mut between = |from: u64, to: u64| Duration::from_micros(rng.random_range(from..to));
    let mut times: Vec<_> = (0..requests)
        .map(|index| {
            if index < network_won {
                RequestTimes { cache: between(150_000, 1_000_000), origin: between(30_000, 120_000) }
            } else if index < network_won + cache_won {
                RequestTimes { cache: between(2_100, 30_000), origin: between(40_000, 200_000) }
            } else {
                RequestTimes { cache: between(100, 1_900), origin: between(40_000, 200_000) }
            }
        })
        .collect();
    times.shuffle(&mut rng);
    times
}

/// Returns artificial requests, which depend only on `permille` and `seed`. The origin takes about 40 ms, and the cache
/// usually about 1 ms. For `permille` of 1000 requests, the cache stalls for 20 to 400 ms. A stall often affects
/// several consecutive requests.
pub fn stalls(permille: u64, seed: u64) -> Vec<RequestTimes> {
    /// Average number of consecutive requests that one stall affects.
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
        RequestTimes { cache: Duration::from_secs_f64(cache_s), origin: Duration::from_secs_f64(origin_s) }
    };
    (0..STALLS).map(one).collect()
}

/// Returns the quantile `permille`/1000 of these durations, by the nearest-rank method.
pub fn quantile(times: &mut [Duration], permille: u64) -> Duration {
    times.sort_unstable();
    let rank = (times.len() as u64 * permille).div_ceil(1_000).max(1);
    times[rank as usize - 1]
}
