package e2e

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestUsersArriveOneByOneAndHoldTheirConnections(t *testing.T) {
	t.Parallel()
	server := newBackend(t, 0)
	r := completed(t, "users", with(knobs(server.URL), "USERS", "5", "ARRIVAL_GAP", "500ms", "CALLS", "2", "THINK_TIME", "10ms"))
	record := r.record(t)
	if len(record.requests) != 10 || len(record.dials) != 5 || len(record.closes) != 5 || !record.ended {
		t.Fatalf("%d requests, %d dials, %d closes, ended %v: want 10, 5, 5 in order",
			len(record.requests), len(record.dials), len(record.closes), record.ended)
	}
	// On a busy machine a user may arrive late, but never early.
	for _, dial := range record.dials {
		if waited := dial.TimeUS - r.begun(t); waited < (dial.VU-1)*500_000 {
			t.Errorf("user %d arrived %d us after the record began", dial.VU, waited)
		}
	}
	last := slices.MaxFunc(record.requests, func(a, b requestLine) int { return int(a.EndUS - b.EndUS) })
	for _, closed := range record.closes {
		if closed.TimeUS < last.EndUS || closed.Error != nil {
			t.Errorf("connection %d was not held to the end: %+v", closed.ID, closed)
		}
		if closed.BytesSent == 0 || closed.BytesReceived == 0 {
			t.Errorf("connection %d carried nothing: %+v", closed.ID, closed)
		}
	}
	for _, request := range record.requests {
		if request.Status != 200 || request.Name != "delay" || request.Scenario != "users" || request.Method != "GET" ||
			request.URL != server.URL+"/api/delay?ms=0&bytes=10" {
			t.Errorf("%+v", request)
		}
		dial := record.dials[slices.IndexFunc(record.dials, func(dial dialLine) bool { return dial.ID == *request.Dial })]
		if dial.VU != request.VU || *dial.Remote != *request.Remote {
			t.Errorf("request %d went over a stranger's connection %+v", request.ID, dial)
		}
		if request.Reused == (request.ConnectingUS > 0) || (!request.Reused && dial.TimeUS < request.TimeUS) {
			t.Errorf("request %d does not agree with its dial: %+v, %+v", request.ID, request, dial)
		}
	}
	if live := record.live[len(record.live)-1]; live.Requests != 10 || live.Iterations != 5 || live.InterruptedIterations != 0 || live.Failed != 0 {
		t.Errorf("the last live line is %+v", live)
	}
	if summary, err := os.ReadFile(filepath.Join(r.raw, "summary.json")); err != nil || !strings.Contains(string(summary), `"http_reqs"`) {
		t.Errorf("summary.json: %v\n%s", err, summary)
	}
}

func TestUsersPostWhereTheyAreToldTo(t *testing.T) {
	t.Parallel()
	record := completed(t, "users", with(knobs(newBackend(t, 0).URL), "METHOD", "POST")).record(t)
	if len(record.requests) != 4 {
		t.Fatalf("%d requests, want 4", len(record.requests))
	}
	for _, request := range record.requests {
		if request.Method != "POST" || request.Status != 200 {
			t.Errorf("%+v", request)
		}
	}
}

func TestWithoutKeepAliveEachRequestHasItsOwnConnection(t *testing.T) {
	t.Parallel()
	record := completed(t, "users", with(knobs(newBackend(t, 0).URL), "CALLS", "3", "KEEP_ALIVE", "false")).record(t)
	if len(record.dials) != 12 {
		t.Errorf("%d dials for 12 requests", len(record.dials))
	}
	for _, request := range record.requests {
		if request.Reused {
			t.Errorf("%+v", request)
		}
	}
}

func TestAUserKeepsOneOfSeveralTargets(t *testing.T) {
	t.Parallel()
	targets := []string{newBackend(t, 0).URL, newBackend(t, 0).URL}
	both := strings.Join(targets, " ")
	for workload, changes := range map[string][]string{
		"users":        {"CALLS", "2"},
		"spike":        {},
		"long-polling": {},
	} {
		record := completed(t, workload, with(knobs(both), changes...)).record(t)
		used := make(map[string]int)
		for _, request := range record.requests {
			target := targets[(request.VU-1)%2]
			if !strings.HasPrefix(request.URL, target+"/") {
				t.Errorf("%s: user %d asked %s, not %s", workload, request.VU, request.URL, target)
			}
			used[target]++
		}
		if len(used) != 2 {
			t.Errorf("%s: of two targets these were asked: %v", workload, used)
		}
	}
}

