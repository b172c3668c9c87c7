//! Calibration of the forecasts: counts how many of several hundred simulated transfers end within the interval.

use std::collections::VecDeque;

use ascertain_transfer::Limits;
use ascertain_transfer::model::{Constraints, Forecast, Planner, Ticket};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::simulated::{Link, Source, World, normal};
use super::{ENDS, LINKS, MB, room};

/// The sizes of the files of a command in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Files {
    One,
    /// Files of similar size.
    Alike {
        count: usize,
        bytes: f64,
    },
    /// Files of very different sizes. The median is 100 kB.
    Mixed(usize),
}

/// Shares of the bytes after which forecasts are compared with the actual duration.
const SHARES: [f64; 2] = [0.1, 0.5];

/// A command whose forecasts are recorded.
struct Command {
    planner: Planner,
    limits: Limits,
    bytes: u64,
    done_bytes: u64,
    /// The number of bytes of each file that are not handed out yet.
    files: VecDeque<u64>,
    is_single: bool,
    /// The first forecasts after [`SHARES`] of the bytes.
    forecasts: [Option<Forecast>; 2],
}

impl Command {
    fn new(mut files: Vec<u64>, constraints: Constraints, link: Link) -> Self {
        files.sort_by_key(|bytes| std::cmp::Reverse(if *bytes > 8 << 20 { *bytes } else { 0 }));
        let bytes = files.iter().sum();
        let planner = match files.len() {
            1 => Planner::new(bytes, constraints, Some(link.round_trip_s + link.thinks_s)),
            count => Planner::for_files(bytes, count, constraints),
        };
        let (limits, is_single) = (constraints.limits, files.len() == 1);
        Self { planner, limits, bytes, done_bytes: 0, files: files.into(), is_single, forecasts: [None; 2] }
    }
}

impl Source for Command {
    fn next_part(&mut self, now_s: f64) -> Option<(u64, Option<Ticket>)> {
        if self.is_single {
            return self.planner.next_part(now_s).map(|ticket| (ticket.bytes, Some(ticket)));
        }
        let left = self.files.front_mut()?;
        let least = if *left <= 8 << 20 { *left } else { self.limits.least_part_bytes(*left, 10_000) };
        let ticket = self.planner.next_part_of(*left, least, now_s)?;
        *left -= ticket.bytes;
        if *left == 0 {
            self.files.pop_front();
        }
        Some((ticket.bytes, Some(ticket)))
    }

    fn done(&mut self, ticket: Option<Ticket>, now_s: f64, connecting_s: Option<f64>) {
        let ticket = ticket.unwrap();
        self.done_bytes += ticket.bytes;
        self.planner.complete(&ticket, now_s, Some(connecting_s));
        for (forecast, share) in self.forecasts.iter_mut().zip(SHARES) {
            if self.done_bytes as f64 >= share * self.bytes as f64 {
                *forecast = forecast.or(self.planner.plan().and_then(|plan| plan.forecast));
            }
        }
    }

    fn fixed(&mut self, seconds: f64) {
        if self.is_single {
            self.planner.set_fixed_s(seconds);
        }
    }
}

/// Returns the links and files of the simulated commands.
fn commands() -> Vec<(&'static str, Link, Files)> {
    let [slow, .., lossy, capped, throttled] = LINKS;
    let throttled = Link { burst_bytes: 60.0 * MB, sum_bytes_per_s: 20.0 * MB, ..throttled };
    let near = Link { bytes_per_s: 2.0 * MB, ..ENDS };
    let changing = Link { name: "changing", varies: Some((2.0, 0.4)), apart: 0.2, ..slow };
    let server = Link { name: "server", thinks_s: 0.003, serves_s: 0.0005, apart: 0.1, ..ENDS };
    let mut commands: Vec<_> = LINKS[..5].iter().map(|link| (link.name, *link, Files::One)).collect();
    commands.extend([
        ("throttled", throttled, Files::One),
        ("changing", changing, Files::One),
        ("ends", ENDS, Files::One),
        ("near", near, Files::One),
        ("small, slow", LINKS[0], Files::Alike { count: 2000, bytes: 20e3 }),
        ("small, lossy", lossy, Files::Alike { count: 1000, bytes: 200e3 }),
        ("small, server", server, Files::Alike { count: 3000, bytes: 4e3 }),
        ("1 MB, ends", ENDS, Files::Alike { count: 200, bytes: 1e6 }),
        ("1 MB, capped", capped, Files::Alike { count: 200, bytes: 1e6 }),
        ("mixed, capped", capped, Files::Mixed(2000)),
        ("mixed, server", server, Files::Mixed(2000)),
        ("mixed, changing", changing, Files::Mixed(1000)),
    ]);
    commands
}

