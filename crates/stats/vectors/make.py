"""Writes the reference values with which tests/all/vectors.rs compares this crate, computed with 80 digits.

    pip install mpmath gmpy2 && python3 make.py      # less than a minute with gmpy2, which is optional

Every number is written as a string that reads back as exactly one double. A rate is the double it is written as, not
the decimal fraction. A reference value that must not be exceeded is rounded down, one that must be reached is rounded
up. Comparing doubles with it then shows exactly which side of the true value they are on.

The formulas are the textbook ones, with log-gamma and logarithms: with 80 digits cancellation does no harm. The
incomplete beta function comes from its continued fraction or, where that converges too slowly, from quadrature, and
both are compared before anything is written.
"""

import json
import math
import pathlib
import random

from mpmath import exp, log, log1p, loggamma, mp, mpf, pi, sqrt

mp.dps = 80
ENOUGH = mpf(10) ** -55
MIXTURE = (1, 10, 100)
RATES = (0.5, 0.9, 0.98, 0.99, 0.999, 1e-6, 1 / 3, 0.1, 1 - 1e-9, math.nextafter(1.0, 0.0), 1e-30)
LARGE = 1 << 48


def down(x):
    """Returns the greatest double that is not above x. Numbers that differ from 0 only in the last of the 80 digits count as 0."""
    if abs(x) < mpf(10) ** -60:
        return 0.0
    nearest = float(x)
    return nearest if mpf(nearest) <= x else math.nextafter(nearest, -math.inf)


def up(x):
    """Returns the smallest double that is not below x."""
    return 0.0 - down(-x)


# The incomplete beta function


def log_beta(a, b):
    return loggamma(a) + loggamma(b) - loggamma(a + b)


def continued_fraction(a, b, x, most_steps):
    """The classical fraction for I_x(a, b) a B(a, b) / (x^a (1-x)^b), by Lentz' method; None if it is too slow."""
    tiny = mpf(10) ** -300
    c = mpf(1)
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / (d if d else tiny)
    h = d
    for m in range(1, most_steps):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + term * d
            c = 1 + term / c
            d = 1 / (d if d else tiny)
            c = c if c else tiny
            h *= c * d
        if abs(c * d - 1) < ENOUGH:
            return h
    return None


def gauss_legendre(count):
    """Nodes and weights on [-1, 1]."""
    rule = []
    for i in range(count):
        x = mpf(math.cos(math.pi * (i + 0.75) / (count + 0.5)))
        for _ in range(8):
            p0, p1 = mpf(1), x
            for k in range(2, count + 1):
                p0, p1 = p1, ((2 * k - 1) * x * p1 - (k - 1) * p0) / k
            slope = count * (x * p1 - p0) / (x * x - 1)
            x -= p1 / slope
        rule.append((x, 2 / ((1 - x * x) * slope * slope)))
    return rule


RULE = gauss_legendre(30)
PANELS = 30
NATS = 150


def quadrature(a, b, x):
    """The integral of (t/x)^(a-1) ((1-t)/(1-x))^(b-1) over t from 0 to x, for x below the peak."""

    def height(t):
        return (a - 1) * log(t / x) + (b - 1) * log((1 - t) / (1 - x))

    low, high = mpf(0), x  # the height falls by NATS somewhere between
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if height(middle) < -NATS else (low, middle)
    start, width = low, (x - low) / PANELS
    total = mpf(0)
    for panel in range(PANELS):
        centre = start + width * (panel + mpf(1) / 2)
        for node, weight in RULE:
            total += weight * exp(height(centre + width / 2 * node))
    return total * width / 2


def small_tail(a, b, x):
    """Returns I_x(a, b) for x approximately below the mean."""
    front = a * log(x) + b * log1p(-x) - log_beta(a, b)
    fraction = continued_fraction(a, b, x, 3000)
    if fraction is not None:
        return exp(front - log(a)) * fraction
    return exp(front - log(x) - log1p(-x)) * quadrature(a, b, x)


