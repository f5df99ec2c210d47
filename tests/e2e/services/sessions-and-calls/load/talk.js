import http from 'k6/http';
import ws from 'k6/ws';
import grpc from 'k6/net/grpc';
import { WebSocket } from 'k6/websockets';
import { users } from '../users.js';
import { batch } from 'https://modules.test/names.js';

export const options = { scenarios: { talk: { executor: 'per-vu-iterations', vus: users, iterations: 1 } } };

const url = __ENV.BASE_URL;
const sockets = url.replace('http', 'ws');
const client = new grpc.Client();
client.load(['definitions'], '../../proto/talk.proto');

function calls() {
  client.connect(__ENV.GRPC, { plaintext: true });
  client.invoke('talk.Talk/Greet', {}, { tags: { name: 'greet' } });
  client.invoke('talk.Talk/Search', {}, { tags: { name: 'search' } });
  client.close();
}

export default function () {
  http.batch([1, 2, 3].map(() => ['GET', url, null, { tags: { name: batch } }]));
  ws.connect(`${sockets}/`, { tags: { name: 'blocking' } }, (socket) => {
    socket.on('open', () => socket.send('hello'));
    socket.on('message', () => socket.close());
  });
  ws.connect(`${sockets}/full`, { tags: { name: 'full' } }, () => {});
  const session = new WebSocket(`${sockets}/`, null, { tags: { name: 'concurrent' } });
  session.onopen = () => session.send('hello');
  session.onmessage = () => session.close();
  calls();
}
