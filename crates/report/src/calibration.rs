//! The output of `ascertain calibrate-here`.

use ascertain_engine::calibration::Calibration;
use ascertain_engine::outcome::Decision;
use ascertain_engine::unit::significant;

use crate::figure::{Figure, error_in_words, exact_percent, percent};
use crate::text::{counted, plain, quoted, shortened};

/// Returns four sentences:
///
/// 1. the number of pairs;
/// 2. the usual difference between two runs of the same command;
/// 3. the answer of the comparison;
/// 4. the smallest difference that a minute of measurement detects.
pub fn sentences(calibration: &Calibration) -> Vec<String> {
    let Calibration { pairs, elapsed_s, .. } = calibration;
    let command = plain(&shortened(&quoted(&calibration.command), &[]));
    let (Some(median), Some(p95)) = (calibration.difference_median, calibration.difference_p95) else {
        return vec![format!("No pair of {command} and itself was measured.")];
    };
    let a_second = significant(*pairs as f64 / elapsed_s);
    let few =
        if *pairs < FEW_PAIRS { " This is too few pairs to show much; allow more time with --max-time." } else { "" };
    let pairs = counted(*pairs, "pair");
    vec![
        format!("{pairs} of {command} and itself in {elapsed_s:.1} s, {a_second} per second.{few}"),
        format!(
            "Two runs of the same command typically differ by {} (median), and by more than {} in 1 of 20 pairs.",
            differing(median),
            differing(p95)
        ),
        decision_sentence(calibration),
        detection_sentence(calibration),
    ]
}

fn decision_sentence(calibration: &Calibration) -> String {
    let word = match calibration.decision {
        Some(decision @ (Decision::Faster | Decision::Slower)) => decision.word(),
        _ => return "The comparison found neither faster than the other, which is correct.".into(),
    };
    format!(
        "The comparison found the second command {word}, which is wrong. Such an error happens by chance in at most \
         {} of runs. If it happens again, this machine systematically favours one of the two commands.",
        exact_percent(calibration.error)
    )
}

fn detection_sentence(calibration: &Calibration) -> String {
    let Calibration { minute_pairs, calculated_pairs, elapsed_s, pairs, .. } = calibration;
    let pairs_said = match calculated_pairs < minute_pairs {
        true => {
            let seconds = *calculated_pairs as f64 / (*pairs as f64 / elapsed_s);
            format!("Here, {calculated_pairs} pairs ({seconds:.1} s)")
        }
        false => format!("A minute here ({minute_pairs} pairs)"),
    };
    let often = format!(
        "in {:.0} of 10 runs, error at most {}",
        calibration.seen_share * 10.0,
        error_in_words(calibration.error)
    );
    let is_minute = calculated_pairs >= minute_pairs;
    let (detect, more) = match is_minute {
        true => ("detects", String::new()),
        false => {
            let more = format!(" A minute is enough for {minute_pairs} pairs, which detect smaller differences.");
            ("detect", more)
        }
    };
    let difference = match calibration.seen_difference {
        Some(difference) => format!("a difference of {}", percent(difference)),
        None => format!("no difference of up to {}", exact_percent(calibration.seen_difference_limit)),
    };
    format!("{pairs_said} {detect} {difference} ({often}).{more}")
}

/// With fewer pairs than this, the 95th percentile of the differences can't be estimated well.
const FEW_PAIRS: u64 = 40;

/// Returns a difference in percent; a difference above 100 % is written as a factor. The difference is unknown (not
/// finite) if a run was stopped at its time limit.
fn differing(share: f64) -> String {
    match share {
        _ if !share.is_finite() => "an unknown amount (stopped at a time limit)".into(),
        ..=1.0 => format!("±{}", percent(share)),
        _ => format!("a factor of {}", Figure::unbounded(Some(1.0 + share)).value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration() -> Calibration {
        Calibration {
            schema: ascertain_engine::calibration::SCHEMA.into(),
            command: "true".into(),
            seed: 1,
            error: 0.001,
            elapsed_s: 10.0,
            pairs: 500,
            difference_median: Some(0.0213),
            difference_p95: Some(0.31),
            decision: Some(Decision::Undecided),
            minute_pairs: 3000,
            calculated_pairs: 3000,
            seen_share: 0.8,
            seen_difference: Some(0.00456),
            seen_difference_limit: 1.0,
        }
    }

    #[test]
    fn sentences_of_a_calibration() {
        assert_eq!(
            sentences(&calibration()),
            [
                "500 pairs of `true` and itself in 10.0 s, 50.00 per second.",
                "Two runs of the same command typically differ by ±2.1 % (median), and by more than ±31 % in 1 of 20 \
                 pairs.",
                "The comparison found neither faster than the other, which is correct.",
                "A minute here (3000 pairs) detects a difference of 0.46 % (in 8 of 10 runs, error at most 0.1 %).",
            ]
        );
    }

    #[test]
    fn what_is_wrong_not_calculated_or_not_seen_is_said() {
        let last = |calibration: Calibration| sentences(&calibration).pop().unwrap();
        let capped = last(Calibration { minute_pairs: 3000, calculated_pairs: 2000, ..calibration() });
        assert!(capped.starts_with("Here, 2000 pairs (40.0 s) detect "), "{capped}");
        assert!(capped.ends_with(" A minute is enough for 3000 pairs, which detect smaller differences."), "{capped}");
        let unseen = last(Calibration { seen_difference: None, ..calibration() });
        assert!(unseen.contains("detects no difference of up to 100 %"), "{unseen}");
        let wrong = sentences(&Calibration { decision: Some(Decision::Slower), ..calibration() })[2].clone();
        assert!(wrong.contains("second command slower, which is wrong") && wrong.contains("0.1 %"), "{wrong}");
        let one = sentences(&Calibration { pairs: 1, ..calibration() })[0].clone();
        assert_eq!(
            one,
            "1 pair of `true` and itself in 10.0 s, 0.1000 per second. This is too few pairs to show much; allow more time \
             with --max-time."
        );
        let noisy = Calibration { difference_median: Some(1.0), difference_p95: Some(4.77), ..calibration() };
        assert_eq!(
            sentences(&noisy)[1],
            "Two runs of the same command typically differ by ±100 % (median), and by more than a factor of 5.8 in 1 of 20 pairs."
        );
        let none = last(Calibration { difference_median: None, difference_p95: None, ..calibration() });
        assert_eq!(none, "No pair of `true` and itself was measured.");
    }
}
