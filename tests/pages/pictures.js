// Draws the documents' pictures of the report in CONNLAB_PAGES: `node pictures.js <folder> <frames>` (make example).
// The frames are those of a moving picture: the player at each second of the run, in the folder <frames>.
import { join } from "node:path";
import { PAGES, launch, open } from "./browser.js";

const [folder, frames] = process.argv.slice(2);
const WIDTH = 1100;
const FAILURE = '.ladder[data-kind="failed"]';
// The fourth SYN of every failed connection has been dropped, the fifth is to come.
const MOMENT_S = 12;
// A failed connection from its first SYN to its connect timeout, seen as a README shows it.
const FRAMES_S = 32;
const FRAMED = { width: 1040, height: 620 };

const browser = await launch();
const shown = async (size) => (await open(browser, join(process.cwd(), PAGES, "report.html"), size)).page;
const keep = (page, file) => page.screenshot({ path: file });

/** The report's player with its ladder of a failure at the top, and what moves its cursor to a second. */
async function player(size) {
  const page = await shown(size);
  await page.locator("#speed").selectOption("2");
  const read = async () =>
    Number((await page.locator("#timeline-requests .readout").innerText()).match(/at (\d+\.\d) s/)[1]);
  const last = Number(await page.locator("#cursor").getAttribute("max"));
  let value = 0;
  const until = async (second) => {
    for (; value < last; value += 1) {
      await page.locator("#cursor").fill(String(value));
      if ((await read()) >= second) break;
    }
    await page.locator("#cursor").blur();
    await page.locator(FAILURE).evaluate((ladder) => ladder.scrollIntoView({ block: "start" }));
  };
  return { page, until };
}

await keep(await shown({ width: WIDTH, height: 780 }), join(folder, "report.png"));

const still = await player({ width: WIDTH, height: 860 });
await still.until(MOMENT_S);
await keep(still.page, join(folder, "report-player.png"));

const moving = await player(FRAMED);
// As the button says while the report plays.
await moving.page.locator("#play").evaluate((button) => (button.textContent = "Pause"));
for (let second = 0; second <= FRAMES_S; second += 1) {
  await moving.until(second);
  await keep(moving.page, join(frames, `${String(second).padStart(3, "0")}.png`));
}
await browser.close();
