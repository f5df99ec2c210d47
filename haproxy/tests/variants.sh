#!/usr/bin/env bash
# Runs inside the image, with the image's defaults as its environment: which knobs HAProxy accepts, which are refused, and
# the line of the configuration that each becomes.
set -euo pipefail
# shellcheck source=haproxy/tests/lib.sh
source /tests/lib.sh

# renders KNOB=VALUE LINE: HAProxy takes the knob without a word, and a line of what it read is LINE.
renders() {
  local said
  if ! said=$(env "$1" connlab-haproxy test 2>&1) || [[ -n $said ]]; then
    not_ok "accepted: $1: $said"
  elif grep -qE -- "^[[:space:]]*$2 *$" /raw/haproxy.cfg; then
    ok "$1 renders '$2'"
  else
    not_ok "$1 renders '$2'"
  fi
}

# refused MESSAGE KNOB=VALUE…: exit code 2 and one line, which begins with MESSAGE.
refused() {
  local message="connlab-haproxy: $1" said code=0
  shift
  said=$(env "$@" connlab-haproxy test 2>&1) || code=$?
  if [[ $code == 2 && $said != *$'\n'* && $said == "$message"* ]]; then
    ok "refused: ${*@Q}"
  else
    not_ok "refused: ${*@Q}: exit code $code, '$said'"
  fi
}

every_knob_renders_its_line() {
  local value
  for value in 1 2; do renders "CONNLAB_NBTHREAD=$value" "nbthread $value"; done
  for value in 1 2000; do
    renders "CONNLAB_MAXCONN=$value" "maxconn $value"
    renders "CONNLAB_MAXCONN=$value" "maxconn $((value + 16))"
  done
  for value in 1 2000 1000000; do renders "CONNLAB_BACKLOG=$value" "bind 0.0.0.0:8080 backlog $value"; done
  for value in 1ms 1500ms 86400000ms; do
    renders "CONNLAB_TIMEOUT_CLIENT=$value" "timeout client $value"
    renders "CONNLAB_TIMEOUT_CONNECT=$value" "timeout connect $value"
    renders "CONNLAB_TIMEOUT_SERVER=$value" "timeout server $value"
    renders "CONNLAB_TIMEOUT_QUEUE=$value" "timeout queue $value"
    renders "CONNLAB_TIMEOUT_HTTP_KEEP_ALIVE=$value" "timeout http-keep-alive $value"
    renders "CONNLAB_POOL_PURGE_DELAY=$value" "default-server .* pool-purge-delay $value"
  done
  for value in 0 3 100; do renders "CONNLAB_RETRIES=$value" "retries $value"; done
  for value in never safe aggressive always; do renders "CONNLAB_HTTP_REUSE=$value" "http-reuse $value"; done
  for value in 0 1 1000000; do renders "CONNLAB_SERVER_MAXCONN=$value" "default-server maxconn $value .*"; done
  for value in -1 0 100; do renders "CONNLAB_POOL_MAX_CONN=$value" "default-server .* pool-max-conn $value .*"; done
  for value in 1 100 1000000; do
    renders "CONNLAB_HTTP2_MAX_CONCURRENT_STREAMS=$value" "tune.h2.fe.max-concurrent-streams $value"
    renders "CONNLAB_HTTP2_MAX_TOTAL_STREAMS=$value" "tune.h2.fe.max-total-streams $value"
  done
  renders CONNLAB_SERVER_HTTP2=true 'server [^ ]+ [^ ]+ proto h2'
  for value in backend-1 backend-2; do
    renders 'CONNLAB_UPSTREAMS=backend-1:8080 backend-2:8080' "server $value $value:8080"
  done
}

what_haproxy_refuses_ends_with_its_reason() {
  refused 'HAProxy refuses the configuration: [ALERT]' CONNLAB_HTTP_REUSE=sometimes
  refused 'HAProxy refuses the configuration: [ALERT]' CONNLAB_UPSTREAMS=nowhere:8080
}

every_knob_renders_its_line
what_haproxy_refuses_ends_with_its_reason
