import { sleep } from 'k6';

/**
 * Sleeps until a moment, given in milliseconds since the Unix epoch; not at all if it has passed.
 *
 * @param {number} moment_ms
 */
export function sleepUntil(moment_ms) {
  // Date.now() has whole milliseconds: at the moment itself it may still be one too low.
  const left_ms = Math.ceil(moment_ms) - Date.now();
  if (left_ms > 0) sleep(left_ms / 1000);
}
