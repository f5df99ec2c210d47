#!/usr/bin/env bash
# Runs inside the image, with the image's defaults as its environment: which knobs nginx accepts, which are refused, and the
# directive that each becomes.
set -euo pipefail
# shellcheck source=nginx/tests/lib.sh
source /tests/lib.sh

# accepted KNOB=VALUE…: nginx takes the configuration without a word.
accepted() {
  local said
  if said=$(env "$@" connlab-nginx test 2>&1) && [[ -z $said ]]; then
    ok "accepted: ${*@Q}"
  else
    not_ok "accepted: ${*@Q}: $said"
  fi
}

# renders KNOB=VALUE DIRECTIVE: accepted, and a line of the configuration that nginx read is DIRECTIVE.
renders() {
  accepted "$1"
  holds "$1 renders '$2'" grep -qxE -- " *$2" /raw/nginx.conf
}

# leaves_out KNOB=VALUE DIRECTIVE: accepted, and no line of the configuration begins with DIRECTIVE.
leaves_out() {
  accepted "$1"
  is "$1 leaves out '$2'" 0 "$(grep -cE -- "^ *$2" /raw/nginx.conf || true)"
}

# refused MESSAGE KNOB=VALUE…: exit code 2 and one line, which is MESSAGE; '…' in it stands for any text.
refused() {
  local pattern said code=0
  pattern=$(sed -e 's/[][*?\\]/\\&/g' -e 's/…/*/g' <<<"connlab-nginx: $1")
  shift
  said=$(env "$@" connlab-nginx test 2>&1) || code=$?
  # shellcheck disable=SC2053 # a pattern
  if [[ $code == 2 && $said != *$'\n'* && $said == $pattern ]]; then
    ok "refused: ${*@Q}"
  else
    not_ok "refused: ${*@Q}: exit code $code, '$said'"
  fi
}

every_knob_renders_its_directive() {
  local value
  for value in 1 2 64 auto; do renders "CONNLAB_WORKER_PROCESSES=$value" "worker_processes $value;"; done
  for value in 16 512 1024 4096; do renders "CONNLAB_WORKER_CONNECTIONS=$value" "worker_connections $value;"; done
  renders CONNLAB_WORKER_CONNECTIONS=512 'worker_rlimit_nofile 768;'
  renders CONNLAB_MULTI_ACCEPT=true 'multi_accept on;'
  renders CONNLAB_MULTI_ACCEPT=false 'multi_accept off;'
  renders CONNLAB_REUSEPORT=true 'listen 0.0.0.0:8080 backlog=511 reuseport;'
  renders CONNLAB_REUSEPORT=false 'listen 0.0.0.0:8080 backlog=511;'
  renders CONNLAB_SO_KEEPALIVE=true 'listen 0.0.0.0:8080 backlog=511 so_keepalive=on;'
  for value in 1 511 65535; do renders "CONNLAB_LISTEN_BACKLOG=$value" "listen 0.0.0.0:8080 backlog=$value;"; done
  for value in 0ms 1ms 10000ms 86400000ms; do renders "CONNLAB_KEEPALIVE_TIMEOUT=$value" "keepalive_timeout $value;"; done
  for value in 1ms 86400000ms; do renders "CONNLAB_KEEPALIVE_TIME=$value" "keepalive_time $value;"; done
  renders CONNLAB_HTTP2=true 'http2 on;'
  renders CONNLAB_HTTP2=false 'http2 off;'
  for value in 1 128 1000000; do
    renders "CONNLAB_HTTP2_MAX_CONCURRENT_STREAMS=$value" "http2_max_concurrent_streams $value;"
  done
  for value in 1 999999999; do renders "CONNLAB_KEEPALIVE_REQUESTS=$value" "keepalive_requests $value;"; done
  for value in 1ms 1500ms 60000ms; do
    renders "CONNLAB_CLIENT_HEADER_TIMEOUT=$value" "client_header_timeout $value;"
    renders "CONNLAB_CLIENT_BODY_TIMEOUT=$value" "client_body_timeout $value;"
    renders "CONNLAB_SEND_TIMEOUT=$value" "send_timeout $value;"
    renders "CONNLAB_PROXY_CONNECT_TIMEOUT=$value" "proxy_connect_timeout $value;"
    renders "CONNLAB_PROXY_READ_TIMEOUT=$value" "proxy_read_timeout $value;"
    renders "CONNLAB_PROXY_SEND_TIMEOUT=$value" "proxy_send_timeout $value;"
  done
  renders CONNLAB_RESET_TIMEDOUT_CONNECTION=true 'reset_timedout_connection on;'
  renders CONNLAB_RESET_TIMEDOUT_CONNECTION=false 'reset_timedout_connection off;'
  for value in 1.0 1.1; do renders "CONNLAB_PROXY_HTTP_VERSION=$value" "proxy_http_version $value;"; done
  for value in close keep-alive ''; do
    renders "CONNLAB_PROXY_CONNECTION=$value" "map .*_connection [{] default upgrade; \"\" \"$value\"; [}]"
  done
  for value in off error 'error timeout' 'error timeout http_502 http_503 http_504 non_idempotent' \
    'invalid_header http_500 http_403 http_404 http_429'; do
    renders "CONNLAB_PROXY_NEXT_UPSTREAM=$value" "proxy_next_upstream $value;"
  done
  for value in 0 1 3; do renders "CONNLAB_PROXY_NEXT_UPSTREAM_TRIES=$value" "proxy_next_upstream_tries $value;"; done
  for value in 0 1 5; do
    renders "CONNLAB_MAX_FAILS=$value" "server backend-1:8080 max_fails=$value fail_timeout=10s;"
  done
  renders CONNLAB_FAIL_TIMEOUT=1000ms 'server backend-1:8080 max_fails=1 fail_timeout=1s;'
  renders CONNLAB_FAIL_TIMEOUT=60000ms 'server backend-1:8080 max_fails=1 fail_timeout=60s;'
}

