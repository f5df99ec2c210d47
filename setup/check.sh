#!/usr/bin/env bash
# Runs a room's own checks and benchmarks inside the image that holds its tools, on a copy, so that the tree stays clean.
#   check.sh <toolchain> <room> [command …]     the command defaults to ./check
# CONNLAB_DOCKER_ARGUMENTS adds arguments to `docker run`, for the checks that need an engine or privileges.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=setup/lib.sh
source setup/lib.sh

toolchain=$1 room=$2
shift 2
(($#)) || set -- ./check

read -ra extra <<<"${CONNLAB_DOCKER_ARGUMENTS:-}"
settings=()
[[ -f ${HOME:-/root}/.m2/settings.xml && -r ${HOME:-/root}/.m2/settings.xml ]] && settings=(--volume "${HOME:-/root}/.m2/settings.xml:/root/.m2/settings.xml:ro")
[[ -n ${GOPROXY:-} ]] && settings+=(--env GOPROXY)

say "in $room: $*"
# shellcheck disable=SC2016 # the inner shell expands them
exec docker run --rm --init --network host --volume "$PWD:/repo:ro" --volume connlab-cache:/cache --label connlab.check="$room" \
  --env GOMODCACHE=/cache/go/mod --env GOCACHE=/cache/go/build --env STATICCHECK_CACHE=/cache/staticcheck \
  --env npm_config_cache=/cache/npm --env MAVEN_ARGS=-Dmaven.repo.local=/cache/m2 --env CONNLAB_SCHEMAS=/repo/schemas \
  "${settings[@]}" "${extra[@]}" --workdir /tmp "connlab/$toolchain" \
  bash -euo pipefail -c 'room=$1; shift; mkdir -p "/tmp/connlab/$room"; tar -C "/repo/$room" --exclude=./node_modules --exclude=./target -c . | tar -C "/tmp/connlab/$room" -x; ln -s /repo/schemas /tmp/connlab/schemas; cd "/tmp/connlab/$room"; exec "$@"' \
  check "$room" "$@"
