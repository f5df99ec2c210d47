// Arrivals at a fixed rate, whatever the server does: k6 counts an arrival that finds no free user as dropped.
import exec from 'k6/execution';
import connlab from 'k6/x/connlab';
import { count, delayKnobs, duration, readKnobs } from '../lib/knobs.js';
import { workloadOptions } from '../lib/options.js';
import { delayRequests } from '../lib/requests.js';
import { graceMs } from '../lib/schedule.js';
import { summaryFiles } from '../lib/summary.js';
import { ofUser } from '../lib/targets.js';

const knobs = readKnobs(__ENV, {
  ...delayKnobs,
  rate_per_second: count,
  duration: duration,
  max_users: count,
});

export const options = workloadOptions(
  'spike',
  {
    executor: 'constant-arrival-rate',
    rate: knobs.rate_per_second,
    timeUnit: '1s',
    duration: `${knobs.duration}ms`,
    preAllocatedVUs: knobs.max_users,
    maxVUs: knobs.max_users,
    gracefulStop: `${graceMs(knobs.duration, knobs)}ms`,
  },
  knobs,
);

const calls = delayRequests(knobs);
/** @type {(typeof calls)[0] | undefined} */
let call;

export default function () {
  // Each user has variables of its own, and no number yet while they are made.
  call ??= ofUser(calls, exec.vu.idInTest, knobs);
  call();
}

/** @param {import('../lib/summary.js').Summary} data */
export function handleSummary(data) {
  return summaryFiles(data, connlab.folder());
}
