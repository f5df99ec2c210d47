// A script of the ordinary kind: a journey through five pages, users that come and go, thresholds and checks. It runs by
// plain `k6 run` too, and knows nothing of the lab.
import { check, group, sleep } from 'k6';
import { SharedArray } from 'k6/data';
import http from 'k6/http';
import { page } from './lib/pages.js';

const customers = new SharedArray('customers', () => JSON.parse(open('./customers.json')));

export const options = {
  stages: [
    { duration: '3s', target: 20 },
    { duration: '4s', target: 20 },
    { duration: '1s', target: 0 },
  ],
  thresholds: {
    http_req_failed: ['rate<0.01'],
    'http_req_duration{name:pay}': ['p(95)<800'],
    checks: ['rate>0.99'],
  },
};

// Sees that the shop is open before anybody comes.
export function setup() {
  return { open: http.get(page(1), { tags: { name: 'open' } }).status === 200 };
}

export default function ({ open }) {
  const { patience } = customers[__VU % customers.length];
  const visit = (name, ms) => {
    const answer = http.get(page(ms), { tags: { name } });
    check(answer, { [`${name} is 200`]: ({ status }) => status === 200 });
    sleep(patience);
  };
  check(open, { 'the shop is open': (open) => open });
  group('browse', () => {
    visit('home', 5);
    visit('search', 30);
    visit('product', 10);
  });
  group('buy', () => {
    visit('cart', 10);
    const answer = http.post(page(50), null, { tags: { name: 'pay' } });
    check(answer, { 'paid': ({ status }) => status === 200 });
  });
}
