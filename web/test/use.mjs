// Uses a page of many claims as a reader would, by keyboard and pointer, and returns each control that does not work.

export async function complaintsOfUse(browser, many, several) {
  const found = [];
  const expect = (is, what) => is || found.push(what);
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage();
  page.on("pageerror", (error) => found.push(`script: ${error.message}`));
  await page.goto(many);
  const shown = () => page.locator(".row:visible").count();
  const hash = () => page.evaluate(() => decodeURIComponent(location.hash.slice(1)));
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  const all = await shown();

  await page.keyboard.press("/");
  await page.keyboard.type("kahan-avx2 naive");
  const hits = await shown();
  expect(hits > 0 && hits < all, `a search shows ${hits} of ${all}`);
  expect((await page.locator(".row:visible .says").allTextContents()).every((says) => says.includes("kahan-avx2") && says.includes("naive")), "a search shows what it does not find");
  expect((await hash()).includes("q=kahan-avx2+naive"), `the address is ${await hash()}`);
  expect((await page.locator("output").textContent()).includes(` of ${all}`), "nothing says how many were found");
  await page.reload();
  expect((await shown()) === hits, "the address does not keep the search");
  await page.locator("[type=search]").focus();
  await page.keyboard.press("Escape");
  expect((await shown()) === all && (await hash()) === "", "Escape does not end a search");
  await page.keyboard.press("/");
  await page.keyboard.type("nothing is called so");
  expect((await shown()) === 0 && (await page.locator(".nothing").isVisible()), "a search without a match shows nothing");
  await page.keyboard.press("Escape");
  expect((await shown()) === all && !(await page.locator(".nothing").isVisible()), "Escape does not show all again");

  await page.locator(".chips button.refuted").click();
  const refuted = await page.locator(".row.refuted").count();
  expect((await shown()) === refuted && refuted > 0, "a verdict's button shows others");
  expect((await hash()) === "v=refuted", `the address is ${await hash()}`);
  await page.locator(".tools select").selectOption("far");
  const far = await page.locator(".row:visible").evaluateAll((rows) => rows.map((row) => Number(row.dataset.far)));
  expect(far.every((place, index) => index === 0 || place > far[index - 1]), "the furthest are not first");
  await page.locator(".tools .csv").click();
  const lines = (await copied()).trim().split("\n");
  expect(lines.length === refuted + 1 && lines[0].startsWith("id,verdict,claim"), `CSV has ${lines.length} lines`);
  await page.locator(".tools select").selectOption("");
  await page.locator(".chips button.refuted").click();
  expect((await shown()) === all && (await hash()) === "", "not all is as it was");

  await page.locator("main").click({ position: { x: 2, y: 2 } });
  const focused = () => page.evaluate(() => document.activeElement.closest(".row")?.id);
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  const second = await focused();
  await page.keyboard.press("k");
  const first = await focused();
  const ids = await page.locator(".row").evaluateAll((rows) => rows.slice(0, 2).map((row) => row.id));
  expect(first === ids[0] && second === ids[1], `j and k lead to ${second} and ${first}`);
  await page.keyboard.press("Enter");
  await page.locator(".row[open] figure.picture svg").first().waitFor();
  expect((await hash()) === first, "the address does not say which claim is open");
  const row = page.locator(".row[open]");
  await row.getByRole("button", { name: "Copy Markdown" }).click();
  expect((await copied()).startsWith("**") && (await copied()).includes(`\`${first}\``), `Markdown: ${await copied()}`);
  await row.getByRole("button", { name: "Copy link" }).click();
  const link = await copied();
  expect(link.endsWith(`#${first}`), `a link: ${link}`);
  await row.getByRole("button", { name: "Copy SVG" }).first().click();
  expect((await copied()).startsWith("<svg") && (await copied()).includes("<style"), "SVG is not copied");
  // A link from another page opens its claim.
  await page.goto("about:blank");
  await page.goto(link);
  expect(await page.locator(`[id="${first}"]`).evaluate((row) => row.open), "a link does not open its claim");
  await page.locator(`[id="${first}"] figure.picture svg`).first().waitFor();

  await page.goto(`${many}#100%`);
  expect((await shown()) === all && (await page.locator(".tools").isVisible()), "an address that is none stops the page");

  await page.goto(several);
  const cell = page.locator(".aligned tbody tr:visible td a").first();
  await cell.click();
  const opened = (await cell.getAttribute("href")).slice(1);
  expect(await page.locator(`[id="${opened}"]`).evaluate((row) => row.open), "a cell's link does not open its claim");
  const rows = () => page.locator(".aligned tbody tr:visible").count();
  const differing = await rows();
  await page.locator("#differences").uncheck();
  const both = await rows();
  expect(differing > 0 && differing < both, `${differing} of ${both} rows differ`);
  await context.close();
  return found;
}
