// The load knobs as the container's environment gives them: CONNLAB_<KNOB>. The environment has every knob: role.yaml
// says what it may be and has its default, and check-knobs has checked the value.
//
// Each user of a test runs this code anew, so it has no regular expressions: k6 would compile them for each user.

/**
 * @template T
 * @typedef {(text: string) => T} Kind how a knob's text is read
 */

/** @type {Kind<number>} */
export const count = Number;

/** Milliseconds, written "1500ms". @type {Kind<number>} */
export const duration = (text) => Number(text.slice(0, -'ms'.length));

/** @type {Kind<boolean>} */
export const flag = (text) => text === 'true';

/** @type {Kind<string>} */
export const word = (text) => text;

/** @type {Kind<string[]>} */
const targets = (text) => text.split(' ');

/** @type {Kind<string[]>} */
const segments = (text) => text.split(',');

/** What every workload needs. The extension reads connect_timeout too. */
const common = {
  segment_sequence: segments,
  targets,
  connect_timeout: duration,
  request_timeout: duration,
  keep_alive: flag,
  max_duration: duration,
};

/** What the workloads that call the backend's delay endpoint need as well. */
export const delayKnobs = {
  method: word,
  path: word,
  handler_delay: duration,
  response_bytes: count,
};

/**
 * Reads the common knobs and a workload's own. Durations are in milliseconds.
 *
 * @template {Record<string, Kind<any>>} Own
 * @param {Record<string, string | undefined>} environment
 * @param {Own} own
 * @returns {{[Name in keyof (typeof common & Own)]: ReturnType<(typeof common & Own)[Name]>}}
 * @throws {Error} with one line for each knob that is missing
 */
export function readKnobs(environment, own) {
  /** @type {Record<string, Kind<any>>} */
  const kinds = Object.assign({}, common, own);
  /** @type {Record<string, any>} */
  const values = {};
  /** @type {string[]} */
  const problems = [];
  for (const name in kinds) {
    const variable = `CONNLAB_${name.toUpperCase()}`;
    const text = environment[variable];
    if (text === undefined) problems.push(`${variable} is missing`);
    else values[name] = kinds[name](text);
  }
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return /** @type {any} */ (values);
}
