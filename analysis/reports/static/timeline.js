// A time line: a chart over seconds, of bars, lines, points or spans. A report and a comparison draw the same ones.
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
// A row that is lower has no room for a line within.
const ROOM_PX = 5;

/**
 * What all time lines of a page share: the seconds that they cover, and the phases that are shaded.
 * @typedef {{ first: number, last: number, phases: { name: string, from: number, to: number }[] }} Span
 */

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
function dense(chart, points, span) {
  const found = new Map(points.map(([at, value]) => [Math.round(at / chart.width), value]));
  const bars = Math.ceil(span.last / chart.width);
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

function drawnSeries(chart, each, rank, span) {
  const hues = HUES[each.tone];
  const itemColour = colour(hues[rank % hues.length]);
  const common = { name: each.name, itemStyle: { color: itemColour }, emphasis: { disabled: true }, animation: false };
  if (chart.kind === "bars") {
    return { ...common, type: "bar", stack: "all", barWidth: "96%", data: dense(chart, each.points, span) };
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
    data: last && last[1] !== null && last[0] < span.last ? [...each.points, [span.last, last[1]]] : each.points,
  };
}

/** What ECharts draws of a time line, over the seconds that all of its page's cover. */
function timeline(chart, span) {
  const ink = colour("--ink");
  const faint = colour("--faint");
  const rule = colour("--rule");
  const order = ranks(chart.series);
  const series = chart.series.map((each, index) => drawnSeries(chart, each, order[index], span));
  const shaded = span.phases.filter((phase) => phase.name !== "measure");
  if (shaded.length && series.length) {
    series[0].markArea = {
      silent: true,
      itemStyle: { color: colour("--shade") },
      label: { color: faint, position: "insideTop", fontSize: 11 },
      data: shaded.map((phase) => [{ name: phase.name, xAxis: phase.from }, { xAxis: Math.min(phase.to, span.last) }]),
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
      min: span.first,
      max: span.last,
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
