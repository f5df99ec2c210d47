import assert from 'node:assert/strict';
import test from 'node:test';
import { fillers } from '../lib/slow.js';

test('a header has a line for each interval, and one to begin with', () => {
  // 5 lines of its own and 4 more: 8 intervals.
  assert.deepEqual(Object.keys(fillers('GET', 8000, 1000)), ['X-Line-5', 'X-Line-6', 'X-Line-7', 'X-Line-8']);
  assert.equal(Object.keys(fillers('GET', 8999, 1000)).length, 4);
  // A POST has two more of its own.
  assert.deepEqual(Object.keys(fillers('POST', 8000, 1000)), ['X-Line-7', 'X-Line-8']);
});

test('a header that is long enough is left as it is', () => {
  assert.deepEqual(fillers('GET', 4000, 1000), {});
  assert.deepEqual(fillers('POST', 6000, 1000), {});
  assert.deepEqual(fillers('GET', 1, 1000), {});
});
