// Twenty users hold a session for eight seconds. Half of them send a message each second; the others send one at the
// beginning and one after six seconds.
import exec from 'k6/execution';
import { WebSocket } from 'k6/websockets';

export const options = {
  scenarios: { sessions: { executor: 'per-vu-iterations', vus: 20, iterations: 1, maxDuration: '30s' } },
};

export default function () {
  const silent = exec.vu.idInTest % 2 === 0;
  const name = silent ? 'silent' : 'talking';
  const session = new WebSocket(`${__ENV.BASE_URL.replace('http', 'ws')}/`, null, { tags: { name } });
  session.onopen = () => {
    session.send('hello');
    const timer = setInterval(() => session.send('still here'), silent ? 6000 : 1000);
    const end = setTimeout(() => session.close(), 8000);
    session.onclose = () => {
      clearInterval(timer);
      clearTimeout(end);
    };
  };
}
