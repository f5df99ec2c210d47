package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// backend answers as the lab's backend does. Its waiting room admits one place every admitEvery, in order.
type backend struct {
	*httptest.Server

	admitEvery time.Duration

	mu     sync.Mutex
	opened time.Time
	issued int
}

func newBackend(t *testing.T, admitEvery time.Duration) *backend {
	t.Helper()
	b := &backend{admitEvery: admitEvery}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/delay", delay)
	mux.HandleFunc("POST /api/wait", b.wait)
	mux.HandleFunc("POST /api/entry", b.entry)
	b.Server = httptest.NewServer(mux)
	t.Cleanup(b.Close)
	return b
}

func delay(answer http.ResponseWriter, request *http.Request) {
	ms, _ := strconv.Atoi(request.FormValue("ms"))
	size, _ := strconv.Atoi(request.FormValue("bytes"))
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
	case <-request.Context().Done():
		return
	}
	_, _ = fmt.Fprint(answer, strings.Repeat("x", size))
}

func (b *backend) wait(answer http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	if b.issued == 0 {
		b.opened = time.Now()
	}
	b.issued++
	number := b.issued
	b.mu.Unlock()
	b.place(answer, number)
}

func (b *backend) entry(answer http.ResponseWriter, request *http.Request) {
	var asked struct{ Token string }
	if err := json.NewDecoder(request.Body).Decode(&asked); err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	number, err := strconv.Atoi(strings.TrimPrefix(asked.Token, "token-"))
	if err != nil {
		http.Error(answer, "unknown token", http.StatusNotFound)
		return
	}
	b.place(answer, number)
}

func (b *backend) place(answer http.ResponseWriter, number int) {
	b.mu.Lock()
	turn := b.opened.Add(time.Duration(number) * b.admitEvery)
	b.mu.Unlock()
	place := map[string]any{
		"token": fmt.Sprintf("token-%d", number), "number": number, "pollingPeriodMs": 50,
		"canEnter": false, "turnUnixUs": nil,
	}
	if !time.Now().Before(turn) {
		place["canEnter"], place["turnUnixUs"] = true, turn.UnixMicro()
	}
	answer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(answer).Encode(place)
}
