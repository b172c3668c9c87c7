//! Numbers written for people, with as many digits as their interval justifies.

use ascertain_engine::unit::{Unit, significant};

/// A number and its interval, as text for people: `1.052` and `1.047 to 1.058`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The number as text; `-` if it is unknown.
    pub value: String,
    /// The interval: `1.047 to 1.058`, `at least 1.047`, `at most 1.058` or `too few trials`.
    pub range: String,
}

impl Figure {
    /// Writes a number and its interval, without a unit, in enough digits to show the width of the interval.
    ///
    /// `landmarks` are numbers, such as the bound of a claim, to which no end of the interval may be rounded. An end
    /// that would be rounded to a landmark gets one more digit, or is written as `over` or `under` the landmark. If no
    /// number is negative, each has at least two significant digits.
    ///
    /// ```
    /// use ascertain_report::figure::Figure;
    /// let figure = Figure::new(Some(1.05213), Some(1.04688), Some(1.05794), &[1.0]);
    /// assert_eq!(figure.to_string(), "1.052 (1.047 to 1.058)");
    /// let open = Figure::new(Some(6.1), None, Some(6.34), &[]);
    /// assert_eq!(open.to_string(), "6.1 (at most 6.3)");
    /// let wide = Figure::new(Some(0.504), Some(0.08), Some(3.1), &[1.0]);
    /// assert_eq!(wide.to_string(), "0.50 (0.080 to 3.1)");
    /// let near = Figure::new(Some(1.15), Some(1.0004), Some(1.31), &[1.0]);
    /// assert_eq!(near.to_string(), "1.1 (over 1 to 1.3)");
    /// ```
    pub fn new(value: Option<f64>, low: Option<f64>, high: Option<f64>, landmarks: &[f64]) -> Figure {
        let value = value.filter(|v| !v.is_nan());
        // An infinite end does not bound anything.
        let [low, high] = [low, high].map(|end| end.filter(|v| v.is_finite()));
        let decimals = digits(value.filter(|v| v.is_finite()), low, high);
        // A ratio needs at least two significant digits, even if its interval is wide. A difference, which can be
        // negative, doesn't.
        let is_signed = [value, low, high].into_iter().flatten().any(|number| number < 0.0);
        let least = |number: f64| if is_signed { 0 } else { two_digits(number) };
        let end = |number: f64| {
            let decimals = decimals.map(|(of_ends, of_value)| {
                // Extra digits distinguish the value from the nearer end of its interval. An end that is much larger
                // than the value does not need them.
                let is_far = value.is_some_and(|value| number.abs() > 10.0 * value.abs());
                (if is_far { of_ends } else { of_value }).max(least(number))
            });
            beside_mark(number, decimals, landmarks).map_or_else(|| Ok(write(number, decimals, landmarks)), Err)
        };
        let range = match (low.map(end), high.map(end)) {
            (Some(Ok(low) | Err(low)), Some(Ok(high) | Err(high))) => format!("{low} to {high}"),
            (Some(Ok(low)), None) => format!("{AT_LEAST}{low}"),
            (None, Some(Ok(high))) => format!("at most {high}"),
            (Some(Err(end)), None) | (None, Some(Err(end))) => end,
            (None, None) => TOO_FEW.into(),
        };
        // The value may be rounded to a landmark only if the landmark is inside the interval.
        let is_excluded = |mark: &f64| low.is_some_and(|low| low >= *mark) || high.is_some_and(|high| high <= *mark);
        let (excluded, within): (Vec<f64>, Vec<f64>) = landmarks.iter().copied().partition(is_excluded);
        let decimals = decimals.map(|(_, of_value)| of_value);
        let of_value = |(decimals, value): (usize, f64)| on_its_side(value, decimals.max(least(value)), &within);
        let decimals = decimals.zip(value).map(of_value).or(decimals);
        let value = value.map_or_else(|| "-".into(), |value| write(value, decimals, &excluded));
        Figure { value, range }
    }

