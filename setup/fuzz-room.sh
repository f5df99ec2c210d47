#!/usr/bin/env bash
# Fuzzes each target of the Go room that it is called in; setup/fuzz.sh starts it in connlab/go-check.
#   fuzz-room.sh <duration>
# What it finds on its way stays in Go's cache, and the next run begins with it.
set -euo pipefail

# A target writes each input into a file, and may allocate a lot for it: no disk, and not a collection after every few.
# Go runs the test that it has built, which the memory's file system does not allow.
export TMPDIR=/dev/shm GOTMPDIR=/tmp GOGC=2000 GOMEMLIMIT=256MiB

failed=0
while IFS=: read -r file target; do
  printf '%s %s\n' "$(dirname "$file")" "$target"
  if ! go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 10x; then
    failed=1
    # The copy that this runs in is removed.
    find . -path "*/testdata/fuzz/$target/*" -newer "$0" -exec tail -n +1 {} +
  fi
done < <(grep -rEo --include='*_test.go' '^func Fuzz\w+' . | sed 's/:func /:/' | sort)
exit "$failed"
