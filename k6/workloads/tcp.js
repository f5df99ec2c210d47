// Plain TCP connections, one request on each, to each target in turn; which side closes them first is a knob.
//
// It is k6's http over a transport of the extension: requests, their times and their error codes are k6's own.
import exec from 'k6/execution';
import connlab from 'k6/x/connlab';
import { readKnobs, word } from '../lib/knobs.js';
import { workloadOptions } from '../lib/options.js';
import { delayRequests } from '../lib/requests.js';
import { summaryFiles } from '../lib/summary.js';
import { ofCall, turnOf } from '../lib/targets.js';
import { liveAsUser, userKnobs, usersScenario } from '../lib/users.js';

const knobs = readKnobs(__ENV, { ...userKnobs, closes_first: word });

export const options = workloadOptions('tcp', usersScenario(knobs), knobs);

const requests = delayRequests(knobs);

export default function () {
  const user = exec.vu.idInTest;
  connlab.connectionPerRequest(knobs.closes_first, 0);
  const first = turnOf(user, knobs);
  liveAsUser(user, knobs, (made) => ofCall(requests, first + made)());
}

/** @param {import('../lib/summary.js').Summary} data */
export function handleSummary(data) {
  return summaryFiles(data, connlab.folder());
}
