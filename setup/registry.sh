#!/usr/bin/env bash
# Makes .cache/bin/registry, CNCF's distribution: a registry for tests of pushed and pulled images.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=setup/lib.sh
source setup/lib.sh

readonly version=v3.1.2 registry=.cache/bin/registry

# Made in the lab's own toolchain, as all of its programs are; the module proxy's checksum database vouches for it. It asks
# for a newer Go than the lab's programs do.
make_registry() {
  docker run --rm --label connlab.check=registry --network host --volume connlab-cache:/cache --volume "$PWD/.cache/bin:/out" \
    --env GOMODCACHE=/cache/go/mod --env GOCACHE=/cache/go/build --env CGO_ENABLED=0 --env GOTOOLCHAIN=auto \
    ${GOPROXY:+--env GOPROXY} connlab/go \
    sh -c "GOBIN=/out go install -ldflags='-s -w' github.com/distribution/distribution/v3/cmd/registry@$version"
}

mkdir -p .cache/bin
if [[ ! -x $registry || $(cat "$registry.version" 2>/dev/null) != "$version" ]]; then
  setup/images.sh go
  quietly "building the registry $version" make_registry
  printf '%s\n' "$version" >"$registry.version"
fi
