// Command benchmark measures what the lab's records cost k6. It runs the same load with and without them, in turn, against
// a server of its own, and compares: only ratios within one run mean anything. Its last line is JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// arm is one way to run the load.
type arm struct {
	name, script string
	recorded     bool
	dashboard    bool // k6's own page, as connlab-k6 asks for it
}

var arms = []arm{
	{"plain k6: its own tags, no output", "benchmark/plain.js", false, false},
	{"the lab's workload, no output", "workloads/users.js", false, false},
	{"the lab's workload, recorded", "workloads/users.js", true, false},
	{"recorded, and k6's dashboard", "workloads/users.js", true, true},
}

// Arms that are compared with each other.
const unrecorded, recorded = 1, 2

// cost is what one run of an arm took.
type cost struct {
	requestsPerSecond float64
	cpuMicroseconds   float64 // for each request
}

func main() {
	users := flag.Int("users", 20, "users at once")
	calls := flag.Int("calls", 2000, "calls of each user")
	repetitions := flag.Int("repetitions", 7, "runs of each arm")
	flag.Parse()
	if err := measure(*users, *calls, *repetitions); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(users, calls, repetitions int) error {
	work, err := os.MkdirTemp("", "connlab-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	k6 := filepath.Join(work, "k6")
	build := exec.Command("go", "build", "-o", k6, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) }()
	environment := append(os.Environ(), load("http://"+listener.Addr().String(), users, calls)...)

	costs := make([][]cost, len(arms))
	for repetition := range repetitions {
		for i := range arms {
			// Each arm goes first as often as any other.
			n := (i + repetition) % len(arms)
			cost, err := run(k6, arms[n], filepath.Join(work, fmt.Sprintf("raw-%d", repetition)), environment, users*calls)
			if err != nil {
				return fmt.Errorf("%s: %w", arms[n].name, err)
			}
			costs[n] = append(costs[n], cost)
		}
	}
	report(costs)
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"bench": "k6", "repetitions": repetitions,
		"per_second": math.Round(median(costs[unrecorded], rate)), "per_second_recorded": math.Round(median(costs[recorded], rate)),
		"throughput_lost": math.Round(1e4*(1-median(costs[recorded], rate)/median(costs[unrecorded], rate))) / 1e4,
	})
}

func load(target string, users, calls int) []string {
	return []string{
		"K6_AUTO_EXTENSION_RESOLUTION=false", "CONNLAB_INSTANCE=k6-1", "CONNLAB_SEGMENT_SEQUENCE=0,1", "CONNLAB_TARGETS=" + target,
		"CONNLAB_CONNECT_TIMEOUT=30000ms", "CONNLAB_REQUEST_TIMEOUT=60000ms", "CONNLAB_KEEP_ALIVE=true",
		"CONNLAB_METHOD=GET", "CONNLAB_PATH=/", "CONNLAB_HANDLER_DELAY=0ms", "CONNLAB_RESPONSE_BYTES=0", "CONNLAB_MAX_DURATION=600000ms",
		"CONNLAB_USERS=" + strconv.Itoa(users), "CONNLAB_CALLS=" + strconv.Itoa(calls),
		"CONNLAB_ARRIVAL_GAP=0ms", "CONNLAB_THINK_TIME=0ms",
	}
}

func run(k6 string, arm arm, folder string, environment []string, requests int) (cost, error) {
	args := []string{"run", "--quiet", "--address", "", "--no-usage-report", arm.script}
	if arm.recorded {
		folder += "-" + strconv.FormatBool(arm.dashboard)
		if err := os.Mkdir(folder, 0o755); err != nil {
			return cost{}, err
		}
		args = append(args, "--out", "connlab="+folder)
	}
	if arm.dashboard {
		environment = append(slices.Clip(environment), "K6_WEB_DASHBOARD=true", "K6_WEB_DASHBOARD_PORT=-1",
			"K6_WEB_DASHBOARD_PERIOD=1s", "K6_WEB_DASHBOARD_EXPORT="+filepath.Join(folder, "dashboard.html"))
	}
	command := exec.Command(k6, args...)
	command.Env = environment
	command.Stderr = os.Stderr
	began := time.Now()
	if err := command.Run(); err != nil {
		return cost{}, err
	}
	seconds := time.Since(began).Seconds()
	cpu := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	return cost{
		requestsPerSecond: float64(requests) / seconds,
		cpuMicroseconds:   float64(cpu.Microseconds()) / float64(requests),
	}, nil
}

func rate(c cost) float64 { return c.requestsPerSecond }

func cpu(c cost) float64 { return c.cpuMicroseconds }

func report(costs [][]cost) {
	fmt.Printf("%-36s %12s %8s %14s %8s\n", "median of "+strconv.Itoa(len(costs[0]))+" runs", "requests/s", "ratio", "CPU us/request", "ratio")
	for i, arm := range arms {
		fmt.Printf("%-36s %12.0f %8.3f %14.1f %8.3f\n", arm.name,
			median(costs[i], rate), median(costs[i], rate)/median(costs[0], rate),
			median(costs[i], cpu), median(costs[i], cpu)/median(costs[0], cpu))
	}
}

func median(costs []cost, figure func(cost) float64) float64 {
	values := make([]float64, len(costs))
	for i, cost := range costs {
		values[i] = figure(cost)
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}
