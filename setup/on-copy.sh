#!/usr/bin/env bash
# Runs a command in a copy of a room; setup/check.sh starts it inside a toolchain's container.
#   on-copy.sh ro|rw <room> <command> …     with rw the files that it has changed replace the originals
# CONNLAB_REPO and CONNLAB_COPY are for tests; the copy is always at one path, which the tools' caches know it by.
set -euo pipefail

access=$1 room=$2
shift 2
readonly repo=${CONNLAB_REPO:-/repo} copy=${CONNLAB_COPY:-/tmp/connlab}
mkdir "$copy"
tar -C "$repo" -c --exclude=node_modules --exclude=target . | tar -C "$copy" -x
cd "$copy/$room"
[[ $access == rw ]] || exec "$@"

cp -a "$copy" "$copy.before"
code=0
"$@" || code=$?
cd "$copy.before"
find . -type f -print0 | while IFS= read -rd '' file; do
  # Only what the command has changed: others may mend the room beside it. Written into, so that owner and mode stay.
  if [[ -f $copy/$file ]] && ! cmp -s "$file" "$copy/$file"; then cat "$copy/$file" >"$repo/$file"; fi
done
exit "$code"
