// The servers that users go to: one, or all that stand first on the path.

/**
 * @typedef {{targets: string[], path: string, handler_delay: number, response_bytes: number}} DelayKnobs
 */

/**
 * The URL of the backend's delay endpoint at each target, in their order.
 *
 * @param {DelayKnobs} knobs
 * @returns {string[]}
 */
export function delayUrls({ targets, path, handler_delay, response_bytes }) {
  return targets.map((target) => `${target}${path}?ms=${handler_delay}&bytes=${response_bytes}`);
}

/**
 * Where the targets are, as host:port.
 *
 * @param {string[]} targets
 * @returns {string[]}
 */
export function addresses(targets) {
  return targets.map((target) => target.slice('http://'.length));
}

/**
 * What a user keeps of things of which there is one for each target: the users are dealt out in turn.
 *
 * @template Each
 * @param {Each[]} each
 * @param {number} user 1, 2, … over all instances of the test
 * @returns {Each}
 */
export function ofUser(each, user) {
  return each[(user - 1) % each.length];
}

/**
 * What one call takes of them: the calls are dealt out in turn.
 *
 * @template Each
 * @param {Each[]} each
 * @param {number} call 0, 1, …
 * @returns {Each}
 */
export function ofCall(each, call) {
  return each[call % each.length];
}
