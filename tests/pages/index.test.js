// The index of runs in a real browser.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { SCREENSHOTS, index, launch, open, picture } from "./browser.js";

let browser;
let shown;
before(async () => {
  browser = await launch();
  shown = await open(browser, index);
});
after(() => browser.close());

const rows = () => shown.page.locator("#runs tbody tr:visible");
const firsts = async () => (await rows().locator("td:last-child").allInnerTexts()).map((text) => text.trim());

test("lists every run, the newest first, with its verdict and what differed", async () => {
  assert.deepEqual(await firsts(), ["hostile", "without-captures", "aborted", "healthy", "failing"]);
  assert.match(await rows().nth(4).innerText(), /✓ reproduced\s+103\s+100\s+accept queue full/);
  assert.match(await rows().nth(2).innerText(), /! aborted\s+interrupted \(Ctrl-C\)/);
  if (SCREENSHOTS) await picture(shown.page, "index-light-1280");
});

test("filters by words and by state", async () => {
  await shown.page.locator("#search").fill("accept queue full");
  assert.deepEqual(await firsts(), ["hostile", "failing"]);
  await shown.page.locator("#state").selectOption("reproduced");
  assert.deepEqual(await firsts(), ["failing"]);
  assert.match(await shown.page.locator("#shown").innerText(), /1 of 5 shown/);
  await shown.page.locator("#search").fill("");
  await shown.page.locator("#state").selectOption("");
});

test("sorts by numbers as numbers, both ways", async () => {
  const failed = shown.page.getByRole("button", { name: "failed" });
  await failed.click();
  assert.equal((await firsts())[0], "aborted");
  await failed.click();
  assert.notEqual((await firsts())[0], "aborted");
  assert.equal(await shown.page.locator('th[aria-sort="descending"]').count(), 1);
});

test("its links lead to the reports", async () => {
  await shown.page.getByRole("link", { name: "healthy" }).click();
  await shown.page.waitForSelector("#verdict");
  assert.match(await shown.page.locator("#verdict").innerText(), /All 3 requests were answered well/);
});

test("reports no error, asks for no network, and hostile strings do nothing", async () => {
  const { page, seen, close } = await open(browser, index, { scheme: "dark", width: 390 });
  if (SCREENSHOTS) await picture(page, "index-dark-390");
  assert.deepEqual(seen.errors.concat(seen.messages), []);
  assert.equal(await page.evaluate(() => window.hurt), undefined);
  assert.ok(seen.requests.every((url) => url.startsWith("file://")));
  await close();
});
