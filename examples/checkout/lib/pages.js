// A page of the shop, here the lab's backend: it answers after so many milliseconds.
export const page = (ms) => `${__ENV.BASE_URL || 'http://localhost:8080'}/api/delay?ms=${ms}&bytes=2000`;
