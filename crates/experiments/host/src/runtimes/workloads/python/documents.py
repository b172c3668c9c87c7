"""Documents: JSON written and read again."""

import json


def run():
    items = [
        {"id": i, "name": "item %d" % i, "tags": ["a%d" % (i % 7), "b"], "size": [i, i * 2, {"deep": i % 3 == 0}]}
        for i in range(250)
    ]
    total = 0
    for _ in range(3):
        text = json.dumps({"items": items, "version": 2}, separators=(",", ":"))
        back = json.loads(text)
        total += len(text) + sum(item["size"][1] for item in back["items"] if item["size"][2]["deep"])
    return total
