// Sorting: numbers, and records by two keys.
function run() {
  let number = 3;
  const numbers = [];
  for (let round = 0; round < 2500; round++) {
    number = (Math.imul(number, 1103515245) + 12345) & 0x7fffffff;
    numbers.push(number >> 8);
  }
  const records = numbers.map((value) => [value % 100, value]);
  const byKey = records.slice().sort((one, other) => one[0] - other[0] || other[1] - one[1]);
  numbers.sort((one, other) => other - one);
  return numbers[1200] + byKey[1200][0] * 7 + byKey[10][1];
}
