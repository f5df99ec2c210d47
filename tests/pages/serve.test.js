// What `connlab serve` shows, in a real browser: lessons, the run at work, foreign reports, the presenter's view.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { SCREENSHOTS, launch, picture, visit } from "./browser.js";

const ADDRESS = process.env.CONNLAB_SERVED;
if (!ADDRESS) throw new Error("CONNLAB_SERVED names no address; way on: make test-pages");
const BASE = new URL(ADDRESS).origin;

let browser;
let shown;
before(async () => {
  browser = await launch();
  shown = await visit(browser, ADDRESS);
});
after(() => browser.close());

const go = (path) => shown.page.goto(`${BASE}${path}`, { waitUntil: "load" });

test("the key leaves the address, and the home page lists lessons and runs", async () => {
  assert.equal(shown.page.url(), `${BASE}/`);
  assert.match(await shown.page.locator("main").innerText(), /A full accept queue: 103 users, three places/);
  assert.match(await shown.page.locator("#runs").innerText(), /reproduced\s+103\s+100\s+accept queue full/);
});

test("a lesson folds its evidence away, and its links lead on", async () => {
  await shown.page.getByRole("link", { name: "A full accept queue: 103 users, three places" }).click();
  const folded = shown.page.locator("details").first();
  assert.equal(await folded.getAttribute("open"), null);
  await folded.locator("summary").click();
  assert.notEqual(await folded.getAttribute("open"), null);
  assert.ok((await shown.page.locator("select[name=exercise] option").count()) >= 3);
  if (SCREENSHOTS) await picture(shown.page, "serve-lesson");
  await shown.page.getByRole("link", { name: "Words" }).click();
  assert.match(await shown.page.locator("h1").innerText(), /\w/);
});

test("the run at work is shown with its figures, whatever it is called", async () => {
  await go("/live");
  await shown.page.locator("#kernel-1").waitFor();
  assert.match(await shown.page.locator("#what").innerText(), /the run of a test/);
  assert.equal(await shown.page.locator("#requests").innerText(), "103");
  assert.equal(await shown.page.locator("#failed").innerText(), "100");
  assert.match(await shown.page.locator("#kernels").innerText(), /backend-1[^]+ of 2 places[^]+507\s+overflows/);
  assert.equal(await shown.page.locator("#kernels canvas").count(), 2);
  assert.equal(await shown.page.evaluate(() => window.hurt), undefined);
});

test("the presenter's view is large, fits, and stays on the next page", async () => {
  await shown.page.setViewportSize({ width: 1920, height: 1080 });
  await shown.page.getByRole("button", { name: "Presenter's view" }).click();
  const size = (selector) => shown.page.locator(selector).evaluate((one) => parseFloat(getComputedStyle(one).fontSize));
  assert.ok((await size("#failed")) >= 100, "a figure can be read from behind");
  assert.ok((await size("#kinds")) >= 32, "its words can be read from behind");
  assert.ok(await shown.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  if (SCREENSHOTS) await picture(shown.page, "serve-room");
  await go("/drill");
  assert.ok((await size("body")) >= 32);
  await shown.page.getByRole("button", { name: "Presenter's view" }).click();
  assert.ok((await size("body")) <= 20);
});

test("a report is shown as of no origin: it reaches neither the pages nor their forms", async () => {
  await go("/results/accept-queue-overflow/hostile/report.html");
  await shown.page.waitForSelector("#verdict");
  assert.equal(await shown.page.evaluate(() => window.hurt), undefined);
  assert.equal(await shown.page.evaluate(() => window.origin), "null");
  const reached = await shown.page.evaluate(async (base) => {
    try {
      await fetch(`${base}/live.json`);
      return true;
    } catch {
      return false;
    }
  }, BASE);
  assert.equal(reached, false);
  await go("/results/index.html");
  await shown.page.getByRole("link", { name: "healthy" }).click();
  await shown.page.waitForSelector("#verdict");
  assert.match(await shown.page.locator("#verdict").innerText(), /All 3 requests were answered well/);
});

test("a form starts a command, which the page shows with what it said", async () => {
  await go("/pages/scenarios/accept-queue-overflow/README.md");
  await shown.page.locator("input[name=sets]").first().fill("backend.accept_count=-1");
  await shown.page.getByRole("button", { name: "Run it" }).click();
  await shown.page.locator("#ended", { hasText: "ended with 2" }).waitFor();
  assert.match(await shown.page.locator("#shown").innerText(), /^connlab run accept-queue-overflow --set=backend/);
  assert.match(await shown.page.locator("#lines").innerText(), /backend\.accept_count must be/);
});

test("asks nobody else for anything, and reports no error of its own", async () => {
  assert.deepEqual(shown.seen.errors, []);
  assert.ok(shown.seen.requests.every((url) => url.startsWith(BASE)));
  // The report's one: its sandbox refuses what was tried above.
  assert.ok(
    shown.seen.messages.every((text) => /Content Security Policy/.test(text)),
    shown.seen.messages.join("\n"),
  );
});
