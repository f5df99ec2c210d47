import { users } from '../config.js';
export const options = { vus: users, iterations: users };
export default () => {};