the_upstream_pool_renders_only_when_asked() {
  local name
  (
    export CONNLAB_UPSTREAM_KEEPALIVE=64
    renders CONNLAB_UPSTREAM_KEEPALIVE=64 'keepalive 64;'
    renders CONNLAB_UPSTREAM_KEEPALIVE_TIMEOUT=2500ms 'keepalive_timeout 2500ms;'
    renders CONNLAB_UPSTREAM_KEEPALIVE_REQUESTS=77 'keepalive_requests 77;'
  )
  leaves_out CONNLAB_UPSTREAM_KEEPALIVE=0 'keepalive [0-9]'
  leaves_out CONNLAB_UPSTREAMS= 'upstream '
  leaves_out CONNLAB_UPSTREAMS= 'proxy_pass '
  for name in backend-1 backend-2 backend-3; do
    renders 'CONNLAB_UPSTREAMS=backend-1:8080 backend-2:8080 backend-3:8080' "server $name:8080 max_fails=1 fail_timeout=10s;"
  done
}

# All combinations of the knobs that meet: the listener's and the workers', the pool's and the connection's.
interacting_knobs_are_accepted_in_every_combination() {
  local keepalive version connection reuseport upstreams processes
  for keepalive in 0 64; do
    for version in 1.0 1.1; do
      for connection in close keep-alive ''; do
        for reuseport in false true; do
          for upstreams in '' 'backend-1:8080' 'backend-1:8080 backend-2:8080 backend-3:8080'; do
            for processes in 1 2 auto; do
              accepted "CONNLAB_UPSTREAM_KEEPALIVE=$keepalive" "CONNLAB_PROXY_HTTP_VERSION=$version" \
                "CONNLAB_PROXY_CONNECTION=$connection" "CONNLAB_REUSEPORT=$reuseport" \
                "CONNLAB_UPSTREAMS=$upstreams" "CONNLAB_WORKER_PROCESSES=$processes"
            done
          done
        done
      done
    done
  done
}

what_the_machine_cannot_give_is_refused() {
  local files_max
  files_max=$(ulimit -Hn)
  accepted "CONNLAB_WORKER_CONNECTIONS=$((files_max - 256))"
  refused "worker_connections is …: the process may open $files_max files, which leaves room for $((files_max - 256)) …" \
    "CONNLAB_WORKER_CONNECTIONS=$((files_max - 255))"
  refused "nginx refuses the configuration: nginx: [emerg] host not found in upstream \"nowhere:8080\" in …" \
    CONNLAB_UPSTREAMS=nowhere:8080
}

every_knob_renders_its_directive
the_upstream_pool_renders_only_when_asked
interacting_knobs_are_accepted_in_every_combination
what_the_machine_cannot_give_is_refused