    /// Writes a number whose interval is unknown. It has two significant digits, because nothing supports more.
    pub(crate) fn unbounded(value: Option<f64>) -> Figure {
        let written = |value: f64| write(value, Some(two_digits(value)), &[]);
        let value = value.filter(|value| !value.is_nan()).map_or_else(|| "-".into(), written);
        Figure { value, range: TOO_FEW.into() }
    }

    /// Writes a quantity; the ends of its interval are in the unit of the value: `23.41 ms (23.38 to 23.45)`. If the
    /// value is zero, it is in the unit of the ends.
    pub fn of_unit(unit: Unit, value: Option<f64>, low: Option<f64>, high: Option<f64>) -> Figure {
        let size = [value, high, low].into_iter().flatten().find(|v| v.is_finite() && *v != 0.0).unwrap_or(0.0);
        let prefix = unit.prefix(size);
        let mut figure = Figure::with_prefix(prefix, &|end| unit.prefix(end), [value, low, high]);
        // If the value and both ends are whole counts, they are written as integers. A median of counts can have a
        // fraction; then they are written like other numbers.
        let counts = [value, low, high].map(|number| number.filter(|number| prefix.0 == 1.0 && unit.is_count(*number)));
        if let [Some(value), Some(low), Some(high)] = counts {
            figure.value = unit.human(value);
            figure.range = format!("{low} to {high}");
        }
        figure
    }

    /// Writes a quantity with the given prefix (factor and symbol of a unit, such as 10⁶ and ms). If the ends of its
    /// interval are too far apart for one unit, each gets its own prefix from `own`, and three digits: `16.6 µs to 188
    /// ms`. If there is no value, both ends have at least three digits.
    pub fn with_prefix(
        prefix: (f64, &str),
        own: &dyn Fn(f64) -> (f64, &'static str),
        [value, low, high]: [Option<f64>; 3],
    ) -> Figure {
        let mut figure = Figure::with_landmarks(prefix, [value, low, high], &[]);
        let [Some(least), Some(most)] = [low, high].map(|end| end.filter(|end| end.is_finite() && *end >= 0.0)) else {
            return figure;
        };
        let in_own = |end: f64| {
            let (factor, symbol) = own(end);
            let number = unsigned_zero(format!("{:.*}", three_digits(end / factor), end / factor));
            format!("{number} {symbol}").trim_end().to_string()
        };
        let is_wide = most >= FAR * prefix.0 || (least > 0.0 && most >= FAR * least);
        if is_wide && own(least) != own(most) {
            figure.range = format!("{} to {}", in_own(least), in_own(most));
        } else if value.is_none() {
            let ends = [least, most].map(|end| end / prefix.0);
            if let Some(shared) = decimals(None, Some(ends[0]), Some(ends[1])) {
                let [least, most] = ends.map(|end| write(end, Some(shared.max(three_digits(end))), &[]));
                figure.range = format!("{least} to {most}");
            }
        }
        figure
    }

    /// Writes a quantity in the unit with this prefix (factor and symbol). No end of its interval is rounded to a
    /// landmark, a number such as a claimed bound (see [`Figure::new`]).
    pub(crate) fn with_landmarks(
        (factor, symbol): (f64, &str),
        numbers: [Option<f64>; 3],
        landmarks: &[f64],
    ) -> Figure {
        let [value, low, high] = numbers.map(|number| number.map(|number| number / factor));
        let landmarks: Vec<f64> = landmarks.iter().map(|mark| mark / factor).collect();
        let mut figure = Figure::new(value, low, high, &landmarks);
        if value.is_some_and(f64::is_finite) && !symbol.is_empty() {
            figure.value = format!("{} {symbol}", figure.value);
        }
        figure
    }

    /// Writes a share in percent: `99.07 % (97.3 to 99.96 %)`. No end of the interval is rounded to 0 %, to 100 % or to
    /// the claimed share.
    pub fn of_share(share: Option<f64>, low: Option<f64>, high: Option<f64>, claimed: f64) -> Figure {
        let [value, low, high] = [share, low, high].map(|number| number.map(|v| v * 100.0));
        let mut figure = Figure::new(value, low, high, &[0.0, 100.0, claimed * 100.0]);
        if (low, high) == (None, None) {
            figure.value = share.map_or_else(|| "-".into(), percent);
            return figure;
        }
        if value.is_some_and(f64::is_finite) {
            figure.value += " %";
        }
        figure.range += " %";
        figure
    }

    /// Returns the interval for a sentence: "too few trials" becomes "too few trials for an interval".
    pub(crate) fn range_in_words(&self) -> String {
        if self.range == TOO_FEW { format!("{TOO_FEW} for an interval") } else { self.range.clone() }
    }
}

impl std::fmt::Display for Figure {
    /// Writes the number with its interval in parentheses: `1.052 (1.047 to 1.058)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.value.as_str() {
            "-" if self.range == TOO_FEW => f.write_str("-"),
            value => write!(f, "{value} ({})", self.range_in_words()),
        }
    }
}

