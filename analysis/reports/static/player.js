// Plays a report's time line: moves the cursor, and lets the accept queues and the ladders follow it.
"use strict";

const SPEEDS = [0.01, 0.1, 0.5, 1, 2, 5, 10, 25];
// A run as a whole is played in no more than this.
const PLAYED_S = 30;
// Who asked for less motion gets steps instead of a gliding cursor, one in each of these.
const STEP_MS = 1000;
// A queue with more places is a bar.
const PLACES_MAX = 24;

const stillness = window.matchMedia("(prefers-reduced-motion: reduce)");

/** `following`: whether ladders show only what has happened until the cursor. */
const player = { following: false, frame: 0, timer: 0, before: 0 };

const speeds = elementOf("speed", HTMLSelectElement);
const speed = () => Number(speeds.value);

/** The queues of a role as their places, or as a bar, and in words. */
function drawQueue(holder, queue, second) {
  const depth = levelAt(queue.depth, second) ?? 0;
  const places = levelAt(queue.places, Math.max(second, queue.places[0][0])) ?? 0;
  const overflows = levelAt(queue.overflows, second) ?? 0;
  const full = levelAt(queue.full, second) === 1;
  const drawn = make("span", full ? "places full" : "places");
  drawn.setAttribute("aria-hidden", "true");
  if (places <= PLACES_MAX) {
    for (let place = 0; place < places; place += 1) drawn.append(make("i", place < depth ? "taken" : ""));
  } else {
    const filled = make("i", "taken bar");
    filled.style.width = `${Math.min(100, (100 * depth) / places)}%`;
    drawn.classList.add("wide");
    drawn.append(filled);
  }
  const one = queue.queues === 1;
  const room = one ? `${numberText(places - 1)} + 1` : `${numberText(places)} places`;
  const state = full ? (one ? "full" : "one full") : depth ? "waiting" : "empty";
  const filling = places ? `${numberText(depth)} of ${room}, ${state}` : "nothing listens";
  const soFar = `${numberText(overflows)} overflow${overflows === 1 ? "" : "s"} so far`;
  holder.replaceChildren(
    make("b", "", `${queue.role}: accept queue${one ? "" : "s"}`),
    drawn,
    make("span", full ? "full" : "", `${filling}; ${soFar}`),
  );
}

function followQueues(second) {
  data.queues.forEach((queue, index) => drawQueue(part("queues").children[index], queue, second));
}

/** Steps that are still to come fade; without a play all of them are shown. */
function followLadders(second) {
  for (const ladder of parts(".ladder")) {
    const steps = parts(".step", ladder);
    const past = steps.filter((step) => !player.following || Number(step.dataset.at) <= second + 1e-9);
    steps.forEach((step) => step.classList.remove("now"));
    steps.forEach((step) => step.classList.toggle("later", !past.includes(step)));
    if (player.following && past.length) past[past.length - 1].classList.add("now");
    const [soFar] = parts(".so-far", ladder);
    soFar.toggleAttribute("hidden", !player.following);
    const count = (found) => found.filter((step) => !step.classList.contains("pause")).length;
    soFar.textContent = `At ${second.toFixed(3)} s: ${count(past)} of its ${count(steps)} steps so far; the first at ${Number(steps[0]?.dataset.at ?? 0).toFixed(3)} s.`;
  }
}

function follow(second) {
  followQueues(second);
  followLadders(second);
}

function setFollowing(following) {
  player.following = following;
  part("stop").hidden = !following;
  follow(shared.cursor);
}

function pause() {
  cancelAnimationFrame(player.frame);
  clearInterval(player.timer);
  shared.played = false;
  part("play").textContent = "Play";
}

function advance(seconds) {
  setCursor(Math.min(shared.cursor + seconds, shared.to));
  if (shared.cursor >= shared.to - 1e-9) pause();
}

function play() {
  if (shared.cursor < shared.from || shared.cursor >= shared.to - 1e-9) setCursor(shared.from);
  shared.played = true;
  setFollowing(true);
  part("play").textContent = "Pause";
  if (stillness.matches) {
    player.timer = setInterval(() => advance((speed() * STEP_MS) / 1000), STEP_MS);
    return;
  }
  player.before = performance.now();
  const tick = (now) => {
    if (!shared.played) return;
    advance((speed() * (now - player.before)) / 1000);
    player.before = now;
    player.frame = requestAnimationFrame(tick);
  };
  player.frame = requestAnimationFrame(tick);
}

const toggle = () => (shared.played ? pause() : play());

function changeSpeed(by) {
  const select = speeds;
  select.selectedIndex = Math.min(Math.max(select.selectedIndex + by, 0), SPEEDS.length - 1);
}

function preparePlayer() {
  if (!shared.charts.length) return;
  const fitting =
    SPEEDS.filter((each) => each >= 1).find((each) => shared.last / each <= PLAYED_S) ?? SPEEDS[SPEEDS.length - 1];
  for (const each of SPEEDS) speeds.append(new Option(`${each} ×`, String(each), each === fitting, each === fitting));
  part("queues").append(...data.queues.map(() => make("div", "queue")));
  part("play").addEventListener("click", toggle);
  part("stop").addEventListener("click", () => {
    pause();
    setFollowing(false);
  });
  Object.assign(shared.keys, { " ": toggle, "[": () => changeSpeed(-1), "]": () => changeSpeed(1) });
  const slider = elementOf("cursor", HTMLInputElement);
  slider.addEventListener("input", () => setFollowing(true));
  slider.addEventListener("keydown", (event) => {
    const action = event.ctrlKey || event.metaKey || event.altKey ? null : shared.keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  shared.followers.push(follow);
  follow(shared.cursor);
}

preparePlayer();
