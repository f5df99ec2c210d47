import assert from 'node:assert/strict';
import test from 'node:test';
import { addresses, delayUrls, ofCall, ofUser, turnOf } from '../lib/targets.js';

const alone = { segment_sequence: ['0', '1'] };
const two = { segment_sequence: ['0', '1/2', '1'] };

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
    [1, 2, 3, 4].map((user) => ofUser(['a', 'b', 'c'], user, alone)),
    ['a', 'b', 'c', 'a'],
  );
});

test('each instance deals its own users out in turn, and all targets get as many', () => {
  assert.deepEqual(
    [1, 3, 5, 7].map((user) => ofUser(['a', 'b'], user, two)),
    ['a', 'b', 'a', 'b'],
  );
  assert.deepEqual(
    [2, 4, 6, 8].map((user) => ofUser(['a', 'b'], user, two)),
    ['b', 'a', 'b', 'a'],
  );
});

test('the turns of any instance are consecutive, from one further on than those of the instance before', () => {
  for (const instances of [1, 2, 3, 5]) {
    const knobs = { segment_sequence: new Array(instances + 1).fill('0') };
    for (let instance = 0; instance < instances; instance += 1) {
      const turns = [0, 1, 2, 3].map((nth) => turnOf(1 + instance + nth * instances, knobs));
      assert.deepEqual(
        turns,
        [0, 1, 2, 3].map((nth) => instance + nth),
      );
    }
  }
});

test('calls are dealt out in turn, from the first call, 0', () => {
  assert.deepEqual(
    [0, 1, 2].map((call) => ofCall(['a', 'b'], call)),
    ['a', 'b', 'a'],
  );
});
