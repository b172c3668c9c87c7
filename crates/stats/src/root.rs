//! A search for the change of sign of an increasing function.

/// The range and the precision of a search for the change of sign.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// A position where the function is below zero.
    pub low: f64,
    /// Value of the function at `low`, or NaN if the value is not known.
    pub value_at_low: f64,
    /// The last position that is searched.
    pub limit: f64,
    /// Approximate position of the change of sign.
    pub guess: f64,
    /// The approximate error of `guess`. If this error is small, the search needs fewer evaluations.
    pub give_or_take: f64,
    /// The distance between neighbouring positions that are searched. It is a power of two.
    pub step: f64,
}

/// Returns the greatest `low + k·step` up to the limit at which the increasing function `f` is below zero. Returns the
/// limit if the function is below zero there.
///
/// Walks from the guess until the sign changes. Then it takes secants (the Illinois variant of false position), and
/// bisects whenever three secants have not halved the bracket.
pub(crate) fn last_below_zero(mut f: impl FnMut(f64) -> f64, search: Search) -> f64 {
    let Search { low, value_at_low, limit, guess, give_or_take, step } = search;
    if low >= limit {
        return limit;
    }
    let on_grid = |x: f64| low + ((x - low) / step).floor() * step;
    let mut stride = ((give_or_take / step).floor() * step).max(step);
    let probe = on_grid(guess).max(low + step).min(limit);
    let mut below = (low, value_at_low);
    let mut above = (probe, f(probe));
    if above.1 < 0.0 {
        while above.1 < 0.0 {
            below = above;
            if below.0 >= limit {
                return limit;
            }
            let probe = (below.0 + stride).min(limit);
            above = (probe, f(probe));
            stride *= 4.0;
        }
    } else {
        while above.0 - stride > low {
            let probe = above.0 - stride;
            let value = f(probe);
            if value < 0.0 {
                below = (probe, value);
                break;
            }
            above = (probe, value);
            stride *= 4.0;
        }
    }
    narrow(f, below, above, step)
}

/// Returns the greatest position at which the function is below zero, among the positions that are a whole number of
/// steps above the position of `below`. `below` and `above` each have a position and the value of the function there.
/// The values have different signs.
fn narrow(mut f: impl FnMut(f64) -> f64, mut below: (f64, f64), mut above: (f64, f64), step: f64) -> f64 {
    let mut rounds = 0;
    let mut width_before = above.0 - below.0;
    let mut was_below = None;
    while above.0 - below.0 > step {
        let width = above.0 - below.0;
        let mut share = below.1 / (below.1 - above.1);
        if rounds % 3 == 2 {
            if width > 0.5 * width_before {
                share = 0.5;
            }
            width_before = width;
        }
        // The share is NaN if the value at the lower end is not known.
        if !(0.0..=1.0).contains(&share) {
            share = 0.5;
        }
        rounds += 1;
        let offset = ((share * width / step).floor() * step).max(step);
        let probe = if below.0 + offset < above.0 { below.0 + offset } else { below.0 + offset - step };
        let value = f(probe);
        let is_below = value < 0.0;
        let stays = if is_below {
            below = (probe, value);
            &mut above
        } else {
            above = (probe, value);
            &mut below
        };
        // If the same end stays for the second time in a row, its value is halved.
        if was_below == Some(is_below) {
            stays.1 *= 0.5;
        }
        was_below = Some(is_below);
    }
    below.0
}