func TestSequentialRequestsGoToEachTargetInTurn(t *testing.T) {
	t.Parallel()
	targets := []string{newBackend(t, 0).URL, newBackend(t, 0).URL}
	record := completed(t, "sequential", knobs(strings.Join(targets, " "))).record(t)
	for i, request := range record.requests {
		if !strings.HasPrefix(request.URL, targets[i%2]+"/") {
			t.Errorf("request %d went to %s", i+1, request.URL)
		}
	}
	if len(record.requests) != 10 || len(record.dials) != 2 {
		t.Errorf("%d requests over %d connections", len(record.requests), len(record.dials))
	}
}

func TestInstancesShareTheUsersOfATest(t *testing.T) {
	t.Parallel()
	for i, r := range halves(t, "users", with(knobs(newBackend(t, 0).URL), "USERS", "4", "ARRIVAL_GAP", "1500ms")) {
		record := r.wait(t).record(t)
		if len(record.requests) != 2 {
			t.Fatalf("instance %d made %d requests of 4", i+1, len(record.requests))
		}
		// Users 1 and 3, or 2 and 4: on a busy machine one may arrive late, but never early.
		for n, request := range record.requests {
			if waited := request.TimeUS - r.begun(t); waited < int64(i+2*n)*1_500_000 {
				t.Errorf("user %d arrived %d us after instance %d's record began", i+2*n+1, waited, i+1)
			}
		}
	}
}

// halves starts two instances that share a load.
func halves(t *testing.T, workload string, knobs map[string]string) []*run {
	t.Helper()
	const sequence = "0,1/2,1"
	half := func(instance, segment string) *run {
		return start(t, workload, with(knobs, "INSTANCE", instance, "SEGMENT_SEQUENCE", sequence),
			"--execution-segment", segment, "--execution-segment-sequence", sequence)
	}
	return []*run{half("k6-1", "0:1/2"), half("k6-2", "1/2:1")}
}

func TestEachInstanceSharesItsUsersOutToAllTargets(t *testing.T) {
	t.Parallel()
	targets := []string{newBackend(t, 0).URL, newBackend(t, 0).URL}
	for _, workload := range []string{"users", "tcp", "half-open"} {
		for i, r := range halves(t, workload, with(knobs(strings.Join(targets, " ")), "HALF_OPEN", "2", "HALF_OPEN_DURATION", "500ms")) {
			asked := make(map[string]int)
			for _, request := range r.wait(t).record(t).requests {
				target, _, _ := strings.Cut(request.URL, "/api/")
				asked[target]++
			}
			if asked[targets[0]] != 1 || asked[targets[1]] != 1 {
				t.Errorf("%s: two users of instance %d asked %v", workload, i+1, asked)
			}
		}
	}
}

func TestASpikeCountsTheArrivalsThatFoundNoUser(t *testing.T) {
	t.Parallel()
	target := newBackend(t, 0).URL
	record := completed(t, "spike", with(knobs(target), "MAX_USERS", "2", "HANDLER_DELAY", "800ms")).record(t)
	live := record.live[len(record.live)-1]
	// Two users have time for two requests each; on a busy machine k6 misses some of the last arrivals.
	arrivals := live.Requests + live.DroppedIterations
	if live.Requests < 2 || live.Requests > 4 || live.DroppedIterations < 1 || arrivals > 21 {
		t.Errorf("of 20 arrivals %d were dropped and %d made a request", live.DroppedIterations, live.Requests)
	}
	if int(live.Requests) != len(record.requests) || live.Failed != 0 {
		t.Errorf("%+v with %d request lines", live, len(record.requests))
	}
}

