#!/usr/bin/env bash
# The first process of a bare machine (bare.sh): makes a container fit for an engine of its own, says so, and waits.
set -euo pipefail

# cgroup v2 hands controllers on only from a group that holds no process: all of the root's move into one below it.
# Under v1 nothing needs to be done.
readonly root=/sys/fs/cgroup
if [[ -f $root/cgroup.controllers ]]; then
  mkdir -p "$root/init"
  for process in $(<"$root/cgroup.procs"); do
    # One may have ended meanwhile.
    { echo "$process" >"$root/init/cgroup.procs"; } 2>/dev/null || true
  done
  read -ra controllers <"$root/cgroup.controllers" || true
  echo "${controllers[*]/#/+}" >"$root/cgroup.subtree_control"
fi

echo ready
exec sleep infinity
