// The charts of a comparison: heat maps of a matrix, and the differences of two groups with their intervals.
"use strict";

/** The cells by their levels on the first two axes, one list for each combination of the others. */
function facets(matrix) {
  const [rows, columns, ...others] = matrix.axes;
  const found = new Map();
  for (const cell of matrix.cells) {
    const title = others.map((axis) => `${axis.name} = ${cell.levels[axis.name]}`).join(", ");
    if (!found.has(title)) found.set(title, []);
    found.get(title).push({
      ...cell,
      x: columns.levels.indexOf(cell.levels[columns.name]),
      y: rows.levels.indexOf(cell.levels[rows.name]),
    });
  }
  return found;
}

/** The edges between neighbours of which `fails` says true of one and false of the other; null is neither. */
function border(cells, fails) {
  const at = (x, y) => cells.find((cell) => cell.x === x && cell.y === y);
  const edges = [];
  for (const cell of cells) {
    for (const [dx, dy] of [
      [1, 0],
      [0, 1],
    ]) {
      const other = at(cell.x + dx, cell.y + dy);
      const verdicts = [fails(cell), other ? fails(other) : null];
      if (!verdicts.includes(null) && verdicts[0] !== verdicts[1]) edges.push([cell.x, cell.y, dx]);
    }
  }
  return edges;
}

const failsMeasured = (cell) => ({ failing: true, clean: false })[cell.state] ?? null;
const failsAsPredicted = (cell) => (cell.predicted_users_failed === null ? null : cell.predicted_users_failed > 0);

function borderSeries(name, edges, style) {
  return {
    name,
    type: "custom",
    z: 5,
    silent: true,
    data: edges,
    itemStyle: { color: style.stroke },
    renderItem: (_, api) => {
      const [x, y] = api.coord([api.value(0), api.value(1)]);
      const [width, height] = api.size([1, 1]);
      const across = api.value(2) === 1;
      const shape = across
        ? { x1: x + width / 2, y1: y - height / 2, x2: x + width / 2, y2: y + height / 2 }
        : { x1: x - width / 2, y1: y + height / 2, x2: x + width / 2, y2: y + height / 2 };
      return { type: "line", shape, style: { ...style, fill: null } };
    },
  };
}

function cellText(cell, figure) {
  const predicted =
    cell.predicted_users_failed === null ? "unknown" : `${cell.predicted_users_failed}, by ${cell.predicted_by}`;
  const levels = Object.entries(cell.levels).map(([name, level]) => `${name} = ${level}`);
  return [
    ...levels,
    `${cell.state}, ${cell.used} of ${cell.planned} runs`,
    `${figure}: ${sampleText(cell.figures[figure])}`,
    `users predicted to fail: ${predicted}`,
  ].join("\n");
}

/** Whether a cell came out as the model says, at the end of its number; nothing where either is not known. */
const agreement = (cell) => ({ true: " ✓", false: " ✗" })[cell.agrees] ?? "";

/** The colours of a chart's text and axes, by the page's theme. */
function drawnIn() {
  return { textStyle: { color: colour("--ink") } };
}

/** An axis in the page's colours. */
function axis(more) {
  const [ink, rule] = [colour("--ink"), colour("--rule")];
  const lines = { axisLine: { lineStyle: { color: rule } }, splitLine: { lineStyle: { color: rule } } };
  return { ...lines, nameTextStyle: { color: ink }, ...more, axisLabel: { color: ink, ...more.axisLabel } };
}

