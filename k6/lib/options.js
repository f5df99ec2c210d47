/**
 * Everything requests.jsonl is made from, and what k6 needs to count checks. No `url`: each request brings a tag of that
 * name, because k6 would overwrite its own with the request's name.
 *
 * @type {import('k6/options').Options['systemTags']}
 */
const systemTags = [
  'scenario',
  'name',
  'method',
  'status',
  'error',
  'error_code',
  'expected_response',
  'group',
  'check',
];

/**
 * The options of a workload: one scenario, and what all workloads share.
 *
 * @param {string} name
 * @param {import('k6/options').Scenario} scenario
 * @param {{keep_alive: boolean}} knobs
 * @returns {import('k6/options').Options}
 */
export function workloadOptions(name, scenario, { keep_alive }) {
  return {
    scenarios: { [name]: scenario },
    discardResponseBodies: true,
    noConnectionReuse: !keep_alive,
    // k6's own, except that each name is looked up once: addresses stay the same, and a look-up in mid-run would delay
    // its request.
    dns: { ttl: 'inf', select: 'random', policy: 'preferIPv4' },
    systemTags,
    summaryTrendStats: ['count', 'avg', 'min', 'med', 'max', 'p(90)', 'p(95)', 'p(99)'],
  };
}
