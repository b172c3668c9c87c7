// Floats: three bodies that attract each other, in small steps.
function run() {
  const bodies = [
    [0.0, 0.0, 0.0, 0.0, 1.0],
    [1.0, 0.0, 0.0, 1.0, 0.001],
    [0.0, 2.0, -0.7, 0.0, 0.002],
  ];
  const pairs = [[0, 1], [0, 2], [1, 2]];
  const step = 0.001;
  for (let round = 0; round < 1000; round++) {
    for (const [i, j] of pairs) {
      const one = bodies[i];
      const other = bodies[j];
      const dx = one[0] - other[0];
      const dy = one[1] - other[1];
      const square = dx * dx + dy * dy + 0.01;
      const pull = step / (square * square);
      one[2] -= dx * other[4] * pull;
      one[3] -= dy * other[4] * pull;
      other[2] += dx * one[4] * pull;
      other[3] += dy * one[4] * pull;
    }
    for (const body of bodies) {
      body[0] += step * body[2];
      body[1] += step * body[3];
    }
  }
  let sum = 0.0;
  for (const body of bodies) {
    sum += body[0] * 7.0 + body[1];
  }
  return Math.trunc(sum * 1e6);
}
