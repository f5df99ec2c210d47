// A run's report in a real browser: each section has its content, whatever became of the run.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { SCREENSHOTS, launch, open, picture, report } from "./browser.js";

const RUNS = ["failing", "healthy", "aborted", "without-captures", "hostile"];
const SECTIONS = ["verdict", "happened", "path", "connections", "ledger", "conditions"];
const CHARTS = ["requests", "spans", "times", "queue", "kernel", "sockets", "time-wait", "servers", "cpu"];
const BYTES_MAX = 2_000_000;

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const textOf = (page, selector) => page.locator(selector).innerText();
const drawn = (page) => page.locator("[data-chart] canvas").count();

for (const run of RUNS) {
  describe(`the report of a run that is ${run}`, () => {
    let shown;
    before(async () => {
      shown = await open(browser, report(run));
    });
    after(() => shown.close());

    test("has all sections, each with content", async () => {
      for (const section of SECTIONS) {
        const text = await textOf(shown.page, `#${section}`);
        assert.ok(text.length > 100 || /Nothing to draw/.test(text), `${section}: ${text}`);
      }
    });

    test("says of each chart what it shows, or why there is none", async () => {
      for (const chart of CHARTS) {
        const figure = shown.page.locator(`#timeline-${chart}`);
        const missing = await figure.locator(".missing").count();
        assert.equal(missing + (await figure.locator("canvas").count()), 1, chart);
        assert.equal(missing + (await figure.locator("table.numbers").count()), 1, chart);
      }
    });

    test("reports no error, asks for nothing but itself, and stays below 2 MB", () => {
      assert.deepEqual(shown.seen.errors.concat(shown.seen.messages), []);
      assert.equal(shown.seen.requests.length, 1);
      assert.ok(statSync(report(run)).size < BYTES_MAX);
    });

    test("is no wider than the screen of a phone", async () => {
      const phone = await open(browser, report(run), { width: 390, height: 800 });
      const width = await phone.page.evaluate(() => document.documentElement.scrollWidth);
      await phone.close();
      assert.ok(width <= 390, `${width}`);
    });
  });
}

describe("the time lines", () => {
  let shown;
  before(async () => {
    shown = await open(browser, report("failing"));
  });
  after(() => shown.close());

  const cursors = () =>
    shown.page
      .locator(".timeline .cursor")
      .evaluateAll((lines) => lines.filter((one) => !one.hidden).map((one) => one.style.left));
  const readouts = () => shown.page.locator(".readout b").allInnerTexts();

  test("share one cursor: pointing at one chart moves it in all", async () => {
    const charts = await drawn(shown.page);
    const chart = shown.page.locator('[data-chart="queue"]');
    await chart.scrollIntoViewIfNeeded();
    const box = await chart.boundingBox();
    await shown.page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    const [places, texts] = [await cursors(), await readouts()];
    assert.equal(places.length, charts);
    assert.equal(new Set(places).size, 1, places.join(" "));
    assert.equal(texts.length, charts);
    assert.equal(new Set(texts).size, 1);
    await shown.page.mouse.move(box.x + box.width / 4, box.y + box.height / 2);
    assert.notDeepEqual(await readouts(), texts);
  });

  test("the keyboard and the slider move it too, and the read-out tells of the queue", async () => {
    await shown.page.locator("#cursor").focus();
    await shown.page.keyboard.press("Home");
    assert.match((await readouts())[0], /at 0\.0 s/);
    await shown.page.locator('[data-chart="queue"]').focus();
    for (let press = 0; press < 10; press += 1) await shown.page.keyboard.press("ArrowRight");
    assert.match((await readouts())[0], /at 5\.2 s/);
    assert.match(await textOf(shown.page, "#timeline-queue .readout"), /backend: waiting: 2 .*backend: limit: 1/);
  });

  test("share one zoom, by key, by button and by dragging", async () => {
    const range = () => textOf(shown.page, "#cursor-at");
    await shown.page.locator('[data-chart="kernel"]').focus();
    await shown.page.keyboard.press("+");
    const zoomed = await range();
    assert.match(zoomed, /showing \d/);
    await shown.page.locator("#zoom-all").click();
    assert.doesNotMatch(await range(), /showing/);
    const chart = shown.page.locator('[data-chart="sockets"]');
    await chart.scrollIntoViewIfNeeded();
    const box = await chart.boundingBox();
    await shown.page.mouse.move(box.x + box.width * 0.3, box.y + box.height / 2);
    await shown.page.mouse.down();
    await shown.page.mouse.move(box.x + box.width * 0.6, box.y + box.height / 2, { steps: 4 });
    await shown.page.mouse.up();
    assert.match(await range(), /showing 1\d\.\d to 3\d\.\d s/);
    await shown.page.locator("#zoom-all").click();
  });

  test("the button turns light into dark and keeps the charts", async () => {
    const ground = () => shown.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const before = await ground();
    await shown.page.locator("#theme").click();
    assert.notEqual(await ground(), before);
    assert.equal(await drawn(shown.page), await shown.page.locator("[data-chart]").count());
  });
});

