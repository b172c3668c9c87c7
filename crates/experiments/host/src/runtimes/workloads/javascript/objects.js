// Objects: methods, properties and inheritance, in a bank whose accounts send money.
class Account {
  constructor(number) {
    this.number = number;
    this.balance = 1000;
    this.sent = 0;
  }

  fee(amount) {
    return 1;
  }

  pay(other, amount) {
    const cost = amount + this.fee(amount);
    if (this.balance < cost) {
      return false;
    }
    this.balance -= cost;
    this.sent += 1;
    other.receive(amount);
    return true;
  }

  receive(amount) {
    this.balance += amount;
  }
}

class Savings extends Account {
  fee(amount) {
    return Math.floor(amount / 50);
  }

  receive(amount) {
    super.receive(amount);
    this.balance += 1;
  }
}

function run() {
  const accounts = [];
  for (let i = 0; i < 100; i++) {
    accounts.push(i % 3 === 0 ? new Savings(i) : new Account(i));
  }
  let number = 1;
  for (let round = 0; round < 4000; round++) {
    number = (Math.imul(number, 1103515245) + 12345) & 0x7fffffff;
    const one = accounts[(number >> 8) % 100];
    const other = accounts[(number >> 16) % 100];
    one.pay(other, number % 97);
  }
  return accounts.reduce((sum, account) => sum + account.balance * account.number + account.sent, 0);
}
