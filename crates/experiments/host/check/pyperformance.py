#!/usr/bin/env python3
"""Records the workloads of pyperformance in two interpreters, for the calibration of the intervals of `runtimes`.

The table is a new file in the folder of recorded samples. The tests `intervals_of_this_suite` and
`intervals_of_workloads_like_these` of `ascertain-engine` calibrate the intervals by each file in that folder. A test
fails if the number of intervals that miss the truth differs from 5 in 100 by more than five standard deviations.

Needs an environment with pyperformance, the path of `ascertain`, two interpreters, and a number of trials. The baseline
must be Python 3.10. On two CPUs, a trial of 50 workloads in 3.10 and 3.11 takes about two minutes. Checking all
workloads takes as long before the first trial:

    python3 -m venv /tmp/environment && /tmp/environment/bin/pip install pyperformance==1.14.0
    python3 pyperformance.py target/release/ascertain /tmp/environment python3.10 python3.11 [TRIALS]
    cargo test -p ascertain-engine --lib calibration -- --nocapture
"""

import os
import subprocess
import sys
import tempfile

from record import convert

HERE = os.path.dirname(os.path.abspath(__file__))
OUTPUT = os.path.join(HERE, '..', '..', '..', 'engine', 'tests', 'golden', 'runtimes', 'pyperformance.csv')


def main():
    ascertain, environment, base, other, *rest = sys.argv[1:]
    trials = (rest or ['10'])[0]
    if os.path.exists(OUTPUT):
        sys.exit(f'{os.path.normpath(OUTPUT)} exists already; remove it to record new samples')
    with tempfile.TemporaryDirectory(prefix='runtimes-check-') as folder:
        # Only this command of the environment is on the path, and no interpreter.
        programs = os.path.join(folder, 'programs')
        os.mkdir(programs)
        script = os.path.join(os.path.abspath(environment), 'bin', 'pyperformance')
        os.symlink(script, os.path.join(programs, 'pyperformance'))
        variables = os.environ | {'PATH': f'{programs}:{os.environ["PATH"]}'}
        runs = os.path.join(folder, 'runs')
        command = [ascertain, 'run', 'runtimes', '--evidence', runs, '--trials', trials, '--max-time', '1h']
        levels = ['--at', f'runtime=3.10={base},3.11={other}', '--at', 'workloads=pyperformance', '--at', 'limit_s=60']
        # A workload that fails in an interpreter is not part of the table. `ascertain` then ends with 5.
        done = subprocess.run([*command, *levels], env=variables)
        if done.returncode not in (0, 5):
            sys.exit(f'`ascertain` ended with {done.returncode}')
        [run] = os.listdir(runs)
        with open(OUTPUT, 'w') as output:
            convert(ascertain, os.path.join(runs, run), output)
    print(f'written: {os.path.normpath(OUTPUT)}')


if __name__ == '__main__':
    main()
