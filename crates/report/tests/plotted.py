"""Recomputes the numbers in the pictures of a run from its Parquet file, independently.

usage: plotted.py RUN PICTURES

RUN is the folder of a finished run, PICTURES the output of `plots_json RUN`. Quantiles, medians, ratios, counts
and sweeps come from DuckDB; the evidence, the ranks of intervals and the densities from the formulas in the
documentation, integrated numerically. Needs `pip install duckdb`.
"""

import functools
import json
import math
import pathlib
import re
import sys
from collections import Counter

import duckdb

checked = Counter()


def agree(kind, shown, expected, tolerance=1e-9):
    """Compares a plotted number with the recomputed one; JSON has null for infinite and NaN values."""
    checked[kind] += 1
    if shown is None or not math.isfinite(expected):
        assert shown is None and not math.isfinite(expected), (kind, shown, expected)
    else:
        near = math.isclose(shown, expected, rel_tol=tolerance, abs_tol=tolerance * 1e-3)
        assert near, f"{kind}: {shown} is plotted, {expected} is right"


# The evidence, by integrating the formulas in the documentation of ascertain-stats.


@functools.cache
def log_upper(a, b, p):
    """ln of the integral of x^(a-1) (1-x)^(b-1) from p to 1."""
    if b < 0.5:
        log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        return log_beta + math.log1p(-math.exp(log_upper(b, a, 1 - p) - log_beta))
    # With x = 1/(1+exp(-t)) the integrand is exp(log x^a (1-x)^b), which has one peak and exponential tails.
    start = math.log(p / (1 - p))
    log_integrand = lambda t: -a * math.log1p(math.exp(-t)) - b * (t + math.log1p(math.exp(-t)))
    peak = max(start, math.log(a / b))
    top = log_integrand(peak)
    width = 1.0
    while log_integrand(peak + width) > top - 50:
        width *= 1.5
    start = max(start, peak - 2 * width - 60 / a)
    steps = 4_000
    step = (peak + width - start) / steps
    weights = lambda i: 1 if i in (0, steps) else 4 if i % 2 else 2
    total = sum(weights(i) * math.exp(log_integrand(start + i * step) - top) for i in range(steps + 1))
    return top + math.log(total * step / 3)


@functools.cache
def log_e(successes, failures, rate):
    """ln of the e-value against "the rate is at most this"."""
    logs = []
    for r in (1, 10, 100):
        a, b = r * rate, r * (1 - rate)
        log_ratio = log_upper(a + successes, b + failures, rate) - log_upper(a, b, rate)
        logs.append(log_ratio - successes * math.log(rate) - failures * math.log1p(-rate))
    top = max(logs)
    return top + math.log(sum(math.exp(log - top) for log in logs) / 3)


def t5(z):
    return 8 / (3 * math.pi * math.sqrt(5)) / (1 + z * z / 5) ** 3


def components():
    """What the bet on sizes is a mixture of: prior weights, and for each the density at D > 0 and at -D."""
    shifts, found = [0.07, 0.122, 0.214, 0.374, 0.655, 1.145, 2.0, 3.5], []
    for scale in (1e-4 * 1.9**i for i in range(16)):
        for share, width in ((0.05, 5), (0.3, 10), (0.6, 15), (0.8, 50)):
            noise = lambda z, scale=scale, share=share, width=width: (
                (1 - share) * t5(z) + share / (math.pi * width * (1 + (z / width) ** 2))
            ) / scale
            for shift in shifts:
                both = lambda size, n=noise, s=scale, m=shift: (n(size / s - m), n(size / s + m))
                found.append((1, both))
            for rate in (0.55, 0.65, 0.75, 0.85, 0.95):
                for centre in (0, shifts[-1]):
                    size_density = lambda z, n=noise, m=centre: n(z - m) + n(z + m)
                    both = lambda size, d=size_density, s=scale, r=rate: (r * d(size / s), (1 - r) * d(size / s))
                    found.append((0.4, both))
    return found


