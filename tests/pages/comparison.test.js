// A comparison in a real browser: every chart is drawn, those of the pairs once they are opened.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { SCREENSHOTS, comparison, launch, open, picture } from "./browser.js";

// How many maps and pairs each has: a map for each level of the third axis, a pair for each cell with the baseline.
const COMPARISONS = {
  matrix: { maps: 2, pairs: 10 },
  hostile: { maps: 1, pairs: 1 },
  arms: { maps: 1, pairs: 3 },
  search: { maps: 1, pairs: 5 },
  five: { maps: 1, pairs: 4 },
  plain: { maps: 1, pairs: 8 },
};
const HOSTILE = "<img src=x onerror=window.hurt=1>";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

for (const [name, { maps, pairs }] of Object.entries(COMPARISONS)) {
  describe(`the comparison that is ${name}`, () => {
    let shown;
    before(async () => {
      shown = await open(browser, comparison(name));
    });
    after(() => shown.close());

    const drawn = (selector) => shown.page.locator(`${selector}:has(canvas)`).count();

    test("has a chart for each part of its cells", async () => {
      assert.equal(await shown.page.locator("#maps .chart").count(), maps);
      assert.equal(await drawn("#maps .chart"), maps);
    });

    test("draws the figure that is chosen", async () => {
      // A chart draws on several canvases, of which some stay as they are.
      const image = () => [...document.querySelectorAll("#maps canvas")].map((canvas) => canvas.toDataURL()).join();
      const figure = "client.latency_ms.mean";
      const select = shown.page.locator("#figure");
      if ((await select.inputValue()) === figure || !(await select.locator(`[value="${figure}"]`).count())) return;
      const first = await shown.page.evaluate(image);
      await select.selectOption(figure);
      await shown.page.waitForFunction(
        (earlier) =>
          [...document.querySelectorAll("#maps canvas")].map((canvas) => canvas.toDataURL()).join() !== earlier,
        first,
      );
      const label = await shown.page.locator("#maps .chart").first().getAttribute("aria-label");
      assert.ok(label.startsWith("Chart: ") && label.includes(figure));
      // The last is the one with the odd name, where there is one.
      const figures = await shown.page.locator("#figure option").count();
      await shown.page.locator("#figure").selectOption({ index: figures - 1 });
    });

    test("draws the differences of each pair once it is opened", async () => {
      assert.equal(await drawn("[data-pair]"), 0);
      await shown.page.locator("details").evaluateAll((all) => all.forEach((one) => (one.open = true)));
      await shown.page.waitForFunction(
        (count) => document.querySelectorAll("[data-pair]:has(canvas)").length === count,
        pairs,
      );
      assert.equal(await drawn("[data-pair]"), pairs);
    });

    test("tells in each chart what the pointer is on, and reports no error", async () => {
      for (const chart of await shown.page.locator(".chart:visible").all()) await chart.hover();
      if (SCREENSHOTS) await picture(shown.page, `comparison-${name}`);
      assert.deepEqual(shown.seen.errors.concat(shown.seen.messages), []);
      assert.equal(shown.seen.requests.length, 1);
    });

    test("is dark where its reader wants it dark, and no wider than a phone", async () => {
      const { page } = shown;
      const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const charts = () =>
        page.evaluate(() => [...document.querySelectorAll("canvas")].map((canvas) => canvas.toDataURL()));
      const [light, drawn] = [await ground(), await charts()];
      await page.locator("#theme").click();
      assert.notEqual(await ground(), light);
      // Every chart is drawn again in other colours, those of the pairs too.
      await page.waitForFunction(
        (earlier) => [...document.querySelectorAll(".chart canvas")].some((one, at) => one.toDataURL() !== earlier[at]),
        drawn,
      );
      if (SCREENSHOTS) await picture(page, `comparison-${name}-dark`);
      await page.setViewportSize({ width: 420, height: 900 });
      await page.waitForFunction(() => document.documentElement.scrollWidth <= window.innerWidth);
      if (SCREENSHOTS) await picture(page, `comparison-${name}-narrow`);
      assert.deepEqual(shown.seen.errors.concat(shown.seen.messages), []);
    });
  });
}

test("a series begins with its figure, how far its arms are apart, and what moved", async () => {
  const { page, seen, close } = await open(browser, comparison("arms"));
  assert.equal(await page.locator("#figure").inputValue(), "client.latency_ms.mean");
  assert.equal(await page.locator("#about:has(canvas)").count(), 1);
  assert.equal(await page.locator(".moved").count(), 3);
  const [first] = await page.locator(".moved ul").allInnerTexts();
  assert.match(first, /fewer connections opened: 502 → 3/);
  assert.match(first, /fewer connections: 500 → 1/);
  assert.match(first, /faster answers: 1\.24 → 0\.64 ms/);
  assert.doesNotMatch(first, /identities/);
  assert.deepEqual(seen.errors.concat(seen.messages), []);
  await close();
});

