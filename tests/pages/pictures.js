// Draws the documents' pictures of the report in CONNLAB_PAGES: `node pictures.js <folder>` (make example).
import { join } from "node:path";
import { PAGES, launch, open } from "./browser.js";

const [folder] = process.argv.slice(2);
const WIDTH = 1100;
const FAILURE = '.ladder[data-kind="failed"]';
// The fourth SYN of every failed connection has been dropped, the fifth is to come.
const MOMENT_S = 12;

const browser = await launch();
const shown = async (height) =>
  (await open(browser, join(process.cwd(), PAGES, "report.html"), { width: WIDTH, height })).page;
const keep = (page, name) => page.screenshot({ path: join(folder, `${name}.png`) });

await keep(await shown(1270), "report");

const page = await shown(860);
await page.locator("#speed").selectOption("2");
const at = async (value) => {
  await page.locator("#cursor").fill(String(value));
  return Number((await page.locator("#timeline-requests .readout").innerText()).match(/at (\d+\.\d) s/)[1]);
};
const last = Number(await page.locator("#cursor").getAttribute("max"));
for (let value = 0; value < last && (await at(value)) < MOMENT_S; value += 1);
await page.locator("#cursor").blur();
await page.locator(FAILURE).evaluate((ladder) => ladder.scrollIntoView({ block: "start" }));
await keep(page, "report-player");
await browser.close();
