"""Recomputes derived series with DuckDB's window functions, from the same Parquet files.

usage: series_duckdb.py PROGRAM RUN …

PROGRAM is `ascertain`. Each RUN is the folder of a simulated run with the metrics `time` and `level`, or of a
comparison that measured the command `true`. Each expression is computed by `ascertain series`, and by DuckDB in SQL.
Sums, means and interpolated quantiles may differ in their last digits, because the order of operations differs. The
rest must be equal. Needs `pip install duckdb`.

If values were cut off, results are ranges. DuckDB then computes the lower and the upper bounds separately, for
operators with which a larger value never makes a result smaller.
"""

import csv
import io
import math
import pathlib
import subprocess
import sys

import duckdb

# The queries below read a table t with the columns i, the index from 0, and x, the value. They return the same.


def every(n):
    return f"select i // {n} as i, x from t where i % {n} = 0"


def repeat(n, table="t"):
    return f"select i * {n} + r as i, x from {table}, range({n}) as repeats(r)"


def lag(k, table="t"):
    return f"select i, lag(x, {k}) over (order by i) as x from {table}"


def drop(k):
    return f"select i - {k} as i, x from t where i >= {k}"


def split(aggregate):
    """Returns an aggregate, and the result that is computed of it."""
    return aggregate if isinstance(aggregate, tuple) else (aggregate, "x")


def window(aggregate, n, step):
    """A frame of n rows, of which one in `step` counts."""
    frame = f"(order by i rows between {n - 1} preceding and current row)"
    ends = f"i >= {n - 1} and (i - {n - 1}) % {step} = 0"
    aggregate, result = split(aggregate)
    frames = f"select i, {aggregate} over {frame} as x from t"
    return f"select (i - {n - 1}) // {step} as i, {result} as x from ({frames}) where {ends}"


def group(aggregate, n):
    """Windows without overlap, by another way than frames."""
    aggregate, result = split(aggregate)
    groups = f"select i // {n} as i, {aggregate} as x from t group by i // {n} having count(*) = {n}"
    return f"select i, {result} as x from ({groups})"


def running(aggregate):
    return f"select i, {aggregate} over (order by i) as x from t"


def join(operator, first, second):
    return f"select a.i, a.x {operator} b.x as x from ({first}) a join ({second}) b using (i)"


def hold(operator, pace, held, n):
    """A join with the latest window of n values at each index."""
    return f"select a.i, a.x {operator} b.x as x from ({pace}) a left join ({held}) b on b.i = (a.i + 1) // {n} - 1"


def ewma(weight):
    """Nulls leave the average as it is."""
    return f"""
        with recursive known as (select i, x, row_number() over (order by i) as k from t where x is not null),
        averages as (
            select i, x, k from known where k = 1
            union all
            select b.i, a.x * (1 - {weight}::double) + b.x * {weight}::double, b.k
            from averages a join known b on b.k = a.k + 1
        )
        select t.i, last_value(a.x ignore nulls) over (order by t.i) as x from t left join averages a using (i)
    """


def quantile(level):
    """Our quantile of n values is at the position level·(n − 1), interpolated between its neighbours.

    quantile_cont has this definition too, but it cannot interpolate next to an infinity; `our_quantile` can.
    """
    if has_infinities:
        return "list(x) filter (where x is not null)", f"our_quantile(x, {level})"
    return f"quantile_cont(x, {level})"


OUR_QUANTILE = """
create macro our_quantile(numbers, level) as (
    select case
        when p = floor(p) or low = high then low
        when isinf(low) or isinf(high) then low * (1 - (p - floor(p))) + high * (p - floor(p))
        else low + (high - low) * (p - floor(p))
    end from (
        select p, sorted[floor(p)::bigint + 1] as low, sorted[floor(p)::bigint + 2] as high
        from (select list_sort(numbers) as sorted, level::double * (len(numbers) - 1) as p)
    )
)
"""

# The tolerances: results that must be equal, results of additions in another order, and quantiles from our flat table.
EQUAL, NEAR, FLAT = 0.0, 1e-11, 3.67e-4

