"""Checks with DuckDB that the evidence of runs is what its documentation says.

usage: evidence_duckdb.py RUNS

RUNS is a folder of runs that have ended. Of each, and of all with one glob, the Parquet file must have the documented
columns and types, without any hint. So must the JSON lines of runs that still have them, with the same rows.
Needs `pip install duckdb`.
"""

import json
import pathlib
import sys

import duckdb

COLUMNS = {
    "run_id": "VARCHAR",
    "experiment": "VARCHAR",
    "lane": "BIGINT",
    "variant": "VARCHAR",
    "point": "VARCHAR",
    "trial": "BIGINT",
    "position": "BIGINT",
    "metric": "VARCHAR",
    "key": "VARCHAR",
    "offset_ns": "BIGINT",
    "value": "DOUBLE",
    "unit": "VARCHAR",
    "status": "VARCHAR",
    "start_ns": "BIGINT",
    "worker": "VARCHAR",
}


def rows_of(query: str) -> list[tuple]:
    return duckdb.execute(query).fetchall()


def check(parquet: str, lines: str | None, rows: int) -> None:
    """Compares the Parquet files with the JSON lines, if there are any; both are globs."""
    sources = [f"read_parquet('{parquet}')"] + ([f"read_json('{lines}')"] if lines else [])
    for source in sources:
        found = {name: kind for name, kind, *_ in rows_of(f"describe from {source}")}
        assert list(found) == list(COLUMNS), f"{source} has the columns {list(found)}"
        if rows_of(f"select count(value) from {source}") == [(0,)]:
            # JSON of nulls alone does not tell a type.
            found["value"] = "DOUBLE"
        assert found == COLUMNS, f"{source} has the types {found}"
        [(count,)] = rows_of(f"select count(*) from {source}")
        assert count == rows, f"{source} has {count} rows, not {rows}"

    if lines is None:
        return
    # JSON has no infinity: a censored value may be null there.
    unbounded = "case status when 'censored' then 'inf' else 'nan' end"
    value = f"coalesce(value::double, ({unbounded})::double) as value"
    a = f"select * from read_parquet('{parquet}')"
    b = f"select * replace ({value}) from read_json('{lines}')"
    for one, other, name in ((a, b, parquet), (b, a, lines)):
        different = rows_of(f"({one}) except all ({other})")
        assert not different, f"{len(different)} rows are only in {name}, such as {different[0]}"


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    runs = sorted(path.parent for path in pathlib.Path(sys.argv[1]).glob("*/run.json"))
    assert runs, f"there is no run in {sys.argv[1]}"
    total = 0
    with_lines = 0
    for run in runs:
        header = json.loads((run / "run.json").read_text())
        assert header["run_id"] == run.name, f"{run} calls itself {header['run_id']}"
        with (run / "trials.jsonl").open("rb") as lines:
            rows = sum(1 for _ in lines)
        [(in_parquet,)] = rows_of(f"select count(*) from read_parquet('{run}/trials.parquet')")
        assert rows in (0, in_parquet), f"{run} has {rows} lines, and {in_parquet} rows in Parquet"
        if in_parquet:
            check(f"{run}/trials.parquet", f"{run}/trials.jsonl" if rows else None, in_parquet)
            points = rows_of(f"select distinct point from read_parquet('{run}/trials.parquet')")
            assert all(isinstance(json.loads(point), dict) for (point,) in points), f"{run}: {points}"
        total += in_parquet
        with_lines += rows > 0
    if total:
        lines = f"{sys.argv[1]}/*/trials.jsonl" if with_lines == len(runs) else None
        check(f"{sys.argv[1]}/*/trials.parquet", lines, total)
    print(f"{len(runs)} runs, {total} rows, {with_lines} runs with JSON lines: all are as documented")


if __name__ == "__main__":
    main()
