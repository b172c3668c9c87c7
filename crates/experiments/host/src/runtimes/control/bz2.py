"""The negative control: the work is done in the library bzip2."""

import bz2

TEXT = b"".join(("%d %d;" % (i, i * i % 977)).encode("ascii") for i in range(3000))


def run():
    return len(bz2.compress(TEXT, 9))
