// N users. Each arrives a chosen gap after the last, makes its calls, and then holds its connection until all are done:
// k6 closes no connection of a user before its own end.
import { sleep } from 'k6';
import exec from 'k6/execution';
import connlab from 'k6/x/connlab';
import { sleepUntil } from '../lib/clock.js';
import { count, delayKnobs, duration, readKnobs } from '../lib/knobs.js';
import { workloadOptions } from '../lib/options.js';
import { delayRequests } from '../lib/requests.js';
import { arrivalMs } from '../lib/schedule.js';
import { summaryFiles } from '../lib/summary.js';
import { ofUser } from '../lib/targets.js';

const knobs = readKnobs(__ENV, {
  ...delayKnobs,
  users: count(),
  arrival_gap: duration(),
  calls: count(),
  think_time: duration(),
});

export const options = workloadOptions(
  'users',
  {
    executor: 'per-vu-iterations',
    vus: knobs.users,
    iterations: 1,
    maxDuration: `${knobs.max_duration}ms`,
    gracefulStop: '0s',
  },
  knobs,
);

const calls = delayRequests(knobs);

export default function () {
  // Counted from the scenario's start and over all instances, so that no user inherits the delay of another.
  sleepUntil(exec.scenario.startTime + arrivalMs(exec.vu.idInTest, knobs.arrival_gap));
  const call = ofUser(calls, exec.vu.idInTest);
  for (let made = 0; made < knobs.calls; made += 1) {
    if (made > 0 && knobs.think_time > 0) sleep(knobs.think_time / 1000);
    call();
  }
}

/** @param {import('../lib/summary.js').Summary} data */
export function handleSummary(data) {
  return summaryFiles(data, connlab.folder());
}
