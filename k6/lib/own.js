// What the lab puts around a user's own script (connlab-k6 makes the script that imports both).
import connlab from 'k6/x/connlab';
import { summaryFiles } from './summary.js';

/** The system tags that requests.jsonl and the counts of checks are made from. */
const neededTags = ['scenario', 'name', 'method', 'status', 'error', 'error_code', 'group', 'check', 'url'];

/**
 * The script's own options. If it chooses its system tags, it also gets those that the record needs.
 *
 * @param {import('k6/options').Options} [options]
 * @returns {import('k6/options').Options}
 */
export function inFull(options = {}) {
  const { systemTags } = options;
  return systemTags ? { ...options, systemTags: [...new Set([...systemTags, ...neededTags])] } : options;
}

/**
 * setup() or teardown(), with its dials recorded: it runs outside any user.
 *
 * @param {((data?: unknown) => unknown) | undefined} run undefined if the script has none
 * @returns {(data?: unknown) => unknown}
 */
export function recorded(run) {
  return (data) => {
    if (run === undefined) return undefined;
    connlab.record();
    return run(data);
  };
}

/**
 * handleSummary(): the lab's summary.json, and the files that the script's own handleSummary() makes, as own-<name> beside
 * it, because the record's folder is the only one that the script can write to.
 *
 * @param {((data: import('./summary.js').Summary) => Record<string, unknown>) | undefined} own
 * @returns {(data: import('./summary.js').Summary) => Record<string, unknown>}
 */
export function summaryOf(own) {
  return (data) => {
    const folder = connlab.folder();
    /** @type {Record<string, unknown>} */
    const files = summaryFiles(data, folder);
    for (const [name, content] of Object.entries(own?.(data) ?? {})) {
      const toFile = name !== 'stdout' && name !== 'stderr';
      files[toFile ? `${folder}/own-${name.replace(/^.*\//, '')}` : name] = content;
    }
    return files;
  };
}
