// Five users send a small body, one that is too large, and a small one again; three times.
import { sleep } from 'k6';
import http from 'k6/http';

export const options = {
  scenarios: { users: { executor: 'per-vu-iterations', vus: 5, iterations: 3, maxDuration: '30s' } },
};

const small = 'x'.repeat(100);
const large = 'x'.repeat(16384);

export default function () {
  http.post(`${__ENV.BASE_URL}/upload`, small, { tags: { name: 'small' } });
  sleep(0.3);
  http.post(`${__ENV.BASE_URL}/upload`, large, { tags: { name: 'large' } });
  sleep(0.3);
  http.post(`${__ENV.BASE_URL}/upload`, small, { tags: { name: 'small' } });
  sleep(0.4);
}
