import { browser } from 'k6/browser';
export default () => browser;
