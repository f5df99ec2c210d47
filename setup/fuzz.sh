#!/usr/bin/env bash
# Fuzzes every Go target, one after the other, and then every property of the Python side.
#   fuzz.sh <duration> <examples>      inputs that break a target are printed; the exit code is 1 if there was one
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=setup/lib.sh
source setup/lib.sh

duration=$1 examples=$2
[[ $duration =~ ^[0-9]+(s|m|h|x)$ ]] || die "DURATION=$duration: a time such as 30s, 5m or 2h for each target, or a number of executions such as 10000000x"
[[ $examples =~ ^[0-9]+$ ]] || die "EXAMPLES=$examples: how many examples of each property, as a number"

failed=0
for room in collector k6; do
  setup/check.sh go-check "$room" /repo/setup/fuzz-room.sh "$duration" || failed=1
done
say "properties, $examples examples of each"
CONNLAB_FUZZ_EXAMPLES=$examples .venv/bin/pytest --quiet --numprocesses 1 \
  tests/lab/test_hostile_documents.py tests/analysis/test_hostile_evidence.py || failed=1
exit "$failed"
