import http from 'k6/http';
import connlab from 'k6/x/connlab';

// setup() has no user. Its requests have no dial in the record, as it does not call connlab.record().
export function setup() {
  http.get(__ENV.CONNLAB_TARGETS);
}

export default function () {
  connlab.event('hello', { nested: { text: 'line\nbreak "quoted" \u2028' }, list: [1, null] });
  for (const bad of [() => connlab.event('', {}), () => connlab.event('no data')]) {
    try {
      bad();
      throw new Error('it was taken');
    } catch (error) {
      if (error.message === 'it was taken') throw error;
    }
  }
  connlab.event('refused', {});
}
