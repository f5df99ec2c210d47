import assert from 'node:assert/strict';
import test from 'node:test';
import { count, delayKnobs, duration, flag, oneOf, readKnobs } from '../lib/knobs.js';

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
    { users: count(), rejoin: flag() },
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

test('all that is missing or bad is said at once, a line for each', () => {
  assert.throws(
    () =>
      readKnobs({ ...environment, CONNLAB_KEEP_ALIVE: 'yes', CONNLAB_CALLS: '0' }, { users: count(), calls: count() }),
    {
      message: [
        'CONNLAB_KEEP_ALIVE must be true or false, not "yes"',
        'CONNLAB_USERS is missing',
        'CONNLAB_CALLS must be a whole number from 1 to 1000000000, not "0"',
      ].join('\n'),
    },
  );
});

/** @type {[string, {parse: (text: string) => unknown}, string[], string[]]} */
const counts = [
  'a count',
  count(0, 20),
  ['0', '7', '20'],
  ['', '21', '-1', '-0', '+1', '07', '1.0', '1e1', ' 1', '0x1', 'NaN'],
];
/** @type {typeof counts} */
const durations = [
  'a duration',
  duration(5),
  ['5ms', '86400000ms'],
  ['', '5', 'ms', '4ms', '5s', '5 ms', '5.5ms', '86400001ms'],
];
/** @type {typeof counts} */
const flags = ['a flag', flag(), ['true', 'false'], ['', 'True', '1', 'yes']];
/** @type {typeof counts} */
const words = ['a word', oneOf('client', 'server'), ['client', 'server'], ['', 'Client', 'client server']];
/** @type {typeof counts} */
const paths = ['a path', delayKnobs.path, ['/', '/api/delay'], ['', 'api', '/a b', '/a?b', '/a#b', '/ä', '/a\n']];

for (const [name, kind, good, bad] of [counts, durations, flags, words, paths]) {
  test(`${name} takes what it must and nothing else`, () => {
    for (const text of good) assert.notEqual(kind.parse(text), undefined, `"${text}"`);
    for (const text of bad) assert.equal(kind.parse(text), undefined, `"${text}"`);
  });
}

test('targets are servers, without a path', () => {
  /** @param {string} targets */
  const read = (targets) => readKnobs({ ...environment, CONNLAB_TARGETS: targets }, {}).targets;
  assert.deepEqual(read('http://127.0.0.1:1'), ['http://127.0.0.1:1']);
  assert.deepEqual(read('http://backend-1:8080 http://backend-2:8080'), [
    'http://backend-1:8080',
    'http://backend-2:8080',
  ]);
  for (const bad of [
    '',
    'nginx:8080',
    'https://nginx',
    'http://',
    'http://nginx/',
    'http://nginx?a',
    'http://ngi nx',
    'http://a  http://b',
    'http://a ',
  ]) {
    assert.throws(() => read(bad), {
      message: `CONNLAB_TARGETS must be URLs without a path, such as http://nginx:8080, a space between two, not "${bad}"`,
    });
  }
});