/// A number and its interval. An end that is not known is infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// Applies a function to the number and to both ends.
    pub fn map(self, function: impl Fn(f64) -> f64) -> Estimate {
        Estimate { value: function(self.value), low: function(self.low), high: function(self.high) }
    }
}

#[cfg(feature = "html")]
impl Estimate {
    /// Returns whether both ends of the interval are known.
    pub fn is_bounded(self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }

    /// Writes the estimate without a unit: `1.052 (1.047 to 1.058)`. No end of the interval is rounded to 1.
    pub fn ratio(self) -> Figure {
        Figure::new(Some(self.value), Some(self.low), Some(self.high), &[1.0])
    }

    /// Writes the estimate in a unit: `23.41 ms (23.38 to 23.45)`.
    pub fn in_unit(self, unit: Unit) -> Figure {
        Figure::of_unit(unit, Some(self.value), Some(self.low), Some(self.high))
    }

    /// Returns the estimate as a row of a forest plot, at the vertical position `y` and without a label.
    pub fn at(self, y: f64) -> ascertain_plot::Interval {
        let Estimate { value, low, high } = self;
        ascertain_plot::Interval { y, value, low, high, label: String::new() }
    }
}

/// The text in place of an interval if there are too few trials for one.
const TOO_FEW: &str = "too few trials";
/// The words before the lower end of an interval that has no upper end.
pub(crate) const AT_LEAST: &str = "at least ";

/// Limit of two ratios: an interval's upper end divided by its lower end, and the upper end divided by the unit. If
/// either ratio reaches this limit, the interval is too wide for one unit, so each end has its own unit.
const FAR: f64 = 1e4;

/// The largest number of decimals. A number that needs more decimals is written with an exponent.
const MOST_DECIMALS: usize = 9;

/// Writes a number with `decimals` decimals. It gets more decimals if rounding would make it look equal to a landmark
/// (a bound such as 1). If `decimals` is `None` or too large, the number has four significant digits.
fn write(number: f64, decimals: Option<usize>, landmarks: &[f64]) -> String {
    let is_fitting = |decimals: &usize| number.is_finite() && *decimals <= MOST_DECIMALS;
    let Some(decimals) = decimals.filter(is_fitting) else { return significant(number) };
    let hides = |decimals: usize| landmarks.iter().any(|&mark| number != mark && rounds_onto(number, mark, decimals));
    let decimals = (decimals..MOST_DECIMALS).find(|&decimals| !hides(decimals)).unwrap_or(MOST_DECIMALS);
    unsigned_zero(format!("{number:.decimals$}"))
}

