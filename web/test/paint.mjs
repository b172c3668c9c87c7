// Measures how long a reader waits for a page: until its first paint, until all of it is there, and until the pictures of
// an opened row are visible. Prints medians over several openings, each by a browser without a cache: `node paint.mjs PAGE`.

import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { createRequire } from "node:module";

// The packages are below the target folder, not below this file.
const modules = process.env.NODE_PATH ?? join(import.meta.dirname, "node_modules");
const { chromium } = createRequire(join(modules, "here.js"))("playwright-core");
const OPENINGS = 9;

const address = pathToFileURL(resolve(process.argv[2])).href;
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const seen = [], whole = [], drawn = [];
for (let opening = 0; opening < OPENINGS; opening += 1) {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(address);
  await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
  const [paint_ms, loaded_ms] = await page.evaluate(() => [
    performance.getEntriesByName("first-contentful-paint")[0].startTime,
    performance.getEntriesByType("navigation")[0].loadEventEnd,
  ]);
  seen.push(paint_ms);
  whole.push(loaded_ms);
  drawn.push(await page.evaluate(() => new Promise((done) => {
    const closed = document.querySelector("details:not([open]) > .in > [data-packed]")?.closest("details");
    if (!closed) return done(NaN);
    const begun_ms = performance.now();
    const isPainted = () => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun_ms)));
    closed.addEventListener("drawn", isPainted, { once: true });
    closed.open = true;
  })));
  await browser.close();
}
const median = (values) => `${values.sort((one, other) => one - other)[Math.floor(values.length / 2)].toFixed(0)} ms`;
const opened = drawn.some(Number.isNaN) ? "nothing is closed" : `what is opened is drawn in ${median(drawn)}`;
console.log(`  seen after ${median(seen)}, whole after ${median(whole)}; ${opened}`);
