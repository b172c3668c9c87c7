"""Helpers that the checks of `runtimes` share."""

import json
import os
import re
import subprocess
import sys
import time

import pyperf

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = os.path.join(HERE, '..', 'src', 'runtimes', 'workloads', 'python')


def runtimes(ascertain, levels, arguments):
    """Runs the experiment. Returns the only comparison of its result, and the time in seconds."""
    command = [ascertain, 'run', 'runtimes', '--no-evidence', '--format', 'json', '-q', *arguments]
    at = [part for level in levels for part in ('--at', level)]
    begin = time.monotonic()
    done = subprocess.run([*command, *at], capture_output=True, text=True)
    if not done.stdout:
        sys.exit(done.stderr)
    return json.loads(done.stdout)['suites'][0]['comparisons'][0], time.monotonic() - begin


def measure_by_pyperf(program, output, folder, arguments=()):
    """Measures the workloads by pyperf. The program sees no other package than pyperf. Returns the time in seconds."""
    packages = os.path.join(folder, 'packages')
    if not os.path.exists(packages):
        os.makedirs(packages)
        os.symlink(os.path.dirname(pyperf.__file__), os.path.join(packages, 'pyperf'))
    environment = os.environ | {'PYTHONPATH': packages, 'WORKLOADS': WORKLOADS}
    command = [program, os.path.join(HERE, 'suite.py'), '--inherit-environ', 'PYTHONPATH,WORKLOADS', '-q', '-o', output]
    begin = time.monotonic()
    subprocess.run([*command, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def significant(one, other):
    """Returns how many workloads `compare_to` of pyperf calls significant, and the number of all workloads."""
    command = [sys.executable, '-m', 'pyperf', 'compare_to', one, other]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    hidden = re.search(r'not significant \((\d+)\)', printed)
    count = len(json.load(open(one))['benchmarks'])
    return count - (int(hidden[1]) if hidden else printed.count('Not significant')), count


def excludes_one(interval):
    return interval is not None and not interval['low'] <= 1 <= interval['high']
