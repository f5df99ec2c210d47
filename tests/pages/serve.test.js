// What `connlab serve` shows, in a real browser: lessons, the run at work, foreign reports, the presenter's view.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PAGES, SCREENSHOTS, launch, picture, visit } from "./browser.js";

const ADDRESS = process.env.CONNLAB_SERVED;
const ELSEWHERE = Number(process.env.CONNLAB_ELSEWHERE);
if (!ADDRESS || !ELSEWHERE) throw new Error("CONNLAB_SERVED names no address; hint: make test-pages");
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
  const lessons = await shown.page.locator("#lessons").innerText();
  assert.match(lessons, /The accept queue[^]+accept-queue-turns[^]+TIME_WAIT and ports[^]+who-closes-first/);
  assert.match(await shown.page.locator("#runs").innerText(), /reproduced\s+103\s+100\s+accept queue full/);
});

test("a lesson folds its evidence away, and its links lead on", async () => {
  await shown.page.getByRole("link", { name: "The queue is full, too" }).click();
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

/** The frame in which a report stands. */
const framed = () => shown.page.frames().find((one) => one.url().startsWith(`${BASE}/framed/`));

test("a report is shown as of no origin: it reaches neither the pages nor their forms", async () => {
  await go("/results/accept-queue-overflow/hostile/report.html");
  const report = shown.page.frameLocator("iframe").locator("#verdict");
  await report.waitFor();
  assert.equal(await framed().evaluate(() => window.hurt), undefined);
  assert.equal(await framed().evaluate(() => window.origin), "null");
  const reached = await framed().evaluate(async (base) => {
    try {
      await fetch(`${base}/live.json`);
      return true;
    } catch {
      return false;
    }
  }, BASE);
  assert.equal(reached, false);
});

test("reports lead from one to the next in their frame, and their scripts run", async () => {
  await go("/results/index.html");
  const report = shown.page.frameLocator("iframe");
  await report.getByRole("link", { name: "healthy" }).click();
  await report.locator("#verdict").waitFor();
  assert.match(await report.locator("#verdict").innerText(), /All 3 requests succeeded/);
  assert.ok((await report.locator("canvas, svg").count()) > 0, "its charts are drawn");
  assert.equal(await shown.page.getByText("Another version of the lab").count(), 0);
  if (SCREENSHOTS) await picture(shown.page, "serve-report");
});

/** Another server of this machine, of which a foreign report wants to be read. */
async function elsewhere() {
  const reached = [];
  const web = createServer((request, answer) => {
    reached.push(`${request.url} with the cookie ${request.headers.cookie}`);
    answer.end();
  }).listen(ELSEWHERE, "127.0.0.1");
  const datagrams = createSocket("udp4", () => reached.push("STUN")).bind(ELSEWHERE, "127.0.0.1");
  await Promise.all([once(web, "listening"), once(datagrams, "listening")]);
  /** What has reached it so far. The report alone, opened as a file, reaches it each time: so all else has by then. */
  const soFar = async () => {
    const before = reached.splice(0);
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`file://${join(PAGES, "accept-queue-overflow", "leaving.html")}`, { waitUntil: "commit" });
    while (!reached.includes("STUN") || !reached.some((one) => one.startsWith("/"))) await page.waitForTimeout(50);
    await context.close();
    const during = reached.splice(0).filter((one) => / connlab-/.test(one));
    return [...before, ...during];
  };
  const close = () => {
    web.close();
    web.closeAllConnections();
    datagrams.close();
  };
  return { soFar, close };
}

test("a foreign report sends its reader nowhere, and no packet", async () => {
  const other = await elsewhere();
  const served = await visit(browser, ADDRESS);
  try {
    await served.page.goto(`${BASE}/results/accept-queue-overflow/leaving.html`);
    assert.deepEqual(await other.soFar(), []);
    for (const id of ["link", "top", "tab"]) {
      await served.page.goto(`${BASE}/results/accept-queue-overflow/leading.html`);
      await served.page.frameLocator("iframe").locator(`#${id}`).click();
      assert.deepEqual(await other.soFar(), [], id);
      assert.match(served.page.url(), /leading/);
    }
    assert.equal(served.page.context().pages().length, 1);
  } finally {
    await served.close();
    other.close();
  }
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