func TestSequentialRequestsDoNotOverlap(t *testing.T) {
	t.Parallel()
	record := completed(t, "sequential", knobs(newBackend(t, 0).URL)).record(t)
	if len(record.requests) != 10 || len(record.dials) != 1 {
		t.Fatalf("%d requests over %d connections", len(record.requests), len(record.dials))
	}
	for i, request := range record.requests[1:] {
		if request.TimeUS < record.requests[i].EndUS || request.Iteration != int64(i+1) {
			t.Errorf("%+v after %+v", request, record.requests[i])
		}
	}
}

func TestTheLoadEndsAtItsLongestDuration(t *testing.T) {
	t.Parallel()
	target := newBackend(t, 0).URL
	record := completed(t, "users", with(knobs(target), "HANDLER_DELAY", "60000ms", "MAX_DURATION", "5000ms")).record(t)
	if len(record.requests) != 0 || !record.ended || len(record.closes) != 4 {
		t.Errorf("%d requests, %d closes, ended %v", len(record.requests), len(record.closes), record.ended)
	}
	if live := record.live[len(record.live)-1]; live.InterruptedIterations != 4 || live.Iterations != 0 {
		t.Errorf("%+v", live)
	}
}

func TestEveryoneIsAdmittedInOrder(t *testing.T) {
	t.Parallel()
	record := completed(t, "long-polling", with(knobs(newBackend(t, 40*time.Millisecond).URL), "USERS", "10", "RAMP_HOLD", "8000ms")).record(t)
	issued, admitted := record.named("issued"), record.named("admitted")
	if len(issued) != 10 || len(admitted) != 10 || len(record.named("unadmitted")) != 0 {
		t.Fatalf("%d issued, %d admitted, %d unadmitted", len(issued), len(admitted), len(record.named("unadmitted")))
	}
	for _, event := range admitted {
		if event.TimeUS < event.Data.TurnUS {
			t.Errorf("admitted before its turn: %+v", event)
		}
	}
	for _, request := range record.requests {
		if request.Status != 200 || (request.Name != "wait" && request.Name != "entry") {
			t.Errorf("%+v", request)
		}
	}
	if len(record.dials) != 10 {
		t.Errorf("10 users opened %d connections", len(record.dials))
	}
}

func TestUsersThatLeaveUnadmittedAreCounted(t *testing.T) {
	t.Parallel()
	// The first to leave is gone for longer than a request may last when the last one leaves.
	changes := []string{"USERS", "6", "REQUEST_TIMEOUT", "4000ms", "RAMP_DOWN", "10000ms"}
	record := completed(t, "long-polling", with(knobs(newBackend(t, time.Hour).URL), changes...)).record(t)
	if issued, left := len(record.named("issued")), len(record.named("unadmitted")); issued != 6 || left != 6 {
		t.Errorf("%d issued, %d unadmitted", issued, left)
	}
	if live := record.live[len(record.live)-1]; live.Failed != 0 || live.InterruptedIterations != 0 {
		t.Errorf("leaving made requests fail, or k6 did not let them: %+v", live)
	}
}

func TestUsersMayRejoinTheWaitingRoom(t *testing.T) {
	t.Parallel()
	record := completed(t, "long-polling", with(knobs(newBackend(t, 20*time.Millisecond).URL), "REJOIN", "true", "RAMP_HOLD", "4000ms")).record(t)
	if issued := len(record.named("issued")); issued <= 4 {
		t.Errorf("4 users took %d places", issued)
	}
}

func TestAUserThatIsTurnedAwayLeavesWhenItIsTime(t *testing.T) {
	t.Parallel()
	target := serve(t, func(conn *net.TCPConn) {
		readRequest(conn)
		_, _ = io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 40\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		_ = conn.Close()
	})
	record := completed(t, "long-polling", with(knobs(target), "MAX_DURATION", "30000ms")).record(t)
	if len(record.requests) != 4 {
		t.Errorf("4 users, told to come again in 40 s, made %d requests in 1.5 s", len(record.requests))
	}
	// Each user left by itself: k6 interrupts users who still sleep at the end of the load's longest time.
	if live := record.live[len(record.live)-1]; live.InterruptedIterations != 0 {
		t.Errorf("%+v", live)
	}
}
