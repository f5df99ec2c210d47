import http from "k6/http";

// Each user sends a small body and a large one by turns.
export const options = {
  scenarios: { uploads: { executor: "per-vu-iterations", vus: 4, iterations: 20, maxDuration: "40s" } },
};

const bodies = { small: "x".repeat(2 << 10), large: "x".repeat(8 << 20) };

export default function () {
  const size = __ITER % 2 ? "large" : "small";
  http.post(`${__ENV.BASE_URL}/upload`, bodies[size], { tags: { name: size }, timeout: "20s" });
}
