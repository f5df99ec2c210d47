// A script of the ordinary kind: it knows nothing of the lab.
import { check, group } from 'k6';
import { SharedArray } from 'k6/data';
import http from 'k6/http';
import { page } from './lib/pages.js';

const users = new SharedArray('users', () => JSON.parse(open('./users.json')));

export const options = {
  systemTags: ['url'],
  insecureSkipTLSVerify: true,
  scenarios: { buyers: { executor: 'shared-iterations', vus: 2, iterations: 4, exec: 'buy' } },
  thresholds: { 'http_req_failed{name:home}': ['rate<0.01'], checks: ['rate>0.9'] },
};

export function setup() {
  return { status: http.get(page('?ms=1'), { tags: { name: 'setup' } }).status };
}

export function buy({ status }) {
  group('shop', () => {
    const answer = http.get(page(`?ms=${users[__VU % users.length].ms}`), { tags: { name: 'home' } });
    check(answer, { 'home is 200': ({ status }) => status === 200 });
    http.batch([page('?ms=20'), page('?ms=30')].map((url) => ['GET', url, null, { tags: { name: 'both' } }]));
  });
  check(status, { 'set up': (status) => status === 200, never: () => false });
}

export function handleSummary(data) {
  return { 'reports/short.txt': `${data.metrics.http_reqs.values.count} requests` };
}
