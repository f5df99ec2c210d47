/**
 * What is read here of the data that k6 hands to handleSummary.
 *
 * @typedef {object} Summary
 * @property {{testRunDurationMs: number}} state
 * @property {Record<string, {values: Record<string, number>}>} metrics
 */

/**
 * What handleSummary returns: k6's end-of-test summary, whole as summary.json in the run's folder, in short on stdout.
 *
 * @param {Summary} data
 * @param {string} folder '' for none
 * @returns {Record<string, string>}
 */
export function summaryFiles(data, folder) {
  /** @type {Record<string, string>} */
  const files = { stdout: summaryText(data) };
  if (folder !== '') files[`${folder}/summary.json`] = `${JSON.stringify(data)}\n`;
  return files;
}

/**
 * @param {Summary} data
 * @returns {string} a few lines for a person
 */
function summaryText({ state, metrics }) {
  /** @param {string} metric @param {string} value */
  const value = (metric, value) => metrics[metric]?.values[value] ?? 0;
  const requests = value('http_reqs', 'count');
  const failed = value('http_req_failed', 'passes');
  const lines = [
    `${requests} requests in ${(state.testRunDurationMs / 1000).toFixed(1)} s, ${failed} failed`,
    `${value('iterations', 'count')} iterations, ${value('dropped_iterations', 'count')} dropped`,
  ];
  if (requests > failed) {
    // The plain metric includes failed requests, with 0 ms for those that never got a connection.
    const times = 'http_req_duration{expected_response:true}';
    const [median, p95, max] = ['med', 'p(95)', 'max'].map((stat) => value(times, stat).toFixed(1));
    lines.push(`answers came after ${median} ms (median), ${p95} ms (p95), ${max} ms (max), connecting not included`);
  }
  return `${lines.join('\n')}\n`;
}
