// Calls: Fibonacci numbers by recursion.
function fibonacci(n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

function run() {
  return fibonacci(20);
}
