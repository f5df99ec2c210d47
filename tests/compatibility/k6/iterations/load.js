export const options = { vus: 2, iterations: 4 };
export default () => {};
