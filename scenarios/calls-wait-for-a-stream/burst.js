// One client with one connection, as gRPC has it: five times twenty calls at once.
import { check, sleep } from 'k6';
import grpc from 'k6/net/grpc';

export const options = {
  scenarios: { bursts: { executor: 'per-vu-iterations', vus: 1, iterations: 5, maxDuration: '60s' } },
};

const client = new grpc.Client();
client.load(['.'], 'calls.proto');
let connected = false;

export default async function () {
  if (!connected) {
    client.connect(__ENV.CALLS, { plaintext: true });
    connected = true;
    // The first call shows the server's limit to the client.
    client.invoke('calls.Calls/Greet', {}, { tags: { name: 'first' } });
  }
  const began = Date.now();
  const calls = Array.from({ length: 20 }, () => client.asyncInvoke('calls.Calls/Greet', {}, { tags: { name: 'burst' } }));
  const answers = await Promise.all(calls);
  check(answers, { 'each status is OK': (all) => all.every(({ status }) => status === grpc.StatusOK) });
  check(Date.now() - began, {
    'the burst took one wave': (ms) => ms < 400,
    'the burst took five waves': (ms) => ms > 990 && ms < 1400,
  });
  sleep(0.5);
}
