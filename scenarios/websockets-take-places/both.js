// Twenty users hold a session for eight seconds. From the second second on, ten more load a page each second.
import { check, sleep } from 'k6';
import http from 'k6/http';
import { WebSocket } from 'k6/websockets';

export const options = {
  scenarios: {
    sessions: { executor: 'per-vu-iterations', exec: 'session', vus: 20, iterations: 1, maxDuration: '30s' },
    pages: { executor: 'per-vu-iterations', exec: 'page', vus: 10, iterations: 5, startTime: '2s', maxDuration: '30s' },
  },
};

export function session() {
  const socket = new WebSocket(`${__ENV.BASE_URL.replace('http', 'ws')}/`, null, { tags: { name: 'session' } });
  socket.onopen = () => {
    socket.send('hello');
    setTimeout(() => socket.close(), 8000);
  };
}

export function page() {
  const answer = http.get(`${__ENV.BASE_URL}/ready`, { tags: { name: 'page' } });
  check(answer, { 'page is 200': ({ status }) => status === 200 });
  sleep(1);
}
