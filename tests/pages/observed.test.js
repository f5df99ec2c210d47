// The page of what already ran, in a real browser: what was found, and nothing that a name could do to it.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { SCREENSHOTS, launch, observed, open, picture } from "./browser.js";

const SECTIONS = ["found", "queues", "connections", "sockets", "conditions"];

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const textOf = async (page, selector) => (await page.locator(selector).innerText()).replace(/\s+/g, " ");

for (const name of ["overflow", "blind", "hostile"]) {
  describe(`the page of an observation: ${name}`, () => {
    let shown;
    before(async () => {
      shown = await open(browser, observed(name));
    });
    after(() => shown.close());

    test("has all sections, each with content", async () => {
      for (const section of SECTIONS) {
        const text = await textOf(shown.page, `#${section}`);
        assert.ok(text.length > 60, `${section}: ${text}`);
      }
    });

    test("reports no error and asks for nothing but itself", async () => {
      assert.deepEqual(shown.seen.errors, []);
      assert.deepEqual(shown.seen.messages, []);
      assert.equal(shown.seen.requests.length, 1);
      assert.equal(await shown.page.evaluate(() => window.hurt), undefined);
    });

    test("is no wider than the screen of a phone, light or dark", async () => {
      for (const scheme of ["light", "dark"]) {
        const phone = await open(browser, observed(name), { width: 390, height: 800, scheme });
        const width = await phone.page.evaluate(() => document.documentElement.scrollWidth);
        if (SCREENSHOTS) await picture(phone.page, `observed-${name}-${scheme}`);
        await phone.close();
        assert.ok(width <= 390, `${width}`);
      }
    });

    test("opens what it folds by the keyboard", async () => {
      const summary = shown.page.locator("details summary").last();
      const folded = shown.page.locator("details").last();
      await summary.focus();
      await shown.page.keyboard.press("Enter");
      assert.equal(await folded.evaluate((each) => each.open), true);
    });
  });
}

test("the queue is drawn against its limit, and a foreign name stays text", async () => {
  const { page, close } = await open(browser, observed("overflow"));
  assert.equal(await page.locator("#queues figure canvas").count(), 1);
  // The player's queues have this name too, and lie in a row.
  assert.equal(await page.locator("#queues").evaluate((section) => getComputedStyle(section).display), "block");
  await close();
  const hostile = await open(browser, observed("hostile"));
  const text = await textOf(hostile.page, "#found");
  await hostile.close();
  assert.ok(text.includes("<script>window.hurt=1</script>"), text);
});
