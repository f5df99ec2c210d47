export const page = (query) => `${__ENV.BASE_URL}/api/delay${query}`;
