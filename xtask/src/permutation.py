"""Reshuffles a second of the peers, on the samples that the example `shuffle_throughput` makes: one JSON object."""

import json
import sys
import time

import numpy as np
from scipy import stats

SIZE, SHUFFLES, SEED = (int(word) for word in sys.argv[1:])


def numbers(state):
    values = np.empty(SIZE)
    for index in range(SIZE):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        values[index] = state >> 40
    return values


a = numbers(1)
b = numbers(2) + float(round(3 * 2**24 / (6 * SIZE) ** 0.5))
pool = np.concatenate([a, b])
rng = np.random.default_rng(SEED)
exceeding, shuffles_made = 0, 0


def mean_difference(x, y, axis):
    return np.mean(x, axis=axis) - np.mean(y, axis=axis)


def scipy_batch(batch):
    def run():
        result = stats.permutation_test(
            (b, a), mean_difference, vectorized=True, n_resamples=SHUFFLES, batch=batch, rng=rng, axis=0
        )
        global exceeding, shuffles_made
        exceeding += np.sum(np.abs(result.null_distribution) >= abs(result.statistic))
        shuffles_made += SHUFFLES

    return run


def shuffle_in_place():
    values = pool.copy()
    total = values.sum()
    for _ in range(SHUFFLES):
        rng.shuffle(values)
        part = values[:SIZE].sum()
        (2 * part - total) / SIZE


def permuted(batch):
    def run():
        total = pool.sum()
        rows = np.tile(pool, (batch, 1))
        for _ in range(SHUFFLES // batch):
            rng.permuted(rows, axis=1, out=rows)
            (2 * rows[:, :SIZE].sum(axis=1) - total) / SIZE

    return run


configurations = {f"scipy, batch={batch}": scipy_batch(batch) for batch in (1, 10, 100, 1000)}
configurations["numpy, rng.shuffle"] = shuffle_in_place
configurations["numpy, rng.permuted, batch=10"] = permuted(10)
configurations["numpy, rng.permuted, batch=100"] = permuted(100)

seconds = {}
for name, run in configurations.items():
    start = time.perf_counter()
    run()
    seconds[name] = (time.perf_counter() - start) / SHUFFLES
print(
    json.dumps(
        {
            "seconds": seconds,
            "exceedances": int(exceeding),
            "shuffles": shuffles_made,
            "observed": float(b.mean() - a.mean()),
            "versions": f"SciPy {__import__('scipy').__version__}, NumPy {np.__version__}",
        }
    )
)
