#!/usr/bin/env bash
# Runs a command in a copy of a room; setup/check.sh starts it inside a toolchain's container.
#   on-copy.sh ro|rw <room> <command> …     with rw the files that it has changed replace the originals
set -euo pipefail

access=$1 room=$2
shift 2
readonly copy=/tmp/connlab
cd /repo
mkdir "$copy"
tar -c --exclude=node_modules --exclude=target . | tar -C "$copy" -x
cd "$copy/$room"
[[ $access == rw ]] || exec "$@"

"$@"
cd /repo
# Written into, not replaced: a file keeps its owner and its mode.
find . -type f -not -path './setup/*' -not -path './schemas/*' -not -path '*/node_modules/*' -not -path '*/target/*' -print0 |
  while IFS= read -rd '' file; do
    if [[ -f $copy/$file ]] && ! cmp -s "$file" "$copy/$file"; then cat "$copy/$file" >"$file"; fi
  done
