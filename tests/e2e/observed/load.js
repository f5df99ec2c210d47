// Plain k6: users come one after another, each with a connection of its own, and wait five seconds.
import http from "k6/http";

export const options = {
  scenarios: {
    all: { executor: "constant-arrival-rate", rate: 10, duration: "5s", preAllocatedVUs: 60, gracefulStop: "10s" },
  },
  noConnectionReuse: true,
};

export default function () {
  http.get("http://shop:8000/", { timeout: "5s" });
}
