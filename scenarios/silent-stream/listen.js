// Ten users listen to a stream of events until it ends.
import { check } from 'k6';
import http from 'k6/http';

export const options = {
  scenarios: { listeners: { executor: 'per-vu-iterations', vus: 10, iterations: 1, maxDuration: '30s' } },
};

export default function () {
  const answer = http.get(`${__ENV.BASE_URL}/events`, { tags: { name: 'events' }, timeout: '20s' });
  check(answer, { 'the stream is whole': ({ body }) => `${body}`.includes('goodbye') });
}
