//! Where an increasing function changes its sign.

/// Where to look, and how finely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// Here the function is below zero.
    pub low: f64,
    /// Its value there, or NaN if that is not known.
    pub value_at_low: f64,
    /// The last place to look at.
    pub limit: f64,
    /// About where the sign changes.
    pub guess: f64,
    /// Give or take this much; a good guess saves evaluations.
    pub give_or_take: f64,
    /// The width of the grid, a power of two.
    pub step: f64,
}

/// The greatest `low + k·step` up to the limit at which the increasing function `f` is below zero; the limit if it is
/// there.
///
/// Walks from the guess until the sign changes, then takes secants (the Illinois variant of false position), with a
/// bisection wherever three of them have not halved the bracket.
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

/// The last point of the grid below zero, between two points on either side of the change.
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
        // Not a number where the value at the lower end is not known.
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
        // The end that stays for the second time pulls half as hard.
        if was_below == Some(is_below) {
            stays.1 *= 0.5;
        }
        was_below = Some(is_below);
    }
    below.0
}
