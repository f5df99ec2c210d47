import assert from 'node:assert/strict';
import test from 'node:test';
import { count, flag, readKnobs } from '../lib/knobs.js';

const environment = {
  CONNLAB_SEGMENT_SEQUENCE: '0,1/2,1',
  CONNLAB_TARGETS: 'http://nginx:8080',
  CONNLAB_CONNECT_TIMEOUT: '30000ms',
  CONNLAB_REQUEST_TIMEOUT: '60000ms',
  CONNLAB_KEEP_ALIVE: 'true',
  CONNLAB_MAX_DURATION: '600000ms',
};

test('knobs are read by kind, durations as milliseconds', () => {
  const knobs = readKnobs(
    { ...environment, CONNLAB_USERS: '12', CONNLAB_REJOIN: 'false' },
    { users: count, rejoin: flag },
  );
  assert.deepEqual(knobs, {
    segment_sequence: ['0', '1/2', '1'],
    targets: ['http://nginx:8080'],
    connect_timeout: 30000,
    request_timeout: 60000,
    keep_alive: true,
    max_duration: 600000,
    users: 12,
    rejoin: false,
  });
});

test('all that is missing is said at once, a line for each', () => {
  assert.throws(() => readKnobs({ ...environment, CONNLAB_RATE: '7' }, { users: count, calls: count, rate: count }), {
    message: ['CONNLAB_USERS is missing', 'CONNLAB_CALLS is missing'].join('\n'),
  });
});
