//! Dates such as `2026-11-30`, as numbers of days.

/// Returns the number of days from 1970-01-01 to a date in the form `2026-11-30`, or `None` if there is no such day.
pub(super) fn day(date: &str) -> Option<i64> {
    let mut parts = date.trim().splitn(3, '-');
    let mut number = |length: usize| {
        let part =
            parts.next().filter(|part| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        part.parse::<i64>().ok()
    };
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let february = if is_leap(year) { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *lengths.get(usize::try_from(month - 1).ok()?)?;
    if year < 1970 || !(1..=length).contains(&day) {
        return None;
    }
    let years: i64 = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
    let months: i64 = lengths.iter().take(usize::try_from(month - 1).ok()?).sum();
    Some(years + months + day - 1)
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (date, expected) in
            [("1970-01-01", 0), ("2000-03-01", 11_017), ("2022-05-24", 19_136), ("2024-02-29", 19_782)]
        {
            assert_eq!(day(date), Some(expected), "{date}");
        }
        for wrong in
            ["", "2023-02-29", "2022-13-01", "2022-00-10", "24.5.2022", "2022-5-24", "2022-05-24Z", "1900-01-01"]
        {
            assert_eq!(day(wrong), None, "{wrong}");
        }
    }
}
