"""Regular expressions: dates and names in a text."""

import re

PART = "on 20%02d-%02d-%02d user%d wrote %d bytes"
TEXT = " ".join(PART % (i % 40, i % 12 + 1, i % 28 + 1, i, i * 7) for i in range(500))
DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
WORDS = re.compile(r"\b(user|bytes)(\d*)\b|\b(wr[a-z]+e)\b")


def run():
    total = 0
    for _ in range(2):
        for match in DATE.finditer(TEXT):
            total += int(match.group(2)) * 31 + int(match.group(3))
        for match in WORDS.finditer(TEXT):
            total += match.end() - match.start()
    return total
