#!/usr/bin/env bash
# Writes what each of the lab's images contains (Debian packages, Go modules, Java libraries) as CycloneDX, by syft.
#   sbom.sh [image …]     such as nginx; by default all that a run uses. The files: .cache/sbom/<image>.cdx.json
# An image that has not changed is not read again. Known vulnerabilities are not looked for: this is the list to do so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=setup/lib.sh
source setup/lib.sh

readonly version=v1.38.0 syft=.cache/bin/syft folder=.cache/sbom
(($#)) || set -- collector k6 gateway backend nginx haproxy

# Made in the lab's own toolchain, as all of its programs are; the module proxy's checksum database vouches for it.
make_syft() {
  docker run --rm --label connlab.check=sbom --network host --volume connlab-cache:/cache --volume "$PWD/.cache/bin:/out" \
    --env GOMODCACHE=/cache/go/mod --env GOCACHE=/cache/go/build --env CGO_ENABLED=0 ${GOPROXY:+--env GOPROXY} \
    connlab/go sh -c "GOBIN=/out go install github.com/anchore/syft/cmd/syft@$version"
}

mkdir -p .cache/bin "$folder"
if [[ ! -x $syft || $(cat "$syft.version" 2>/dev/null) != "$version" ]]; then
  setup/images.sh go
  quietly "building syft $version" make_syft
  printf '%s\n' "$version" >"$syft.version"
fi
for image in "$@"; do
  id=$(docker image inspect --format '{{.Id}}' "connlab/$image" 2>/dev/null) ||
    die "there is no image connlab/$image" "hint: make setup"
  file=$folder/$image.cdx.json
  if [[ ! -s $file || $(cat "$file.of" 2>/dev/null) != "$id" ]]; then
    quietly "reading connlab/$image" env SYFT_CHECK_FOR_APP_UPDATE=false "$syft" scan "docker:$id" --select-catalogers=-file \
      --source-name "connlab/$image" --output "cyclonedx-json=$file.part"
    mv "$file.part" "$file"
    printf '%s\n' "$id" >"$file.of"
  fi
  printf '%s\n' "$file"
done
