export const options = { vus: Number(__ENV.USERS), duration: '1s' };
export default () => {};
