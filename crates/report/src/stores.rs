//! Findings about object stores as text: crossovers, limits and bills.

use ascertain_engine::finding::{
    FaultNoticed, LatencyFit, LineFill, ReachedRate, Remark, ScaledThroughput, SizeWinner, StoreBill, StoreLimit,
};
use ascertain_engine::unit::{Unit, significant};

use crate::text::{counted, grouped};

/// Returns the text of a notice that is printed before a run, such as the expected bill.
pub fn notice(remark: &Remark) -> String {
    let opening = if matches!(remark, Remark::Bill { .. }) { "expected bill: " } else { "" };
    format!("{opening}{}", crate::finding::remark(remark))
}

/// Returns a remark about stores, in lower case for the middle of a sentence. Empty for other remarks.
pub(crate) fn remark(remark: &Remark) -> String {
    match remark {
        Remark::Crossover {
            stores,
            ranges,
            pairs,
            error,
            fits,
            fit_crossover_bytes,
            fill,
            incomplete,
            is_same_store,
            is_finished,
            pairs_left,
            precision,
        } => {
            let mut sentences = vec![format!(
                "{} ({}, wrong with a probability of at most {})",
                answer(stores, ranges),
                counted(*pairs, "pair"),
                percent(*error)
            )];
            sentences.extend((!is_finished).then(|| {
                let within = percent(precision - 1.0);
                format!(
                    "A longer run narrows this answer until the ends are {within} apart, if the stores differ enough; \
                     this takes about {} more",
                    counted(*pairs_left, "pair")
                )
            }));
            sentences.extend(is_same_store.then(|| "Both addresses lead to the same bucket".to_string()));
            sentences.extend(model(fits, *fit_crossover_bytes));
            sentences.extend(fill.iter().map(line_fill_sentence));
            let few = |(store, count, all): &(String, u64, u64)| {
                format!("{store} did not answer {count} of {} completely", counted(*all, "request"))
            };
            sentences.extend(incomplete.iter().map(few));
            sentences.join(". ")
        }
        Remark::Incomplete { requests, refused, timed_out, broken, short } => {
            let refusals = refused.iter().map(|(status, count)| format!("{count} refused with status {status}"));
            let others = [(timed_out, "timed out"), (broken, "lost the connection"), (short, "ended early")];
            let others = others.iter().filter(|(count, _)| **count > 0).map(|(count, how)| format!("{count} {how}"));
            let parts: Vec<String> = refusals.chain(others).collect();
            format!(
                "of {}, {}; their true times are longer than observed",
                counted(*requests, "request"),
                parts.join(", ")
            )
        }
        Remark::Limits { limits } => {
            let words: Vec<String> = limits.iter().map(limit).collect();
            format!("the requests reached a limit: {}", words.join("; "))
        }
        Remark::Scaling { levels, knee, is_flat, reached } => {
            let level = |ScaledThroughput { streams, bytes_per_s, share_of_linear }: &ScaledThroughput| {
                let rate = Unit::BytePerSecond.human(*bytes_per_s);
                format!("{streams}: {rate} ({} of linear)", percent(*share_of_linear))
            };
            let levels: Vec<String> = levels.iter().map(level).collect();
            let cap = if *is_flat {
                "; twice as many do not help, so a limit applies to all connections together"
            } else {
                ""
            };
            format!(
                "90 % of the best throughput needs {}{cap}. Throughput by streams: {}{}",
                counted(*knee, "stream"),
                levels.join(", "),
                reached.iter().map(reached_rate).collect::<String>()
            )
        }
        Remark::Faults { checksum, places } => {
            let of = |noticed: FaultNoticed, words: &str| {
                let names: Vec<&str> =
                    places.iter().filter(|one| one.noticed == noticed).map(|one| one.place.as_str()).collect();
                (!names.is_empty()).then(|| format!("{words}: {}", names.join(", ")))
            };
            let groups = [
                of(FaultNoticed::Unnoticed, "not noticed"),
                of(FaultNoticed::ByStore, "noticed by the store"),
                of(FaultNoticed::ByClient, "noticed by the client"),
                of(FaultNoticed::Harmless, "without effect"),
            ];
            let groups: Vec<String> = groups.into_iter().flatten().collect();
            format!("flipped bits, for uploads with checksum {checksum}: {}", groups.join("; "))
        }
        Remark::Bill { stores } => stores.iter().map(bill).collect::<Vec<_>>().join(". "),
        _ => String::new(),
    }
}

