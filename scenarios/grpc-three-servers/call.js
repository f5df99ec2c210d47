// One client calls 120 times, one call after the other, and keeps its connection as gRPC does.
import { check, sleep } from 'k6';
import grpc from 'k6/net/grpc';

export const options = {
  scenarios: { calls: { executor: 'per-vu-iterations', vus: 1, iterations: 120, maxDuration: '60s' } },
};

const client = new grpc.Client();
client.load(['.'], 'calls.proto');
let connected = false;

export default function () {
  if (!connected) {
    client.connect(__ENV.CALLS, { plaintext: true });
    connected = true;
  }
  const answer = client.invoke('calls.Calls/Greet', {}, { tags: { name: 'greet' } });
  check(answer, { 'the status is OK': ({ status }) => status === grpc.StatusOK });
  sleep(0.05);
}
