// Five users, each a page and then three times twenty requests at once. Over HTTP/2 they share the user's connections.
import http from 'k6/http';
import { sleep } from 'k6';

export const options = {
  scenarios: { bursts: { executor: 'per-vu-iterations', vus: 5, iterations: 1, maxDuration: '30s' } },
  batch: 20,
  batchPerHost: 20,
};

const url = (ms) => `${__ENV.BASE_URL}/api/delay?ms=${ms}&bytes=0`;
const part = ['GET', url(100), null, { tags: { name: 'part' } }];

export default function () {
  // Requests that begin together without a connection dial one each. So the page comes first.
  http.get(url(0), { tags: { name: 'page' } });
  for (let burst = 0; burst < 3; burst += 1) {
    http.batch(Array(20).fill(part));
    sleep(0.4);
  }
}
