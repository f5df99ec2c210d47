import assert from 'node:assert/strict';
import test from 'node:test';
import { arrivalMs, graceMs, leaveMs } from '../lib/schedule.js';

test('users arrive one gap after the other, the first at once', () => {
  assert.deepEqual(
    [1, 2, 5].map((user) => arrivalMs(user, 250)),
    [0, 250, 1000],
  );
});

test('the last to come is the first to leave, and the first leaves at the end', () => {
  const ramp = { users: 4, ramp_half: 100, ramp_full: 900, ramp_hold: 50, ramp_down: 400 };
  assert.deepEqual(
    [1, 2, 3, 4].map((user) => leaveMs(user, ramp)),
    [1450, 1350, 1250, 1150],
  );
});

test('a load may run on until its last request must have ended', () => {
  assert.equal(graceMs(5000, { request_timeout: 60000, max_duration: 600000 }), 61000);
});

test('but never longer than it is allowed', () => {
  assert.equal(graceMs(5000, { request_timeout: 60000, max_duration: 6000 }), 1000);
  assert.equal(graceMs(6000, { request_timeout: 60000, max_duration: 6000 }), 0);
  assert.throws(() => graceMs(6001, { request_timeout: 60000, max_duration: 6000 }), {
    message: 'CONNLAB_MAX_DURATION must be at least the 6001ms that this load takes, not "6000ms"',
  });
});
