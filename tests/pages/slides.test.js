// A workshop's slides in a real browser: one at a time, by keys, and none larger than the screen.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PAGES, SCREENSHOTS, launch, open, picture } from "./browser.js";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

for (const name of ["90-minutes", "half-a-day", "one-day"]) {
  test(`the slides of ${name} fit a projector`, async () => {
    const { page, seen, close } = await open(browser, join(PAGES, "slides", `${name}.html`), { height: 720 });
    const count = await page.locator(".slide").count();
    assert.ok(count >= 5);
    const large = [];
    for (let number = 1; number <= count; number += 1) {
      assert.equal(await page.locator(".slide:visible .count").innerText(), `${number} of ${count}`);
      const size = await page.evaluate(() => [
        document.documentElement.scrollHeight - innerHeight,
        document.documentElement.scrollWidth - innerWidth,
      ]);
      if (size.some((over) => over > 0)) large.push([number, ...size]);
      if (SCREENSHOTS && number <= 6) await picture(page, `slides-${name}-${number}`);
      await page.keyboard.press("ArrowRight");
    }
    assert.deepEqual(large, []);
    assert.equal(await page.locator(".slide:visible .count").innerText(), `${count} of ${count}`);
    await page.keyboard.press("Home");
    assert.match(await page.locator(".slide:visible .count").innerText(), /^1 of/);
    assert.deepEqual(seen.errors.concat(seen.messages), []);
    assert.ok(seen.requests.every((url) => url.startsWith("file://")));
    await close();
  });
}
