"""The negative control: the work is done in the library zlib."""

import zlib

TEXT = b"".join(("%d %d;" % (i, i * i % 977)).encode("ascii") for i in range(3000))


def run():
    return len(zlib.compress(TEXT, 9))