function heatMap(matrix, cells, title, figure, range) {
  const [rows, columns] = matrix.axes;
  const known = cells.filter((cell) => cell.figures[figure]?.mean !== undefined);
  const unknown = cells.filter((cell) => !known.includes(cell));
  return {
    animation: false,
    ...drawnIn(),
    title: { text: title, textStyle: { fontSize: 13, fontWeight: "normal", color: colour("--ink") } },
    tooltip: { ...tooltip, formatter: (item) => (item.data?.cell ? cellText(item.data.cell, figure) : "") },
    legend: {
      right: 0,
      top: 0,
      data: ["measured border", "predicted border"],
      textStyle: { color: colour("--ink") },
    },
    grid: { left: 110, right: 90, top: 60, bottom: 50 },
    xAxis: axis({ type: "category", data: columns.levels, name: columns.name, nameLocation: "middle", nameGap: 30 }),
    // The first level stands above, as in the table.
    yAxis: axis({ type: "category", data: rows.levels, name: rows.name, nameLocation: "start", inverse: true }),
    visualMap: {
      type: "continuous",
      seriesIndex: 0,
      ...range,
      right: 0,
      top: "middle",
      formatter: numberText,
      text: [numberText(range.max), numberText(range.min)],
      textStyle: { color: colour("--ink") },
      inRange: { color: ["#f2f7fc", "#74add1", "#14466b"] },
    },
    series: [
      {
        type: "heatmap",
        data: known.map((cell) => ({ value: [cell.x, cell.y, cell.figures[figure].mean], cell })),
        label: {
          show: true,
          color: "#111",
          textBorderColor: "#fff",
          textBorderWidth: 3,
          formatter: (item) => `${numberText(item.data.value[2])}${agreement(item.data.cell)}`,
        },
      },
      {
        type: "scatter",
        symbolSize: 0.1,
        data: unknown.map((cell) => ({ value: [cell.x, cell.y], cell })),
        label: {
          show: true,
          position: "inside",
          color: colour("--faint"),
          formatter: (item) =>
            item.data.cell.state === "missing" ? "missing" : item.data.cell.used ? "unknown" : "inconclusive",
        },
      },
      borderSeries("measured border", border(cells, failsMeasured), { stroke: colour("--line-fail"), lineWidth: 4 }),
      borderSeries("predicted border", border(cells, failsAsPredicted), {
        stroke: colour("--line-limit"),
        lineWidth: 2,
        lineDash: [6, 4],
      }),
    ],
  };
}

const withUnit = (matrix, figure) => [figure, matrix.units[figure]].filter(Boolean).join(", ");

/** Runs as points and the interval of their mean, cell by cell. */
function points(matrix, figure) {
  const cells = matrix.cells;
  const names = cells.map((cell) => cell.cell);
  const samples = cells.map((cell) => cell.figures[figure] ?? { values: [], mean: null, low: null, high: null });
  return {
    animation: false,
    ...drawnIn(),
    tooltip: { ...tooltip, trigger: "axis", formatter: (items) => cellText(cells[items[0].dataIndex], figure) },
    grid: { left: 90, right: 30, top: 30, bottom: 40 },
    xAxis: axis({ type: "category", data: names }),
    yAxis: axis({
      type: "value",
      scale: true,
      name: withUnit(matrix, figure),
      nameTextStyle: { align: "left", color: colour("--ink") },
    }),
    series: [
      {
        type: "scatter",
        name: "mean",
        symbol: "rect",
        symbolSize: [26, 3],
        itemStyle: { color: colour("--line-limit") },
        data: samples.map((sample) => sample.mean),
      },
      {
        type: "scatter",
        name: "runs",
        symbolSize: 8,
        itemStyle: { color: colour("--line-ok") },
        data: samples.flatMap((sample, index) => sample.values.map((value) => [index, value])),
      },
      {
        type: "custom",
        name: "interval",
        data: samples.map((sample, index) => [index, sample.low, sample.high]).filter(([, low]) => low !== null),
        renderItem: (_, api) => {
          const [x, low] = api.coord([api.value(0), api.value(1)]);
          const high = api.coord([api.value(0), api.value(2)])[1];
          const style = { stroke: colour("--line-limit"), lineWidth: 2 };
          const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style });
          return {
            type: "group",
            children: [line(x, low, x, high), line(x - 7, low, x + 7, low), line(x - 7, high, x + 7, high)],
          };
        },
      },
    ],
  };
}

