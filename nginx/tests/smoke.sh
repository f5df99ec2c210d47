#!/usr/bin/env bash
# Runs inside the image, with the image's defaults as its environment and without a network: starts nginx before real
# upstream servers (another nginx, echo.conf) and looks at what each side saw. Every access line stays in /raw.
set -euo pipefail
# shellcheck source=nginx/tests/lib.sh
source /tests/lib.sh

# Only a hang takes this long, even on a busy machine.
readonly patience_s=300
nginx_pid=''

# answers PORT PATH: a server there says 200. A listener alone proves nothing: nginx listens while it tests, too.
answers() { [[ $(send "$1" "GET $2 HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n" 2>/dev/null | status_of) == 200 ]]; }

# wait_until WHAT COMMAND…
wait_until() {
  local what=$1 end=$((SECONDS + patience_s))
  shift
  until "$@"; do
    ((SECONDS < end)) || { not_ok "$what within $patience_s s"; exit 1; }
    sleep 0.02
  done
}

wait_for() { wait_until "port $1 answers" answers "$1" "$2"; }

# start_nginx KNOB=VALUE…
start_nginx() {
  env "$@" connlab-nginx &
  nginx_pid=$!
  wait_for 8081 /stub_status
}

# Waits for a graceful end; nginx's exit code is in $nginx_exit.
nginx_exit=''
stop_nginx() {
  kill -QUIT "$nginx_pid"
  nginx_exit=0
  wait "$nginx_pid" || nginx_exit=$?
}

# send PORT TEXT: the whole answer of a server to TEXT, until it closes.
send() {
  local connection
  exec {connection}<>"/dev/tcp/127.0.0.1/$1" || return
  printf '%b' "$2" >&"$connection"
  cat <&"$connection"
  exec {connection}>&-
}

# get PATH [HEADER]: nginx's answer to one request on a connection of its own.
get() { send 8080 "GET $1 HTTP/1.1\r\nHost: test\r\n${2-Connection: close\\r\\n}\r\n" | tr -d '\r'; }

body_of() { sed '1,/^$/d'; }
status_of() { sed -n '1s/^HTTP[^ ]* \([0-9]*\).*/\1/p'; }

# The last access line's value of a key, as it stands there.
logged() { tail -n 1 /raw/access.jsonl | grep -oE "\"$1\":(\"[^\"]*\"|[0-9.]+)" | cut -d: -f2-; }

# What the upstream saw of the second of two requests that nginx passed on: its protocol, its Connection header, and
# whether it came on the connection of the first.
towards_upstream() {
  local what=$1 expected=$2
  shift 2
  start_nginx CONNLAB_UPSTREAMS=127.0.0.1:9001 "$@"
  get /first >/dev/null
  is "$what: ${*@Q}" "port=9001 $expected" "$(get /second | body_of)"
  stop_nginx
}

the_upstream_sees_the_connection_that_was_asked_for() {
  local fresh=requests=1 kept=requests=2
  local version=CONNLAB_PROXY_HTTP_VERSION connection=CONNLAB_PROXY_CONNECTION pool=CONNLAB_UPSTREAM_KEEPALIVE
  towards_upstream 'a connection for each request' "protocol=HTTP/1.0 connection=close $fresh" $version=1.0 $connection=close $pool=0
  towards_upstream 'no header, HTTP/1.0' "protocol=HTTP/1.0 connection= $fresh" $version=1.0 $connection= $pool=64
  towards_upstream 'no header, no pool' "protocol=HTTP/1.1 connection= $fresh" $version=1.1 $connection= $pool=0
  towards_upstream 'kept connections' "protocol=HTTP/1.1 connection= $kept" $version=1.1 $connection= $pool=64
  towards_upstream 'kept connections, asked for' "protocol=HTTP/1.1 connection=keep-alive $kept" $version=1.1 $connection=keep-alive $pool=64
  towards_upstream 'a pool that close defeats' "protocol=HTTP/1.1 connection=close $fresh" $version=1.1 $connection=close $pool=64
  towards_upstream 'kept connections in HTTP/1.0' "protocol=HTTP/1.0 connection=keep-alive $kept" $version=1.0 $connection=keep-alive $pool=64
  towards_upstream 'a pool of one request each' "protocol=HTTP/1.1 connection= $fresh" $version=1.1 $connection= $pool=64 CONNLAB_UPSTREAM_KEEPALIVE_REQUESTS=1
}

