import { check } from 'k6';
import http from 'k6/http';
import { delayUrls } from './targets.js';

// k6 wraps what its modules export anew at each access, which costs as much as a twentieth of a request.
const send = http.request;
const verify = check;

/**
 * Prepares one kind of request, so that sending it again and again costs little.
 *
 * @param {object} kind
 * @param {string} kind.method
 * @param {string} kind.name stands in every record of the request, and in k6's own metrics as the tag `name`
 * @param {string} kind.url
 * @param {number} kind.timeout_ms from the start of the connect to the end of the answer
 * @param {Record<string, string>} [kind.headers]
 * @param {boolean} [kind.readBody] false: the answer's body is thrown away
 * @returns {(body?: object) => import('k6/http').RefinedResponse<'text' | 'none'>}
 */
export function request({ method, name, url, timeout_ms, headers = {}, readBody = false }) {
  /** @type {import('k6/http').RefinedParams<'text' | 'none'>} */
  const params = {
    timeout: timeout_ms,
    tags: { name, url },
    responseType: readBody ? 'text' : 'none',
    headers: method === 'POST' ? { 'Content-Type': 'application/json', ...headers } : headers,
  };
  const checks = {
    /** @param {import('k6/http').RefinedResponse<'text' | 'none'>} response */
    [`${name}: status 200`]: (response) => response.status === 200,
  };
  return (body) => {
    const response = send(method, url, body ? JSON.stringify(body) : null, params);
    verify(response, checks);
    return response;
  };
}

/**
 * The request to the backend's delay endpoint, one for each target.
 *
 * @param {import('./targets.js').DelayKnobs & {method: string, request_timeout: number}} knobs
 * @param {string} [name]
 * @param {Record<string, string>} [headers] beside those that every request has
 */
export function delayRequests(knobs, name = 'delay', headers = {}) {
  return delayUrls(knobs).map((url) =>
    request({ method: knobs.method, name, url, timeout_ms: knobs.request_timeout, headers }),
  );
}