has_infinities = False
checked = {"expressions": 0, "results": 0, "nulls": 0, "infinities": 0}


def operators(is_range):
    """Returns expressions over a series S, each with its query and its tolerance."""
    all_operators = [
        ("S", "select i, x from t", EQUAL),
        ("every(S, 7)", every(7), EQUAL),
        ("repeat(S, 3)", repeat(3), EQUAL),
        ("lag(S, 5)", lag(5), EQUAL),
        ("drop(S, 11)", drop(11), EQUAL),
        ("lag(every(S, 3), 2)", lag(2, f"({every(3)})"), EQUAL),
        ("ewma(S, 0.25)", ewma(0.25), EQUAL),
        ("S + lag(S, 2)", join("+", "from t", lag(2)), EQUAL),
        ("S + repeat(every(S, 2), 2)", join("+", "from t", repeat(2, f"({every(2)})")), EQUAL),
        ("repeat(every(S, 2), 2) + repeat(every(S, 4), 4)",
         join("+", repeat(2, f"({every(2)})"), repeat(4, f"({every(4)})")), EQUAL),
        ("S + min(window(S, 20, 1))", join("+", "from t", window("min(x)", 20, 1)), EQUAL),
        ("every(S, 2) + again(S)", join("+", every(2), "from t"), EQUAL),
        ("S + hold(max(window(S, 10)))", hold("+", "from t", group("max(x)", 10), 10), EQUAL),
        ("quantile(0.5, window(S, 25))", group(quantile(0.5), 25), NEAR),
        ("quantile(0.99, window(S, 100))", group(quantile(0.99), 100), NEAR),
        ("quantile(0.5, window(S, 25, 1))", window(quantile(0.5), 25, 1), NEAR),
        ("quantile(0.99, window(S, 100, 9))", window(quantile(0.99), 100, 9), NEAR),
    ]
    for name, sql, tolerance in [
        ("min", "min(x)", EQUAL),
        ("max", "max(x)", EQUAL),
        ("mean", "avg(x)", NEAR),
        ("sum", "sum(x)", NEAR),
        ("count", "count(x)", EQUAL),
    ]:
        all_operators += [
            (f"{name}(window(S, 40))", group(sql, 40), tolerance),
            (f"{name}(window(S, 40))", window(sql, 40, 40), tolerance),
            (f"{name}(window(S, 16, 1))", window(sql, 16, 1), tolerance),
            (f"{name}(window(S, 24, 10))", window(sql, 24, 10), tolerance),
            (f"{name}(window(S, 5, 8))", window(sql, 5, 8), tolerance),
            (f"{name}(S)", running(sql), tolerance),
        ]
    if not is_range:
        # Here a larger value can make a result smaller, or decide whether there is one.
        rising = "select row_number() over (order by i) - 1 as i, x from (select i, x, lag(x) over (order by i) as y from t)"
        all_operators += [
            ("-S", "select i, -x as x from t", EQUAL),
            ("S - lag(S, 1)", join("-", "from t", lag(1)), EQUAL),
            ("S / lag(S, 3)", join("/", "from t", lag(3)), EQUAL),
            ("S - mean(window(S, 20, 1))", join("-", "from t", window("avg(x)", 20, 1)), NEAR),
            ("where(S, S > lag(S, 1))", f"{rising} where x > y", EQUAL),
        ]
    if not has_infinities and not is_range:
        all_operators.append(("quantile(0.9, S)", running(quantile(0.9)), FLAT))
    return all_operators


# The same for a series `time` in the table t, and a series `level` in the table u.
TWO_SERIES = [
    ("time * level", join("*", "from t", "from u"), EQUAL),
    ("time * lag(level, 4)", join("*", "from t", lag(4, "u")), EQUAL),
    ("time * hold(min(window(level, 10)))", hold("*", "from t", group("min(x)", 10).replace("from t", "from u"), 10), EQUAL),
]


def known(text):
    return None if text in ("", None) else float(text)