describe("the player", () => {
  const AT = /at (\d+\.\d) s/;
  const seconds = async (page) => Number((await textOf(page, "#timeline-requests .readout")).match(AT)[1]);
  const FAILURE = '.ladder[data-kind="failed"]';
  const shownSteps = (page) => page.locator(`${FAILURE} .step:not(.later):not(.pause)`).count();
  const allSteps = (page) => page.locator(`${FAILURE} .step:not(.pause)`).count();

  test("plays: the cursor moves in all charts until it is paused, and goes on from there", async () => {
    const { page, seen, close } = await open(browser, report("failing"));
    await page.locator("#speed").selectOption("5");
    await page.getByRole("button", { name: "Play" }).click();
    await page.waitForFunction(() => Number(document.getElementById("cursor").value) > 50);
    await page.getByRole("button", { name: "Pause" }).click();
    const paused = await seconds(page);
    assert.ok(paused > 1, `${paused}`);
    const places = await page
      .locator(".timeline .cursor")
      .evaluateAll((all) => all.map((one) => Math.round(parseFloat(one.style.left))));
    assert.equal(new Set(places).size, 1);
    await page.waitForTimeout(150);
    assert.equal(await seconds(page), paused);
    await page.locator('[data-chart="queue"]').focus();
    await page.keyboard.press("Space");
    await page.waitForFunction(
      (before) => Number(document.getElementById("cursor").value) > before,
      Number(await page.locator("#cursor").inputValue()),
    );
    await page.keyboard.press("Space");
    assert.equal(await page.locator("#play").innerText(), "Play");
    assert.deepEqual(seen.errors.concat(seen.messages), []);
    await close();
  });

  test("the queue and the ladders follow it: what is to come fades, and comes", async () => {
    const { page, close } = await open(browser, report("failing"));
    assert.equal(await shownSteps(page), await allSteps(page));
    const queue = () => textOf(page, "#queues");
    assert.match(await queue(), /backend: accept queue\s+0 of 1 \+ 1, empty; 0 overflows so far/);
    const slider = page.locator("#cursor");
    const counts = [];
    for (const moment of [0, 60, 500, 1000]) {
      await slider.fill(String(moment));
      counts.push(await shownSteps(page));
    }
    assert.deepEqual(
      counts,
      [...counts].sort((one, other) => one - other),
    );
    assert.ok(counts[0] < counts[1] && counts[1] < counts[2], `${counts}`);
    assert.equal(counts[3], await allSteps(page));
    await slider.fill("60");
    assert.match(await queue(), /2 of 1 \+ 1, full; \d+ overflows so far/);
    assert.equal(await page.locator("#queues .places.full .taken").count(), 2);
    assert.match(await textOf(page, `${FAILURE} .so-far`), /^At \d+\.\d+ s: \d+ of its \d+ steps so far/);
    await page.getByRole("button", { name: "Show all" }).click();
    assert.equal(await shownSteps(page), await allSteps(page));
    assert.equal(await page.locator(`${FAILURE} .so-far`).isVisible(), false);
    await close();
  });

  test("stops at the end, begins anew from there, and plays only what is zoomed to", async () => {
    const { page, close } = await open(browser, report("failing"));
    const chart = page.locator('[data-chart="queue"]');
    await page.locator("#cursor").fill("0");
    await chart.focus();
    for (let press = 0; press < 6; press += 1) await page.keyboard.press("+");
    await page.locator("#speed").selectOption("5");
    await page.keyboard.press("Space");
    await page.waitForFunction(() => document.getElementById("play").textContent === "Play");
    const end = await seconds(page);
    assert.ok(end > 0.2 && end < 1, `${end}`);
    await page.keyboard.press("[");
    assert.equal(await page.locator("#speed").inputValue(), "2");
    // Watched from inside the page: it may be at its end again before a busy machine asks.
    const before = Number(await page.locator("#cursor").inputValue());
    await page.evaluate(() => {
      const cursor = document.getElementById("cursor");
      const look = () => {
        window.least = Math.min(window.least ?? Infinity, Number(cursor.value));
        requestAnimationFrame(look);
      };
      look();
    });
    await page.keyboard.press("Space");
    await page.waitForFunction((moment) => window.least < moment, before);
    await close();
  });

  test("goes in steps if the reader asked for less motion", async () => {
    const { page, close } = await open(browser, report("failing"));
    await page.emulateMedia({ reducedMotion: "reduce" });
    await page.locator("#speed").selectOption("10");
    // Each moment that it shows, as the page itself sees them.
    await page.evaluate(() => {
      const readout = document.querySelector("#timeline-requests .readout");
      window.moments = new Set();
      const look = () => {
        window.moments.add(readout.textContent.match(/at (\d+\.\d) s/)?.[1]);
        requestAnimationFrame(look);
      };
      look();
    });
    await page.getByRole("button", { name: "Play" }).click();
    await page.waitForFunction(() => window.moments.has("20.0"));
    const moments = (await page.evaluate(() => [...window.moments])).filter(Boolean).map(Number);
    assert.ok(
      moments.every((moment) => moment % 10 === 0),
      `${moments}`,
    );
    await close();
  });

  test("has a name for each of its controls, and takes the keyboard from the slider too", async () => {
    const { page, close } = await open(browser, report("failing"));
    await page.locator("#cursor").focus();
    await page.keyboard.press("]");
    assert.equal(await page.locator("#speed").inputValue(), "5");
    const names = await page
      .locator("#controls button, #controls select, #controls input")
      .evaluateAll((all) => all.map((one) => one.textContent || one.labels?.[0]?.textContent));
    assert.ok(names.every(Boolean), `${names}`);
    await close();
  });
});

