// One user, one request at a time.
import connlab from 'k6/x/connlab';
import { count, delayKnobs, readKnobs } from '../lib/knobs.js';
import { workloadOptions } from '../lib/options.js';
import { delayRequest } from '../lib/requests.js';
import { summaryFiles } from '../lib/summary.js';

const knobs = readKnobs(__ENV, {
  ...delayKnobs,
  requests: count(),
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

const call = delayRequest(knobs);

export default function () {
  call();
}

/** @param {import('../lib/summary.js').Summary} data */
export function handleSummary(data) {
  return summaryFiles(data, connlab.folder());
}
