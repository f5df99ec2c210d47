// A customer looks round, finds something, and buys it. It runs by plain `k6 run`, and knows nothing of the lab.
import { check, group, sleep } from 'k6';
import http from 'k6/http';

const shop = __ENV.BASE_URL || 'http://127.0.0.1:8080';
const words = ['oak', 'steel', 'linen', 'glass', 'brass'];

export const options = {
  stages: [
    { duration: '5s', target: 60 },
    { duration: '10s', target: 60 },
    { duration: '2s', target: 0 },
  ],
  thresholds: {
    http_req_failed: ['rate<0.01'],
    'http_req_duration{name:order}': ['p(95)<500'],
    checks: ['rate>0.99'],
  },
};

function visited(name, answer) {
  check(answer, { [`${name} is 200`]: ({ status }) => status === 200 });
  sleep(0.2);
}

export default function () {
  const product = 1 + ((__VU * 61 + __ITER) % 5000);
  const named = (name) => ({ tags: { name } });
  group('browse', () => {
    visited('home', http.get(`${shop}/`, named('home')));
    visited('search', http.get(`${shop}/search?q=${words[product % words.length]}`, named('search')));
    visited('product', http.get(`${shop}/products/${product}`, named('product')));
  });
  group('buy', () => {
    visited('cart', http.post(`${shop}/cart`, { product: `${product}` }, named('cart')));
    visited('order', http.post(`${shop}/orders`, null, named('order')));
  });
}
