export const setup = () => ({ token: 1 });
export const teardown = () => {};
export default (data) => data.token;
export function handleSummary(data) {
  return { 'summary.json': JSON.stringify(data) };
}