/// Varies a link and the sizes of files at random.
fn vary(link: Link, files: Files, random: &mut Xoshiro256PlusPlus) -> (Link, Vec<u64>) {
    let mut factor = |deviation: f64| (deviation * normal(random)).exp();
    let rate = factor(0.5);
    let link = Link {
        round_trip_s: link.round_trip_s * factor(0.5),
        thinks_s: link.thinks_s * factor(0.5),
        bytes_per_s: link.bytes_per_s * rate,
        sum_bytes_per_s: link.sum_bytes_per_s * rate,
        apart: link.apart.max(0.05),
        ..link
    };
    let files = match files {
        Files::One => vec![(200e6 * factor(1.0)) as u64],
        Files::Alike { count, bytes } => (0..count).map(|_| (bytes * factor(0.3)) as u64 + 1).collect(),
        Files::Mixed(count) => (0..count).map(|_| (100e3 * factor(2.0)) as u64 + 1).collect(),
    };
    (link, files)
}

/// The outcome of a forecast: whether the transfer ended within the interval, the ratio of the interval's bounds, and
/// the ratio of the actual to the expected duration.
type Outcome = (bool, f64, f64);

/// Returns the number of intervals that contain the actual duration, the median width of the intervals, and a sentence.
fn summary(mut all: Vec<Outcome>) -> (usize, f64, String) {
    let within = all.iter().filter(|one| one.0).count();
    all.sort_by(|one, other| one.1.total_cmp(&other.1));
    let width = all[all.len() / 2].1;
    all.sort_by(|one, other| one.2.total_cmp(&other.2));
    let [low, middle, high] = [0.1, 0.5, 0.9].map(|share| all[(share * (all.len() - 1) as f64) as usize].2);
    let times = format!("took {low:.2} to {high:.2} (median {middle:.2}) times the forecast");
    (within, width, format!("{within:3} of {:3} within an interval of {width:.2}, {times}", all.len()))
}

/// Some of the links throttle, change their rate at random, or lose packets. After a tenth of the bytes, their later
/// behavior is not known, so fewer of their transfers end within the interval.
#[test]
fn four_of_five_transfers_end_within_an_interval_of_twice_the_time() {
    let large_parts = Limits { min_part_bytes: 5 << 20, max_parts: 10_000, ..room().limits };
    let mut all = [Vec::new(), Vec::new()];
    for (name, link, files) in commands() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(name.len() as u64);
        let mut of_link = [Vec::new(), Vec::new()];
        for seed in 0..24 {
            let (link, files) = vary(link, files, &mut random);
            let max_concurrency = [8, 32, 64][random.random_range(0..3_usize)];
            let limits = if seed % 3 == 0 { large_parts } else { room().limits };
            let constraints = Constraints { limits, max_concurrency, ..room() };
            let mut command = Command::new(files, constraints, link);
            let all_s = World::new(link, seed).transfer(&mut command);
            for (of_link, forecast) in of_link.iter_mut().zip(command.forecasts) {
                let Forecast { expected_s, low_s, high_s, .. } = forecast.expect("each transfer has a forecast");
                of_link.push(((low_s..=high_s).contains(&all_s), high_s / low_s, all_s / expected_s));
            }
        }
        for ((all, of_link), share) in all.iter_mut().zip(of_link).zip(SHARES) {
            println!("{name:16} after {share}: {}", summary(of_link.clone()).2);
            all.extend(of_link);
        }
    }
    for (all, share) in all.into_iter().zip(SHARES) {
        let (count, (within, width, sentence)) = (all.len(), summary(all));
        println!("all              after {share}: {sentence}");
        assert!(within as f64 >= 0.8 * count as f64 && width <= 2.0, "after {share}: {sentence}");
    }
}
