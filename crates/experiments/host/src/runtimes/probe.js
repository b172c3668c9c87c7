"exit";
"use strict";
// Prints facts about the JavaScript runtime that runs this file, as one line of JSON after a mark. If a shell runs this
// file, the first line ends it.
const fs = require("fs");
const read = (path) => {
  try {
    return fs.readFileSync(path, "utf8");
  } catch {
    return "";
  }
};
const link = (path) => {
  try {
    return fs.readlinkSync(path);
  } catch {
    return process.execPath;
  }
};
const config = (process.config && process.config.variables) || {};
const name = process.versions.bun ? "Bun" : process.versions.deno ? "Deno" : "Node.js";
const version = process.versions.bun || process.versions.deno || process.versions.node;
const jitless = process.execArgv.includes("--jitless") || (process.env.NODE_OPTIONS || "").includes("--jitless");
const word = (flag) => (flag === undefined ? "not recorded" : flag && flag !== "false" ? "yes" : "no");
const ofGcc = `GCC (binutils ${config.gas_version || "unknown"})`;
const compiler = config.clang ? `Clang ${config.llvm_version || ""}` : ofGcc;
const mapped = read("/proc/self/maps").split("\n").map((line) => line.split(/ +/).slice(5).join(" "));
const line = read("/proc/self/cmdline").split("\0").slice(0, -1);
const preloaded = (process.env.NODE_OPTIONS || "").match(/(?:--require|-r|--import)[ =]\S+/g) || [];
const facts = {
  running: link("/proc/self/exe"),
  executable: process.execPath,
  line: line.length > 0 ? line : [process.execPath, ...process.argv.slice(1)],
  environment: process.env,
  build: {
    version,
    implementation: name,
    compiler: compiler.trim(),
    optimisation: word(config.is_debug) === "yes" ? "debug" : "release",
    pgo: word(config.enable_pgo_use),
    lto: word(config.enable_lto),
    jit: jitless ? "off" : "on",
    free_threading: "no",
    tail_calls: "no",
    allocator: "malloc",
    configure: Object.keys(config)
      .filter((key) => /^(node_shared|v8_enable|enable_|is_debug|clang$)/.test(key) && config[key])
      .map((key) => `${key}=${config[key]}`)
      .join(" "),
  },
  hooks: preloaded.map((hook) => ({ name: hook, path: hook, content: "" })),
  using: {},
  mapped: [...new Set(mapped)].filter((path) => path.startsWith("/") && path.includes(".so")).sort(),
};
process.stdout.write(`\nascertain-probe ${JSON.stringify(facts)}\n`);
