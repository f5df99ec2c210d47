// The time lines of a report: one cursor and one zoom for all. Texts of a run are set as text or drawn, never parsed.
"use strict";

/** What series are drawn with, by what they mean; those of the same meaning differ in their dashes and hues. */
const HUES = {
  ok: ["--line-ok"],
  slow: ["--line-slow", "#8c6d1f", "#c9a227", "#6b8e23"],
  fail: ["--line-fail", "#8e24aa", "#c2578a", "#8d6e63", "#e57330"],
  connect: ["--line-connect"],
  limit: ["--line-limit"],
  role: ["#2f8fd0", "#d5732a", "#3a9d5d", "#b565c0", "#b8932b", "#4fb3b3", "#d0507a", "#7d8a97"],
};
const DASHES = ["solid", [7, 3], [2, 3], [9, 3, 2, 3]];
const TONE_DASHES = { ok: "solid", slow: [8, 3], fail: "solid", connect: [2, 3], limit: [4, 4] };
const WIDTHS = { ok: 1.5, fail: 2.5, limit: 1.5 };
const SYMBOLS = { ok: "circle", slow: "diamond", fail: "rect", connect: "path://M0,0 L10,10 M10,0 L0,10" };
// The same for all charts, whatever their labels: a moment lies at the same place in each.
const GRID = { left: 66, right: 16, top: 44, bottom: 28, outerBoundsMode: "none" };
const MARGIN_PX = 4;
// A row that is lower has no room for a line within.
const ROOM_PX = 5;

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
 * @type {{ charts: Drawn[], first: number, last: number, from: number, to: number, cursor: number,
 *   followers: ((second: number) => void)[], played: boolean, keys: Record<string, () => void> }}
 */
const shared = { charts: [], first: 0, last: 1, from: 0, to: 1, cursor: 0, followers: [], played: false, keys: {} };

function msText(value) {
  if (value >= 1000) return `${numberText(value / 1000)} s`;
  return `${numberText(value)} ms`;
}

const valueText = (chart, value) => (chart.unit === "ms" ? msText(value) : numberText(value));

/** The number of each series among those of its chart with the same meaning. */
function ranks(series) {
  const seen = {};
  return series.map((each) => (seen[each.tone] = (seen[each.tone] ?? -1) + 1));
}

/** Bars stack by their place in the list: each series gets a value for each bar. */
function dense(chart, points) {
  const found = new Map(points.map(([at, value]) => [Math.round(at / chart.width), value]));
  const bars = Math.ceil(shared.last / chart.width);
  return Array.from({ length: bars }, (_, bar) => [(bar + 0.5) * chart.width, found.get(bar) ?? 0]);
}

/** A bar from each beginning to its end, one row each; connecting is a thin one over it. */
function spans(chart, each, itemColour) {
  const thin = each.tone === "connect";
  return {
    type: "custom",
    z: thin ? 3 : 2,
    clip: true,
    encode: { x: [0, 1], y: 2 },
    data: each.points.map(([begin, row], index) => [begin, each.ends[index], row]),
    renderItem: (_, api) => {
      const [left, middle] = api.coord([api.value(0), api.value(2)]);
      const right = api.coord([api.value(1), api.value(2)])[0];
      const height = api.size([0, 1])[1];
      if (thin && height < ROOM_PX) return null;
      const row = Math.max(height * (thin ? 0.3 : 0.82), 1);
      const shape = { x: left, y: middle - row / 2, width: Math.max(right - left, 2), height: row };
      // Outside the grid nothing is drawn when zoomed.
      const { x, width } = api.coordSys ?? { x: GRID.left, width: api.getWidth() - GRID.left - GRID.right };
      const from = Math.max(shape.x, x);
      const to = Math.min(shape.x + shape.width, x + width);
      return to > from
        ? { type: "rect", shape: { ...shape, x: from, width: to - from }, style: { fill: itemColour } }
        : null;
    },
  };
}

function drawnSeries(chart, each, rank) {
  const hues = HUES[each.tone];
  const itemColour = colour(hues[rank % hues.length]);
  const common = { name: each.name, itemStyle: { color: itemColour }, emphasis: { disabled: true }, animation: false };
  if (chart.kind === "bars") {
    return { ...common, type: "bar", stack: "all", barWidth: "96%", data: dense(chart, each.points) };
  }
  if (chart.kind === "points") {
    const cross =
      each.tone === "connect" ? { itemStyle: { color: itemColour, borderColor: itemColour, borderWidth: 1.5 } } : {};
    return {
      ...common,
      ...cross,
      type: "scatter",
      symbol: SYMBOLS[each.tone] ?? "circle",
      symbolSize: 7,
      data: each.points,
    };
  }
  if (chart.kind === "spans") return { ...common, ...spans(chart, each, itemColour) };
  const last = each.points[each.points.length - 1];
  return {
    ...common,
    type: "line",
    step: "end",
    symbol: each.points.length === 1 ? "circle" : "none",
    lineStyle: {
      color: itemColour,
      width: WIDTHS[each.tone] ?? 2,
      type: TONE_DASHES[each.tone] ?? DASHES[rank % DASHES.length],
    },
    // A level holds until the end of the chart.
    data: last && last[1] !== null && last[0] < shared.last ? [...each.points, [shared.last, last[1]]] : each.points,
  };
}

