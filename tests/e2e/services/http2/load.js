// Two users; each asks for three pages at once, twice: over HTTP/2 that takes one connection.
import { check } from 'k6';
import http from 'k6/http';

export const options = { scenarios: { pages: { executor: 'per-vu-iterations', vus: 2, iterations: 2 } } };

export default function () {
  const pages = ['a', 'b', 'c'].map((name) => ['GET', `${__ENV.BASE_URL}/${name}`, null, { tags: { name } }]);
  for (const answer of http.batch(pages)) {
    check(answer, { 'it was HTTP/2': ({ proto }) => proto === 'HTTP/2.0' });
  }
}
