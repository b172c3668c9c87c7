#!/usr/bin/env python3
"""Converts a run of `runtimes` to a table of recorded samples, for the calibration of its intervals.

A row has a runtime, a workload, and its time in each trial, in microseconds with four digits. Only workloads that all
runtimes completed in all trials are kept.

    python3 record.py target/release/ascertain RUN > samples.csv
"""

import json
import os
import subprocess
import sys
import tempfile


def convert(ascertain, run, file):
    """Writes the table of a run to a file."""
    with tempfile.TemporaryDirectory(prefix='runtimes-check-') as folder:
        output = os.path.join(folder, 'out')
        subprocess.run([ascertain, 'pyperf', run, '--export', output, '-q'], check=True, stdout=subprocess.DEVNULL)
        suites = {}
        for name in sorted(os.listdir(output)):
            with open(os.path.join(output, name)) as exported:
                benchmarks = json.load(exported)['benchmarks']
            times = {of['metadata']['name']: [of_run['values'][0] for of_run in of['runs']] for of in benchmarks}
            suites[name.removesuffix('.json')] = times
    trials = max(len(times) for suite in suites.values() for times in suite.values())
    first = next(iter(suites.values()))
    complete = [name for name in first if all(len(suite.get(name, ())) == trials for suite in suites.values())]
    for runtime, suite in suites.items():
        for workload in complete:
            if workload != 'control':
                times = (f'{1e6 * time:.4g}' for time in suite[workload])
                print(runtime, workload, *times, sep=',', file=file)


def main():
    ascertain, run = sys.argv[1:]
    convert(ascertain, run, sys.stdout)


if __name__ == '__main__':
    main()
