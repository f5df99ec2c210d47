#!/usr/bin/env bash
# Sees to it that the lab's images stand and are built from the sources that lie here.
#   images.sh              all that a run needs
#   images.sh all          all that `make test` needs
#   images.sh image …      these: go go-check java node pages prometheus collector backend nginx haproxy gateway k6 flows
#                          kubernetes pause
#   images.sh fingerprints base     what each image of a run would bear as its label if its base were that one
# `flows` is not an image: the collector's build exports that program to .cache/bin, for the analysis to run without Docker.
# An image bears the fingerprint of its sources as a label; where that agrees nothing is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=setup/lib.sh
source setup/lib.sh

readonly toolchains=(go go-check java node pages prometheus) needed=(collector flows k6 gateway backend nginx haproxy)

# The files that git knows or would know, so that build output does not make an image stale. A role's declaration is
# the lab's to read, and in no image.
files_of() { { git ls-files --cached --others --exclude-standard -- "$@" 2>/dev/null || find "$@" -type f; } | grep -v '/role\.yaml$'; }

fingerprint() {
  { printf '%s\n' "$base" "$version"; files_of "$@" | LC_ALL=C sort | while IFS= read -r file; do
    if [[ -f $file ]]; then printf '%s\0' "$file"; fi
  done | xargs -0 -r sha256sum; } | sha256sum | cut -c1-16
}

label_of() { docker image inspect --format '{{index .Config.Labels "connlab.source"}}' "connlab/$1" 2>/dev/null || true; }

build() {
  local image=$1 context=$2 wanted
  shift 2
  wanted=$(source_of "$image")
  [[ $(label_of "$image") == "$wanted" ]] && return
  local arguments=(--load --provenance=false --label "connlab.source=$wanted" --label "org.opencontainers.image.version=$version" --tag "connlab/$image")
  # A mirror of the user's own reaches the builds the way it reaches the user's tools.
  [[ -n ${GOPROXY:-} ]] && arguments+=(--build-arg "GOPROXY=$GOPROXY")
  [[ -f ${HOME:-/root}/.m2/settings.xml && -r ${HOME:-/root}/.m2/settings.xml ]] && arguments+=(--secret "id=maven-settings,src=${HOME:-/root}/.m2/settings.xml")
  quietly "building connlab/$image" build_image "${arguments[@]}" "$@" "$context"
}

version=$(sed -n 's/^version = "\(.*\)".*/\1/p' pyproject.toml)
readonly version
# A base is known by its layers and its label: its id depends on how an engine stores images.
if [[ ${1:-} == fingerprints ]]; then
  base=$2
else
  base=$(docker image inspect --format '{{.RootFS.Layers}} {{index .Config.Labels "connlab.base"}}' connlab/base)
fi
readonly base
declare -A built=()

# The fingerprint of what an image is made from; that of flows too.
source_of() {
  case $1 in
    go | go-check | java | node) fingerprint setup/toolchain.Dockerfile ;;
    pages) fingerprint setup/toolchain.Dockerfile setup/pages.Dockerfile ;;
    prometheus) fingerprint setup/prometheus.Dockerfile ;;
    collector | gateway | k6 | backend) fingerprint "$1" setup/toolchain.Dockerfile ;;
    kubernetes | pause) fingerprint setup/kubernetes setup/toolchain.Dockerfile ;;
    flows) fingerprint collector setup/toolchain.Dockerfile ;;
    nginx | haproxy) fingerprint "$1" ;;
    *) die "there is no image '$1'" "hint: one of ${toolchains[*]} ${needed[*]}" ;;
  esac
}

ensure() {
  local image=$1
  [[ -n ${built[$image]:-} ]] && return
  built[$image]=1
  case $image in
    go | go-check | java | node) build "$image" setup --target "$image" --file setup/toolchain.Dockerfile ;;
    pages)
      ensure node
      build pages setup --file setup/pages.Dockerfile
      ;;
    prometheus) build prometheus setup --file setup/prometheus.Dockerfile ;;
    collector | gateway | k6) of_toolchain "$image" go ;;
    backend) of_toolchain "$image" java ;;
    kubernetes | pause) of_kubernetes "$image" ;;
    flows) export_flows ;;
    *) build "$image" "$image" ;;
  esac
}

# A role's image is fresh whatever became of its toolchain's image: that is made only to build with.
of_toolchain() {
  local image=$1 toolchain=$2
  [[ $(label_of "$image") == "$(source_of "$image")" ]] && return
  ensure "$toolchain"
  build "$image" "$image"
}

# The node of the tests' cluster, and what holds a pod's namespaces there; kubectl comes to the host with the node.
of_kubernetes() {
  local image=$1 target=pause
  [[ $image == pause ]] || target=node
  [[ $(label_of "$image") == "$(source_of "$image")" && -x .cache/kubernetes/kubectl ]] && return
  ensure go
  build "$image" setup/kubernetes --target "$target"
  [[ $image == pause ]] || quietly "taking kubectl" build_image --target export --output .cache/kubernetes setup/kubernetes
}

export_flows() {
  local wanted stamp=.cache/bin/flows.source
  wanted=$(source_of flows)
  [[ -x .cache/bin/flows && $(cat "$stamp" 2>/dev/null) == "$wanted" ]] && return
  ensure go
  quietly "building flows" build_image --target export --output .cache/bin collector
  printf '%s\n' "$wanted" >"$stamp"
}

in_turn() {
  local image
  for image in "$@"; do
    ensure "$image"
  done
}

if [[ ${1:-} == fingerprints ]]; then
  printf 'base %s\n' "$(base_recipe)"
  for image in "${needed[@]}"; do printf '%s %s\n' "$image" "$(source_of "$image")"; done
  exit 0
fi
case ${1:-} in
  '') set -- "${needed[@]}" ;;
  all) set -- "${needed[@]}" "${toolchains[@]}" ;;
esac
# What Go compiles keeps the processors busy; the others mostly wait for downloads and for packages to unpack. So the two
# kinds are built beside each other. They share no image but the base.
compiled=() others=()
for image in "$@"; do
  case $image in
    go | go-check | collector | gateway | k6 | flows | kubernetes | pause) compiled+=("$image") ;;
    *) others+=("$image") ;;
  esac
done
in_turn "${others[@]}" &
beside=$!
trap 'kill "$beside" 2>/dev/null || true; wait "$beside" || true' EXIT
in_turn "${compiled[@]}"
wait "$beside"