/// Returns `over 95` or `under 1` for an end of an interval that is too close to a landmark (a number such as a claimed
/// bound). It is too close if rounding makes the two equal even with one more digit. `None` for other ends.
fn beside_mark(number: f64, decimals: Option<usize>, landmarks: &[f64]) -> Option<String> {
    let most = decimals.filter(|decimals| *decimals < MOST_DECIMALS)? + 1;
    let mark = landmarks.iter().find(|mark| number != **mark && rounds_onto(number, **mark, most))?;
    let written = format!("{mark:.most$}");
    // The landmark itself must be written with all of its digits.
    let is_exact = written.parse::<f64>().is_ok_and(|written| (written - mark).abs() <= mark.abs() * 1e-12);
    let word = if number > *mark { "over" } else { "under" };
    is_exact.then(|| format!("{word} {}", without_trailing_zeros(&written)))
}

/// Returns the number of decimals with which half the width of the interval has one significant digit. `None` if the
/// width is unknown, zero or too small.
fn decimals(value: Option<f64>, low: Option<f64>, high: Option<f64>) -> Option<usize> {
    let half_width = match (low, high) {
        (Some(low), Some(high)) => (high - low) / 2.0,
        (Some(end), None) | (None, Some(end)) => (value? - end).abs(),
        (None, None) => return None,
    };
    let largest = [value, low, high].into_iter().flatten().map(f64::abs).fold(0.0, f64::max);
    let says_something = half_width > 0.0 && half_width.is_finite() && largest < 1e10;
    let needed = -half_width.log10().floor();
    (says_something && needed <= MOST_DECIMALS as f64).then_some(needed.max(0.0) as usize)
}

/// Returns how many decimals to write, as two numbers. The first is for an end of the interval that is far from the
/// value. The second is for the value, and for an end that is near it. `None` if the width of the interval is unknown,
/// zero or too small.
fn digits(value: Option<f64>, low: Option<f64>, high: Option<f64>) -> Option<(usize, usize)> {
    let decimals = decimals(value, low, high)?;
    // A value near one end of an asymmetric interval, such as 3.4 in 3.2 to 7.9, needs more digits to differ from that
    // end.
    let value = value.unwrap_or(f64::NAN);
    let hides = |decimals: usize| {
        [low, high].into_iter().flatten().any(|end| end != value && rounds_onto(end, value, decimals))
    };
    let apart = (decimals..decimals + 2).find(|&decimals| !hides(decimals)).unwrap_or(decimals + 2);
    Some((decimals, apart.min(MOST_DECIMALS)))
}

/// Returns the number of decimals that shows two significant digits; 0 for zero.
fn two_digits(number: f64) -> usize {
    if number == 0.0 || !number.is_finite() { 0 } else { (1.0 - number.abs().log10().floor()).max(0.0) as usize }
}

/// Returns the number of decimals that shows three significant digits; 0 for zero.
fn three_digits(number: f64) -> usize {
    if number == 0.0 { 0 } else { two_digits(number / 10.0) }
}

/// Returns `decimals`, or up to two more, so that the rounded value is on the same side of each of the `marks` as the
/// value. For example, 0.976, which is below the mark 0.98, is not written as `1.0`.
fn on_its_side(value: f64, decimals: usize, marks: &[f64]) -> usize {
    let strays = |decimals: usize| {
        let written = format!("{value:.decimals$}").parse().unwrap_or(value);
        marks.iter().any(|&mark| (value <= mark && written > mark) || (value >= mark && written < mark))
    };
    let found = (decimals..decimals + 2).find(|&decimals| !strays(decimals)).unwrap_or(decimals + 2);
    found.min(MOST_DECIMALS.max(decimals))
}

/// Returns whether rounding to `decimals` decimals makes `end` and `mark` the same text.
fn rounds_onto(end: f64, mark: f64, decimals: usize) -> bool {
    let write = |number: f64| unsigned_zero(format!("{number:.decimals$}"));
    (end - mark).abs() < 1.0 && write(end) == write(mark)
}

/// Removes the sign of zero: `-0.00` becomes `0.00`.
fn unsigned_zero(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| matches!(c, '0' | '.')) => rest.to_string(),
        _ => text,
    }
}