def sizes_bet(log_ratios):
    """ln of the wealth from betting on positive signs, after each of the log-ratios that are no ties."""
    all_components = components()
    total = sum(weight for weight, _ in all_components)
    prior = [weight / total for weight, _ in all_components]
    weights, log_wealth, found = prior, 0.0, [0.0]
    for d in log_ratios:
        densities = [both(min(abs(d), 3.5 * 1e-4 * 1.9**15)) for _, both in all_components]
        actual = [at if d > 0 else opposite for at, opposite in densities]
        opposite = [opposite if d > 0 else at for at, opposite in densities]
        m_actual = sum(w * x for w, x in zip(weights, actual))
        m_opposite = sum(w * x for w, x in zip(weights, opposite))
        log_wealth += math.log(2 * m_actual / (m_actual + m_opposite))
        weights = [0.997 * w * x / m_actual + 0.003 * p for w, x, p in zip(weights, actual, prior)]
        found.append(log_wealth)
    return found


@functools.cache
def ranks(n, q, error):
    """The positions in n sorted values between which the q-quantile lies; None where nothing bounds it."""

    def most_unrejected(rate):
        low, high = -1, n
        while high - low > 1:
            middle = (low + high) // 2
            if log_e(middle, n - middle, rate) < -math.log(error):
                low = middle
            else:
                high = middle
        return high if log_e(high, n - high, rate) < -math.log(error) else low

    above, below = most_unrejected(1 - q), most_unrejected(q)
    return (n - 1 - above if above < n else None), (below if below < n else None)


def log_density(successes, failures, rate):
    log_beta = math.lgamma(successes + 1) + math.lgamma(failures + 1) - math.lgamma(successes + failures + 2)
    return successes * math.log(rate) + failures * math.log1p(-rate) - log_beta


# The rows of the run.


OF_ARM = "where experiment = ? and metric = ? and variant = ? and point = ?"


class Rows:
    def __init__(self, run):
        self.db = duckdb.connect()
        value = "case when status = 'censored' then 'Infinity'::double else value end"
        source = f"select * replace ({value} as value) from '{run}/trials.parquet'"
        self.db.execute(f"create table rows as select * from ({source}) where value is not null")

    def query(self, sql, *parameters):
        return self.db.execute(sql, parameters).fetchall()

    def arms(self, experiment, metric):
        sql = "select distinct variant, point from rows where experiment = ? and metric = ?"
        return [(variant, point) for variant, point in self.query(sql, experiment, metric)]

    def values(self, experiment, metric, arm, lane=None):
        """By trial, in the order measured, of a lane or of all; None where a trial has several."""
        of_lane = f"{OF_ARM} and lane = coalesce(?, lane)"
        found = self.query(f"select trial, value from rows {of_lane} order by trial", experiment, metric, *arm, lane)
        return found if len({trial for trial, _ in found}) == len(found) else None

    def quantile(self, experiment, metric, arm, q):
        sql = f"select bool_and(isfinite(value)), quantile_cont(value, ?) from rows {OF_ARM}"
        ((is_finite, value),) = self.query(sql, q, experiment, metric, *arm)
        if is_finite:
            return value
        ordered = sorted(value for _, value in self.values(experiment, metric, arm))
        place = q * (len(ordered) - 1)
        below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
        return below if below == above else below + (above - below) * (place - math.floor(place))


def slug(name):
    return "-".join(word for word in re.split(r"[^a-z0-9_]+", name.lower()) if word)[:60]


def levels(name):
    return dict(setting.split("=", 1) for setting in name.split() if "=" in setting)


