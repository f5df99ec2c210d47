// One user, one request at a time, to each target in turn.
import connlab from 'k6/x/connlab';
import { count, delayKnobs, readKnobs } from '../lib/knobs.js';
import { workloadOptions } from '../lib/options.js';
import { delayRequests } from '../lib/requests.js';
import { summaryFiles } from '../lib/summary.js';
import { ofCall } from '../lib/targets.js';

const knobs = readKnobs(__ENV, {
  ...delayKnobs,
  requests: count,
});

export const options = workloadOptions(
  'sequential',
  {
    executor: 'shared-iterations',
    vus: 1,
    iterations: knobs.requests,
    maxDuration: `${knobs.max_duration}ms`,
    gracefulStop: '0s',
  },
  knobs,
);

const calls = delayRequests(knobs);
let made = 0;

export default function () {
  ofCall(calls, made)();
  made += 1;
}

/** @param {import('../lib/summary.js').Summary} data */
export function handleSummary(data) {
  return summaryFiles(data, connlab.folder());
}
