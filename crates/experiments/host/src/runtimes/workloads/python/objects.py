"""Objects: methods, attributes and inheritance, in a bank whose accounts send money."""


class Account(object):
    def __init__(self, number):
        self.number = number
        self.balance = 1000
        self.sent = 0

    def fee(self, amount):
        return 1

    def pay(self, other, amount):
        cost = amount + self.fee(amount)
        if self.balance < cost:
            return False
        self.balance -= cost
        self.sent += 1
        other.receive(amount)
        return True

    def receive(self, amount):
        self.balance += amount


class Savings(Account):
    def fee(self, amount):
        return amount // 50

    def receive(self, amount):
        Account.receive(self, amount)
        self.balance += 1


def run():
    accounts = [Savings(i) if i % 3 == 0 else Account(i) for i in range(100)]
    number = 1
    for _ in range(4000):
        number = (number * 1103515245 + 12345) & 0x7FFFFFFF
        one = accounts[(number >> 8) % 100]
        other = accounts[(number >> 16) % 100]
        one.pay(other, number % 97)
    return sum(account.balance * account.number + account.sent for account in accounts)
