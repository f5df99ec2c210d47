#!/usr/bin/env bash
# Everything that a run needs, made ready; silent and quick where it is.
#   ready.sh        for `make run`
#   ready.sh test   for `make test`: the test tools and the toolchains too
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if [[ ${1:-} != test ]]; then
  ./python.sh
  ./engine.sh
  ./base-image.sh
  exec ./images.sh
fi

# The packages of Python come while the images are built; the steps before need apt, as python.sh may.
./engine.sh
./base-image.sh
./images.sh all &
images=$!
trap 'kill "$images" 2>/dev/null || true; wait "$images" || true' EXIT
./python.sh dev
wait "$images"