/// Returns the answer to the question of the crossover, in words.
fn answer(stores: &[String], ranges: &[SizeWinner]) -> String {
    let decided: Vec<&SizeWinner> = ranges.iter().filter(|range| range.winner.is_some()).collect();
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return "no size was measured".into() };
    let whole = format!("from {} to {}", size(first.from_bytes), size(last.to_bytes));
    let mut runs: Vec<SizeWinner> = Vec::new();
    for range in &decided {
        match runs.last_mut() {
            Some(run) if run.winner == range.winner => run.to_bytes = range.to_bytes,
            _ => runs.push((*range).clone()),
        }
    }
    let winner = |run: &SizeWinner| run.winner.clone().unwrap_or_default();
    let answer = match &runs[..] {
        [] => format!("neither a crossover nor a difference between {} was found {whole}", stores.join(" and ")),
        [only] => {
            let faster = format!("{} is faster", winner(only));
            let (has_before, has_after) = (first.winner.is_none(), last.winner.is_none());
            let (low, high) = (size(only.from_bytes), size(only.to_bytes));
            match (has_before, has_after) {
                (false, false) if only.from_bytes == only.to_bytes => format!("{faster} at {low}"),
                (false, false) if decided.len() == 1 => format!("no crossover {whole}: {faster} throughout"),
                (false, false) => format!("no crossover was found {whole}: {faster} at all sizes that were decided"),
                (true, false) => format!("the crossover is below {low}, if anywhere: {faster} from there to {high}"),
                (false, true) => format!("the crossover is above {high}, if anywhere: {faster} from {low} to there"),
                (true, true) => {
                    format!("a crossover is below {low} or above {high}, if anywhere: {faster} in between")
                }
            }
        }
        [one, other] => format!(
            "the crossover is between {} and {}: {} is faster from {} to {}, and {} from {} to {}",
            size(one.to_bytes),
            size(other.from_bytes),
            winner(one),
            size(one.from_bytes),
            size(one.to_bytes),
            winner(other),
            size(other.from_bytes),
            size(other.to_bytes)
        ),
        several => {
            let range =
                |run: &SizeWinner| format!("{} from {} to {}", winner(run), size(run.from_bytes), size(run.to_bytes));
            let ranges: Vec<String> = several.iter().map(range).collect();
            format!("there is more than one crossover. The faster store is {}", ranges.join(", "))
        }
    };
    // These sizes are inside of a range with one winner.
    let hidden = ranges.windows(3).filter(|three| three[0].winner.is_some() && three[0].winner == three[2].winner);
    let hidden: Vec<String> = hidden.map(|three| span(three[1].from_bytes, three[1].to_bytes)).collect();
    if hidden.is_empty() { answer } else { format!("{answer}; not decided at {}", hidden.join(", ")) }
}

/// Returns a range of sizes: `16 kB to 64 kB`, or `16 kB` if it has a single size.
fn span(from_bytes: u64, to_bytes: u64) -> String {
    if from_bytes == to_bytes { size(from_bytes) } else { format!("{} to {}", size(from_bytes), size(to_bytes)) }
}

/// Describes the model of both stores and how well it fits.
fn model(fits: &[LatencyFit], crossover_bytes: Option<f64>) -> Option<String> {
    if fits.is_empty() {
        return None;
    }
    let of_store = |LatencyFit { store, latency_ns, bytes_per_s, off, off_at_bytes }: &LatencyFit| {
        let rate = bytes_per_s.map_or("no limit".into(), |rate| Unit::BytePerSecond.human(rate));
        let latency = Unit::Nanosecond.human(*latency_ns);
        format!("{store} {latency} and {rate} (off by up to {}, at {})", percent(*off), size(*off_at_bytes as u64))
    };
    let stores: Vec<String> = fits.iter().map(of_store).collect();
    let crossover = crossover_bytes.map_or(String::new(), |bytes| {
        format!("; by this model alone, the crossover would be at {}", size(bytes as u64))
    });
    Some(format!("For comparison, the model L + size/B has {}{crossover}", stores.join(" and ")))
}

fn line_fill_sentence(
    LineFill { store, line_bytes_per_s, requests, most_requests, cheapest_range_bytes }: &LineFill,
) -> String {
    let of_size = |(bytes, count): &(f64, f64)| format!("{} of {}", grouped(*count as u64), size(*bytes as u64));
    let requests: Vec<String> = requests.iter().map(of_size).collect();
    let range = cheapest_range_bytes.map_or(
        format!("{} are not enough at any size", counted(*most_requests, "request")),
        |bytes| {
            format!("with {}, ranges of {} are enough", counted(*most_requests, "request"), size(bytes.ceil() as u64))
        },
    );
    format!(
        "By the model, {} from {store} needs these numbers of requests in flight: {}; {range}",
        Unit::BytePerSecond.human(*line_bytes_per_s),
        requests.join(", ")
    )
}

