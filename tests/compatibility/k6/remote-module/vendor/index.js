export { greeting } from './words.js';
