#!/usr/bin/env python3
"""Compares an interpreter with itself on a busy machine, by `ascertain` and by pyperf's `compare_to`.

Two processes per CPU are busy for random spans of up to two seconds, and idle for spans as long. Each round measures
the interpreter under two names with `ascertain`, and then twice in a row with pyperf. Every verdict is false. Of the
intervals at 95 %, one in twenty may exclude the ratio 1. pyperf's test has the same error. The verdicts have an error
of 0.1 %, and need at least 14 pairs.

No round starts if it would probably end after more than 15 minutes.

Needs a Python with pyperf, the path of `ascertain`, and an interpreter:

    python3 busy_self.py target/release/ascertain python3.11 [ROUNDS] [SECONDS]
"""

import multiprocessing
import os
import random
import sys
import tempfile
import time

from common import excludes_one, measure_by_pyperf, runtimes, significant


# Time for all rounds together, in seconds.
LIMIT_S = 900


def be_busy():
    while True:
        end = time.monotonic() + random.uniform(0, 2)
        while time.monotonic() < end:
            pass
        time.sleep(random.uniform(0, 2))


def main():
    ascertain, python, *rest = sys.argv[1:]
    rounds, time_s = int((rest or ['6'])[0]), int((rest[1:] or ['60'])[0])
    load = [multiprocessing.Process(target=be_busy, daemon=True) for _ in range(2 * os.cpu_count())]
    for process in load:
        process.start()
    verdicts = intervals = means = intervals_of_means = workloads = of_pyperf = 0
    begin = time.monotonic()
    longest_s = 0
    for number in range(rounds):
        begin_of_round = time.monotonic()
        if begin_of_round - begin + longest_s > LIMIT_S:
            print(f'stopped after {number} of {rounds} rounds: another round would exceed {LIMIT_S} s')
            break
        arguments = ['--max-time', f'{time_s}s', '--seed', str(number)]
        ours, _ = runtimes(ascertain, [f'runtime=A={python},B={python}'], arguments)
        workloads += len(ours['workloads'])
        verdicts += sum(workload['decision'] in ('faster', 'slower') for workload in ours['workloads'])
        intervals += sum(excludes_one(workload['interval']) for workload in ours['workloads'])
        means += ours['mean']['decision'] in ('faster', 'slower')
        intervals_of_means += excludes_one(ours['mean']['this_suite'])
        pairs = ours['workloads'][0]['values'][0]
        with tempfile.TemporaryDirectory(prefix='runtimes-check-') as folder:
            paths = [os.path.join(folder, name) for name in ('a.json', 'b.json')]
            for path in paths:
                measure_by_pyperf(python, path, folder, ['--fast', '--min-time', '0.02'])
            count, _ = significant(*paths)
            of_pyperf += count
        print(f'round {number + 1} ({pairs} pairs): {workloads} workloads so far, of which {verdicts} have a verdict, '
              f'{intervals} have an interval without 1, and {of_pyperf} are significant for compare_to of pyperf; '
              f'means of {number + 1} suites: {means} verdicts, {intervals_of_means} intervals without 1', flush=True)
        longest_s = max(longest_s, time.monotonic() - begin_of_round)
    for process in load:
        process.terminate()


if __name__ == '__main__':
    main()