def tails(a, b, x):
    """I_x(a, b) and its complement, each to full relative accuracy."""
    if x < (a + 1) / (a + b + 2):
        lower = small_tail(a, b, x)
        return lower, 1 - lower
    upper = small_tail(b, a, 1 - x)
    return 1 - upper, upper


def check_quadrature():
    """Checks that both methods for the incomplete beta function agree where both are usable."""
    for a, b, x in ((30000, 70000, 0.299), (500, 100000, 0.0049), (99000, 1000, 0.9899), (5e5, 5e5, 0.4995)):
        a, b, x = mpf(a), mpf(b), mpf(x)
        by_fraction = continued_fraction(a, b, x, 10**6) / a
        by_quadrature = quadrature(a, b, x) / (x * (1 - x))
        assert abs(by_fraction / by_quadrature - 1) < mpf(10) ** -40, (a, b, x)


# The functions of the crate


def log_e_values(n, s, rate):
    """The logarithms of the two e-values: equal mixtures of truncated beta-binomial likelihood ratios."""
    p = mpf(rate)
    above, below = mpf(0), mpf(0)
    for r in MIXTURE:
        a, b = r * p, r * (1 - p)
        prior_lower, prior_upper = tails(a, b, p)
        lower, upper = tails(a + s, b + n - s, p)
        ratio = exp(log_beta(a + s, b + n - s) - log_beta(a, b) - s * log(p) - (n - s) * log1p(-p))
        above += ratio * upper / prior_upper
        below += ratio * lower / prior_lower
    return log(above / len(MIXTURE)), log(below / len(MIXTURE))


def log_level(n, s, rate):
    p = mpf(rate)
    choose = loggamma(n + 1) - loggamma(s + 1) - loggamma(n - s + 1)
    return choose + s * log(p) + (n - s) * log1p(-p) + log(mpf(n) + 1)


def beta_quantile(a, b, share):
    """x with I_x(a, b) = share, which is below one half: Newton's method on the logarithms, in the log-odds of x."""
    n = a + b
    deviation = sqrt(-2 * log(share))
    centre = log(a / b)
    odds = centre - deviation * sqrt(n / (a * b))
    low, high = None, centre
    for _ in range(200):
        x = 1 / (1 + exp(-odds))
        lower, _ = tails(a, b, x)
        slope = exp(a * log(x) + b * log1p(-x) - log_beta(a, b)) / lower
        excess = log(lower / share)
        low, high = (odds, high) if excess < 0 else (low, odds)
        step = -excess / slope
        following = odds + step
        if following >= high or (low is not None and following <= low):
            following = (low + high) / 2 if low is not None else odds - 1
        if abs(following - odds) < ENOUGH ** mpf("0.6") * max(1, abs(odds)):
            return 1 / (1 + exp(-following))
        odds = following
    raise ArithmeticError((a, b, share))


def credible_interval(n, s, error):
    share = mpf(error) / 2
    a, b = mpf(s + 1), mpf(n - s + 1)
    return beta_quantile(a, b, share), 1 - beta_quantile(b, a, share)


def stirling_remainder(n):
    n = mpf(n)
    return loggamma(n + 1) - (log(2 * pi * n) / 2 + n * log(n) - n)


def bd0(x, m):
    x, m = mpf(x), mpf(m)
    return (x * log(x / m) if x else 0) + m - x


# What to compute


