"""The own workloads of `runtimes`, as benchmarks of pyperf. The scripts of this folder start it."""

import os

import pyperf


def load(path):
    with open(path) as source:
        text = source.read()
    scope = {'__name__': 'workload', '__file__': path}
    exec(compile(text, path, 'exec'), scope)
    return scope['run']


def main():
    runner = pyperf.Runner()
    folder = os.environ['WORKLOADS']
    for name in sorted(os.listdir(folder)):
        if name.endswith('.py'):
            runner.bench_func(name[:-3], load(os.path.join(folder, name)))


main()
