"""Integers: a product of large integers, its quotients and digits."""


def run():
    product = 1
    for factor in range(1, 1200):
        product *= factor
    total = 0
    rest = product
    for divisor in range(10**12 + 1, 10**12 + 400):
        total += rest % divisor
        rest //= 3
    for _ in range(12):
        total += len(str(product + total))
    return total
