// A browser for the tests: it notes every message, error and request of a page, and allows no network.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const PAGES = process.env.CONNLAB_PAGES;
export const SCREENSHOTS = process.env.CONNLAB_SCREENSHOTS;
const CHROMIUM = process.env.CONNLAB_CHROMIUM ?? "/usr/bin/chromium";

// So long only a hang lasts, on a busy machine too.
const PATIENCE_MS = 300_000;

if (!PAGES) throw new Error("CONNLAB_PAGES names no folder of pages; hint: make test-pages");

export const report = (run) => join(PAGES, "accept-queue-overflow", run, "report.html");
export const observed = (name) => join(PAGES, "observed", "observed-shop", name, "report.html");
export const index = join(PAGES, "index.html");
export const many = join(PAGES, "many", "index.html");
export const comparison = (name) => join(PAGES, "comparisons", name, "comparison.html");

// Chromium's own sandbox needs privileges that the container does not have.
export const launch = () => chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"], timeout: PATIENCE_MS });

/** Open a page of a file. */
export const open = (browser, file, how = {}) => visit(browser, `file://${file}`, how);

/** Open an address; `seen` has what its page said, did wrong, and asked for. */
export async function visit(browser, address, { width = 1280, height = 900, scheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const seen = { messages: [], errors: [], requests: [] };
  page.on("console", (message) => seen.messages.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => seen.errors.push(error.message));
  page.on("request", (request) => seen.requests.push(request.url()));
  await page.goto(address, { waitUntil: "load" });
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  return { page, seen, close: () => context.close() };
}

/** Keep a picture in SCREENSHOTS. */
export async function picture(page, name) {
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
}
