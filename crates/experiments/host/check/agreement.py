#!/usr/bin/env python3
"""Compares the ratios of `runtimes` with those of pyperf on the same workloads, in a fifth of pyperf's time.

pyperf measures both interpreters with its default settings, or with the settings that are given. Then `ascertain`
gets a fifth of that time. A workload agrees if the ratio of `ascertain` is within the spread of pyperf: the ratio of
its means, plus or minus twice the standard deviation between its processes.

Needs a Python with pyperf, the path of `ascertain`, and two interpreters:

    python3 agreement.py target/release/ascertain python3.10 python3.11 [--fast]
"""

import os
import statistics
import sys
import tempfile

import pyperf

from common import measure_by_pyperf, runtimes


def means(path):
    """Returns the mean of each process, for each workload."""
    suite = pyperf.BenchmarkSuite.load(path)
    runs = {of.get_name(): [statistics.mean(run.values) for run in of.get_runs() if run.values] for of in suite}
    return runs


def main():
    ascertain, base, other, *arguments = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix='runtimes-check-') as folder:
        paths = [os.path.join(folder, name) for name in ('base.json', 'other.json')]
        time_s = sum(measure_by_pyperf(program, path, folder, arguments) for program, path in zip((base, other), paths))
        of_base, of_other = (means(path) for path in paths)
    ours, own_time_s = runtimes(ascertain, [f'runtime=base={base},other={other}'], ['--max-time', f'{time_s / 5:.0f}s'])
    agreeing = 0
    for workload in ours['workloads']:
        one, two = of_base[workload['workload']], of_other[workload['workload']]
        ratio = statistics.mean(one) / statistics.mean(two)
        shares = [statistics.stdev(values) / statistics.mean(values) for values in (one, two)]
        spread = 2 * ratio * (shares[0] ** 2 + shares[1] ** 2) ** 0.5
        found = workload['ratio']['low']
        agreeing += abs(found - ratio) <= spread
        low, high = workload['interval']['low'], workload['interval']['high']
        print(f'{workload["workload"]:12} pyperf {ratio:.3f} ± {spread:.3f}   ascertain {found:.3f} ({low:.3f} to {high:.3f})')
    mean = statistics.geometric_mean(statistics.mean(of_base[name]) / statistics.mean(of_other[name]) for name in of_base)
    print(f'geometric mean: pyperf {mean:.3f}, ascertain {ours["mean"]["ratio"]["low"]:.3f}')
    print(f'{agreeing} of {len(ours["workloads"])} ratios agree; pyperf {time_s:.0f} s, ascertain {own_time_s:.0f} s')


if __name__ == '__main__':
    main()
