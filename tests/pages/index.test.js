// The index of runs in a real browser.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { SCREENSHOTS, index, launch, many, open, picture } from "./browser.js";

let browser;
let shown;
before(async () => {
  browser = await launch();
  shown = await open(browser, index);
});
after(() => browser.close());

const rows = () => shown.page.locator("#runs tbody tr:visible");
const firsts = async () => (await rows().locator("td:last-child").allInnerTexts()).map((text) => text.trim());

test("lists every run, what went wrong first, with its verdict and what differed", async () => {
  assert.deepEqual(await firsts(), ["hostile", "without-captures", "aborted", "healthy", "failing"]);
  assert.match(await rows().nth(4).innerText(), /✓ reproduced\s+103\s+100\s+accept queue full/);
  assert.match(await rows().nth(2).innerText(), /! aborted\s+2\s+0\s+interrupted \(Ctrl-C\)/);
  if (SCREENSHOTS) await picture(shown.page, "index-light-1280");
});

test("filters by words and by state", async () => {
  await shown.page.locator("#search").fill("accept queue full");
  assert.deepEqual(await firsts(), ["hostile", "failing"]);
  await shown.page.locator("#state").selectOption("reproduced");
  assert.deepEqual(await firsts(), ["failing"]);
  assert.match(await shown.page.locator("#shown").innerText(), /1 of 5 runs/);
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
  assert.match(await shown.page.locator("#verdict").innerText(), /All 3 requests succeeded/);
});

test("reports no error, asks for no network, and hostile strings do nothing", async () => {
  const { page, seen, close } = await open(browser, index, { scheme: "dark", width: 390 });
  if (SCREENSHOTS) await picture(page, "index-dark-390");
  assert.deepEqual(seen.errors.concat(seen.messages), []);
  assert.equal(await page.evaluate(() => window.hurt), undefined);
  assert.ok(seen.requests.every((url) => url.startsWith("file://")));
  await close();
});

test("turns pages of 200 of 5,000 runs; what went wrong stands first, and a search sees all", async () => {
  const { page, seen, close } = await open(browser, many);
  const lines = page.locator("#runs tbody tr");
  const text = (id) => page.locator(`#${id}`).innerText();
  assert.equal(await lines.count(), 200);
  assert.equal(await text("shown"), "5,004 of 5,004 runs");
  assert.equal(await text("page"), "page 1 of 26");
  assert.match(await page.locator("#runs tbody").innerText(), /run-1234/);
  assert.match(await lines.nth(2).innerText(), /run-4999/);
  await page.getByRole("button", { name: "Next" }).press("Enter");
  assert.equal(await text("page"), "page 2 of 26");
  assert.doesNotMatch(await page.locator("#runs tbody").innerText(), /run-1234/);
  await page.locator("#search").fill("run-0007");
  assert.equal(await lines.count(), 1);
  assert.equal(await text("shown"), "1 of 5,004 runs");
  assert.equal(await page.locator("#pages").isVisible(), false);
  assert.deepEqual(seen.errors.concat(seen.messages), []);
  assert.equal(await page.evaluate(() => window.hurt), undefined);
  await close();
});

test("a reason is one line, whatever a killed program left behind", async () => {
  const { page, close } = await open(browser, many);
  const reason = page.locator(".reason").first();
  assert.match(await reason.innerText(), /^backend-1 was killed/);
  const { height } = await reason.boundingBox();
  assert.ok(height < 40, `${height} pixels are more than a line`);
  if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/index-many-1280.png` });
  await close();
});

test("a series is one line that leads to its page; its runs unfold by a key, and a search unfolds those it finds", async () => {
  const { page, close } = await open(browser, many);
  const series = page.locator("#runs tbody tr.series");
  const runs = page.locator("#runs tbody tr.of-series");
  const fold = series.getByRole("button");
  assert.equal(await fold.innerText(), "4 runs of 2 arms");
  assert.equal(await runs.count(), 0);
  await fold.press("Enter");
  assert.equal(await runs.count(), 4);
  assert.match(await runs.first().innerText(), /aborted/);
  assert.equal(await fold.getAttribute("aria-expanded"), "true");
  await fold.press("Enter");
  assert.equal(await runs.count(), 0);
  await page.locator("#search").fill("cell kept");
  assert.equal(await runs.count(), 2);
  await page.locator("#search").fill("");
  await series.getByRole("link").click();
  await page.waitForSelector(".question");
  await close();
});

test("no column is cut off, from a phone's width on", async () => {
  for (const [page, width] of [index, many].flatMap((page) => [390, 760, 1000, 1200].map((width) => [page, width]))) {
    const { page: seen, close } = await open(browser, page, { width });
    const [table, room] = await seen.locator(".scroll").evaluate((one) => [one.scrollWidth, one.clientWidth]);
    assert.ok(table <= room, `at ${width} pixels, ${table} are needed and ${room} are there`);
    await close();
  }
});
