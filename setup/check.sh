#!/usr/bin/env bash
# Runs a room's own checks and benchmarks inside the image that holds its tools, on a copy, so that the tree stays clean.
#   check.sh [--mend] <toolchain> <room> [command …]     the command defaults to ./check
# The container has only the room, schemas/, setup/ and the paths in CONNLAB_READS of the tree, so that a command cannot
# read what setup/loop does not know of. With --mend, the copy's files that the command has changed replace the tree's.
# CONNLAB_DOCKER_ARGUMENTS adds arguments to `docker run`, for the checks that need an engine or privileges.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=setup/lib.sh
source setup/lib.sh

access=ro
if [[ $1 == --mend ]]; then
  access=rw
  shift
fi
toolchain=$1 room=$2
shift 2
(($#)) || set -- ./check

read -ra extra <<<"${CONNLAB_DOCKER_ARGUMENTS:-}"
read -ra reads <<<"${CONNLAB_READS:-}"
settings=()
[[ -f ${HOME:-/root}/.m2/settings.xml && -r ${HOME:-/root}/.m2/settings.xml ]] && settings=(--volume "${HOME:-/root}/.m2/settings.xml:/root/.m2/settings.xml:ro")
[[ -n ${GOPROXY:-} ]] && settings+=(--env GOPROXY)
for folder in "$room" "${reads[@]}"; do settings+=(--volume "$PWD/$folder:/repo/$folder:$access"); done

say "in $room: $*"
exec docker run --rm --init --network host --volume "$PWD/setup:/repo/setup:ro" --volume "$PWD/schemas:/repo/schemas:ro" \
  --volume connlab-cache:/cache --label connlab.check="$room" \
  --env GOMODCACHE=/cache/go/mod --env GOCACHE=/cache/go/build --env STATICCHECK_CACHE=/cache/staticcheck \
  --env npm_config_cache=/cache/npm --env MAVEN_ARGS=-Dmaven.repo.local=/cache/m2 --env CONNLAB_SCHEMAS=/repo/schemas \
  "${settings[@]}" "${extra[@]}" "connlab/$toolchain" /repo/setup/on-copy.sh "$access" "$room" "$@"
