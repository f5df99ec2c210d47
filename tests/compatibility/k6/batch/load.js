import http from 'k6/http';

export default () => {
  http.batch([['GET', __ENV.BASE_URL], ['GET', __ENV.BASE_URL]]);
};
