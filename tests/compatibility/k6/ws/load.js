import ws from 'k6/ws';

const url = __ENV.BASE_URL.replace('http', 'ws');
export default () => {
  ws.connect(url, {}, (socket) => socket.on('open', () => socket.close()));
};
