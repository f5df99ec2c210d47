// Package management answers on the management port: whether the gateway is ready, and what its state is.
package management

import (
	"encoding/json"
	"net/http"

	"connlab/gateway/internal/client"
	"connlab/gateway/internal/proxy"
	"connlab/gateway/internal/secure"
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

	ServerReadHeaderTimeoutMs int64  `json:"serverReadHeaderTimeoutMs"`
	TLS                       bool   `json:"tls"`
	TLSMin                    string `json:"tlsMin,omitempty"`
	TLSMax                    string `json:"tlsMax,omitempty"`
	TLSSessionTickets         *bool  `json:"tlsSessionTickets,omitempty"`
	TLSHandshakeTimeoutMs     int64  `json:"tlsHandshakeTimeoutMs"`
	TLSClientSessionCache     int    `json:"tlsClientSessionCache"`
	HTTP2                     bool   `json:"http2"`
	HTTP2MaxConcurrentStreams int    `json:"http2MaxConcurrentStreams"`
	UpstreamHTTP2             bool   `json:"upstreamHttp2"`
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
	secured := traffic.TLSConfig // before net/http makes one of its own
	// Both listeners are open before either is served.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ready\n")) })
	mux.HandleFunc("GET /gateway", func(w http.ResponseWriter, _ *http.Request) {
		names := make([]string, len(addresses))
		for i, address := range addresses {
			names[i] = address.Resolved
		}
		w.Header().Set("Content-Type", "application/json")
		inForce := settings{
			MaxIdleConns:            pool.MaxIdleConns,
			MaxIdleConnsPerHost:     pool.MaxIdleConnsPerHost,
			MaxConnsPerHost:         pool.MaxConnsPerHost,
			IdleConnTimeoutMs:       pool.IdleConnTimeout.Milliseconds(),
			DialTimeoutMs:           pool.DialTimeout().Milliseconds(),
			ResponseHeaderTimeoutMs: pool.ResponseHeaderTimeout.Milliseconds(),
			DisableKeepAlives:       pool.DisableKeepAlives,
			ServerIdleTimeoutMs:     traffic.IdleTimeout.Milliseconds(),

			ServerReadHeaderTimeoutMs: traffic.ReadHeaderTimeout.Milliseconds(),
			TLSHandshakeTimeoutMs:     pool.TLSHandshakeTimeout.Milliseconds(),
			TLSClientSessionCache:     pool.Sessions(),
			HTTP2:                     traffic.Protocols.HTTP2() || traffic.Protocols.UnencryptedHTTP2(),
			HTTP2MaxConcurrentStreams: traffic.HTTP2.MaxConcurrentStreams,
			UpstreamHTTP2:             pool.Protocols.HTTP2() || pool.Protocols.UnencryptedHTTP2(),
		}
		if secured != nil {
			tickets := !secured.SessionTicketsDisabled
			inForce.TLS, inForce.TLSSessionTickets = true, &tickets
			inForce.TLSMin, inForce.TLSMax = secure.VersionName(secured.MinVersion), secure.VersionName(secured.MaxVersion)
		}
		_ = json.NewEncoder(w).Encode(state{
			Settings:    inForce,
			Upstreams:   names,
			Connections: pool.Connections(),
			Dials:       pool.Dials(),
			Requests:    requests.Requests(),
			Clients:     clients{counter.Open()},
		})
	})
	return mux
}
