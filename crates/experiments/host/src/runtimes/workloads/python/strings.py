"""Strings: splitting, joining, replacing and comparing lines of text."""


def run():
    lines = []
    for i in range(1500):
        lines.append("line %d: value=%d; name=item-%d" % (i, i * 37 % 1001, i % 50))
    total = 0
    for line in lines:
        head, rest = line.split(": ", 1)
        fields = rest.split("; ")
        name = fields[1].split("=")[1].upper()
        text = "|".join([head.strip(), name, fields[0].replace("value", "v")])
        if text.startswith("line 1") or text.endswith("7"):
            total += len(text)
        total += text.count("1") + text.find("V")
    return total
