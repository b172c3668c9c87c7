"""The negative control: the work is done in the library liblzma."""

import lzma

TEXT = b"".join(("%d %d;" % (i, i * i % 977)).encode("ascii") for i in range(3000))


def run():
    return len(lzma.compress(TEXT[:12000]))
