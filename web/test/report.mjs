// Opens reports in a real browser, in two widths, light and dark, and on paper, and fails on whatever a reader
// would stumble over: `node report.mjs FOLDER`, where FOLDER holds the reports that the example `shapes` writes.

import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { createRequire } from "node:module";
import { complaintsOfPage } from "./complaints.mjs";

// The packages are below the target folder, not below this file.
const modules = process.env.NODE_PATH ?? join(import.meta.dirname, "node_modules");
const { chromium } = createRequire(join(modules, "here.js"))("playwright-core");

const WIDTHS = [360, 1280];
const SCHEMES = ["light", "dark"];
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

// What takes as long has gone wrong; a machine may be slow.
const PATIENCE_MS = 300_000;
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ARGUMENTS, timeout: PATIENCE_MS });
let complaints = 0;
try {
  for (const file of files) {
    for (const width of WIDTHS) {
      for (const colorScheme of SCHEMES) {
        for (const complaint of await open(file, width, colorScheme)) {
          console.error(`${file} at ${width} px, ${colorScheme}: ${complaint}`);
          complaints += 1;
        }
      }
    }
    for (const complaint of await readWithoutScript(file)) {
      console.error(`${file} without JavaScript: ${complaint}`);
      complaints += 1;
    }
  }
} finally {
  await browser.close();
}
console.log(`${files.length} reports opened ${WIDTHS.length * SCHEMES.length} ways: ${complaints} complaints`);
process.exit(complaints === 0 ? 0 : 1);

/// What is wrong with a report in a window.
async function open(file, width, colorScheme) {
  const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme });
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
  found.push(...(await page.evaluate(complaintsOfPage, { mayBeEmpty: EMPTY.includes(file) })));
  found.push(...(await hoverAll(page)));
  await context.close();
  return found;
}

/// Points at the middle of some pictures and walks through them by keyboard: tooltips must not fail or widen the page.
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

/// Everything must be said without JavaScript too.
async function readWithoutScript(file) {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  await page.goto(address(file));
  const missing = [];
  for (const name of ["h1", ".head code", "footer"]) {
    if (!(await page.locator(name).first().isVisible())) missing.push(`${name} is not in sight`);
  }
  const pictures = page.locator("figure.picture");
  if ((await pictures.count()) !== (await pictures.filter({ has: page.locator("svg") }).count())) missing.push("a picture is not drawn");
  await context.close();
  return missing;
}

function address(file) {
  return pathToFileURL(join(folder, file)).href;
}
