// The time lines of a report: one cursor and one zoom for all. Texts of a run are set as text or drawn, never parsed.
"use strict";

const MARGIN_PX = 4;

/**
 * @typedef {object} Drawn
 * @property {any} chart
 * @property {Chart} instance
 * @property {HTMLElement | SVGElement} element
 * @property {HTMLElement | SVGElement} readout
 * @property {HTMLElement} line
 * @property {HTMLElement} brush
 */

/**
 * All charts, and what they share. `followers` are called with each place of the cursor; while it is `played`, pointing
 * leaves it alone; `keys` are further ones that a chart and the slider listen to.
 * @type {Span & { charts: Drawn[], from: number, to: number, cursor: number, followers: ((second: number) => void)[],
 *   played: boolean, keys: Record<string, () => void> }}
 */
const shared = {
  first: 0,
  last: 1,
  phases: data.phases,
  charts: [],
  from: 0,
  to: 1,
  cursor: 0,
  followers: [],
  played: false,
  keys: {},
};

/** The value of a level at a moment: the last one before. */
function levelAt(points, second) {
  let value = null;
  for (const [from, level] of points) {
    if (from > second + 1e-9) break;
    value = level;
  }
  return value;
}

/** What a series says at a moment; null where it says nothing. */
function at(chart, each, second) {
  if (chart.kind === "bars") {
    const found = each.points.find(([from]) => second >= from && second < from + chart.width);
    return found ? valueText(chart, found[1]) : "0";
  }
  if (chart.kind === "spans") {
    return `${each.points.filter(([begin], index) => begin <= second && second < each.ends[index]).length} in progress`;
  }
  if (chart.kind === "points") {
    const reach = (shared.to - shared.from) / 100;
    const near = each.points.filter(([from]) => Math.abs(from - second) <= reach).map(([, value]) => value);
    if (!near.length) return null;
    const most = Math.max(...near);
    return near.length === 1 ? valueText(chart, most) : `${near.length}, maximum ${valueText(chart, most)}`;
  }
  const value = levelAt(each.points, second);
  return value === null ? null : valueText(chart, value);
}

function readOut({ chart, readout }) {
  const parts = chart.series
    .map((each) => [each.name, at(chart, each, shared.cursor)])
    .filter(([, text]) => text !== null);
  readout.replaceChildren(make("b", "", `at ${shared.cursor.toFixed(1)} s`));
  for (const [name, text] of parts) readout.append(make("span", "", `${name}: ${text}`), " ");
}

function placeCursor({ instance, line }) {
  const visible = shared.cursor >= shared.from - 1e-9 && shared.cursor <= shared.to + 1e-9;
  line.hidden = !visible;
  if (visible) line.style.left = `${instance.convertToPixel({ xAxisIndex: 0 }, shared.cursor)}px`;
}

function setCursor(second) {
  shared.cursor = Math.min(Math.max(second, shared.first), shared.last);
  const slider = elementOf("cursor", HTMLInputElement);
  slider.value = String(Math.round((1000 * (shared.cursor - shared.first)) / (shared.last - shared.first)));
  slider.setAttribute("aria-valuetext", `${shared.cursor.toFixed(1)} seconds`);
  const zoomed = shared.from > shared.first || shared.to < shared.last;
  part("cursor-at").textContent =
    `${shared.cursor.toFixed(1)} s` +
    (zoomed ? `, showing ${shared.from.toFixed(1)} to ${shared.to.toFixed(1)} s` : "");
  for (const each of shared.charts) {
    placeCursor(each);
    readOut(each);
  }
  for (const follow of shared.followers) follow(shared.cursor);
}

const SHORTEST_S = 0.2;

function setRange(from, to) {
  const width = Math.min(Math.max(to - from, SHORTEST_S), shared.last - shared.first);
  shared.from = Math.min(Math.max(from, shared.first), shared.last - width);
  shared.to = shared.from + width;
  for (const { instance } of shared.charts) {
    instance.dispatchAction(
      { type: "dataZoom", startValue: shared.from, endValue: shared.to },
      { silent: true, flush: true },
    );
  }
  setCursor(shared.cursor);
}

