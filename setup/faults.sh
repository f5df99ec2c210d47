#!/usr/bin/env bash
# Tries faults on real runs, and writes docs/reliability.md from what it saw.
#   faults.sh [fault,…]    these faults of tests/faults/table.py; all of them if none is named
# Nothing of the machine can be struck: the runs have processes, a network, /run, /tmp, results/ and a Docker Engine of
# their own, by namespaces, and whatever a fault leaves behind ends with these. CONNLAB_FAULTS_MACHINES says how many of
# them share the work, each with its own engine; 2 by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=setup/lib.sh
source setup/lib.sh

readonly images=(connlab/base connlab/collector connlab/k6 connlab/nginx connlab/backend)
readonly cgroup=connlab-faults

# Within the namespaces: its first process.
be_machine() {
  local work=$1 number=$2 machines=$3
  mount -t tmpfs -o mode=755 tmpfs /run
  mkdir --mode 1777 /run/lock
  mount -t tmpfs -o mode=1777 tmpfs /tmp
  # Small, so that it can be filled.
  mkdir -p results
  mount -t tmpfs -o mode=755,size=400m tmpfs results
  # What a run notes in .cache is this machine's.
  mkdir /tmp/bin
  mount --bind .cache/bin /tmp/bin
  mount -t tmpfs -o mode=755 tmpfs .cache
  mkdir .cache/bin
  mount --move /tmp/bin .cache/bin
  rmdir /tmp/bin
  ip link set lo up
  unset DOCKER_HOST DOCKER_CONTEXT
  export CONNLAB_FAULTS_ENGINE="dockerd --data-root $work/engine-$number --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent=/$cgroup/$number"
  export CONNLAB_FAULTS_RECORDS=$work/records-$number.jsonl CONNLAB_FAULTS_SHARE=$number/$machines
  export CONNLAB_FAULTS_IMAGES=$work/images.tar
  mkdir "$work/engine-$number"
  .venv/bin/python -m pytest --numprocesses 0 -p no:cacheprovider tests/faults
}

if [[ ${1:-} == machine ]]; then
  shift
  be_machine "$@"
  exit
fi

clean_up() {
  trap '' INT TERM HUP
  # shellcheck disable=SC2046 # the jobs' ids; with each ends all that runs in its namespaces
  kill -KILL $(jobs -p) 2>/dev/null || true
  wait || true
  find /sys/fs/cgroup -depth -type d -path "*/$cgroup*" -exec rmdir {} + 2>/dev/null || true
  # The last processes of a machine may end a moment after its first.
  rm -rf --one-file-system "$work" 2>/dev/null || { sleep 2 && rm -rf --one-file-system "$work"; }
}

is_root || die "faults are tried in namespaces, which only root can make"
command -v dockerd >/dev/null || die "faults are tried on an engine of their own, and there is no dockerd here"
export CONNLAB_FAULTS_ONLY=${1:-}
.venv/bin/python -m tests.faults.reliability --known "$CONNLAB_FAULTS_ONLY"
machines=${CONNLAB_FAULTS_MACHINES:-2} logs=.cache/test-faults
mkdir -p "$logs"
work=$(mktemp -d /var/tmp/connlab-faults.XXXXXX)
trap clean_up EXIT
quietly "handing the images over" docker save --output "$work/images.tar" "${images[@]}"
for number in $(seq "$machines"); do
  unshare --mount --pid --net --ipc --uts --fork --mount-proc --kill-child \
    setup/faults.sh machine "$work" "$number" "$machines" 3>&2 >"$logs/$number.log" 2>&1 &
done
wait
cat "$work"/records-*.jsonl >"$logs/records.jsonl"
say "what pytest says: $logs/<number>.log"
.venv/bin/python -m tests.faults.reliability "$logs/records.jsonl"
