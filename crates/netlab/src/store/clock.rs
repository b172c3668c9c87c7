//! Moments, as stores write them. Of one form they are in the order of their letters.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `2026-11-23T07:02:12Z`.
pub(super) fn iso(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (days, seconds) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their odd day at their end, and come in cycles of 400 (Hinnant, "chrono-compatible
    // low-level date algorithms").
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = cycle * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// `20261123T070212Z`, in AWS's signatures.
pub(super) fn basic(moment: SystemTime) -> String {
    iso(moment).replace(['-', ':'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        let known = [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_369_353_600, "2013-05-24T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, text) in known {
            assert_eq!(iso(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
        assert_eq!(basic(UNIX_EPOCH), "19700101T000000Z");
    }
}
