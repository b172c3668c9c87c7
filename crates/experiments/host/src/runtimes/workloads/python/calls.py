"""Calls: Fibonacci numbers by recursion."""


def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def run():
    return fibonacci(20)
