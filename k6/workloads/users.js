// N users. Each arrives a chosen gap after the last, makes its calls, and then holds its connection until all are done:
// k6 closes no connection of a user before its own end.
import exec from 'k6/execution';
import connlab from 'k6/x/connlab';
import { readKnobs } from '../lib/knobs.js';
import { workloadOptions } from '../lib/options.js';
import { delayRequests } from '../lib/requests.js';
import { summaryFiles } from '../lib/summary.js';
import { ofUser } from '../lib/targets.js';
import { liveAsUser, userKnobs, usersScenario } from '../lib/users.js';

const knobs = readKnobs(__ENV, userKnobs);

export const options = workloadOptions('users', usersScenario(knobs), knobs);

const requests = delayRequests(knobs);

export default function () {
  const user = exec.vu.idInTest;
  const call = ofUser(requests, user, knobs);
  liveAsUser(user, knobs, () => call());
}

/** @param {import('../lib/summary.js').Summary} data */
export function handleSummary(data) {
  return summaryFiles(data, connlab.folder());
}
