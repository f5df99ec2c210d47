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
  assert.equal(await page.locator("#timeline-queue-1 canvas").count(), 1);
  // The player's queues have this name too, and lie in a row.
  assert.equal(await page.locator("#queues").evaluate((section) => getComputedStyle(section).display), "block");
  await close();
  const hostile = await open(browser, observed("hostile"));
  const text = await textOf(hostile.page, "#found");
  await hostile.close();
  assert.ok(text.includes("<script>window.hurt=1</script>"), text);
});

describe("the waterfall", () => {
  let shown;
  before(async () => {
    shown = await open(browser, observed("crowd"));
  });
  after(() => shown.close());

  const count = () => textOf(shown.page, "#waterfall-count");

  test("has every connection of 100,000, and none stalls the page", async () => {
    assert.equal(await count(), "100,000 of 100,000 connections");
    assert.deepEqual(shown.seen.errors, []);
    // Drawn in pieces: the page answers between two of them.
    const longest = await shown.page.evaluate(async () => {
      let [last, gap] = [performance.now(), 0];
      document.getElementById("waterfall-all").click();
      for (let frame = 0; frame < 60; frame += 1) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        gap = Math.max(gap, performance.now() - last);
        last = performance.now();
      }
      return gap;
    });
    if (SCREENSHOTS) console.log(`longest frame: ${Math.round(longest)} ms`);
    if (SCREENSHOTS) await picture(shown.page, "waterfall-crowd");
  });

  test("is filtered by outcome and by peer, and zooms with the charts above it", async () => {
    const { page } = shown;
    const outcomes = await page.locator("#waterfall-outcome option").allInnerTexts();
    assert.ok(outcomes.includes("never-answered"), outcomes.join());
    await page.selectOption("#waterfall-outcome", "never-answered");
    const failed = await count();
    assert.notEqual(failed, "100,000 of 100,000 connections");
    await page.fill("#waterfall-peer", "nobody");
    assert.equal(await count(), "0 of 100,000 connections");
    await page.fill("#waterfall-peer", "");
    await page.selectOption("#waterfall-outcome", "");
    await page.click("#zoom-in");
    await page.click("#zoom-in");
    assert.notEqual(await count(), "100,000 of 100,000 connections");
    await page.click("#waterfall-all");
    assert.equal(await count(), "100,000 of 100,000 connections");
    assert.match(await textOf(page, "#cursor-at"), /s$/);
  });

  test("lies under the counters' and queues' charts, each second at the same place in all of them", async () => {
    const { page } = shown;
    await page.click("#zoom-in");
    const places = await page.evaluate(() => {
      const drawn = shared.charts.map(({ chart, instance, element }) => [chart.id, instance, element]);
      return [...drawn, ["waterfall", waterfall.instance, part("waterfall")]].map(([id, instance, element]) => ({
        id,
        top: element.getBoundingClientRect().top,
        seconds: [shared.from, shared.to].map((second) =>
          Math.round(element.getBoundingClientRect().left + instance.convertToPixel({ xAxisIndex: 0 }, second)),
        ),
      }));
    });
    await page.click("#waterfall-all");
    assert.deepEqual(
      places.map(({ id }) => id),
      ["queue-1", "drops-1", "waterfall"],
    );
    for (const [index, place] of places.entries()) {
      assert.deepEqual(place.seconds, places[0].seconds, place.id);
      if (index) assert.ok(place.top > places[index - 1].top, place.id);
    }
  });

  test("is drawn again when the button turns light into dark and back", async () => {
    const { page, close } = await open(browser, observed("overflow"));
    const look = () =>
      page.evaluate(() => ({
        ground: getComputedStyle(document.body).backgroundColor,
        pictures: [...document.querySelectorAll("canvas")].map((canvas) => canvas.toDataURL()),
      }));
    let before = await look();
    assert.ok(before.pictures.length > 1, `${before.pictures.length} canvases`);
    for (const turn of ["into dark", "back"]) {
      await page.locator("#theme").click();
      assert.notEqual((await look()).ground, before.ground, turn);
      // The charts above the waterfall, and the waterfall.
      await page.waitForFunction(
        (earlier) => [...document.querySelectorAll("canvas")].every((one, at) => one.toDataURL() !== earlier[at]),
        before.pictures,
      );
      before = await look();
    }
    await close();
  });

  test("tells of a connection that is pointed at", async () => {
    const few = await open(browser, observed("overflow"));
    await few.page.locator("#waterfall").scrollIntoViewIfNeeded();
    await few.page.locator("#waterfall").hover({ position: { x: 200, y: 30 } });
    assert.match(await textOf(few.page, "#waterfall-row"), /172\.18\.0\.3:\d+ → .*: [a-z-]+, at /);
    if (SCREENSHOTS) await picture(few.page, "waterfall-few");
    await few.close();
  });
});