/// Writes an observed share in percent, with two significant digits of its distance to 0 or 100: `50 %`, `99.07 %`,
/// `99.996 %`.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "-".into();
    }
    let rest = share.abs().min((1.0 - share).abs()) * 100.0;
    let decimals = if rest == 0.0 { 0 } else { (1.0 - rest.log10().floor()).clamp(0.0, 12.0) as usize };
    format!("{} %", without_trailing_zeros(&format!("{:.decimals$}", share * 100.0)))
}

/// Writes a share that was given, not measured, in percent and with all its digits: 0.975 is `97.5 %`.
///
/// ```
/// use ascertain_report::figure::exact_percent;
/// assert_eq!(exact_percent(0.29), "29 %");
/// assert_eq!(exact_percent(0.99999), "99.999 %");
/// ```
pub fn exact_percent(share: f64) -> String {
    if !share.is_finite() {
        return "-".into();
    }
    // Rounds the floating-point error: 0.29 * 100 is 28.999999999999996.
    let rounded = (share * 1e12).round() / 1e10;
    match (rounded == 100.0 && share != 1.0) || (rounded == 0.0 && share != 0.0) {
        true if share.abs() < 1e-5 => format!("{share:e}"),
        true => format!("{share}"),
        false => format!("{rounded} %"),
    }
}

/// Writes an error probability, rounded up to two digits: `0.001`, `0.00003`, `2.5e-7`.
///
/// ```
/// use ascertain_report::figure::chance;
/// assert_eq!(chance(0.001 / 34.0), "0.00003");
/// assert_eq!(chance(1e-9), "1e-9");
/// ```
pub fn chance(error: f64) -> String {
    if !(error.is_finite() && error > 0.0) {
        return if error == 0.0 { "0".into() } else { "-".into() };
    }
    let nearest = format!("{error:.1e}");
    let (mantissa, exponent) = nearest.split_once('e').unwrap_or((&nearest, "0"));
    let tenths = mantissa.replace('.', "").parse::<u64>().unwrap_or(10);
    let is_short = nearest.parse::<f64>().is_ok_and(|rounded| rounded < error);
    let tenths = tenths + u64::from(is_short);
    let rounded = format!("{tenths}e{}", exponent.parse::<i32>().unwrap_or(0) - 1).parse().unwrap_or(error);
    if rounded < 1e-5 { format!("{rounded:e}") } else { format!("{rounded}") }
}

/// Writes an error probability for a sentence, in percent with two digits: `0.1 %`. It is rounded up, so that the
/// probability is never understated.
///
/// ```
/// use ascertain_report::figure::error_in_words;
/// assert_eq!(error_in_words(0.0005), "0.05 %");
/// assert_eq!(error_in_words(0.001 / 181.0), "0.00056 %");
/// ```
pub fn error_in_words(error: f64) -> String {
    below(error)
}

