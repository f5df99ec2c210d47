// When users come and go, in milliseconds after the scenario's start.

/**
 * @param {number} user 1, 2, … over all instances of the test
 * @param {number} arrival_gap_ms
 * @returns {number}
 */
export function arrivalMs(user, arrival_gap_ms) {
  return (user - 1) * arrival_gap_ms;
}

/**
 * The moment at which a user of a ramp leaves: the last to come is the first to go, as k6 takes them out.
 *
 * @param {number} user 1, 2, … over all instances of the test
 * @param {{users: number, ramp_half: number, ramp_full: number, ramp_hold: number, ramp_down: number}} ramp durations in milliseconds
 * @returns {number}
 */
export function leaveMs(user, { users, ramp_half, ramp_full, ramp_hold, ramp_down }) {
  return ramp_half + ramp_full + ramp_hold + ramp_down * (1 - (user - 1) / users);
}

/**
 * How long after its plan a workload may run on, so that requests under way end by an answer or by their own timeout
 * and not by k6's interruption, which would leave no record of them.
 *
 * @param {number} planned_ms
 * @param {{request_timeout: number, max_duration: number}} knobs in milliseconds
 * @returns {number}
 * @throws {Error} if the plan alone is longer than the load may last
 */
export function graceMs(planned_ms, { request_timeout, max_duration }) {
  if (planned_ms > max_duration) {
    throw new Error(
      `CONNLAB_MAX_DURATION must be at least the ${planned_ms}ms that this load takes, not "${max_duration}ms"`,
    );
  }
  return Math.min(request_timeout + 1000, max_duration - planned_ms);
}
