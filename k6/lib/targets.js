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
 * A user's place in its instance's order. k6 assigns the users of a test to its instances in turn: the first of two has
 * the users 1, 3, 5, … So each instance counts its own users, and begins one place after the instance before it.
 *
 * @param {number} user 1, 2, … over all instances of the test
 * @param {{segment_sequence: string[]}} knobs
 * @returns {number} 0, 1, …
 */
export function turnOf(user, { segment_sequence }) {
  const instances = segment_sequence.length - 1;
  return Math.floor((user - 1) / instances) + ((user - 1) % instances);
}

/**
 * A user's own element of a list that has one for each target: the users are assigned to the targets in turn.
 *
 * @template Each
 * @param {Each[]} each
 * @param {number} user 1, 2, … over all instances of the test
 * @param {{segment_sequence: string[]}} knobs
 * @returns {Each}
 */
export function ofUser(each, user, knobs) {
  return each[turnOf(user, knobs) % each.length];
}

/**
 * The element for one call: the calls take them in turn.
 *
 * @template Each
 * @param {Each[]} each
 * @param {number} call 0, 1, …
 * @returns {Each}
 */
export function ofCall(each, call) {
  return each[call % each.length];
}
