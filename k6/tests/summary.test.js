import assert from 'node:assert/strict';
import test from 'node:test';
import { summaryFiles } from '../lib/summary.js';

const data = {
  state: { testRunDurationMs: 2345 },
  metrics: {
    http_reqs: { values: { count: 30 } },
    http_req_failed: { values: { passes: 2 } },
    http_req_duration: { values: { med: 0, 'p(95)': 0, max: 7.89 } },
    'http_req_duration{expected_response:true}': { values: { med: 1.23, 'p(95)': 4.56, max: 7.89 } },
    iterations: { values: { count: 10 } },
    dropped_iterations: { values: { count: 3 } },
  },
};

test('the summary is whole in its file and short on stdout', () => {
  const files = summaryFiles(data, '/raw');
  assert.deepEqual(Object.keys(files), ['stdout', '/raw/summary.json']);
  assert.deepEqual(JSON.parse(files['/raw/summary.json']), data);
  assert.equal(
    files.stdout,
    '30 requests in 2.3 s, 2 failed\n' +
      '10 iterations, 3 dropped\n' +
      'answers came after 1.2 ms (median), 4.6 ms (p95), 7.9 ms (max), connecting not included\n',
  );
});

test('k6 leaves out the metrics of what never happened', () => {
  const { stdout } = summaryFiles({ state: data.state, metrics: {} }, '/raw');
  assert.equal(stdout, '0 requests in 2.3 s, 0 failed\n0 iterations, 0 dropped\n');
});

test('if every request failed, the summary names no response time', () => {
  const metrics = { ...data.metrics, http_req_failed: { values: { passes: 30 } } };
  const { stdout } = summaryFiles({ state: data.state, metrics }, '');
  assert.equal(stdout, '30 requests in 2.3 s, 30 failed\n10 iterations, 3 dropped\n');
});

test('without a folder no file is written', () => {
  assert.deepEqual(Object.keys(summaryFiles(data, '')), ['stdout']);
});
