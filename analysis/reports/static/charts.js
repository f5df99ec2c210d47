// What the charts of every page share. Text in charts is drawn, never parsed: no markup can come from a run.
"use strict";

/** The page's data. */
const data = JSON.parse(part("data").textContent ?? "null");

/** A number with three digits, or as many as it has before the point; never with an exponent. */
function numberText(value) {
  if (value === null || value === undefined) return "unknown";
  if (Number.isInteger(value) || Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return value.toLocaleString("en", { maximumSignificantDigits: 3 });
}

/** A mean with its interval. */
function sampleText(sample) {
  if (!sample || sample.mean === null) return "unknown";
  const interval =
    sample.low === null || sample.low === sample.high ? "" : ` [${numberText(sample.low)}, ${numberText(sample.high)}]`;
  return `${numberText(sample.mean)}${interval}`;
}

/** Charts whose cursors move together, by their group's name. */
function openChart(element, group) {
  const chart = echarts.init(element, null, { renderer: "canvas" });
  chart.group = group;
  echarts.connect(group);
  window.addEventListener("resize", () => chart.resize());
  return chart;
}

/** A colour of the page's theme, by its name there; any other is itself. */
function colour(name) {
  const style = getComputedStyle(document.documentElement);
  return name.startsWith("--") ? style.getPropertyValue(name).trim() : name;
}

/** What draws each chart that is drawn, again, in other colours. */
const drawn = /** @type {(() => void)[]} */ ([]);

/** Draw, now and whenever the page turns light or dark. */
function keep(draw) {
  draw();
  drawn.push(draw);
}

/** Whether the page is dark: as its reader chose by the button, or else as the system prefers. */
function listenForTheme() {
  const redraw = () => drawn.forEach((draw) => draw());
  const preferred = window.matchMedia("(prefers-color-scheme: dark)");
  const button = part("theme");
  button.hidden = false;
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : preferred.matches;
    root.dataset.theme = dark ? "light" : "dark";
    redraw();
  });
  preferred.addEventListener("change", redraw);
}

// Here and nowhere else: a second listener to the button would turn the page back at once.
listenForTheme();

/** What all charts have: tool tips that are drawn on the canvas, which the page's policy asks for. */
const tooltip = { renderMode: "richText", confine: true };