def fitting(name, arms, also):
    """The arms that a series' name may stand for at these levels."""

    def is_it(arm):
        variant, point = arm[0], {key: str(value) for key, value in json.loads(arm[1]).items()}
        rest = name[len(variant) :] if name.startswith(variant) else name if "=" in name else None
        if rest is None or (rest and "=" not in rest):
            return False
        wanted = levels(rest.strip(" ()")) | also
        return all(point.get(factor) == level for factor, level in wanted.items())

    found = [arm for arm in arms if is_it(arm)]
    found = [arm for arm in found if arm[0] == name] or found
    # A level that most rows have is named only for the other rows.
    usual, told = {}, levels(re.sub("[()]", " ", name))
    points = [{key: str(value) for key, value in json.loads(point).items()} for _, point in arms]
    points = [point for point in points if also.items() <= point.items()]
    for factor in {factor for point in points for factor in point}:
        level, count = Counter(point.get(factor) for point in points).most_common(1)[0]
        if len(points) >= 8 and 4 * count >= 3 * len(points) and factor not in told | also:
            usual[factor] = level
    is_usual = lambda arm: all(str(json.loads(arm[1]).get(factor)) == level for factor, level in usual.items())
    return [arm for arm in found if is_usual(arm)] if len(found) > 1 else found


def shared_levels(plot):
    """Those that the title tells of all arms in the plot."""
    return levels((re.search(r"\(([^()]*)\)", plot["title"]) or [None, ""])[1].replace(",", " "))


def named(name, arms, also):
    """The arm that a series' name stands for."""
    found = fitting(name, arms, also)
    assert len(found) == 1, f"{name} is {len(found)} arms"
    return found[0]


def layers(plot, kind):
    return [layer[kind] for layer in plot["layers"] if kind in layer]


# The pictures of experiments.


