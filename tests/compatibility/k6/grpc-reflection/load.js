import { Client } from 'k6/net/grpc';

const client = new Client();
export default () => {
  client.connect('backend:3001', { plaintext: true, reflect: true });
};
