export const options = {
  scenarios: {
    browse: { executor: 'constant-vus', exec: 'browse', vus: 1, duration: '1s' },
  },
  thresholds: { http_req_failed: ['rate<0.01'] },
};
export function browse() {}
