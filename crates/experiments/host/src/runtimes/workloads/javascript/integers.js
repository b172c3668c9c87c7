// Integers: a product of large integers, its quotients and digits.
function run() {
  let product = 1n;
  for (let factor = 1n; factor < 1200n; factor++) {
    product *= factor;
  }
  let total = 0n;
  let rest = product;
  for (let divisor = 10n ** 12n + 1n; divisor < 10n ** 12n + 400n; divisor++) {
    total += rest % divisor;
    rest /= 3n;
  }
  for (let round = 0; round < 12; round++) {
    total += BigInt((product + total).toString().length);
  }
  return total;
}
