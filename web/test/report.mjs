// Opens reports in a real browser, in four widths, light and dark, closed and open, and fails on each fault that a reader
// would see: `node report.mjs FOLDER`, where FOLDER contains the reports that the example `shapes` writes.

import { readFileSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { createRequire } from "node:module";
import { complaintsOfPage } from "./complaints.mjs";
import { complaintsOfUse } from "./use.mjs";

// The packages are below the target folder, not below this file.
const modules = process.env.NODE_PATH ?? join(import.meta.dirname, "node_modules");
const { chromium } = createRequire(join(modules, "here.js"))("playwright-core");
// The debugger runs this script, because the policy of the page forbids other scripts.
const AXE = readFileSync(join(modules, "axe-core/axe.min.js"), "utf8");

// Widths and colour schemes, and `true` if axe checks the page too. Its findings do not depend on the width, except for
// parts that a phone does not show.
const WAYS = [
  [390, "light", true],
  [390, "dark", false],
  [768, "light", false],
  [1280, "light", true],
  [1280, "dark", true],
  [1920, "dark", false],
];
// A page of 181 claims, closed, at 1280 by 800.
const MANY = "many-claims.html", MOST_SCREENS = 16;
// Reports in which nothing was observed may have pictures without marks.
const EMPTY = ["nothing-yet.html"];
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

const folder = resolve(process.argv[2] ?? ".");
const files = readdirSync(folder).filter((name) => name.endsWith(".html")).sort();
if (files.length === 0) {
  console.error(`${folder} holds no report`);
  process.exit(2);
}

// A limit that only ends a hang; a machine may be slow.
const PATIENCE_MS = 300_000;
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ARGUMENTS, timeout: PATIENCE_MS });
let complaints = 0;
try {
  const waiting = [...files];
  await Promise.all(Array.from({ length: availableParallelism() }, async () => {
    for (let file; (file = waiting.shift()); ) await openEachWay(file);
  }));
  for (const complaint of await complaintsOfUse(browser, address(MANY), address("several-runs.html"))) {
    console.error(`in use: ${complaint}`);
    complaints += 1;
  }
} finally {
  await browser.close();
}
console.log(`${files.length} reports opened ${WAYS.length} ways: ${complaints} complaints`);
process.exit(complaints === 0 ? 0 : 1);

async function openEachWay(file) {
  for (const [width, colorScheme, isAxed] of WAYS) {
    for (const complaint of await open(file, width, colorScheme, isAxed)) {
      console.error(`${file} at ${width} px, ${colorScheme}: ${complaint}`);
      complaints += 1;
    }
  }
  for (const complaint of await readWithoutScript(file)) {
    console.error(`${file} without JavaScript: ${complaint}`);
    complaints += 1;
  }
}

// Returns the faults of a report in a window.
async function open(file, width, colorScheme, isAxed) {
  const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme, reducedMotion: "reduce" });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const found = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) found.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => found.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => {
    found.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (request.url() !== address(file)) found.push(`a request: ${request.url()}`);
  });
  await page.goto(address(file));
  const screens = await page.evaluate(() => document.documentElement.scrollHeight / innerHeight);
  if (file === MANY && width === 1280 && screens > MOST_SCREENS) found.push(`${screens.toFixed(1)} screens high`);
  if (isAxed) found.push(...(await violations(page, "closed")));
  await page.evaluate(openAll);
  found.push(...(await page.evaluate(complaintsOfPage, { mayBeEmpty: EMPTY.includes(file) })));
  if (isAxed) found.push(...(await violations(page, "open")));
  if (isAxed) found.push(...(await hoverAll(page)));
  await context.close();
  return found;
}

// Opens every part that can be opened (only the first of many claims), and waits until all are drawn.
async function openAll() {
  const FIRST = 12;
  const others = new Set([...document.querySelectorAll(".row")].slice(FIRST));
  const isWanted = (element) => !others.has(element.closest(".row"));
  const closed = () => [...document.querySelectorAll("details:not([open])")].filter(isWanted);
  const undrawn = () => [...document.querySelectorAll("[data-packed]")].some(isWanted);
  while (closed().length > 0 || undrawn()) {
    closed().forEach((details) => (details.open = true));
    await new Promise((done) => setTimeout(done, 10));
  }
}

// Returns the findings of axe.
async function violations(page, how) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.map(({ id, help, nodes }) => `axe, ${how}: ${id} (${help}), as in ${nodes[0].html.slice(0, 160)}`);
}

// Points at the middle of some pictures and moves through them by keyboard. Tooltips must not fail or widen the page.
async function hoverAll(page) {
  const pictures = await page.locator("figure.picture svg:visible").all();
  for (const picture of pictures.slice(0, 8)) {
    await picture.scrollIntoViewIfNeeded();
    await picture.hover({ force: true });
  }
  for (let step = 0; step < 12; step += 1) await page.keyboard.press("Tab");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
  return wide ? ["a tooltip makes the page wider than its window"] : [];
}

// Without JavaScript the page must contain all of its text too.
async function readWithoutScript(file) {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  await page.goto(address(file));
  const missing = [];
  for (const name of ["h1", ".lead", ".row .says", "footer code"]) {
    const all = page.locator(name);
    if ((await all.count()) > 0 && !(await all.first().isVisible())) missing.push(`${name} is not in sight`);
  }
  const pictures = page.locator("figure.picture");
  if ((await pictures.count()) !== (await pictures.filter({ has: page.locator("svg") }).count())) missing.push("a picture is not drawn");
  await context.close();
  return missing;
}

function address(file) {
  return pathToFileURL(join(folder, file)).href;
}