test("hostile strings are shown as text and do nothing", async () => {
  const { page, seen, close } = await open(browser, report("hostile"));
  await page.locator("details").evaluateAll((all) => all.forEach((one) => (one.open = true)));
  assert.equal(await page.evaluate(() => window.hurt), undefined);
  assert.equal(await page.locator("img").count(), 0);
  assert.deepEqual(seen.errors.concat(seen.messages), []);
  assert.ok((await page.locator("body").innerText()).includes("<img src=x onerror=window.hurt=1>"));
  assert.ok((await page.locator("body").innerText()).includes("{{7*7}}"));
  // Marks that turn the direction of text are seen, and do not act.
  assert.ok((await page.locator("body").innerText()).includes("\\u202e"));
  assert.ok(!(await page.locator("main").innerText()).includes("\u202e"));
  await close();
});

test("the policy stops a script that would come in all the same", async () => {
  const { page, close } = await open(browser, report("failing"));
  const ran = await page.evaluate(async () => {
    const script = document.createElement("script");
    script.textContent = "window.hurt = 1";
    document.body.append(script);
    const image = document.createElement("img");
    image.setAttribute("onerror", "window.hurt = 2");
    image.src = "data:,";
    document.body.append(image);
    await new Promise((resolve) => setTimeout(resolve, 200));
    return window.hurt;
  });
  assert.equal(ran, undefined);
  await close();
});

test("what is read has contrast enough, in light and dark", async () => {
  for (const scheme of ["light", "dark"]) {
    const { page, close } = await open(browser, report("failing"), { scheme });
    const poor = await page.evaluate(() => {
      const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      const rgb = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
      };
      const light = ([red, green, blue]) =>
        [red, green, blue]
          .map((part) => part / 255)
          .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
          .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
      const ground = (element) => {
        for (let each = element; each; each = each.parentElement) {
          const found = rgb(getComputedStyle(each).backgroundColor);
          if (found[3] === 255) return found;
        }
        return [255, 255, 255, 255];
      };
      const found = [];
      for (const element of document.querySelectorAll(
        "p, td, th, li, dt, dd, h1, h2, h3, h4, summary, figcaption, a, code, button",
      )) {
        if (!element.textContent.trim()) continue;
        const [one, other] = [light(rgb(getComputedStyle(element).color)), light(ground(element))].sort(
          (a, b) => b - a,
        );
        const contrast = (one + 0.05) / (other + 0.05);
        if (contrast < 4.5)
          found.push(
            `${element.tagName} ${element.className} ${contrast.toFixed(2)} ${element.textContent.slice(0, 30)}`,
          );
      }
      return found;
    });
    assert.deepEqual(poor, [], scheme);
    await close();
  }
});

test("pictures, in light and dark, wide and narrow", { skip: !SCREENSHOTS }, async () => {
  for (const run of RUNS) {
    for (const scheme of ["light", "dark"]) {
      for (const width of [390, 1280, 1920]) {
        const { page, close } = await open(browser, report(run), { width, scheme });
        await picture(page, `${run}-${scheme}-${width}`);
        await close();
      }
    }
  }
});
