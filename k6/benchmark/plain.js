// The same calls as workloads/users.js makes, written for a plain k6: without the lab's code, with k6's own tags.
import { check } from 'k6';
import http from 'k6/http';

export const options = {
  discardResponseBodies: true,
  scenarios: {
    plain: { executor: 'per-vu-iterations', vus: Number(__ENV.CONNLAB_USERS), iterations: 1, maxDuration: '10m' },
  },
};

const url = `${__ENV.CONNLAB_TARGETS}/?ms=0&bytes=0`;
const calls = Number(__ENV.CONNLAB_CALLS);

export default function () {
  for (let made = 0; made < calls; made += 1) {
    check(http.get(url), { 'status 200': (response) => response.status === 200 });
  }
}
