// Plain k6: users come at once, each with a connection of its own, and wait five seconds.
import http from "k6/http";

const users = Number(__ENV.USERS);

export const options = {
  scenarios: { all: { executor: "per-vu-iterations", vus: users, iterations: 1, maxDuration: "60s" } },
  noConnectionReuse: true,
};

export default function () {
  http.get("http://shop:8000/", { timeout: "5s" });
}
