import { WebSocket } from 'k6/websockets';

const url = __ENV.BASE_URL.replace('http', 'ws');
export default () => {
  const socket = new WebSocket(url);
  socket.onopen = () => socket.close();
};
