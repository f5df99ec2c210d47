// Two users; each asks for a page, then twice for three pages at once: over HTTP/2 that takes one connection.
import { check } from 'k6';
import http from 'k6/http';

export const options = {
  scenarios: { pages: { executor: 'per-vu-iterations', vus: 2, iterations: 2, maxDuration: '20s' } },
};

const page = (name) => ['GET', `${__ENV.BASE_URL}/${name}`, null, { tags: { name } }];
const overHttp2 = (answer) => check(answer, { 'it was HTTP/2': ({ proto }) => proto === 'HTTP/2.0' });

export default function () {
  // Without a connection yet, requests that begin together dial one each, and use the first that is ready.
  overHttp2(http.batch([page('home')])[0]);
  http.batch(['a', 'b', 'c'].map(page)).forEach(overHttp2);
}