def quantiles(rows, experiment, metric, plot):
    for line, band in zip(layers(plot, "line"), layers(plot, "band")):
        arm = named(plot["series"][line["series"]], rows.arms(experiment, metric), shared_levels(plot))
        ordered = sorted(value for _, value in rows.values(experiment, metric, arm))
        for q, value in line["points"]:
            # A metric with few different values is drawn in steps.
            reached = ordered[max(0, math.ceil(q * len(ordered) - 1e-9) - 1)]
            agree("quantile", value, reached if line["steps"] else rows.quantile(experiment, metric, arm, q))
        # If a band has two ranges at a place, the first one is the level that ends there.
        ranges = list({at["x"]: at for at in band["ranges"]}.values())
        # All have the same shape, so only some are checked to save time.
        for at in ranges[:: max(1, len(ranges) // 8)]:
            low, high = ranks(len(ordered), at["x"], 0.025)
            agree("band of a quantile", at["low"], -math.inf if low is None else ordered[low])
            agree("band of a quantile", at["high"], math.inf if high is None else ordered[high])


def arms_of_rows(plot, arms):
    """The arm of each row: `4` below `kahan:`, `naive, 1`, or a name of which the axis tells the beginning."""
    label, names, shared = plot["y"]["label"], plot["y"]["scale"]["names"], shared_levels(plot)
    factors, heading, found = label.split(", ")[1:], None, []
    for name in names:
        if not label.startswith("variant, "):
            found.append(named(label.removeprefix("each begins with: ") + name, arms, shared))
            continue
        if name.endswith(":"):
            heading = name[:-1]
            found.append(None)
            continue
        parts = name.split(", ")
        variant = heading if len(parts) == len(factors) else parts.pop(0)
        spoken = lambda point: {key.replace("_", " "): str(value) for key, value in point.items()}
        wanted = dict(zip(factors, parts)) | spoken(shared)
        has = lambda arm: spoken(json.loads(arm[1]))
        fit = [arm for arm in arms if arm[0] == variant and wanted.items() <= has(arm).items()]
        assert len(fit) == 1, f"{name} of {variant} is {len(fit)} arms"
        found.append(fit[0])
    return found


def medians(rows, experiment, metric, plot):
    arms = arms_of_rows(plot, rows.arms(experiment, metric))
    for interval in (row for layer in layers(plot, "intervals") for row in layer["rows"]):
        arm = arms[int(interval["y"])]
        agree("median", interval["value"], rows.quantile(experiment, metric, arm, 0.5))
        ordered = sorted(value for _, value in rows.values(experiment, metric, arm))
        if "the same in every trial" not in plot["title"]:
            low, high = ranks(len(ordered), 0.5, 0.025)
            agree("end of a median", interval["low"], -math.inf if low is None else ordered[low])
            agree("end of a median", interval["high"], math.inf if high is None else ordered[high])


def trials(rows, experiment, metric, plot):
    for dots in layers(plot, "dots"):
        arm = named(plot["series"][dots["series"]], rows.arms(experiment, metric), shared_levels(plot))
        # Values that were cut off are hollow, at the limit.
        of_dots = lambda value: math.isinf(value) == dots["hollow"]
        expected = [(t, v) for t, v in rows.values(experiment, metric, arm) if of_dots(v)]
        assert len(expected) == len(dots["points"])
        for (x, y), (trial, value) in zip(dots["points"], expected):
            assert x == trial + 1
            if not dots["hollow"]:
                agree("value of a trial", y, value)


def sweep(rows, experiment, metric, plot, factor):
    shared = shared_levels(plot)
    arms = rows.arms(experiment, metric)
    for line in layers(plot, "line"):
        # The arm that was measured at every level.
        name = plot["series"][line["series"]]
        fitting_at = [fitting(name, arms, shared | {factor: str(int(x))}) for x, _ in line["points"]]
        by_rest = [{without(arm, factor): arm for arm in found} for found in fitting_at]
        (rest,) = set.intersection(*(set(at) for at in by_rest))
        found = [at[rest] for at in by_rest]
        for (_, y), arm in zip(line["points"], found):
            agree("median of a sweep", y, rows.quantile(experiment, metric, arm, 0.5))


def without(arm, factor):
    return arm[0], tuple(sorted((key, str(level)) for key, level in json.loads(arm[1]).items() if key != factor))


def matrix(rows, experiment, metric, plot):
    (cells,) = layers(plot, "cells")
    arms = rows.arms(experiment, metric)
    arm = arms[0] if len(arms) == 1 else named(plot["title"].split(", ", 1)[1].removesuffix(": medians"), arms, {})
    row_names, column_names = plot["y"]["scale"]["names"], plot["x"]["scale"]["names"]
    for cell in cells["cells"]:
        key = f"{row_names[cell['y']]}-{column_names[cell['x']]}"
        sql = f"select quantile_cont(value, 0.5) from rows {OF_ARM} and key = ?"
        ((expected,),) = rows.query(sql, experiment, metric, *arm, key)
        agree("median of a pair", cell["value"], expected)


def curve(rows, experiment, metric, plot):
    arms = rows.arms(experiment, metric)
    if len(arms) > 1:
        return
    for line in layers(plot, "line"):
        key = plot["series"][line["series"]]
        medians_by_time = "select offset_ns, quantile_cont(value, 0.5) from rows"
        of_key = f"{OF_ARM} and key in ('', ?) group by 1 order by 1"
        expected = rows.query(f"{medians_by_time} {of_key}", experiment, metric, *arms[0], key)
        # Trials with different times of observation are drawn at common times.
        if [x for x, _ in line["points"]] == [offset for offset, _ in expected]:
            for (_, y), (_, value) in zip(line["points"], expected):
                agree("median of a curve", y, value)


def experiment_pictures(rows, experiment, pictures, header):
    spec = next(spec for spec in header["experiments"] if spec["id"] == experiment)
    for plot in (picture["plot"] for picture in pictures):
        metric = max(
            (m["name"] for m in spec["metrics"] if plot["id"].startswith(f"{slug(experiment)}-{slug(m['name'])}-")),
            key=len,
        )
        kind = re.search(r"(quantiles|medians|trials|sweep|matrix|curve)(-\d+)?$", plot["id"])[1]
        if kind in ("matrix", "curve"):
            globals()[kind](rows, experiment, metric, plot)
        elif any(rows.values(experiment, metric, arm) is None for arm in rows.arms(experiment, metric)):
            continue
        elif kind == "sweep":
            sweep(rows, experiment, metric, plot, swept(spec, plot))
        elif kind in ("quantiles", "medians", "trials"):
            globals()[kind](rows, experiment, metric, plot)


def swept(spec, plot):
    names = [factor["name"] for factor in spec["factors"]]
    return next(name for name in names if re.search(f"-{slug(name)}-sweep(-\\d+)?$", plot["id"]))


# The pictures of claims.

FACTORS = {"": 1, "%": 0.01, "ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}
FACTORS |= {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "B/s": 1, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "/s": 1}
RELATIONS = {
    "<=": lambda a, b: a <= b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    ">": lambda a, b: a > b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def arm_values(rows, experiment, metric, arm, lane):
    point = arm["point"]
    is_it = lambda known: known[0] == arm["variant"] and json.loads(known[1]) == point
    found = [known for known in rows.arms(experiment, metric) if is_it(known)]
    return dict(rows.values(experiment, metric, found[0], lane)) if found else {}


def judged(rows, claim, lane):
    """By trial: whether the claim's test is true, and its ratio or difference; None for a tie that does not count."""
    (test,) = claim["asked"]["tests"]
    experiment = claim["experiment"]
    if "predicate" in test:
        return [(success, None) for success in predicate(rows, experiment, test["predicate"], lane)][: claim["trials"]]
    versus = test["versus"]
    metric, better = versus["measure"]["metric"], versus["measure"]["better"]
    candidate = arm_values(rows, experiment, metric, versus["candidate"], lane)
    baseline = arm_values(rows, experiment, metric, versus["baseline"], lane)
    ((relation, bound),) = versus["bound"].items()
    outcomes = []
    for trial in sorted(candidate.keys() & baseline.keys()):
        worse, best = (baseline[trial], candidate[trial])[:: 1 if better == "lower" else -1]
        tie = worse == best
        value = (1.0 if tie else worse / best) if versus["scale"] == "ratio" else (0.0 if tie else worse - best)
        low, high = {"at_least": (bound, math.inf), "at_most": (-math.inf, bound)}.get(relation) or bound
        success = None if tie and claim["asked"]["judging"] == "order" else low <= value <= high
        outcomes.append((success, value))
    return outcomes[: claim["trials"]]


def predicate(rows, experiment, test, lane):
    parts = [re.match(r"(\S+) (\S+) ([-+.0-9e_]+) ?(\S*)$", part).groups() for part in test["predicate"].split(" and ")]
    column = lambda metric: arm_values(rows, experiment, metric, test["arm"], lane)
    columns = [(column(m), RELATIONS[op], float(n) * FACTORS[unit]) for m, op, n, unit in parts]
    if all(metric != "exit" for metric, *_ in parts):
        exits = column("exit")
        columns += [(exits, RELATIONS["=="], 0)] if exits else []
    all_trials = sorted(set().union(*(column for column, *_ in columns)))
    return [all(t in column and op(column[t], bound) for column, op, bound in columns) for t in all_trials]


def evidence(claim, plot, outcomes):
    rate, margin = claim["rate_claimed"], claim["asked"]["margin"] or 0.0
    against, for_it = layers(plot, "line")
    threshold = layers(plot, "rule")[0]["at"]
    share = 2 if claim["asked"]["judging"] == "order" else 1
    agree("threshold", threshold, math.log10(share / claim["error"]))
    points = for_it["points"]
    is_order = claim["asked"]["judging"] == "order"
    log_ratios = [math.log(ratio) for success, ratio in outcomes if is_order and success is not None]
    bets = [sizes_bet(log_ratios), sizes_bet([-d for d in log_ratios])] if is_order else None

    def both(signs, bet, n):
        return math.log(0.4 * math.exp(bet[n]) + 0.6 * math.exp(signs)) if is_order else signs

    for index in [*range(1, len(points), max(1, len(points) // 40)), len(points) - 1]:
        counted = [success for success, _ in outcomes[: int(points[index][0])] if success is not None]
        s, f = counted.count(True), counted.count(False)
        ten = math.log(10)
        holds, refuted = log_e(s, f, rate - margin), log_e(f, s, 1 - rate - margin)
        agree("evidence", points[index][1], both(holds, bets and bets[0], s + f) / ten, 1e-6)
        agree("evidence", against["points"][index][1], both(refuted, bets and bets[1], s + f) / ten, 1e-6)


def ratios(claim, plot, outcomes):
    wanted = [True, False, None]
    for dots, outcome in zip(layers(plot, "dots"), wanted):
        placed = [(i + 1, value) for i, (success, value) in enumerate(outcomes) if success is outcome]
        expected = [(place, value) for place, value in placed if math.isfinite(value)]
        assert len(dots["points"]) == len(expected), (len(dots["points"]), len(expected))
        for (x, y), (place, value) in zip(dots["points"], expected):
            assert x == place
            agree("ratio", y, value)


def rate(claim, plot, outcomes):
    s = sum(success is True for success, _ in outcomes)
    f = sum(success is False for success, _ in outcomes)
    assert (s, f) == (claim["successes"], claim["trials"] - claim["ties"] - claim["successes"])
    (area,) = layers(plot, "area")
    for p, density in area["points"]:
        if 0 < p < 1:
            agree("density", density, math.exp(log_density(s, f, p)), 1e-7)
    (interval,) = layers(plot, "intervals")[0]["rows"]
    agree("rate", interval["value"], s / (s + f))
    # Outside the interval, the evidence has reached its threshold at this trial or earlier.
    ends = [(s, f, interval["low"]), (f, s, 1 - interval["high"])]
    for favourable, against, end in ends:
        if end > 0:
            assert log_e(favourable, against, end) <= -math.log(claim["error"]) + 1e-6, (claim["id"], interval)
            checked["end of a rate"] += 1


def values(rows, claim, plot, outcomes, lane):
    test = claim["asked"]["tests"][0]["predicate"]
    seen = arm_values(rows, claim["experiment"], test["measure"]["metric"], test["arm"], lane)
    for dots, wanted in zip(layers(plot, "dots"), (True, False)):
        trials = zip(sorted(seen), outcomes)
        expected = [(i + 1, seen[trial]) for i, (trial, success) in enumerate(trials) if success is wanted]
        expected = [(place, value) for place, value in expected if math.isfinite(value)]
        assert len(dots["points"]) == len(expected)
        for (x, y), (place, value) in zip(dots["points"], expected):
            assert x == place
            agree("value that a predicate speaks of", y, value)


def claim_pictures(rows, claim, pictures):
    """Of the trials of the claim's own lane: that is one of those in which its arms are, which the rows do not tell."""
    if len(claim["asked"]["tests"]) != 1 or not pictures:
        return
    sql = "select distinct lane from rows where experiment = ? order by lane desc"
    lanes = [lane for (lane,) in rows.query(sql, claim["experiment"])]
    before, failures = Counter(checked), []
    for lane in lanes:
        try:
            return lane_pictures(rows, claim, pictures, lane)
        except AssertionError as failure:
            failures.append((checked.total(), f"lane {lane}: {failure}"))
            checked.clear()
            checked.update(before)
    # Most lanes do not have its trials; the lane with the most correct numbers shows the error.
    raise AssertionError(claim["id"], *max(failures)[1:])


def lane_pictures(rows, claim, pictures, lane):
    outcomes = judged(rows, claim, lane)
    assert len(outcomes) == claim["trials"], (claim["id"], len(outcomes), claim["trials"])
    agree("successes", claim["successes"], sum(success is True for success, _ in outcomes))
    for plot in (picture["plot"] for picture in pictures):
        kind = plot["id"].rsplit("-", 1)[1]
        if kind in ("evidence", "ratios", "rate"):
            globals()[kind](claim, plot, outcomes)
        elif kind == "values":
            values(rows, claim, plot, [success for success, _ in outcomes], lane)


def main():
    run = pathlib.Path(sys.argv[1])
    pictures = json.loads(pathlib.Path(sys.argv[2]).read_text())
    header = json.loads((run / "run.json").read_text())
    rows = Rows(run)
    for claim in pictures["claims"]:
        claim_pictures(rows, claim["claim"], claim["pictures"])
    for experiment in pictures["experiments"]:
        experiment_pictures(rows, experiment["experiment"], experiment["pictures"], header)
    print(f"{run.name}: {checked.total()} plotted numbers are right: {dict(checked)}")
    assert checked.total() >= 10, "too few numbers to say anything"


main()
