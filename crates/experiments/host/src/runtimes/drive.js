// Runs one workload in passes, and prints the result and the times. The arguments are the file of the workload, and for
// how many nanoseconds passes are run before the last one; -1 for a single pass.
"use strict";
const fs = require("fs");
const vm = require("vm");

// Number of passes that are printed from the beginning, and also from the end.
const KEPT = 49;

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
// A fast workload has more passes than anybody reads, so only the first and the last passes are kept.
const early = [];
const late = [];
let count = 0;
let logarithms = 0;
let total = Number(end - begin);
while (least >= 0) {
  // Two passes between the first and the last show whether the passes are steady.
  const isLast = total >= least && count >= 2;
  begin = clock();
  const again = run();
  end = clock();
  if (again !== result) {
    throw new Error(`pass ${count + 2} has the result ${again}, and the first pass ${result}`);
  }
  const took = Number(end - begin);
  total += took;
  if (isLast) {
    const passes = [...early, ...late.slice(-KEPT), [end, took]];
    const lines = passes.map(([end, took]) => `pass ${end} ${took}\n`).join("");
    fs.writeSync(1, `${lines}between ${count} ${logarithms}\n`);
    break;
  }
  count += 1;
  logarithms += Math.log(Math.max(took, 1));
  (early.length < KEPT ? early : late).push([end, took]);
  if (late.length > 2 * KEPT) {
    late.splice(0, KEPT);
  }
}
