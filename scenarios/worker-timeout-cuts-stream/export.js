// Four users: each asks for a page, for the export, and for a page again.
import { check, sleep } from 'k6';
import http from 'k6/http';

export const options = {
  scenarios: { users: { executor: 'per-vu-iterations', vus: 4, iterations: 2, maxDuration: '60s' } },
};

export default function () {
  http.get(`${__ENV.BASE_URL}/page`, { tags: { name: 'page' } });
  const answer = http.get(`${__ENV.BASE_URL}/export`, { tags: { name: 'export' }, timeout: '30s' });
  check(answer, { 'the export is whole': ({ body }) => `${body}`.endsWith('end\n') });
  sleep(1);
  http.get(`${__ENV.BASE_URL}/page`, { tags: { name: 'page' } });
}
