// Slow clients, who send the header of one request line by line, and ordinary users beside them.
import exec from 'k6/execution';
import connlab from 'k6/x/connlab';
import { sleepUntil } from '../lib/clock.js';
import { count, duration, readKnobs } from '../lib/knobs.js';
import { workloadOptions } from '../lib/options.js';
import { delayRequests } from '../lib/requests.js';
import { fillers } from '../lib/slow.js';
import { summaryFiles } from '../lib/summary.js';
import { ofUser } from '../lib/targets.js';
import { liveAsUser, othersFirst_ms, userKnobs, usersScenario } from '../lib/users.js';

const knobs = readKnobs(__ENV, {
  ...userKnobs,
  slow_users: count,
  header_interval: duration,
  header_duration: duration,
});

export const options = workloadOptions(
  'slow_clients',
  usersScenario({ users: knobs.slow_users + knobs.users, max_duration: knobs.max_duration }),
  knobs,
);

const requests = delayRequests(knobs);
const slowRequests = delayRequests(knobs, 'slow', fillers(knobs.method, knobs.header_duration, knobs.header_interval));

export default function () {
  const client = exec.vu.idInTest;
  if (client <= knobs.slow_users) {
    // One after the other, so that they do not race with each other for the server's accept queue.
    sleepUntil(exec.scenario.startTime + ((client - 1) * othersFirst_ms) / knobs.slow_users);
    connlab.connectionPerRequest('client', knobs.header_interval);
    ofUser(slowRequests, client, knobs)();
    return;
  }
  const user = client - knobs.slow_users;
  const call = ofUser(requests, user, knobs);
  liveAsUser(user, knobs, () => call(), othersFirst_ms);
}

/** @param {import('../lib/summary.js').Summary} data */
export function handleSummary(data) {
  return summaryFiles(data, connlab.folder());
}
