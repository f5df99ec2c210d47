#!/usr/bin/env bash
# What a user takes where there is no instrument: every packet's headers, and ten times a second the namespace's sockets,
# its listeners and the kernel's counters. tests/bench/instrument.py runs it in a server's network namespace.
set -euo pipefail

readonly period_us=100000
tcpdump -i eth0 -s 128 -w /tmp/packets.pcap 2>&1 &

next_us=${EPOCHREALTIME/./}
while :; do
  echo "round $EPOCHREALTIME"
  ss -tan
  ss -ltn
  nstat -as
  ((next_us += period_us))
  # Shorter by what a round has taken, so that the rate is the collector's.
  ((left_us = next_us - ${EPOCHREALTIME/./})) || true
  if ((left_us > 0)); then
    printf -v left_s '0.%06d' "$left_us"
    sleep "$left_s"
  fi
done >/tmp/rounds.txt
