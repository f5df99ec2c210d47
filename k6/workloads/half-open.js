// Connections whose handshake the client never completes, and ordinary users beside them.
import exec from 'k6/execution';
import connlab from 'k6/x/connlab';
import { count, duration, readKnobs } from '../lib/knobs.js';
import { workloadOptions } from '../lib/options.js';
import { delayRequests } from '../lib/requests.js';
import { summaryFiles } from '../lib/summary.js';
import { addresses, ofUser } from '../lib/targets.js';
import { liveAsUser, othersFirst_ms, userKnobs, usersScenario } from '../lib/users.js';

const knobs = readKnobs(__ENV, {
  ...userKnobs,
  half_open: count,
  half_open_duration: duration,
});

export const options = workloadOptions(
  'half_open',
  usersScenario({ users: knobs.half_open + knobs.users, max_duration: knobs.max_duration }),
  knobs,
);

const requests = delayRequests(knobs);
const servers = addresses(knobs.targets);

export default function () {
  const client = exec.vu.idInTest;
  if (client <= knobs.half_open) {
    connlab.holdHalfOpen(ofUser(servers, client, knobs), knobs.half_open_duration);
    return;
  }
  const user = client - knobs.half_open;
  const call = ofUser(requests, user, knobs);
  liveAsUser(user, knobs, () => call(), othersFirst_ms);
}

/** @param {import('../lib/summary.js').Summary} data */
export function handleSummary(data) {
  return summaryFiles(data, connlab.folder());
}