/// Compares the model with the measurement.
fn reached_rate(ReachedRate { bytes_per_s, is_line, model, measured }: &ReachedRate) -> String {
    let what = if *is_line { "90 % of the rate of the client's line" } else { "90 % of the best throughput" };
    let measured = measured.map_or("no measured number of streams reached it".into(), |streams| {
        format!("in the measurement, {} reached it", counted(streams, "stream"))
    });
    let (rate, model) = (Unit::BytePerSecond.human(*bytes_per_s), significant(*model));
    format!(". By the model, {model} requests in flight reach {what} ({rate}); {measured}")
}

fn limit(limit: &StoreLimit) -> String {
    match limit {
        StoreLimit::Refusals { status, code, count } => {
            let name = code.as_ref().map_or(String::new(), |code| format!(" ({code})"));
            format!("the store refused {} with status {status}{name}", counted(*count, "request"))
        }
        StoreLimit::OneConnection { bytes_per_s } => {
            let rate = Unit::BytePerSecond.human(*bytes_per_s);
            format!("one connection reaches at most {rate}: the quickest fifth of the requests all have this rate")
        }
        StoreLimit::ClientCpu { share } => format!("the client used {} of the CPU that it runs on", percent(*share)),
        StoreLimit::Line { share } => format!("the client's line was {} full", percent(*share)),
    }
}

fn bill(StoreBill { store, requests, bytes, cost, prices, max_requests, max_bytes, max_cost }: &StoreBill) -> String {
    let expected = format!("{} and {}", counted(*requests, "request"), Unit::Byte.human(*bytes as f64));
    let money = match (cost, prices) {
        (Some((cost, currency)), Some((source, date))) => {
            format!(", which cost {} {currency} (prices of {date}, {source})", significant(*cost))
        }
        _ => String::new(),
    };
    let currency = cost.as_ref().map_or("", |(_, currency)| currency);
    let most = max_cost.map_or(String::new(), |most| format!(" or {most} {currency}"));
    format!(
        "{store}: about {expected}{money}, and never more than {} requests, {}{most}",
        grouped(*max_requests),
        Unit::Byte.human(*max_bytes as f64)
    )
}

/// Returns a size without zeros at the end of its fraction: `64 kB`, not `64.00 kB`.
fn size(bytes: u64) -> String {
    let text = Unit::Byte.human(bytes as f64);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 1e3).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(of: &[(u64, u64, Option<&str>)]) -> String {
        let range = |(from_bytes, to_bytes, winner): &(u64, u64, Option<&str>)| SizeWinner {
            from_bytes: *from_bytes,
            to_bytes: *to_bytes,
            winner: winner.map(String::from),
        };
        answer(&["A".into(), "B".into()], &of.iter().map(range).collect::<Vec<_>>())
    }

    #[test]
    fn each_kind_of_crossover_has_its_words() {
        let (a, b) = (Some("A"), Some("B"));
        for (of, words) in [
            (
                &[(1, 4_100_000, b), (6_300_000, 1_000_000_000, a)][..],
                "the crossover is between 4.1 MB and 6.3 MB: B is faster from 1 B to 4.1 MB, and A from 6.3 MB to 1 GB",
            ),
            (
                &[(1, 16_000, None), (64_000, 1_000_000, a)],
                "the crossover is below 64 kB, if anywhere: A is faster from there to 1 MB",
            ),
            (&[(1, 1_000_000_000, a)], "no crossover from 1 B to 1 GB: A is faster throughout"),
            (
                &[(1, 8_000, b), (9_000, 9_000, None), (10_000, 3_000_000, a), (4_000_000, 5_000_000, b)],
                "there is more than one crossover. The faster store is B from 1 B to 8 kB, A from 10 kB to 3 MB, B \
                 from 4 MB to 5 MB",
            ),
            (&[(64_000, 64_000, a)], "A is faster at 64 kB"),
            (&[(1, 1_000, None)], "neither a crossover nor a difference between A and B was found from 1 B to 1 kB"),
            (
                &[(1, 10, a), (20, 20, None), (30, 40, a)],
                "no crossover was found from 1 B to 40 B: A is faster at all sizes that were decided; not decided at \
                 20 B",
            ),
            (
                &[(1, 10, a), (20, 25, None), (30, 40, a), (50, 60, b)],
                "the crossover is between 40 B and 50 B: A is faster from 1 B to 40 B, and B from 50 B to 60 B; not \
                 decided at 20 B to 25 B",
            ),
        ] {
            assert_eq!(ranges(of), words);
        }
    }
}
