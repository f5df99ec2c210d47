// The load knobs as the container's environment gives them: CONNLAB_<KNOB>. Every knob is given explicitly: the defaults
// stand once, where the environment is made.
//
// Each user of a test runs this code anew, so it has no regular expressions: k6 would compile them for each user.

/**
 * @template T
 * @typedef {object} Kind a kind of knob
 * @property {string} wanted what the text must be
 * @property {(text: string) => T | undefined} parse undefined if the text is bad
 */

/**
 * @param {string} text
 * @param {number} min
 * @param {number} max
 */
function wholeNumber(text, min, max) {
  const value = Number(text);
  return Number.isInteger(value) && String(value) === text && value >= min && value <= max ? value : undefined;
}

/**
 * A whole number.
 *
 * @param {number} [min]
 * @param {number} [max]
 * @returns {Kind<number>}
 */
export function count(min = 1, max = 1000000000) {
  return {
    wanted: `a whole number from ${min} to ${max}`,
    parse: (text) => wholeNumber(text, min, max),
  };
}

const durationMsMax = 24 * 3600 * 1000;

/**
 * Milliseconds, written "1500ms".
 *
 * @param {number} [minMs]
 * @returns {Kind<number>}
 */
export function duration(minMs = 0) {
  return {
    wanted: `whole milliseconds from ${minMs}ms to ${durationMsMax}ms`,
    parse: (text) => (text.endsWith('ms') ? wholeNumber(text.slice(0, -2), minMs, durationMsMax) : undefined),
  };
}

/**
 * @returns {Kind<boolean>}
 */
export function flag() {
  return {
    wanted: 'true or false',
    parse: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
  };
}

/**
 * One of some words.
 *
 * @template {string} Word
 * @param {...Word} words
 * @returns {Kind<Word>}
 */
export function oneOf(...words) {
  return {
    wanted: words.join(' or '),
    parse: (text) => words.find((word) => word === text),
  };
}

/**
 * The printable ASCII that may stand in a URL, without what begins a query or a fragment.
 *
 * @param {string} text
 */
function urlSafe(text) {
  for (let i = 0; i < text.length; i += 1) {
    if (text[i] <= ' ' || text[i] > '~' || text[i] === '?' || text[i] === '#') return false;
  }
  return true;
}

/** @param {string} text */
function isTarget(text) {
  const host = text.startsWith('http://') ? text.slice('http://'.length) : '';
  return host !== '' && urlSafe(host) && !host.includes('/');
}

/** @type {Kind<string[]>} */
const targets = {
  wanted: 'URLs without a path, such as http://nginx:8080, a space between two',
  parse: (text) => {
    const urls = text.split(' ');
    return urls.every(isTarget) ? urls : undefined;
  },
};

/** @type {Kind<string>} */
const path = {
  wanted: 'a path such as /api/delay, without a query',
  parse: (text) => (text.startsWith('/') && urlSafe(text) ? text : undefined),
};

/** @type {Kind<string[]>} */
const segments = {
  wanted: 'the bounds of all shares of the load, such as 0,1/2,1',
  parse: (text) => (text.includes(',') ? text.split(',') : undefined),
};

/** What every workload needs. The extension reads connect_timeout too; here it is checked with the others. */
const common = {
  segment_sequence: segments,
  targets,
  connect_timeout: duration(1),
  request_timeout: duration(1),
  keep_alive: flag(),
  max_duration: duration(1000),
};

/** What the workloads that call the backend's delay endpoint need as well. */
export const delayKnobs = {
  method: oneOf('GET', 'POST'),
  path,
  handler_delay: duration(),
  response_bytes: count(0, 10 * 1024 * 1024),
};

/**
 * Reads the common knobs and a workload's own. Durations are in milliseconds.
 *
 * @template {Record<string, Kind<any>>} Own
 * @param {Record<string, string | undefined>} environment
 * @param {Own} own
 * @returns {{[Name in keyof (typeof common & Own)]: NonNullable<ReturnType<(typeof common & Own)[Name]['parse']>>}}
 * @throws {Error} with one line for each knob that is missing or bad
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
    values[name] = text === undefined ? undefined : kinds[name].parse(text);
    if (text === undefined) problems.push(`${variable} is missing`);
    else if (values[name] === undefined) problems.push(`${variable} must be ${kinds[name].wanted}, not "${text}"`);
  }
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return /** @type {any} */ (values);
}
