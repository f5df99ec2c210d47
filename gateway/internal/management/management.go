// Package management answers on the management port: whether the gateway is ready, and what its state is.
package management

import (
	"encoding/json"
	"net/http"

	"connlab/gateway/internal/client"
	"connlab/gateway/internal/proxy"
	"connlab/gateway/internal/upstream"
)

type settings struct {
	MaxIdleConns            int   `json:"maxIdleConns"`
	MaxIdleConnsPerHost     int   `json:"maxIdleConnsPerHost"`
	MaxConnsPerHost         int   `json:"maxConnsPerHost"`
	IdleConnTimeoutMs       int64 `json:"idleConnTimeoutMs"`
	DialTimeoutMs           int64 `json:"dialTimeoutMs"`
	ResponseHeaderTimeoutMs int64 `json:"responseHeaderTimeoutMs"`
	DisableKeepAlives       bool  `json:"disableKeepAlives"`
	ServerIdleTimeoutMs     int64 `json:"serverIdleTimeoutMs"`
}

type state struct {
	Settings    settings             `json:"settings"`
	Upstreams   []string             `json:"upstreams"`
	Connections upstream.Connections `json:"connections"`
	Dials       upstream.Dials       `json:"dials"`
	Requests    proxy.Requests       `json:"requests"`
	Clients     clients              `json:"clients"`
}

type clients struct {
	Open int64 `json:"open"`
}

// Handler serves /healthz and /gateway. The settings are read from the transport and the server that are in use.
func Handler(
	pool *upstream.Pool, traffic *http.Server, requests *proxy.Handler, counter *client.Counter, addresses []upstream.Address,
) http.Handler {
	mux := http.NewServeMux()
	// Both listeners are open before either is served.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ready\n")) })
	mux.HandleFunc("GET /gateway", func(w http.ResponseWriter, _ *http.Request) {
		names := make([]string, len(addresses))
		for i, address := range addresses {
			names[i] = address.Resolved
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(state{
			Settings: settings{
				MaxIdleConns:            pool.MaxIdleConns,
				MaxIdleConnsPerHost:     pool.MaxIdleConnsPerHost,
				MaxConnsPerHost:         pool.MaxConnsPerHost,
				IdleConnTimeoutMs:       pool.IdleConnTimeout.Milliseconds(),
				DialTimeoutMs:           pool.DialTimeout().Milliseconds(),
				ResponseHeaderTimeoutMs: pool.ResponseHeaderTimeout.Milliseconds(),
				DisableKeepAlives:       pool.DisableKeepAlives,
				ServerIdleTimeoutMs:     traffic.IdleTimeout.Milliseconds(),
			},
			Upstreams:   names,
			Connections: pool.Connections(),
			Dials:       pool.Dials(),
			Requests:    requests.Requests(),
			Clients:     clients{counter.Open()},
		})
	})
	return mux
}
