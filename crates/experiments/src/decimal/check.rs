//! Every contestant's texts against the standard library's, byte for byte.

use std::fmt::Write;

use super::contestants::Contestant;

/// Checks the texts of these numbers and of every digit count's edges, and that what is timed writes as much.
///
/// # Errors
/// The first number whose text is another.
pub fn check(contestant: &mut Contestant, numbers: &[u64]) -> Result<(), String> {
    let Some(lines) = &mut contestant.lines else { return Ok(()) };
    for numbers in [&edges(), numbers] {
        let mut expected = String::new();
        for number in numbers {
            // Writing to a String does not fail.
            let _ = writeln!(expected, "{number}");
        }
        let mut seen = Vec::new();
        lines(numbers, &mut seen);
        if seen != expected.as_bytes() {
            return Err(first_difference(&expected, &String::from_utf8_lossy(&seen)));
        }
        let (bytes, length) = ((contestant.each)(numbers), expected.len() - numbers.len());
        if bytes != length {
            return Err(format!("{bytes} bytes of text instead of {length}"));
        }
    }
    Ok(())
}

/// The least and the greatest number of each digit count, and what is beside them.
fn edges() -> Vec<u64> {
    let powers = (0..20).map(|k| 10_u64.pow(k));
    powers.flat_map(|power| [power - 1, power, power + 1]).chain([u64::MAX - 1, u64::MAX]).collect()
}

fn first_difference(expected: &str, seen: &str) -> String {
    let mut seen = seen.lines();
    let differs = expected.lines().map(|expected| (expected, seen.next().unwrap_or("nothing")));
    match differs.into_iter().find(|(expected, seen)| expected != seen) {
        Some((expected, seen)) => format!("{seen:?} instead of {expected}"),
        None => "more lines than numbers".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::contestants::{OTHERS, contestant};
    use super::*;
    use ascertain_numeric::decimal::VARIANTS;

    #[test]
    fn everybody_that_this_machine_has_is_right() {
        for name in VARIANTS.iter().map(|ours| ours.name).chain(OTHERS.map(|(name, _)| name)) {
            if let Ok(mut contestant) = contestant(name) {
                assert_eq!(check(&mut contestant, &[7, 77, 1 << 40]), Ok(()), "{name}");
            }
        }
    }

    #[test]
    fn a_wrong_text_is_named() {
        let mut wrong = contestant("std").unwrap();
        wrong.lines = Some(Box::new(|numbers, lines| {
            for number in numbers {
                lines.extend(format!("{}\n", number.saturating_sub(number / 1_001)).bytes());
            }
        }));
        assert_eq!(check(&mut wrong, &[]), Err(r#""1000" instead of 1001"#.into()));
        let mut wrong = contestant("std").unwrap();
        wrong.each = Box::new(|_| 3);
        assert!(check(&mut wrong, &[]).unwrap_err().contains("3 bytes of text"));
        let mut silent = contestant("std").unwrap();
        silent.lines = Some(Box::new(|_, _| {}));
        assert_eq!(check(&mut silent, &[]), Err(r#""nothing" instead of 0"#.into()));
    }
}
