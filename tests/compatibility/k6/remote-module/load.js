import { greeting } from 'https://modules.test/index.js';
export default () => greeting;