function drawMatrix(matrix) {
  const select = elementOf("figure", HTMLSelectElement);
  const holder = part("maps");
  for (const figure of matrix.figures) select.add(new Option(figure, figure));
  const flat = matrix.axes.length > 1 ? [...facets(matrix)] : [["", matrix.cells]];
  const charts = flat.map(() => {
    const element = make("div", "chart");
    element.setAttribute("role", "img");
    holder.append(element);
    return openChart(element, "matrix");
  });
  const draw = () => {
    const figure = select.value;
    const means = matrix.cells.map((cell) => cell.figures[figure]?.mean).filter((mean) => mean !== undefined);
    const range = { min: Math.min(...means), max: Math.max(...means) };
    flat.forEach(([title, cells], index) => {
      const shown = [figure, title].filter(Boolean).join(", ");
      holder.children[index].setAttribute("aria-label", `Chart: ${shown}. The table below has its numbers.`);
      charts[index].setOption(
        matrix.axes.length > 1 ? heatMap(matrix, cells, title, figure, range) : points(matrix, figure),
        true,
      );
    });
  };
  select.addEventListener("change", draw);
  keep(draw);
}

const colourOf = (effect) => colour({ changed: "--line-ok", unclear: "--line-slow" }[effect.status] ?? "--faint");

/**
 * Differences with their intervals, one above the other.
 * `rows` have what stands beside each, the difference with its interval, and what the pointer is told.
 */
function drawIntervals(element, rows, name) {
  const shown = [...rows].reverse();
  const left = Math.min(330, element.clientWidth * 0.4);
  // A label has two lines where the page is narrow.
  element.style.height = `${80 + (element.clientWidth < 700 ? 38 : 22) * shown.length}px`;
  const chart = echarts.getInstanceByDom(element) ?? openChart(element, "differences");
  const ends = shown.flatMap((row) => [row.difference, row.low, row.high]).filter((value) => value !== null);
  const option = {
    animation: false,
    ...drawnIn(),
    tooltip: {
      ...tooltip,
      trigger: "axis",
      axisPointer: { type: "shadow" },
      formatter: (items) => shown[items[0].dataIndex].told,
    },
    grid: { left, right: 30, top: 10, bottom: 40 },
    // The chart does not know of the intervals, which it is told how to draw; none is always in sight.
    xAxis: axis({
      type: "value",
      name,
      nameLocation: "middle",
      nameGap: 26,
      min: Math.min(0, ...ends),
      max: Math.max(0, ...ends),
      axisLabel: { formatter: numberText, showMinLabel: false, showMaxLabel: false },
    }),
    yAxis: axis({
      type: "category",
      data: shown.map((row) => row.label),
      axisLabel: { width: left - 20, overflow: "breakAll", lineHeight: 14 },
    }),
    series: [
      {
        type: "scatter",
        symbolSize: 9,
        data: shown.map((row) => ({ value: row.difference, itemStyle: { color: row.colour } })),
        markLine: {
          symbol: "none",
          silent: true,
          label: { show: false },
          lineStyle: { color: colour("--ink"), type: "dotted", width: 1 },
          data: [{ xAxis: 0 }],
        },
      },
      {
        type: "custom",
        data: shown.map((row, index) => [index, row.low, row.high]).filter(([, low]) => low !== null),
        renderItem: (_, api) => {
          const [low, y] = api.coord([api.value(1), api.value(0)]);
          const high = api.coord([api.value(2), api.value(0)])[0];
          const style = { stroke: shown[api.value(0)].colour, lineWidth: 2 };
          return { type: "line", shape: { x1: low, y1: y, x2: high, y2: y }, style };
        },
      },
    ],
  };
  chart.setOption(option, true);
}

