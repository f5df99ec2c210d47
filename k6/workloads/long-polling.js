// A waiting room. Users come in two ramps; each takes a place (POST /api/wait) and asks for its turn (POST /api/entry)
// once every polling period, which the server names. All stay for a while; in a third ramp they leave again, admitted or
// not.
//
// Users leave by this script's own clock, between two requests. k6's ramp would interrupt them in mid-request, and such
// a request has no record. So the ramp's grace periods are long enough for each user to end by itself, and for users
// who have left to sleep until the ramp's end.
import exec from 'k6/execution';
import connlab from 'k6/x/connlab';
import { sleepUntil } from '../lib/clock.js';
import { count, duration, flag, readKnobs } from '../lib/knobs.js';
import { workloadOptions } from '../lib/options.js';
import { request } from '../lib/requests.js';
import { graceMs, leaveMs } from '../lib/schedule.js';
import { summaryFiles } from '../lib/summary.js';
import { ofUser } from '../lib/targets.js';

const knobs = readKnobs(__ENV, {
  users: count,
  ramp_half: duration,
  ramp_full: duration,
  ramp_hold: duration,
  ramp_down: duration,
  rejoin: flag,
});

const rampMs = knobs.ramp_half + knobs.ramp_full + knobs.ramp_hold + knobs.ramp_down;
const grace_ms = graceMs(rampMs, knobs);

export const options = workloadOptions(
  'long_polling',
  {
    executor: 'ramping-vus',
    startVUs: 0,
    stages: [
      { duration: `${knobs.ramp_half}ms`, target: Math.floor(knobs.users / 2) },
      { duration: `${knobs.ramp_full}ms`, target: knobs.users },
      { duration: `${knobs.ramp_hold}ms`, target: knobs.users },
      { duration: `${knobs.ramp_down}ms`, target: 0 },
    ],
    gracefulRampDown: `${knobs.ramp_down + grace_ms}ms`,
    gracefulStop: `${grace_ms}ms`,
  },
  knobs,
);

/**
 * @param {string} target
 * @param {string} name
 */
const post = (target, name) =>
  request({
    method: 'POST',
    name,
    url: `${target}/api/${name}`,
    timeout_ms: knobs.request_timeout,
    readBody: true,
  });
const rooms = knobs.targets.map((target) => ({ wait: post(target, 'wait'), entry: post(target, 'entry') }));

/** A user that was turned away tries again after this long. */
const retrySeconds = 1;

/**
 * A user's place in the waiting room, as the server reports it.
 *
 * @typedef {{token: string, number: number, canEnter: boolean, pollingPeriodMs: number, turnUnixUs: number | null}} Place
 */

/**
 * @param {import('k6/http').RefinedResponse<'text' | 'none'>} response
 * @returns {Place}
 */
const placeIn = (response) => /** @type {any} */ (response.json());

export default function () {
  const leaveAt = exec.scenario.startTime + leaveMs(exec.vu.idInTest, knobs);
  if (Date.now() >= leaveAt) {
    // Gone already; k6 takes this user out a little later.
    sleepUntil(exec.scenario.startTime + rampMs);
    return;
  }
  const { wait, entry } = ofUser(rooms, exec.vu.idInTest, knobs);
  const answer = wait();
  if (answer.status !== 200) {
    const after_ms = 1000 * (Number(answer.headers['Retry-After']) || retrySeconds);
    sleepUntil(Math.min(Date.now() + after_ms, leaveAt));
    return;
  }
  let place = placeIn(answer);
  const { token, number } = place;
  connlab.event('issued', { number });
  while (!place.canEnter) {
    const askAt = Date.now() + place.pollingPeriodMs;
    if (askAt >= leaveAt) {
      sleepUntil(leaveAt);
      connlab.event('unadmitted', { number });
      return;
    }
    sleepUntil(askAt);
    const turn = entry({ token });
    if (turn.status === 200) {
      place = placeIn(turn);
    } else if (turn.status === 404) {
      connlab.event('expired', { number });
      return;
    }
  }
  connlab.event('admitted', { number, turn_us: place.turnUnixUs });
  if (!knobs.rejoin) sleepUntil(leaveAt);
}

/** @param {import('../lib/summary.js').Summary} data */
export function handleSummary(data) {
  return summaryFiles(data, connlab.folder());
}
