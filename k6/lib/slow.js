// Headers that take a client long to send.

/**
 * Lines that a request has anyway: the request line, Host, User-Agent, Connection, and the empty one that ends it; with
 * POST Content-Type and Content-Length, too.
 */
/** @type {Record<string, number>} */
const ownLines = { GET: 5, POST: 7 };

/**
 * Headers that fill a request up to as many lines as it takes to send it for a time, one line at each interval.
 *
 * @param {string} method
 * @param {number} duration_ms from the first line to the last
 * @param {number} interval_ms between two lines
 * @returns {Record<string, string>}
 */
export function fillers(method, duration_ms, interval_ms) {
  const lines = Math.floor(duration_ms / interval_ms) + 1;
  /** @type {Record<string, string>} */
  const headers = {};
  for (let line = ownLines[method]; line < lines; line += 1) headers[`X-Line-${line}`] = 'slow';
  return headers;
}
