#!/usr/bin/env bash
# Everything that a run needs, made ready; silent and quick where it is.
#   ready.sh        for `make setup`
#   ready.sh run    for a run, whose program is at work already: the engine and the images
#   ready.sh check  for `make check`: the test tools, the toolchains, flows, nginx and haproxy
#   ready.sh test   for `make test`: all of both
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

case ${1:-} in
  check) images=(flows go-check java node nginx haproxy) ;;
  test) images=(all) ;;
  *)
    [[ ${1:-} == run ]] || ./python.sh
    ./engine.sh
    exec ./images.sh
    ;;
esac

# The packages of Python come while the images are built; the steps before need apt, as python.sh may.
./engine.sh
./images.sh "${images[@]}" &
building=$!
trap 'kill "$building" 2>/dev/null || true; wait "$building" || true' EXIT
./python.sh dev
wait "$building"
