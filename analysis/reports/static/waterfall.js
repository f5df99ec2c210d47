// The waterfall of an observation: a row for each connection, from its SYN to its end, on the axis of the other charts.
"use strict";

// So few rows have their parts; of more than LINES_MAX, several share a line.
const PARTS_MAX = 150;
const LINES_MAX = 1200;
const LINES = 600;
const PART_HUES = { connecting: "--line-connect", asking: "--faint", answering: "--line-slow", after: "--line-ok" };
const OF_LINES = { ok: "--line-ok", late: "--line-slow", failed: "--line-fail" };
const EDGE_PX = 4;
const FAILED = ["never-answered", "never-accepted", "refused", "reset", "half-open", "closed-unanswered"];
const LATE = ["recovered", "given-up"];

/** Offsets of a row's columns; a time that is not known is -1, the others are µs from the connection's beginning. */
const [BEGIN, HANDSHAKE, DATA, ANSWER, LASTS, OUTCOME, PEER, SERVER] = [0, 1, 2, 3, 4, 5, 6, 7];
const COLUMNS = 8;

const waterfall = { instance: /** @type {any} */ (null), shown: /** @type {number[]} */ ([]), from: -1, to: -1 };

const cell = (row, column) => data.waterfall.rows[row * COLUMNS + column];
const beginOf = (row) => cell(row, BEGIN) / 1e6;
const endOf = (row) => (cell(row, BEGIN) + cell(row, LASTS)) / 1e6;

function hueOf(outcome) {
  if (FAILED.includes(outcome)) return OF_LINES.failed;
  return LATE.includes(outcome) ? OF_LINES.late : OF_LINES.ok;
}

/** The rows that pass the filters and were there in the time that is shown. */
function chosen() {
  const outcome = elementOf("waterfall-outcome", HTMLSelectElement).value;
  const peer = elementOf("waterfall-peer", HTMLInputElement).value.trim();
  const { outcomes, peers, servers, count } = data.waterfall;
  const passes = [peers, servers].map((names) => names.map((name) => !peer || name.includes(peer)));
  const found = [];
  for (let row = 0; row < count; row += 1) {
    if (outcome && outcomes[cell(row, OUTCOME)] !== outcome) continue;
    if (!passes[0][cell(row, PEER)] && !passes[1][cell(row, SERVER)]) continue;
    if (beginOf(row) <= shared.to && endOf(row) >= shared.from) found.push(row);
  }
  return found;
}

/** A row's parts: from, to (s), and what it is drawn with. */
function partsOf(row) {
  const begin = beginOf(row);
  const after = (column) => (cell(row, column) < 0 ? null : begin + cell(row, column) / 1e6);
  const marks = /** @type {[number | null, string][]} */ ([
    [after(HANDSHAKE), PART_HUES.connecting],
    [after(DATA), PART_HUES.asking],
    [after(ANSWER), PART_HUES.answering],
    [endOf(row), PART_HUES.after],
  ]);
  const found = [];
  let from = begin;
  for (const [to, hue] of marks) {
    if (to === null || to < from) continue;
    found.push([from, to, hue]);
    from = to;
  }
  return found;
}

function rectangle(api, [from, to, first, behind, hue, least]) {
  const [left, top] = api.coord([from, first - 0.4]);
  const [right, bottom] = api.coord([to, behind - 0.6]);
  const shape = { x: left, y: top, width: Math.max(right - left, least, 1), height: Math.max(bottom - top, 1) };
  return { type: "rect", shape, style: { fill: colour(hue) } };
}

function rowText(row) {
  const { outcomes, peers, servers } = data.waterfall;
  const told = (name, column) => (cell(row, column) < 0 ? [] : [`${name} ${msText(cell(row, column) / 1000)}`]);
  return [
    `${peers[cell(row, PEER)]} → ${servers[cell(row, SERVER)]}: ${outcomes[cell(row, OUTCOME)]}`,
    `at ${beginOf(row).toFixed(3)} s`,
    ...told("connected after", HANDSHAKE),
    ...told("first data after", DATA),
    ...told("answer after", ANSWER),
    ...told("ended after", LASTS),
  ].join(", ");
}