def success_counts(n, rate):
    """The extremes, the middle, around the mean from a fraction of a deviation to many, and far off."""
    mean, deviation = n * rate, math.sqrt(n * rate * (1 - rate))
    counts = {0, 1, 2, n // 2, n - 2, n - 1, n, int(mean), int(mean) + 1}
    counts |= {round(mean + z * deviation) for z in (-30, -6, -3, -0.8, 2, 5, 12)}
    return sorted(s for s in counts if 0 <= s <= n)


def judged(draw):
    """On a grid of rates and numbers of trials, and at random."""
    rows = []
    for rate in RATES:
        for n in (0, 1, 2, 3, 14, 100, 1000, 31623, 10**6, 10**6 + 1, 10**8, 1 << 36, LARGE):
            for s in success_counts(n, rate):
                rows.append(judged_row(n, s, rate))
    for _ in range(300):
        n, rate = int(2 ** draw.uniform(0, 48)), 1 / (1 + math.exp(draw.uniform(-12, 12)))
        s = round(n * rate + draw.gauss(0, 4) * math.sqrt(n * rate * (1 - rate)))
        rows.append(judged_row(n, min(max(s, 0), n), rate))
    return rows


def judged_row(n, s, rate):
    holds, refuted = log_e_values(n, s, rate)
    return [n, s, rate, down(holds), down(refuted), up(log_level(n, s, rate))]


def credible():
    rows = []
    for n, error in ((0, 0.05), (1, 0.001), (10, 0.3), (343, 0.05), (4000, 0.001), (10**6, 1e-9), (1 << 36, 0.01)):
        for s in {0, 1, n // 3, n // 2, n - n // 100, n - 1, n}:
            if 0 <= s <= n:
                low, high = credible_interval(n, s, error)
                rows.append([n, s, error, down(low), up(high)])
    rows.append([4000, 3972, 0.001, *(r(x) for r, x in zip((down, up), credible_interval(4000, 3972, 0.001)))])
    rows.append([LARGE, LARGE // 5 * 4, 0.001, *(r(x) for r, x in zip((down, up), credible_interval(LARGE, LARGE // 5 * 4, 0.001)))])
    return sorted(rows)


def beta_tails(draw):
    """Tails divided by x^a (1-x)^b / B(a, b), with the excess a - (a+b) x that goes with them."""
    rows = []
    while len(rows) < 200:
        a, b = (10 ** draw.uniform(-3, draw.choice((7, 14))) for _ in range(2))
        mean, deviation = a / (a + b), math.sqrt(a * b / (a + b + 1)) / (a + b)
        x = mean + draw.gauss(0, 3) * deviation if draw.random() < 0.7 else draw.random()
        if not 1e-15 < x < 1:
            continue
        lower, upper = tails(mpf(a), mpf(b), mpf(x))
        scale = log_beta(mpf(a), mpf(b)) - a * log(mpf(x)) - b * log1p(-mpf(x))
        excess = mpf(a) - (mpf(a) + mpf(b)) * mpf(x)
        if min(lower, upper) > mpf(10) ** -40:
            rows.append([a, b, x, *(float(value) for value in (excess, log(upper) + scale, log(lower) + scale))])
    return rows


def remainders(draw):
    arguments = [k / 2 for k in range(1, 41)]
    arguments += [10 ** draw.uniform(-12, 16) for _ in range(60)]
    arguments += [draw.uniform(0, 15) for _ in range(60)]
    return [[n, float(stirling_remainder(n))] for n in arguments]


def deviances(draw):
    rows = []
    for _ in range(150):
        m = 10 ** draw.uniform(-8, 15)
        near = m * (1 + draw.gauss(0, 1) * 10 ** draw.uniform(-14, 0))
        x = abs(draw.choice((near, near, m * 10 ** draw.uniform(-5, 5), 0.0)))
        rows.append([x, m, float(bd0(x, m))])
    return rows


def main():
    check_quadrature()
    draw = random.Random(20261121)
    families = {
        "stirling_remainder": (["n", "value"], remainders(draw)),
        "bd0": (["x", "m", "value"], deviances(draw)),
        "beta_tails": (["a", "b", "x", "excess", "log_scaled_upper", "log_scaled_lower"], beta_tails(draw)),
        "credible_interval": (["trials", "successes", "error", "low_down", "high_up"], credible()),
        "judged": (["trials", "successes", "rate", "log_e_holds_down", "log_e_refuted_down", "log_level_up"], judged(draw)),
    }
    folder = pathlib.Path(__file__).parent
    for name, (columns, rows) in families.items():
        lines = ",\n".join(json.dumps([repr(value) for value in row], separators=(",", ":")) for row in rows)
        (folder / f"{name}.json").write_text(f'{{"columns": {json.dumps(columns)},\n"rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