the_static_page_needs_no_upstream() {
  local answer
  start_nginx CONNLAB_UPSTREAMS=
  answer=$(get /static.html)
  is 'the static page: status' 200 "$(status_of <<<"$answer")"
  is 'the static page: length' 'Content-Length: 3091' "$(grep -i '^content-length' <<<"$answer")"
  is 'the static page: bytes' 3091 "$(get /static.html | body_of | wc -c)"
  is 'anything else without an upstream' 404 "$(get /api/delay | status_of)"
  stop_nginx
  is 'without an upstream the log has none' '""' "$(logged upstream_addr)"
}

failures_and_retries_are_logged() {
  start_nginx CONNLAB_UPSTREAMS=127.0.0.1:9
  is 'a refused upstream' 502 "$(get /refused | status_of)"
  stop_nginx
  is 'a refused upstream: status' 502 "$(logged status)"
  is 'a refused upstream: upstream_status' '"502"' "$(logged upstream_status)"
  is 'a refused upstream: upstream_connect_time' '"-"' "$(logged upstream_connect_time)"
  holds 'a refused upstream: error.log' grep -qF 'connect() failed (111: Connection refused)' /raw/error.log

  start_nginx 'CONNLAB_UPSTREAMS=127.0.0.1:9 127.0.0.1:9001'
  is 'the next upstream answers' 200 "$(get /retried | status_of)"
  stop_nginx
  is 'a retry: upstream_addr has both' '"127.0.0.1:9, 127.0.0.1:9001"' "$(logged upstream_addr)"
  is 'a retry: upstream_status has both' '"502, 200"' "$(logged upstream_status)"

  start_nginx 'CONNLAB_UPSTREAMS=127.0.0.1:9 127.0.0.1:9001' CONNLAB_PROXY_NEXT_UPSTREAM_TRIES=1
  is 'one try only' 502 "$(get /once | status_of)"
  stop_nginx

  start_nginx CONNLAB_UPSTREAMS=127.0.0.1:9001 CONNLAB_PROXY_READ_TIMEOUT=200ms
  is 'a stalled upstream' 504 "$(get /stalled | status_of)"
  stop_nginx
  is 'a stalled upstream: upstream_header_time' '"-"' "$(logged upstream_header_time)"
  holds 'a stalled upstream: error.log' grep -qF 'upstream timed out (110: Connection timed out)' /raw/error.log
}

three_upstreams_take_turns() {
  start_nginx 'CONNLAB_UPSTREAMS=127.0.0.1:9001 127.0.0.1:9002 127.0.0.1:9003'
  is 'three upstreams take turns' '9001 9002 9003' \
    "$(for turn in 1 2 3; do get "/turn-$turn" | body_of | grep -oE '90[0-9]+'; done | xargs)"
  stop_nginx
}

clients_are_kept_as_asked() {
  local answer
  start_nginx CONNLAB_KEEPALIVE_TIMEOUT=0ms
  answer=$(get /static.html '')
  is 'keepalive_timeout 0ms closes' 'Connection: close' "$(grep -i '^connection' <<<"$answer")"
  stop_nginx
  is 'keepalive_timeout 0ms: its log says so' '"close"' "$(logged sent_http_connection)"
  start_nginx CONNLAB_KEEPALIVE_TIMEOUT=300ms
  answer=$(get /static.html '')
  is 'keepalive_timeout 300ms keeps' 'Connection: keep-alive' "$(grep -i '^connection' <<<"$answer")"
  stop_nginx
  is 'keepalive_timeout 300ms: its log says so' '"keep-alive"' "$(logged sent_http_connection)"
}

# How many listeners of port $1 have a backlog of $2, as the kernel says.
listeners() { ss --no-header --listening --tcp --numeric "sport = :$1" | awk -v backlog="$2" '$3 == backlog' | wc -l; }

