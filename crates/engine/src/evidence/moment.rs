//! Times in the form of RFC 3339, in UTC, to the millisecond: `2026-11-21T09:30:12.000Z`.

const NS_PER_MS: u64 = 1_000_000;
const MS_PER_DAY: u64 = 24 * 60 * 60 * 1000;

/// Formats a time according to RFC 3339, in UTC, to the millisecond.
///
/// ```
/// let started = ascertain_engine::evidence::rfc3339(1_795_253_412_000_000_000);
/// assert_eq!(started, "2026-11-21T09:30:12.000Z");
/// ```
pub fn rfc3339(unix_ns: u64) -> String {
    let ms = unix_ns / NS_PER_MS;
    let (mut day, ms) = (ms / MS_PER_DAY, ms % MS_PER_DAY);
    let (mut year, mut month) = (1970, 1);
    // The last time that `u64` can express is in the year 2554, so this loop is short.
    while day >= days_of(year, month) {
        day -= days_of(year, month);
        (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    }
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", day + 1, ms % 1000)
}

/// Parses a time that [`rfc3339`] has written; returns `None` for any other text.
pub(super) fn unix_ns(rfc3339_utc: &str) -> Option<u64> {
    let number = |from: usize, to: usize| rfc3339_utc.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second, ms) = (number(11, 13)?, number(14, 16)?, number(17, 19)?, number(20, 23)?);
    let months = (1970..=year).flat_map(|year| (1..=12).map(move |month| (year, month)));
    let days: u64 = months.take_while(|&before| before < (year, month)).map(|(year, month)| days_of(year, month)).sum();
    let days = days + day.checked_sub(1)?;
    let unix_ns = (days * MS_PER_DAY + ((hour * 60 + minute) * 60 + second) * 1000 + ms).checked_mul(NS_PER_MS)?;
    (rfc3339(unix_ns) == rfc3339_utc).then_some(unix_ns)
}

fn days_of(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix_s, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
            (u64::MAX / 1_000_000_000, "2554-07-21T23:34:33.000Z"),
        ] {
            assert_eq!(rfc3339(unix_s * 1_000_000_000), expected);
        }
    }

    #[test]
    fn no_other_text_is_a_moment() {
        for text in
            ["", "then", "2026-11-21", "2026-02-30T00:00:00.000Z", "2026-11-21T09:30:12.000+01:00", "é026-11-21T09"]
        {
            assert_eq!(unix_ns(text), None, "{text}");
        }
        assert_eq!(unix_ns("9999-12-31T23:59:59.999Z"), None, "beyond 2^64 ns");
    }

    proptest! {
        #[test]
        fn moments_are_read_back(ms in 0..u64::MAX / NS_PER_MS) {
            prop_assert_eq!(unix_ns(&rfc3339(ms * NS_PER_MS)), Some(ms * NS_PER_MS));
        }
    }
}
