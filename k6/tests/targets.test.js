import assert from 'node:assert/strict';
import test from 'node:test';
import { addresses, delayUrls, ofCall, ofUser } from '../lib/targets.js';

test('each target has its URL', () => {
  assert.deepEqual(
    delayUrls({ targets: ['http://a:1', 'http://b:2'], path: '/api/delay', handler_delay: 5, response_bytes: 7 }),
    ['http://a:1/api/delay?ms=5&bytes=7', 'http://b:2/api/delay?ms=5&bytes=7'],
  );
});

test('a target is at a host and a port', () => {
  assert.deepEqual(addresses(['http://nginx:8080', 'http://10.0.0.1:1']), ['nginx:8080', '10.0.0.1:1']);
});

test('users are dealt out to the targets in turn, from the first user, 1', () => {
  assert.deepEqual(
    [1, 2, 3, 4].map((user) => ofUser(['a', 'b', 'c'], user)),
    ['a', 'b', 'c', 'a'],
  );
});

test('calls are dealt out in turn, from the first call, 0', () => {
  assert.deepEqual(
    [0, 1, 2].map((call) => ofCall(['a', 'b'], call)),
    ['a', 'b', 'a'],
  );
});
