#!/usr/bin/env bash
# Prints a folder for the files of unit tests: in memory where that is possible, for on a disk they wait most of the time.
# The tests start programs of their own there, which a file system mounted `noexec` does not allow.
set -euo pipefail

readonly memory=/dev/shm needed_kb=$((4 << 20))

has_room() { (($(df --output=avail "$memory" | tail -n 1) > needed_kb)); }

runs_programs() {
  local probe ran=0
  probe=$(mktemp "$memory/connlab-probe.XXXXXX")
  printf '#!/bin/sh\n' >"$probe"
  chmod +x "$probe"
  "$probe" || ran=1
  rm "$probe"
  return "$ran"
}

if [[ -z ${TMPDIR:-} && -d $memory && -w $memory ]] && has_room && runs_programs 2>/dev/null; then
  printf '%s\n' "$memory"
else
  printf '%s\n' "${TMPDIR:-/tmp}"
fi