test("a search is its path to the border, with the model's border beside the one that was found", async () => {
  const { page, seen, close } = await open(browser, comparison("search"));
  assert.equal(await page.locator("#search:has(canvas)").count(), 1);
  const option = await page.evaluate(() => echarts.getInstanceByDom(document.querySelector("#search")).getOption());
  const [tries] = option.series;
  assert.deepEqual(
    tries.data.map((one) => one.value),
    [40, 200, 120, 80, 101, 102],
  );
  assert.deepEqual(
    tries.markLine.data.map((line) => [line.name, line.yAxis]),
    [
      ["found", 102],
      ["by the model", 101],
    ],
  );
  const table = page.locator("table").filter({ has: page.locator("th", { hasText: "held" }) });
  assert.deepEqual(await table.locator("tr td:nth-child(3)").allInnerTexts(), [
    "✗ no",
    "✓ yes",
    "✓ yes",
    "✗ no",
    "? unknown",
    "✓ yes",
  ]);
  assert.equal(await table.locator("a").count(), 6);
  assert.deepEqual(seen.errors.concat(seen.messages), []);
  await close();
});

test("the runs of five arms stand under one another, on one scale, and what lacks is said", async () => {
  const { page, seen, close } = await open(browser, comparison("five"));
  assert.match(await page.locator("#line option").first().innerText(), /^Requests by outcome/);
  const headings = await page.locator("#lines h3").allInnerTexts();
  assert.deepEqual(
    headings.map((text) => text.split(":")[0]),
    ["full", "room", "underived"],
  );
  assert.equal(await page.locator("#lines h3 a").count(), 3);
  assert.match(await page.locator("#lines > p").last().innerText(), /the run has no ledger.json/);
  const options = () =>
    page.evaluate(() =>
      [...document.querySelectorAll("#lines .chart:not([hidden])")].map((one) =>
        echarts.getInstanceByDom(one).getOption(),
      ),
    );
  for (let chosen = 0; chosen < (await page.locator("#line option").count()); chosen += 1) {
    await page.locator("#line").selectOption({ index: chosen });
    const shown = await options();
    assert.ok(shown.length >= 2, `${chosen}`);
    for (const { xAxis, yAxis } of shown) {
      assert.deepEqual([xAxis[0].min, xAxis[0].max], [shown[0].xAxis[0].min, shown[0].xAxis[0].max]);
      assert.equal(yAxis[0].max, shown[0].yAxis[0].max);
    }
  }
  await page.locator("#line").selectOption({ index: 0 });
  await page.locator("#lines summary").first().click();
  const [header, ...rows] = await page.locator("#lines table").first().locator("tr").allInnerTexts();
  assert.match(header, /^from, s/);
  assert.ok(rows.length > 2);
  const text = await page.locator("body").innerText();
  assert.match(text, /missing/);
  assert.match(text, /the backend ended/);
  assert.deepEqual(seen.errors.concat(seen.messages), []);
  await close();
});

test("two axes are a map with the measured border and the model's", async () => {
  const { page, seen, close } = await open(browser, comparison("plain"));
  const option = await page.evaluate(() =>
    echarts.getInstanceByDom(document.querySelector("#maps .chart")).getOption(),
  );
  assert.equal(await page.locator("#figure").inputValue(), "client.users.failed");
  assert.equal(option.series[0].data.length, 9);
  const borders = option.series.filter((each) => each.name?.endsWith("border"));
  // The four cells with more users than places lie on one side, by both.
  assert.deepEqual(
    borders.map((each) => each.data.length),
    [4, 4],
  );
  assert.deepEqual(seen.errors.concat(seen.messages), []);
  await close();
});

test("a cell says whether it came out as the model has it", async () => {
  const { page, close } = await open(browser, comparison("matrix"));
  const option = await page.evaluate(() =>
    echarts.getInstanceByDom(document.querySelector("#maps .chart")).getOption(),
  );
  const cells = option.series[0].data.map((item) => item.cell);
  assert.ok(cells.length > 0);
  const texts = await page.evaluate(() => data.matrix.cells.map((cell) => [cell.agrees, agreement(cell)]));
  for (const [agrees, text] of texts) assert.equal(text, { true: " ✓", false: " ✗" }[agrees] ?? "");
  assert.ok(texts.some(([agrees]) => agrees !== null));
  await close();
});

test("hostile strings in a comparison are shown as text and do nothing", async () => {
  const { page, seen, close } = await open(browser, comparison("hostile"));
  await page.locator("details").evaluateAll((all) => all.forEach((one) => (one.open = true)));
  assert.equal(await page.evaluate(() => window.hurt), undefined);
  assert.equal(await page.locator("img").count(), 0);
  assert.deepEqual(seen.errors.concat(seen.messages), []);
  const tables = (await page.locator("h1, summary, table").allInnerTexts()).join("\n");
  assert.ok(tables.includes(HOSTILE));
  assert.ok(tables.includes("{{7*7}}"));
  // Marks that turn the direction of text are seen, and do not act.
  assert.ok(tables.includes("\\u202e"));
  assert.ok(!tables.includes("\u202e"));
  await close();
});