function toldOf(effect, [a, b]) {
  return [
    effect.figure,
    `${a}: ${sampleText(effect.a)}`,
    `${b}: ${sampleText(effect.b)}`,
    `difference: ${sampleText({ mean: effect.difference, low: effect.low, high: effect.high })}`,
    `noise: ${numberText(effect.noise)}`,
    effect.status,
  ].join("\n");
}

/** All figures of a pair in parts of the greater mean: of what one group lacks, all of it. */
function drawDifferences(element, pair) {
  const rows = pair.effects.map((effect) => {
    const greater = Math.max(Math.abs(effect.a.mean), Math.abs(effect.b.mean)) || 1;
    const percent = (value) => (value === null ? null : (100 * value) / greater);
    return {
      label: effect.figure,
      difference: percent(effect.difference),
      low: percent(effect.low),
      high: percent(effect.high),
      colour: colourOf(effect),
      told: toldOf(effect, [pair.a, pair.b]),
    };
  });
  drawIntervals(element, rows, `difference of ${pair.b} from ${pair.a}, % of the larger`);
}

/** The figure that the comparison is about, pair by pair. */
function drawAbout(element, effects) {
  const rows = effects.map((effect) => ({
    label: `${effect.pair[1]} vs. ${effect.pair[0]}`,
    difference: effect.difference,
    low: effect.low,
    high: effect.high,
    colour: colourOf(effect),
    told: toldOf(effect, effect.pair),
  }));
  const [{ figure, unit }] = effects;
  drawIntervals(element, rows, `difference of ${figure}${unit ? `, ${unit}` : ""}`);
}

/** The values of a search in the order in which they were tried, and where the runs and the model have the border. */
function drawSearch(element, search) {
  const colours = { true: colour("--line-ok"), false: colour("--line-fail") };
  const words = { true: "held", false: "did not hold", unknown: "unknown" };
  const line = (value, name, type, position) => ({
    name,
    yAxis: value,
    lineStyle: { type, color: colour("--line-limit"), width: 2 },
    label: { formatter: `${name}: ${numberText(value)}`, position, color: colour("--ink") },
  });
  const lines = [
    ...(search.found === null ? [] : [line(search.found, "found", "solid", "insideStartTop")]),
    // Where both agree, one line says so.
    ...(search.predicted === null || search.predicted === search.found
      ? []
      : [line(search.predicted, "by the model", "dashed", "insideStartBottom")]),
  ];
  if (lines.length && search.predicted === search.found)
    lines[0].label.formatter = `found, and by the model: ${numberText(search.found)}`;
  const chart = echarts.getInstanceByDom(element) ?? openChart(element, "search");
  chart.setOption(
    {
      animation: false,
      ...drawnIn(),
      tooltip: {
        ...tooltip,
        formatter: (item) => {
          const tried = search.tries[item.dataIndex];
          return `${search.knob} = ${numberText(tried.value)}\n${words[tried.holds] ?? "not run"}`;
        },
      },
      grid: { left: 90, right: 30, top: 30, bottom: 50 },
      xAxis: axis({
        type: "category",
        data: search.tries.map((_, index) => `${index + 1}`),
        name: "runs, in order",
        nameLocation: "middle",
        nameGap: 30,
      }),
      yAxis: axis({
        type: "value",
        scale: true,
        name: search.knob,
        nameTextStyle: { align: "left", color: colour("--ink") },
      }),
      series: [
        {
          type: "line",
          symbolSize: 11,
          lineStyle: { color: colour("--faint"), width: 1 },
          data: search.tries.map((tried) => ({
            value: tried.value,
            symbol: tried.holds === "true" ? "circle" : "diamond",
            itemStyle: { color: colours[tried.holds] ?? colour("--faint") },
          })),
          markLine: { symbol: "none", silent: true, data: lines },
        },
      ],
    },
    true,
  );
}