/** Bars: from, to (s), the place of the first row and of the one behind the last, and what they are drawn with. */
function barsOf(shown) {
  const hues = data.waterfall.outcomes.map(hueOf);
  if (shown.length <= PARTS_MAX) {
    return shown.flatMap((row, place) => [
      ...partsOf(row).map(([from, to, hue]) => [from, to, place, place + 1, hue, 0]),
      [beginOf(row), beginOf(row), place, place + 1, hues[cell(row, OUTCOME)], EDGE_PX],
    ]);
  }
  if (shown.length <= LINES_MAX) {
    return shown.map((row, place) => [beginOf(row), endOf(row), place, place + 1, hues[cell(row, OUTCOME)], 0]);
  }
  // Failures lie on top.
  const found = [];
  const size = shown.length / LINES;
  for (let line = 0; line < LINES; line += 1) {
    const [first, behind] = [Math.floor(line * size), Math.floor((line + 1) * size)];
    const spans = new Map([...new Set(Object.values(OF_LINES))].map((hue) => [hue, [Infinity, -Infinity]]));
    for (const row of shown.slice(first, behind)) {
      const span = spans.get(hues[cell(row, OUTCOME)]) ?? [];
      span[0] = Math.min(span[0], beginOf(row));
      span[1] = Math.max(span[1], endOf(row));
    }
    for (const [hue, [from, to]] of spans) if (to >= from) found.push([from, to, first, behind, hue, 0]);
  }
  return found;
}

function drawWaterfall() {
  waterfall.shown = chosen();
  [waterfall.from, waterfall.to] = [shared.from, shared.to];
  const { shown } = waterfall;
  const bars = barsOf(shown);
  const text = colour("--faint");
  waterfall.instance.setOption(
    {
      animation: false,
      grid: { ...GRID, top: 8 },
      xAxis: { type: "value", min: shared.from, max: shared.to, axisLabel: { color: text } },
      yAxis: {
        type: "value",
        inverse: true,
        min: -0.5,
        max: Math.max(shown.length, 1) - 0.5,
        minInterval: 1,
        axisLabel: { color: text, formatter: (value) => numberText(Math.round(value) + 1) },
        splitLine: { show: false },
      },
      series: [
        {
          type: "custom",
          clip: true,
          encode: { x: [0, 1], y: 2 },
          data: bars.map(([from, to, first]) => [from, to, first]),
          renderItem: (params, api) => rectangle(api, bars[params.dataIndex]),
        },
      ],
    },
    true,
  );
  const all = data.waterfall.count;
  part("waterfall-count").textContent = `${numberText(shown.length)} of ${numberText(all)} connections`;
}

function tellRow(event) {
  const place = Math.round(waterfall.instance.convertFromPixel({ yAxisIndex: 0 }, event.offsetY));
  const row = waterfall.shown[place];
  part("waterfall-row").textContent = row === undefined ? "" : rowText(row);
}

function listenToWaterfall() {
  const element = part("waterfall");
  const again = () => drawWaterfall();
  elementOf("waterfall-outcome", HTMLSelectElement).addEventListener("change", again);
  elementOf("waterfall-peer", HTMLInputElement).addEventListener("input", again);
  part("waterfall-in").addEventListener("click", () => zoom(0.5));
  part("waterfall-out").addEventListener("click", () => zoom(2));
  part("waterfall-all").addEventListener("click", () => setRange(shared.first, shared.last));
  element.addEventListener("keydown", onKey);
  let start = /** @type {number | null} */ (null);
  const second = (x) => waterfall.instance.convertFromPixel({ xAxisIndex: 0 }, x);
  const canvas = waterfall.instance.getZr();
  canvas.on("mousedown", (event) => (start = event.offsetX));
  canvas.on("mousemove", tellRow);
  canvas.on("click", tellRow);
  canvas.on("mouseup", (event) => {
    if (start !== null && Math.abs(event.offsetX - start) > MARGIN_PX) {
      const [from, to] = [second(start), second(event.offsetX)].sort((one, other) => one - other);
      setRange(from, to);
    }
    start = null;
  });
  window.addEventListener("resize", () => waterfall.instance.resize());
  // The zoom of the other charts is its own; moving the cursor draws nothing anew.
  shared.followers.push(() => {
    if (shared.from !== waterfall.from || shared.to !== waterfall.to) drawWaterfall();
  });
}

function openWaterfall() {
  if (!data.waterfall || !data.waterfall.count) return;
  if (!shared.charts.length) shared.last = shared.to = Math.max(data.waterfall.seconds, 1);
  waterfall.instance = echarts.init(part("waterfall"), null, { renderer: "canvas" });
  listenToWaterfall();
  keep(drawWaterfall);
}

openWaterfall();
