// Generators: a chain of generators and closures over a range.
function* squares(limit) {
  for (let number = 0; number < limit; number++) {
    yield number * number;
  }
}

function* every(step, values) {
  let place = 0;
  for (const value of values) {
    if (place % step === 0) {
      yield value;
    }
    place += 1;
  }
}

function adder(amount) {
  return (value) => value + amount;
}

function run() {
  const steps = [1, 5, 9].map(adder);
  let total = 0;
  for (let value of every(2, squares(10000))) {
    for (const step of steps) {
      value = step(value);
    }
    total ^= value;
  }
  return total;
}
