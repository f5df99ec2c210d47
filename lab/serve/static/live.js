// Asks for the figures of the run at work once a second, and draws them. Every text is set as text.
"use strict";

const PERIOD_MS = 1000;
/** @type {Map<string, Chart>} */
const charts = new Map();

/** Draw the last seconds as bars: each series with its colour of the theme. */
function drawHistory(element, series, most) {
  const chart = charts.get(element.id) ?? echarts.init(element, null, { renderer: "canvas" });
  charts.set(element.id, chart);
  const style = getComputedStyle(document.documentElement);
  const seconds = series[0].values.map((_, index) => index - series[0].values.length + 1);
  const ink = style.getPropertyValue("--faint");
  const fontSize = parseFloat(getComputedStyle(element).fontSize) * 0.75;
  chart.setOption({
    animation: false,
    grid: { left: fontSize * 5, right: 10, top: 10, bottom: fontSize * 2 },
    xAxis: { type: "category", data: seconds, axisLabel: { color: ink, fontSize, formatter: "{value} s" } },
    yAxis: { type: "value", min: 0, max: most, minInterval: 1, axisLabel: { color: ink, fontSize } },
    series: series.map((one) => ({
      type: "bar",
      stack: "all",
      barCategoryGap: "10%",
      itemStyle: { color: style.getPropertyValue(one.colour) },
      data: one.values.map((value) => value ?? "-"),
    })),
  });
}

function textOf(element, text, alarm = false) {
  element.textContent = text;
  element.classList.toggle("alarm", alarm);
}

/** The part of one kernel, made when it is first seen. */
function partOfKernel(name, number) {
  const id = `kernel-${number}`;
  const known = document.getElementById(id);
  if (known) return known;
  const whole = make("section");
  whole.id = id;
  const figures = make("div", "figures");
  for (const [kind, unit] of [
    ["queue", ""],
    ["overflows", "overflows (SYNs dropped at a full queue)"],
    ["waiting", "TIME_WAIT"],
  ]) {
    const line = make("p", kind);
    line.append(make("b"), " ", make("span", "", unit));
    figures.append(line);
  }
  const history = make("div", "history");
  history.id = `${id}-history`;
  whole.append(make("h2", "", name), figures, history);
  part("kernels").append(whole);
  return whole;
}

/** An element of a kernel's part. */
function inside(selector, whole) {
  const found = whole.querySelector(selector);
  if (!(found instanceof HTMLElement)) throw new Error(`no ${selector} here`);
  return found;
}

function drawKernel(name, number, kernel) {
  const whole = partOfKernel(name, number);
  const [queue, overflows, waiting] = ["queue", "overflows", "waiting"].map((kind) => inside(`.${kind}`, whole));
  const listens = kernel.places !== null;
  queue.hidden = overflows.hidden = !listens;
  if (listens) {
    textOf(inside("b", queue), String(kernel.depth), kernel.full);
    const state = kernel.full ? "queued, full: drops new SYNs" : "queued";
    textOf(inside("span", queue), `of ${kernel.places} places ${state}`, kernel.full);
    textOf(inside("b", overflows), kernel.overflows.toLocaleString("en"), kernel.overflows > 0);
  }
  textOf(inside("b", waiting), kernel.time_wait.toLocaleString("en"));
  const values = listens ? kernel.filling : kernel.waiting;
  const colour = listens ? "--line-connect" : "--line-ok";
  drawHistory(part(`kernel-${number}-history`), [{ values, colour }], listens ? kernel.places : null);
}

function drawRun(run) {
  part("figures").hidden = !run;
  if (!run) {
    textOf(part("what"), "No run is in progress");
    textOf(part("phase"), "");
    part("kernels").replaceChildren();
    for (const chart of charts.values()) chart.dispose();
    charts.clear();
    return;
  }
  textOf(part("what"), run.what);
  const lasted = run.phase_s === null ? "" : `, ${run.phase_s} s`;
  textOf(part("phase"), `${run.path.join(" → ")}; ${run.phase}${lasted}`);
  const client = run.client;
  const shown = (count) => (client.known ? count.toLocaleString("en") : "-");
  textOf(part("users"), shown(client.users));
  textOf(part("requests"), shown(client.requests));
  textOf(part("failed"), shown(client.failed), client.failed > 0);
  textOf(part("kinds"), client.kinds.join(", "));
  const well = client.asking.map((all, second) => (all === null ? null : all - (client.failing[second] ?? 0)));
  drawHistory(
    part("asking"),
    [
      { values: well, colour: "--line-ok" },
      { values: client.failing, colour: "--line-fail" },
    ],
    null,
  );
  Object.entries(run.kernels).forEach(([name, kernel], number) => drawKernel(name, number, kernel));
}

function drawCommand(command) {
  part("command").hidden = !command;
  if (!command) return;
  textOf(part("shown"), command.shown);
  textOf(part("ended"), command.at_work ? "is running" : `ended with ${command.code}`);
  const lines = part("lines");
  const follows = lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 4;
  textOf(lines, command.lines.join("\n"));
  if (follows) lines.scrollTop = lines.scrollHeight;
}

async function look() {
  try {
    const answer = await fetch("/live.json");
    if (!answer.ok) throw new Error(`answered ${answer.status}`);
    const { run, command } = await answer.json();
    drawRun(run);
    drawCommand(command);
  } catch {
    textOf(part("what"), "connlab serve has ended");
  }
  setTimeout(look, PERIOD_MS);
}

window.addEventListener("resize", () => charts.forEach((chart) => chart.resize()));
look();
