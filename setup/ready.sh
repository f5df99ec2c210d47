#!/usr/bin/env bash
# Everything that a run needs, made ready; silent and quick where it is.
#   ready.sh        for `make run`
#   ready.sh test   for `make test`: the test tools and the toolchains too
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if [[ ${1:-} == test ]]; then
  ./python.sh dev
else
  ./python.sh
fi
./engine.sh
./base-image.sh
./images.sh
if [[ ${1:-} == test ]]; then
  ./images.sh go-check java node pages
fi
