// Runs one workload in passes, and prints each result with its times. The arguments are the file of the workload, and
// for how many nanoseconds passes are run before the last one; -1 for a single pass.
"use strict";
const fs = require("fs");
const vm = require("vm");

const [path, leastText] = process.argv.slice(2);
const least = Number(leastText);
const clock = () => process.hrtime.bigint();
const run = vm.runInThisContext(`(function () { "use strict";\n${fs.readFileSync(path, "utf8")}\nreturn run; })()`, {
  filename: path,
  lineOffset: -1,
});
let begin = clock();
const result = run();
let end = clock();
// The first pass is printed at once, because it shows where a process that is stopped has been.
fs.writeSync(1, `result ${result}\npass ${end} ${end - begin}\n`);
const passes = [];
let total = Number(end - begin);
while (least >= 0) {
  const isLast = total >= least;
  begin = clock();
  const again = run();
  end = clock();
  if (again !== result) {
    throw new Error(`pass ${passes.length + 2} has the result ${again}, and the first pass ${result}`);
  }
  passes.push([end, end - begin]);
  total += Number(end - begin);
  if (isLast) {
    break;
  }
}
fs.writeSync(1, passes.map(([end, took]) => `pass ${end} ${took}\n`).join(""));
