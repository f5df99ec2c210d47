import { SharedArray } from 'k6/data';

const names = new SharedArray('names', () => JSON.parse(open('../names.json')));
export default () => names[0];
