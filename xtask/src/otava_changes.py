"""Finds change points with Apache Otava, in the format of the example `change_points`: a line for each series.

The argument is `each` if Otava looks after each value, or `once` if it looks once at the whole series.
"""

import sys

from otava.analysis import compute_change_points

# Changes whose places are at most this far apart are one change. Otava moves a change when it sees more values.
NEAR = 5


def reported(values):
    """Returns each change with the value after which Otava first reported it."""
    changes = {}
    for end in range(2, len(values) + 1) if sys.argv[1] == "each" else [len(values)]:
        for change in compute_change_points(values[:end])[0]:
            if all(abs(change.index - first) > NEAR for first in changes):
                changes[change.index] = end - 1
    return changes


for line in sys.stdin:
    changes = reported([float(word) for word in line.split()])
    print(*(f"{first}:{found}" for first, found in changes.items()))