the_kernel_has_the_listeners() {
  start_nginx CONNLAB_LISTEN_BACKLOG=77
  is 'the backlog in the kernel' 1 "$(listeners 8080 77)"
  stop_nginx
  start_nginx CONNLAB_LISTEN_BACKLOG=78 CONNLAB_REUSEPORT=true CONNLAB_WORKER_PROCESSES=2
  is 'reuseport: a listener for each worker' 2 "$(listeners 8080 78)"
  stop_nginx
}

management_outlives_the_traffic_knobs() {
  local connection request='GET /stub_status HTTP/1.1\r\nHost: test\r\n'
  start_nginx CONNLAB_KEEPALIVE_REQUESTS=1 CONNLAB_KEEPALIVE_TIMEOUT=0ms
  exec {connection}<>/dev/tcp/127.0.0.1/8081
  printf '%b' "$request\r\n$request\r\n${request}Connection: close\r\n\r\n" >&"$connection"
  is 'three polls on one connection' 3 "$(grep -c '^Active connections:' <&"$connection")"
  exec {connection}>&-
  stop_nginx
  is 'polls leave no access line' 0 "$(grep -c stub_status /raw/access.jsonl || true)"
}

odd_requests_leave_valid_lines() {
  start_nginx CONNLAB_UPSTREAMS=127.0.0.1:9001
  send 8080 'GARBAGE\r\n\r\n' >/dev/null
  send 8080 'GET /static.html\r\n' >/dev/null
  send 8080 'GET /a"b\\\\c\x01 HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n' >/dev/null
  send 8080 'GET /caf\xc3\xa9?q="x" HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n' >/dev/null
  send 8080 'POST /body HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello' >/dev/null
  stop_nginx
}

connections_run_out_at_the_limit() {
  local connections=() connection turn
  start_nginx CONNLAB_WORKER_CONNECTIONS=16
  is 'worker_rlimit_nofile reaches the worker' 272 \
    "$(awk '/Max open files/ {print $4}' "/proc/$(pgrep_worker)/limits")"
  for turn in {1..20}; do
    exec {connection}<>/dev/tcp/127.0.0.1/8080
    connections+=("$connection")
  done
  wait_until 'a connection too many' grep -qF '16 worker_connections are not enough' /raw/error.log
  holds "error.log after connection $turn of 16" grep -qF '16 worker_connections are not enough' /raw/error.log
  for connection in "${connections[@]}"; do exec {connection}>&-; done
  stop_nginx
}

# The only child of nginx's master.
pgrep_worker() { tr -d ' ' <"/proc/$nginx_pid/task/$nginx_pid/children"; }

upstream_is_connected() { [[ -n $(ss --no-header --tcp --numeric state established 'dport = :9001') ]]; }

sigquit_lets_requests_finish() {
  local answer=/tmp/slow-answer
  start_nginx CONNLAB_UPSTREAMS=127.0.0.1:9001
  get /slow >"$answer" &
  local client=$!
  wait_until 'the request is under way' upstream_is_connected
  stop_nginx
  wait "$client"
  is 'SIGQUIT: exit code' 0 "$nginx_exit"
  is 'SIGQUIT: the answer under way is whole' 3091 "$(body_of <"$answer" | wc -c)"
  is 'SIGQUIT: its line is in the log' '"/slow"' "$(logged request_uri)"
  is 'SIGQUIT: it says so' '"OK"' "$(logged request_completion)"
  holds 'SIGQUIT: the port is closed' bash -c '! (: >/dev/tcp/127.0.0.1/8080) 2>/dev/null'
}

nginx -e /tmp/echo-error.log -c /tests/echo.conf &
echo_pid=$!
trap 'kill "$echo_pid"' EXIT
wait_for 9001 /

the_upstream_sees_the_connection_that_was_asked_for
the_static_page_needs_no_upstream
failures_and_retries_are_logged
three_upstreams_take_turns
clients_are_kept_as_asked
the_kernel_has_the_listeners
management_outlives_the_traffic_knobs
odd_requests_leave_valid_lines
connections_run_out_at_the_limit
sigquit_lets_requests_finish
