// Stands for a remote module, with one beside it.
export { batch } from './batch.js';
