import grpc from 'k6/net/grpc';

const client = new grpc.Client();
client.load(['definitions'], '../../proto/greet.proto');
export default () => {
  client.connect('backend:3001', { plaintext: true });
};