function option(chart) {
  const ink = colour("--ink");
  const faint = colour("--faint");
  const rule = colour("--rule");
  const order = ranks(chart.series);
  const series = chart.series.map((each, index) => drawnSeries(chart, each, order[index]));
  const shaded = data.phases.filter((phase) => phase.name !== "measure");
  if (shaded.length && series.length) {
    series[0].markArea = {
      silent: true,
      itemStyle: { color: colour("--shade") },
      label: { color: faint, position: "insideTop", fontSize: 11 },
      data: shaded.map((phase) => [
        { name: phase.name, xAxis: phase.from },
        { xAxis: Math.min(phase.to, shared.last) },
      ]),
    };
  }
  const axis = {
    axisLine: { lineStyle: { color: rule } },
    splitLine: { lineStyle: { color: rule, opacity: 0.6 } },
    nameTextStyle: { color: faint },
  };
  return {
    animation: false,
    aria: { enabled: true, label: { enabled: false }, decal: { show: chart.kind === "bars" } },
    textStyle: { color: ink },
    tooltip: { show: false },
    legend: {
      type: "scroll",
      top: 0,
      left: 0,
      right: 0,
      itemWidth: 30,
      textStyle: { color: ink },
      pageTextStyle: { color: ink },
      pageIconColor: ink,
      pageIconInactiveColor: rule,
    },
    grid: GRID,
    xAxis: {
      ...axis,
      type: "value",
      min: shared.first,
      max: shared.last,
      containShape: false,
      axisLabel: { color: faint, showMaxLabel: false, formatter: (value) => `${Number(value.toFixed(3))} s` },
    },
    yAxis: {
      ...axis,
      ...(chart.kind === "spans"
        ? { inverse: true, min: 0.5, max: rowsOf(chart) + 0.5, splitLine: { show: false } }
        : {}),
      type: chart.log ? "log" : "value",
      minInterval: chart.unit === "ms" ? undefined : 1,
      axisLabel: { color: faint, show: chart.kind !== "spans", formatter: (value) => valueText(chart, value) },
    },
    dataZoom: [
      {
        type: "inside",
        filterMode: "none",
        zoomOnMouseWheel: "ctrl",
        moveOnMouseMove: false,
        moveOnMouseWheel: false,
        preventDefaultMouseMove: false,
      },
    ],
    series,
  };
}

const rowsOf = (chart) => Math.max(...chart.series.flatMap((each) => each.points.map(([, row]) => row)));

/** What a series says at a moment; null where it says nothing. */
function at(chart, each, second) {
  if (chart.kind === "bars") {
    const found = each.points.find(([from]) => second >= from && second < from + chart.width);
    return found ? valueText(chart, found[1]) : "0";
  }
  if (chart.kind === "spans") {
    return `${each.points.filter(([begin], index) => begin <= second && second < each.ends[index]).length} under way`;
  }
  if (chart.kind === "points") {
    const reach = (shared.to - shared.from) / 100;
    const near = each.points.filter(([from]) => Math.abs(from - second) <= reach).map(([, value]) => value);
    if (!near.length) return null;
    const most = Math.max(...near);
    return near.length === 1 ? valueText(chart, most) : `${near.length}, longest ${valueText(chart, most)}`;
  }
  let value = null;
  for (const point of each.points) {
    if (point[0] > second + 1e-9) break;
    value = point[1];
  }
  return value === null ? null : valueText(chart, value);
}

function readOut({ chart, readout }) {
  const parts = chart.series
    .map((each) => [each.name, at(chart, each, shared.cursor)])
    .filter(([, text]) => text !== null);
  const time = document.createElement("b");
  time.textContent = `at ${shared.cursor.toFixed(1)} s`;
  readout.replaceChildren(time);
  for (const [name, text] of parts) {
    const part = document.createElement("span");
    part.textContent = `${name}: ${text}`;
    readout.append(part, " ");
  }
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
  const layer = document.createElement("div");
  layer.className = name;
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
    instance.setOption(option(chart));
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
}

function redraw() {
  for (const { instance, chart } of shared.charts) instance.setOption(option(chart), true);
  if (shared.charts.length) setRange(shared.from, shared.to);
}

drawTimelines();
listenForTheme(redraw);
