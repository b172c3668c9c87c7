"""Generators: a chain of generators and closures over a range."""


def squares(limit):
    for number in range(limit):
        yield number * number


def every(step, values):
    for place, value in enumerate(values):
        if place % step == 0:
            yield value


def adder(amount):
    def add(value):
        return value + amount

    return add


def run():
    steps = [adder(amount) for amount in (1, 5, 9)]
    total = 0
    for value in every(2, squares(10000)):
        for step in steps:
            value = step(value)
        total ^= value
    return total
