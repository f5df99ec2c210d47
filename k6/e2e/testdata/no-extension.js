import { sleep } from 'k6';
import http from 'k6/http';

export default function () {
  http.get(__ENV.CONNLAB_TARGETS);
  sleep(30);
}