function zoom(factor) {
  const width = (shared.to - shared.from) * factor;
  const share = (shared.cursor - shared.from) / (shared.to - shared.from);
  const held = share >= 0 && share <= 1 ? share : 0.5;
  const centre = share >= 0 && share <= 1 ? shared.cursor : (shared.from + shared.to) / 2;
  setRange(centre - width * held, centre - width * held + width);
}

const STEPS = 100;

function onKey(event) {
  const step = (shared.to - shared.from) / STEPS;
  const actions = {
    ArrowLeft: () => setCursor(shared.cursor - step),
    ArrowRight: () => setCursor(shared.cursor + step),
    PageUp: () => setCursor(shared.cursor - 10 * step),
    PageDown: () => setCursor(shared.cursor + 10 * step),
    Home: () => setCursor(shared.from),
    End: () => setCursor(shared.to),
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    0: () => setRange(shared.first, shared.last),
    ...shared.keys,
  };
  const action = actions[event.key];
  if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  action();
}

/** Pointing moves the cursor; dragging with a mouse chooses what to zoom to. */
function listen(each) {
  const { instance, element, brush } = each;
  const second = (x) => instance.convertFromPixel({ xAxisIndex: 0 }, x);
  let start = null;
  instance.getZr().on("mousedown", (event) => {
    start = event.event.zrByTouch || event.offsetY < GRID.top ? null : event.offsetX;
  });
  instance.getZr().on("mousemove", (event) => {
    if (!shared.played) setCursor(second(event.offsetX));
    const wide = start !== null && Math.abs(event.offsetX - start) > MARGIN_PX;
    brush.hidden = !wide;
    if (!wide) return;
    brush.style.left = `${Math.min(start, event.offsetX)}px`;
    brush.style.width = `${Math.abs(event.offsetX - start)}px`;
  });
  const end = (event) => {
    if (!brush.hidden && start !== null && event) {
      const ends = [second(start), second(event.offsetX)].sort((one, other) => one - other);
      brush.hidden = true;
      start = null;
      setRange(...ends);
    }
    brush.hidden = true;
    start = null;
  };
  instance.getZr().on("mouseup", end);
  instance.getZr().on("globalout", () => end(null));
  instance.on("datazoom", () => {
    const [{ startValue, endValue }] = instance.getOption().dataZoom;
    if (
      startValue !== undefined &&
      (Math.abs(startValue - shared.from) > 1e-6 || Math.abs(endValue - shared.to) > 1e-6)
    ) {
      setRange(startValue, endValue);
    }
  });
  element.addEventListener("keydown", onKey);
  window.addEventListener("resize", () => placeCursor(each));
}

function overlay(element, name) {
  const layer = make("div", name);
  layer.hidden = true;
  element.append(layer);
  return layer;
}

function drawTimelines() {
  const holders = parts("[data-chart]");
  if (!holders.length) return;
  const ends = [
    ...data.phases.map((phase) => phase.to),
    ...data.charts.flatMap((chart) => chart.series.flatMap((each) => each.points.map(([second]) => second))),
  ];
  shared.last = shared.to = Math.max(
    ends.reduce((one, other) => Math.max(one, other), 0),
    1,
  );
  for (const element of holders) {
    const chart = data.charts.find((each) => each.id === element.dataset.chart);
    const instance = echarts.init(element, null, { renderer: "canvas" });
    keep(() => instance.setOption(timeline(chart, shared), true));
    const each = {
      chart,
      instance,
      element,
      readout: parts(".readout", element.parentElement ?? document)[0],
      line: overlay(element, "cursor"),
      brush: overlay(element, "brush"),
    };
    shared.charts.push(each);
    window.addEventListener("resize", () => instance.resize());
    listen(each);
  }
  part("controls").hidden = false;
  const slider = elementOf("cursor", HTMLInputElement);
  slider.addEventListener("input", () =>
    setCursor(shared.first + (Number(slider.value) / 1000) * (shared.last - shared.first)),
  );
  part("zoom-in").addEventListener("click", () => zoom(0.5));
  part("zoom-out").addEventListener("click", () => zoom(2));
  part("zoom-all").addEventListener("click", () => setRange(shared.first, shared.last));
  setCursor(shared.first);
  // A chart that is drawn again shows the whole time.
  drawn.push(() => setRange(shared.from, shared.to));
}

drawTimelines();