/** The greatest value of a time line; bars of one moment are stacked. */
function mostOf(chart) {
  const sums = new Map();
  for (const each of chart.series) {
    for (const [second, value] of each.points) {
      const sum = chart.kind === "bars" ? (sums.get(second) ?? 0) + value : Math.max(sums.get(second) ?? 0, value ?? 0);
      sums.set(second, sum);
    }
  }
  return Math.max(0, ...sums.values());
}

function rowOf(kind, cells) {
  const row = make("tr");
  row.append(...cells.map((text) => make(kind, "number", text)));
  return row;
}

/** One run's place among the time lines: its name, why it was chosen, its chart and the chart's numbers. */
function openRun(holder, run) {
  const heading = make("h3", "", `${run.group}: `);
  const link = make("a", "", run.run);
  link.href = `${data.results}/${run.run.split("/").map(encodeURIComponent).join("/")}/report.html`;
  heading.append(link, make("span", "faint", run.why ? ` ${run.why}` : ""));
  const missing = make("p", "faint");
  const drawing = make("div", "chart line");
  drawing.setAttribute("role", "img");
  const numbers = make("details");
  const table = make("table");
  const scroll = make("div", "scroll");
  scroll.append(table);
  numbers.append(make("summary", "", "Numbers: the maximum in each step"), scroll);
  holder.append(heading, missing, drawing, numbers);
  return { missing, drawing, numbers, table, instance: openChart(drawing, "beside") };
}

/** The time lines of the groups under one another: one scale of seconds, and one of values. */
function drawBeside(beside) {
  const select = elementOf("line", HTMLSelectElement);
  for (const chart of beside.charts) select.add(new Option(chart.title));
  const places = beside.charts[0].runs.map((run) => openRun(part("lines"), run));
  const draw = () => {
    const chosen = beside.charts[select.selectedIndex];
    part("line-says").textContent = chosen.says;
    const most = Math.max(...chosen.runs.map((run) => (run.chart ? mostOf(run.chart) : 0)));
    places.forEach(({ missing, drawing, numbers, table, instance }, index) => {
      const run = chosen.runs[index];
      missing.hidden = Boolean(run.chart) && !run.notes.length;
      missing.textContent = run.chart ? run.notes.join(" ") : run.missing;
      drawing.hidden = numbers.hidden = !run.chart;
      if (!run.chart) return;
      drawing.setAttribute("aria-label", `Chart: ${chosen.title}, ${run.group}. The table below has its numbers.`);
      const option = timeline(run.chart, { first: 0, last: beside.last, phases: run.phases });
      const valueFormatter = (value) => (value === null ? "none" : valueText(run.chart, value));
      // The greatest value is seldom a round one: its label would lie on that of the last round one.
      const axisLabel = { ...option.yAxis.axisLabel, showMaxLabel: false };
      const least = run.chart.log ? { min: 0.01 } : {};
      instance.resize();
      instance.setOption(
        {
          ...option,
          yAxis: { ...option.yAxis, ...least, axisLabel, max: most || 1, name: run.chart.unit, nameGap: 8 },
          tooltip: { ...tooltip, trigger: "axis", valueFormatter },
        },
        true,
      );
      table.replaceChildren(rowOf("th", run.table.header), ...run.table.rows.map((cells) => rowOf("td", cells)));
    });
  };
  select.addEventListener("change", draw);
  keep(draw);
}

if (data.matrix?.figures.length) drawMatrix(data.matrix);
if (data.search?.tries.length) keep(() => drawSearch(part("search"), data.search));
if (data.about.length) keep(() => drawAbout(part("about"), data.about));
if (data.beside) drawBeside(data.beside);
for (const holder of parts("[data-pair]")) {
  const details = holder.closest("details");
  const draw = () => {
    if (!holder.hasChildNodes()) keep(() => drawDifferences(holder, data.pairs[Number(holder.dataset.pair)]));
  };
  if (!details || details.open) draw();
  else details.addEventListener("toggle", draw);
}
