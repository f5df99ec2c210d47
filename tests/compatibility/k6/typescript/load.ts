import http from 'k6/http';

const url: string = __ENV.BASE_URL;
export default function (): void {
  http.get(url);
}
