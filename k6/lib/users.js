// Users who come one after the other, make their calls and end: what several workloads have in common.
import { sleep } from 'k6';
import exec from 'k6/execution';
import { sleepUntil } from './clock.js';
import { count, delayKnobs, duration } from './knobs.js';
import { arrivalMs } from './schedule.js';

export const userKnobs = {
  ...delayKnobs,
  users: count,
  arrival_gap: duration,
  calls: count,
  think_time: duration,
};

/**
 * One iteration for each user.
 *
 * @param {{users: number, max_duration: number}} knobs
 * @returns {import('k6/options').Scenario}
 */
export function usersScenario({ users, max_duration }) {
  return {
    executor: 'per-vu-iterations',
    vus: users,
    iterations: 1,
    maxDuration: `${max_duration}ms`,
    gracefulStop: '0s',
  };
}

/** How long ordinary users wait for those beside them to have taken their places, in milliseconds (lab/scenarios/knobs.py). */
export const othersFirst_ms = 1000;

/**
 * A user's whole life: it waits for its turn to arrive, counted from the scenario's start and over all instances, so that
 * no user inherits the delay of another, and then makes its calls.
 *
 * @param {number} user 1, 2, … among those that arrive so
 * @param {{arrival_gap: number, calls: number, think_time: number}} knobs durations in milliseconds
 * @param {(made: number) => void} call given how many calls the user has made
 * @param {number} [first_ms] when the first of them arrives
 */
export function liveAsUser(user, { arrival_gap, calls, think_time }, call, first_ms = 0) {
  sleepUntil(exec.scenario.startTime + first_ms + arrivalMs(user, arrival_gap));
  for (let made = 0; made < calls; made += 1) {
    if (made > 0 && think_time > 0) sleep(think_time / 1000);
    call(made);
  }
}