/// Writes a share in percent with two digits, rounded up, so that an upper bound remains an upper bound.
pub(crate) fn below(share: f64) -> String {
    // The floating-point product 0.07 * 100 is more than 7.
    format!("{} %", chance(share * 100.0 * (1.0 - 1e-12)))
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: f64, low: f64, high: f64, landmarks: &[f64]) -> String {
        Figure::new(Some(value), Some(low), Some(high), landmarks).to_string()
    }

    #[test]
    fn digits_fit_the_interval() {
        assert_eq!(shown(1.05213, 1.04688, 1.05794, &[1.0]), "1.052 (1.047 to 1.058)");
        assert_eq!(shown(6.1, 5.9, 6.3, &[8.0]), "6.1 (5.9 to 6.3)");
        assert_eq!(shown(46.2, 44.0, 48.4, &[]), "46 (44 to 48)");
        assert_eq!(shown(-0.01, -0.2, 0.3, &[]), "0.0 (-0.2 to 0.3)");
        assert_eq!(shown(3e12, 2e12, 4e12, &[]), "3.000×10¹² (2.000×10¹² to 4.000×10¹²)");
        assert_eq!(shown(2.0, 2.0, 2.0, &[]), "2.000 (2.000 to 2.000)");
        assert_eq!(shown(3.4, 3.2, 7.9, &[]), "3.4 (3.2 to 7.9)");
        assert_eq!(shown(7.9, 3.2, 7.9, &[]), "7.9 (3.2 to 7.9)", "the value equals the end");
    }

    #[test]
    fn ratios_have_two_significant_digits() {
        assert_eq!(shown(0.504, 0.2, 3.1, &[1.0]), "0.50 (0.20 to 3.1)");
        assert_eq!(shown(0.917, 0.7, 0.97, &[1.0]), "0.92 (0.70 to 0.97)");
        assert_eq!(shown(0.45, 0.04, 0.61, &[1.0]), "0.45 (0.040 to 0.61)");
        assert_eq!(shown(12.3, 0.000_123, 40.0, &[1.0]), "12 (0.00012 to 40)");
        assert_eq!(shown(1.0, 1e-30, 1e5, &[]), "1.0 (1.000×10⁻³⁰ to 100000)");
        assert_eq!(shown(0.504, 0.0, 2.0, &[]), "0.50 (0 to 2.0)", "zero itself");
        for exponent in -40..9 {
            let (low, high) = (3.7 * 10_f64.powi(exponent), 8e9);
            for part in shown(low * 1.5, low, high, &[1.0]).split([' ', '(', ')']).filter(|part| *part != "to") {
                let number = part.split('×').next().unwrap_or(part);
                assert!(part.is_empty() || number.parse::<f64>().unwrap() > 0.0, "{part} of {low}");
            }
        }
    }

    #[test]
    fn ends_do_not_round_onto_landmarks() {
        assert_eq!(shown(1.15, 1.0004, 1.31, &[1.0]), "1.1 (over 1 to 1.3)");
        assert_eq!(shown(1.15, 1.04, 1.31, &[1.0]), "1.1 (1.04 to 1.3)", "one digit more is enough");
        assert_eq!(shown(0.9, 0.7, 0.99996, &[1.0]), "0.90 (0.70 to under 1)");
        assert_eq!(shown(1.15, 1.0, 1.31, &[1.0]), "1.1 (1.0 to 1.3)", "the end equals the landmark");
        let share = Figure::of_share(Some(0.9907), Some(0.9735), Some(0.9996), 0.5);
        assert_eq!(share.to_string(), "99 % (97 to under 100 %)");
        let share = Figure::of_share(Some(0.9907), Some(0.9835), Some(0.9996), 0.5);
        assert_eq!(share.to_string(), "99.1 % (98.4 to 99.96 %)");
        let share = Figure::of_share(Some(0.9996), Some(0.980_004), Some(0.9999), 0.98);
        assert_eq!(share.to_string(), "99.96 % (over 98 to 99.99 %)");
        let share = Figure::of_share(Some(1.0), Some(0.950_002), Some(1.0), 0.95);
        assert_eq!(share.to_string(), "100 % (over 95 to 100 %)");
        let share = Figure::of_share(Some(0.28), Some(0.27), Some(0.289_999_9), 0.29);
        assert_eq!(share.to_string(), "28.0 % (27.0 to under 29 %)");
        assert_eq!(Figure::of_share(Some(0.9), Some(0.890_000_1), None, 0.89).to_string(), "90.0 % (over 89 %)");
        assert_eq!(Figure::of_share(Some(1.0), Some(0.9), Some(1.0), 0.5).to_string(), "100 % (90 to 100 %)");
        for (high, shown) in [(1.0, "100.00"), (0.999_999_9, "under 100")] {
            let share = Figure::of_share(Some(0.9997), Some(0.99), Some(high), 0.95);
            assert_eq!(share.to_string(), format!("99.97 % (99.00 to {shown} %)"), "never rounded to 100 %");
        }
    }

    #[test]
    fn an_end_is_written_on_its_side_of_a_landmark() {
        let side = |text: &str, mark: f64| match text.split_once(' ') {
            Some((word, written)) => (written.parse() == Ok(mark)).then_some(if word == "over" { 1.0 } else { -1.0 }),
            None => text.parse::<f64>().ok().map(|written| (written - mark).signum()),
        };
        for mark in [0.0, 0.29, 0.5, 0.98, 1.0, 8.0, 95.0] {
            for distance in (1..9).flat_map(|power| [1.0, 3.7, 5.0, 9.6].map(|step| step * 10_f64.powi(-power))) {
                let (above, below) = (mark + distance, mark - distance);
                let range = |low: f64, high: f64| Figure::new(None, Some(low), Some(high), &[mark]).range;
                let (low, high) = (range(above, above + 2.0), range(below - 2.0, below));
                let (low, high) = (low.split_once(" to ").unwrap().0, high.split_once(" to ").unwrap().1);
                assert_eq!([side(low, mark), side(high, mark)], [Some(1.0), Some(-1.0)], "{low}, {high} by {mark}");
            }
        }
    }

    #[test]
    fn a_value_is_not_written_beyond_a_landmark() {
        assert_eq!(shown(0.976, 0.8, 1.2, &[0.98]), "0.98 (0.80 to 1.2)");
        assert_eq!(shown(1.03, 0.8, 1.4, &[1.02]), "1.03 (0.80 to 1.4)");
        assert_eq!(shown(0.976, 0.8, 1.2, &[]), "0.98 (0.80 to 1.2)");
    }

    #[test]
    fn what_is_not_known_says_so() {
        let show = |value, low, high| Figure::new(value, low, high, &[]).to_string();
        assert_eq!(show(None, None, None), "-");
        assert_eq!(show(Some(f64::NAN), Some(f64::NAN), None), "-");
        assert_eq!(show(Some(1.05), None, None), "1.050 (too few trials for an interval)");
        assert_eq!(show(Some(1.05), Some(1.01), None), "1.05 (at least 1.01)");
        let unbounded = |value| Figure::unbounded(Some(value)).to_string();
        assert_eq!(unbounded(0.9157), "0.92 (too few trials for an interval)");
        assert_eq!(unbounded(12_345.6), "12346 (too few trials for an interval)");
        assert_eq!(unbounded(0.001_234), "0.0012 (too few trials for an interval)");
        assert_eq!(unbounded(f64::INFINITY), "∞ (too few trials for an interval)");
        assert_eq!(Figure::unbounded(None).to_string(), "-");
        assert_eq!(show(Some(1.05), Some(1.01), Some(f64::INFINITY)), "1.05 (at least 1.01)");
        assert_eq!(show(Some(f64::INFINITY), Some(1.0), Some(f64::INFINITY)), "∞ (at least 1.000)");
        assert_eq!(show(None, Some(0.4), Some(0.6)), "- (0.40 to 0.60)");
    }

    #[test]
    fn quantities_share_a_prefix() {
        let time = Figure::of_unit(Unit::Nanosecond, Some(23.412e6), Some(23.38e6), Some(23.45e6));
        assert_eq!(time.to_string(), "23.41 ms (23.38 to 23.45)");
        let below = Figure::of_unit(Unit::Nanosecond, Some(1.01e6), Some(0.97e6), Some(1.05e6));
        assert_eq!(below.to_string(), "1.01 ms (0.97 to 1.05)");
        assert_eq!(Figure::of_unit(Unit::One, Some(0.5), None, None).value, "0.5000");
        let zero = Figure::of_unit(Unit::Nanosecond, Some(0.0), Some(0.0), Some(1.104e6));
        assert_eq!(zero.to_string(), "0.0 ms (0.0 to 1.1)", "in the unit of its ends");
        assert_eq!(Figure::of_unit(Unit::Nanosecond, Some(0.0), Some(0.0), Some(0.0)).value, "0 ns");
        assert_eq!(Figure::of_unit(Unit::Nanosecond, None, None, None).to_string(), "-");
        // Each number has its own number of digits, and its own unit if necessary.
        let apart = |value, low, high| Figure::of_unit(Unit::Nanosecond, value, Some(low), Some(high)).to_string();
        assert_eq!(apart(Some(16_603.0), 16_571.0, 188_042_123.0), "16.60 µs (16.6 µs to 188 ms)");
        assert_eq!(apart(Some(16_603.0), 0.0, 188_042_123.0), "17 µs (0 ns to 188 ms)");
        assert_eq!(apart(Some(16_603.0), 16_571.0, 842_123.0), "16.60 µs (16.57 to 842)");
        let extent = |low, high| Figure::of_unit(Unit::Nanosecond, None, Some(low), Some(high)).range;
        assert_eq!(extent(16_571.0, 842_123.0), "16.6 to 842");
        let prefix = (1e3, "µs");
        let in_microseconds = |own: &dyn Fn(f64) -> (f64, &'static str)| {
            Figure::with_prefix(prefix, own, [None, Some(16_571.0), Some(188_042_123.0)]).range
        };
        assert_eq!(in_microseconds(&|end| Unit::Nanosecond.prefix(end)), "16.6 µs to 188 ms");
        assert_eq!(in_microseconds(&|_| (1e3, "µs")), "16.6 to 188042", "in the requested unit");
        let count = |unit, [value, low, high]: [f64; 3]| Figure::of_unit(unit, Some(value), Some(low), Some(high));
        assert_eq!(count(Unit::One, [5.0, 5.0, 5.0]).to_string(), "5 (5 to 5)");
        assert_eq!(count(Unit::Byte, [125.0, 124.0, 130.0]).to_string(), "125 B (124 to 130)");
        assert_eq!(count(Unit::One, [4.5, 4.0, 6.0]).to_string(), "4.5 (4.0 to 6.0)");
    }

    #[test]
    fn percents_never_hide_a_failure() {
        assert_eq!(percent(0.5), "50 %");
        assert_eq!(percent(0.990_654), "99.07 %");
        assert_eq!(percent(0.999_96), "99.996 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(1.0 / 3.0), "33 %");
        assert_eq!(exact_percent(0.975), "97.5 %");
        assert_eq!(exact_percent(1.0 - 1e-15), "0.999999999999999");
        assert_eq!(exact_percent(1e-300), "1e-300");
    }

    #[test]
    fn errors_are_in_percent_and_no_less_than_the_chance() {
        assert_eq!([0.05, 0.001, 0.0005, 0.07].map(error_in_words), ["5 %", "0.1 %", "0.05 %", "7 %"]);
        assert_eq!([0.0, 1e-16, f64::NAN].map(error_in_words), ["0 %", "1e-14 %", "- %"]);
        assert_eq!([0.001 / 7.0, 1e-9, 5e-6].map(error_in_words), ["0.015 %", "1e-7 %", "0.0005 %"]);
        for error in [0.4, 0.017, 1e-5, 3.3e-5, 7e-14, 0.00099] {
            let written: f64 = error_in_words(error).trim_end_matches(" %").parse().unwrap();
            assert!(written >= error * 100.0 * (1.0 - 1e-9), "{error}");
        }
    }

    #[test]
    fn chances_are_rounded_up() {
        assert_eq!(chance(0.001), "0.001");
        assert_eq!(chance(0.05), "0.05");
        assert_eq!(chance(0.001 / 7.0), "0.00015");
        assert_eq!(chance(2.41e-7), "2.5e-7");
        assert_eq!(chance(0.0999), "0.1");
        assert_eq!(chance(f64::NAN), "-");
        for error in [0.3, 0.017, 1e-5, 3.3e-5, 7e-300, 0.999] {
            assert!(chance(error).parse::<f64>().unwrap() >= error, "{error}");
        }
    }
}
