#!/usr/bin/env bash
# Runs inside the image, with the image's defaults as its environment and without a network: starts HAProxy before real
# upstream servers (another HAProxy, echo.cfg) and looks at what each side saw. Every access line stays in /raw.
set -euo pipefail
# shellcheck source=haproxy/tests/lib.sh
source /tests/lib.sh

# Only a hang takes this long, even on a busy machine.
readonly patience_s=300
haproxy_pid=''

# send PORT TEXT: the whole answer of a server to TEXT, until it closes.
send() {
  local connection
  exec {connection}<>"/dev/tcp/127.0.0.1/$1" || return
  printf '%b' "$2" >&"$connection"
  cat <&"$connection"
  exec {connection}>&-
}
get_from() { send "$1" "GET $2 HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n" | tr -d '\r'; }
get() { get_from 8080 "$1"; }
status_of() { sed -n '1s/^HTTP[^ ]* \([0-9]*\).*/\1/p'; }
body_of() { sed '1,/^$/d'; }
answers() { [[ $(get_from "$1" "$2" 2>/dev/null | status_of) == 200 ]]; }

# wait_for PORT PATH
wait_for() {
  local end=$((SECONDS + patience_s))
  until answers "$1" "$2"; do
    ((SECONDS < end)) || { not_ok "port $1 answers within $patience_s s"; exit 1; }
    sleep 0.02
  done
}

# start KNOB=VALUE…
start() {
  env "$@" connlab-haproxy &
  haproxy_pid=$!
  wait_for 8081 /healthz
}

# Waits for a graceful end.
stop() {
  local code=0
  kill -USR1 "$haproxy_pid"
  wait "$haproxy_pid" || code=$?
  is 'a graceful end has exit code 0' 0 "$code"
}

# The last access line's value of a key, as it stands there.
logged() { grep '^{' /raw/access.jsonl | tail -n 1 | grep -oE "\"$1\": (\"[^\"]*\"|-?[0-9]+)" | sed 's/^[^:]*: //'; }

connections_to_the_servers_are_reused_as_asked() {
  local mode expected
  for mode in never always; do
    expected=1
    [[ $mode == never ]] || expected=2
    start CONNLAB_UPSTREAMS=127.0.0.1:9001 CONNLAB_HTTP_REUSE=$mode
    get /first >/dev/null
    is "http-reuse $mode" "port=9001 requests=$expected" "$(get /second | body_of)"
    stop
  done
}

two_servers_take_turns() {
  start 'CONNLAB_UPSTREAMS=127.0.0.1:9001 127.0.0.2:9002'
  is 'two servers take turns' '9001 9002' "$(for turn in 1 2; do get "/$turn" | body_of | grep -oE '90[0-9]+'; done | xargs)"
  stop
}

failures_are_logged() {
  start CONNLAB_UPSTREAMS=127.0.0.1:9 CONNLAB_RETRIES=1
  is 'a refused server: status' 503 "$(get /refused | status_of)"
  stop
  is 'a refused server: termination' '"SC"' "$(logged termination)"
  is 'a refused server: retries' 1 "$(logged retries)"
  is 'a refused server: no connect time' -1 "$(logged connect_ms)"
  start CONNLAB_UPSTREAMS=127.0.0.1:9003 CONNLAB_TIMEOUT_SERVER=200ms
  is 'a stalled server: status' 504 "$(get /stalled | status_of)"
  stop
  is 'a stalled server: termination' '"sH"' "$(logged termination)"
}

requests_of_a_connection_are_numbered() {
  start CONNLAB_UPSTREAMS=127.0.0.1:9001
  send 8080 'GET /1 HTTP/1.1\r\nHost: t\r\n\r\nGET /2 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n' >/dev/null
  stop
  is 'the second request of a connection' 2 "$(logged requests)"
  is 'both name the same connection' 1 "$(grep '^{' /raw/access.jsonl | tail -n 2 | grep -oE '"accepted_ms": [0-9]+' | sort -u | wc -l)"
}

the_management_port_tells_figures() {
  start CONNLAB_UPSTREAMS=127.0.0.1:9001
  is 'the page of figures' 1 "$(get_from 8081 '/stats;csv' | grep -c '^servers,127.0.0.1,')"
  stop
}

haproxy -db -f /tests/echo.cfg &
wait_for 9001 /
connections_to_the_servers_are_reused_as_asked
two_servers_take_turns
failures_are_logged
requests_of_a_connection_are_numbered
the_management_port_tells_figures
