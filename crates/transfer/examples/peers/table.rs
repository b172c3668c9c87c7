//! Formats the results as a Markdown table.

use std::fmt::Write;
use std::fs;

use ascertain_stats::{median_sorted, quantile_ranks};

use crate::clients::{Direction, LOADER, Missing};
use crate::{Arm, Measurement};

/// Probability for each end of an interval that the true median is beyond it.
const ERROR: f64 = 0.05;

/// A number that is computed from the measurement of each round.
type Figure = fn(&Measurement) -> f64;

const RATE: Figure = |took| took.gigabytes * 1e3 / took.wall_s;
const CLIENT: Figure = |took| took.client_s / took.gigabytes;
const SERVER: Figure = |took| took.server_s / took.gigabytes;

pub fn table(arms: &[Arm], missing: &[Missing], seed: u64) -> String {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let busy = |took: &Measurement| (took.client_s + took.server_s) / (took.wall_s * cpus as f64) * 100.0;
    let rounds = arms[0].took.len();
    let mut text = format!(
        "{} GB over loopback to MinIO on {cpus} CPUs ({}), files in {}.\n\
         Medians of {rounds} rounds in random order (seed {seed}). Each end of an interval is wrong at most once in {:.0}.\n\n\
         | | settings | MB/s | client, CPU s per GB | server, CPU s per GB | CPUs busy | checked by |\n\
         |---|---|---|---|---|---|---|\n",
        arms[0].took[0].gigabytes,
        processor(),
        if std::env::temp_dir().starts_with("/dev/shm") { "memory" } else { "a file system" },
        1.0 / ERROR,
    );
    for way in [Direction::Put, Direction::Get] {
        for arm in arms.iter().filter(|arm| arm.way == way) {
            let figure = |figure: Figure, digits: usize| between(arm.took.iter().map(figure).collect(), digits);
            let _ = writeln!(
                text,
                "| {} {} | {} | {} | {} | {} | {:.0} % | {} |",
                verb(way),
                arm.client.name,
                arm.client.settings(way)[arm.setting].said,
                figure(RATE, 0),
                figure(CLIENT, 2),
                figure(SERVER, 2),
                median(arm.took.iter().map(busy).collect()),
                arm.client.checks[usize::from(way == Direction::Get)],
            );
        }
    }
    for (name, why) in missing {
        let _ = writeln!(text, "| {name} | | unavailable: {why} | | | | |");
    }
    text.push('\n');
    for way in [Direction::Put, Direction::Get] {
        let mut of_way = arms.iter().filter(|arm| arm.way == way);
        let (Some(ours), Some(loader)) = (of_way.next(), of_way.next_back()) else { continue };
        for peer in of_way.chain([loader]) {
            // The ratio is computed within each round, because other load on the machine affects both clients alike.
            let ratio = |one: &Arm, figure: Figure| {
                let pairs = one.took.iter().zip(&peer.took);
                between(pairs.map(|(one, peer)| figure(one) / figure(peer)).collect(), 2)
            };
            let (rate, client) = (ratio(ours, RATE), ratio(ours, CLIENT));
            let _ = write!(text, "- {}: {rate} × {}'s rate, {client} × its CPU time", verb(way), peer.client.name);
            let _ = match peer.client.name == LOADER {
                true => writeln!(text),
                false => writeln!(text, "; {LOADER}: {} × its rate", ratio(loader, RATE)),
            };
        }
    }
    text.push_str("\n| settings, tried once each | MB/s |\n|---|---|\n");
    for arm in arms.iter().filter(|arm| arm.tried.len() > 1) {
        for (setting, took) in arm.client.settings(arm.way).iter().zip(&arm.tried) {
            let _ = writeln!(text, "| {} {}: {} | {:.0} |", verb(arm.way), arm.client.name, setting.said, RATE(took));
        }
    }
    text.push('\n');
    for arm in arms.iter().filter(|arm| arm.way == Direction::Put) {
        let _ = writeln!(text, "- {}: {}", arm.client.name, arm.client.version);
    }
    text
}

fn verb(way: Direction) -> &'static str {
    if way == Direction::Put { "put" } else { "get" }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    median_sorted(&values).unwrap_or(f64::NAN)
}

/// Formats the median of the values, with an interval if there are enough rounds.
fn between(mut values: Vec<f64>, digits: usize) -> String {
    values.sort_by(f64::total_cmp);
    let middle = median(values.clone());
    let ranks = quantile_ranks(values.len() as u64, 0.5, ERROR, ERROR);
    let (low, high) = ranks.map_or((f64::NEG_INFINITY, f64::INFINITY), |ranks| ranks.interval_in(&values));
    match low.is_finite() && high.is_finite() {
        true => format!("{middle:.digits$} ({low:.digits$} to {high:.digits$})"),
        false => format!("{middle:.digits$} (too few rounds)"),
    }
}

/// Returns the name of the CPU.
fn processor() -> String {
    let known = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = known.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or("unknown".into(), |(_, name)| name.trim().into())
}