def series(program, run, expression):
    """Returns the results of `ascertain series`: for each index, the value, or the ends of the range."""
    command = [program, "series", str(run), expression, "--format", "csv", "--quiet"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, f"{expression}: {ran.stderr}"
    rows = list(csv.reader(io.StringIO(ran.stdout)))[1:]
    assert [int(row[0]) for row in rows] == list(range(len(rows))), expression
    return [tuple(known(end) for end in row[1:]) for row in rows]


def queried(query):
    """Returns the results of a query. A number that is undefined, such as ∞ − ∞, is null."""
    rows = duckdb.execute(f"select i, x::double from ({query}) order by i").fetchall()
    assert [i for i, _ in rows] == list(range(len(rows))), f"indices of {query}"
    return [None if x is None or math.isnan(x) else x for _, x in rows]


def compare(expression, found, expected, tolerance):
    assert len(found) == len(expected), f"{expression}: {len(found)} results, and {len(expected)} by DuckDB"
    for index, (ours, theirs) in enumerate(zip(found, expected)):
        is_same = ours == theirs
        if not is_same and None not in (ours, theirs) and tolerance > 0:
            is_same = math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=1e-10)
        assert is_same, f"{expression}: result {index} is {ours}, and {theirs} by DuckDB"
        checked["nulls"] += ours is None
        checked["infinities"] += ours is not None and math.isinf(ours)
    checked["expressions"] += 1
    checked["results"] += len(found)


def table(name, run, where, bound, value="x"):
    """Makes a table of one end of the values. A value that was cut off is between what was observed and infinity."""
    ends = {
        "low": "case when status = 'censored' and isinf(value) then 0 else value end",
        "high": "case when status = 'censored' then 'inf'::double else value end",
    }
    duckdb.execute(
        f"""create or replace table {name} as
        select row_number() over (order by trial) - 1 as i, {value} as x
        from (select trial, case when status = 'lost' then null else {ends[bound]} end as x
              from read_parquet('{run}/trials.parquet') where {where})"""
    )


def check(program, run, name, where, value="x"):
    """Compares all operators over a series."""
    global has_infinities
    parquet = f"read_parquet('{run}/trials.parquet')"
    [(is_range,)] = duckdb.execute(f"select bool_or(status = 'censored') from {parquet} where {where}").fetchall()
    for column, bound in enumerate(["low", "high"] if is_range else ["low"]):
        table("t", run, where, bound, value)
        has_infinities = duckdb.execute("select bool_or(isinf(x)) from t").fetchall() == [(True,)]
        for expression, query, tolerance in operators(is_range):
            expression = expression.replace("S", name)
            found = [row[column] for row in series(program, run, expression)]
            compare(expression, found, queried(query), tolerance)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, runs = sys.argv[1], [pathlib.Path(run) for run in sys.argv[2:]]
    duckdb.execute(OUR_QUANTILE)
    for run in runs:
        metrics = duckdb.execute(f"select distinct metric from read_parquet('{run}/trials.parquet')").fetchall()
        if ("level",) not in metrics:
            check(program, run, '"true".wall', "variant = 'true' and metric = 'wall'")
            continue
        check(program, run, "time", "metric = 'time'")
        check(program, run, "level", "metric = 'level'")
        # Many levels are 0 or −0, so their inverses are infinities of both signs.
        check(program, run, "(1 / level)", "metric = 'level'", "1 / x")
        censored = f"select count(*) from read_parquet('{run}/trials.parquet') where status = 'censored'"
        if duckdb.execute(censored).fetchall() == [(0,)]:
            table("t", run, "metric = 'time'", "low")
            table("u", run, "metric = 'level'", "low")
            for expression, query, tolerance in TWO_SERIES:
                found = [row[0] for row in series(program, run, expression)]
                compare(expression, found, queried(query), tolerance)
    assert checked["nulls"] and checked["infinities"], checked
    print(f"{len(runs)} runs:", ", ".join(f"{count} {name}" for name, count in checked.items()), "agree with DuckDB")


if __name__ == "__main__":
    main()
