// A gallery in a real browser: from its front page to a lesson and to a report, with scripts that all pages share.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { SCREENSHOTS, gallery, launch, open, picture } from "./browser.js";

const LESSON = "pages/scenarios/accept-queue-overflow/README.html";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

test("the front page leads to every lesson, and to the runs that are at hand", async () => {
  const { page, seen, close } = await open(browser, gallery("index.html"));
  assert.ok((await page.locator("#scenarios tr").count()) > 30);
  const row = page.locator("#scenarios tr").filter({ has: page.locator(`a[href="${LESSON}"]`) });
  assert.match(await row.innerText(), /reproduced/);
  assert.equal(await page.locator("#scenarios").getByText("not in this gallery").count(), 38);
  if (SCREENSHOTS) await picture(page, "gallery");
  await row.getByRole("link", { name: "report" }).click();
  await page.waitForSelector("#verdict");
  await page.waitForFunction(() => document.querySelectorAll("canvas").length > 3);
  assert.deepEqual(seen.errors.concat(seen.messages), []);
  assert.deepEqual(
    seen.requests.filter((url) => !url.startsWith("file://")),
    [],
  );
  await close();
});

test("a lesson folds its run's report and what was recorded away", async () => {
  const { page, seen, close } = await open(browser, gallery(LESSON), { width: 420, scheme: "dark" });
  const link = page.getByRole("link", { name: "The report of a run" });
  assert.equal(await link.isVisible(), false);
  await page.getByText("Open this after your prediction: a run's report").click();
  assert.equal(await link.isVisible(), true);
  assert.match(await page.locator(".shown").innerText(), /Recorded runs: all predictions held in \d+ of \d+/);
  await page.waitForFunction(() => document.documentElement.scrollWidth <= window.innerWidth);
  if (SCREENSHOTS) await picture(page, "gallery-lesson-dark");
  await link.click();
  await page.waitForSelector("#verdict");
  assert.deepEqual(seen.errors.concat(seen.messages), []);
  await close();
});
