"""Sorting: numbers, and records by two keys."""


def run():
    number = 3
    numbers = []
    for _ in range(2500):
        number = (number * 1103515245 + 12345) & 0x7FFFFFFF
        numbers.append(number >> 8)
    records = [(value % 100, value) for value in numbers]
    by_key = sorted(records, key=lambda record: (record[0], -record[1]))
    numbers.sort(reverse=True)
    return numbers[1200] + by_key[1200][0] * 7 + by_key[10][1]
