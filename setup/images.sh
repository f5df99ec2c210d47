#!/usr/bin/env bash
# Makes sure that the lab's images are here and are made from the sources in this folder.
#   images.sh              all that a run needs
#   images.sh all          all that `make test` needs
#   images.sh image …      these: base go go-check java node pages prometheus kernels collector backend nginx haproxy
#                          gateway k6 generators flows kubernetes pause
#   images.sh pull         what a run needs and a registry has; builds nothing
#   images.sh fingerprints what each image of a run is made from
#   images.sh tags         the tag of each in a registry
# CONNLAB_IMAGES=<registry>/<prefix> pulls the images of a run from there; what is not there is built (docs/images.md).
# `flows` is not an image: that program is copied from the collector's image into the cache, for the analysis to run
# without Docker.
# The label connlab.source has the fingerprint of an image's sources; if it agrees, nothing is done.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=setup/lib.sh
source setup/lib.sh

readonly toolchains=(go go-check java node pages prometheus kernels) roles=(collector k6 gateway backend nginx haproxy)
readonly needed=(base "${roles[@]}" flows)
version=$(lab_version)
readonly version registry=${CONNLAB_IMAGES:-}

# The files that git knows or would know, so that build output does not make an image stale. A copy without a repository
# of its own may lie in somebody else's. A role's declaration is the lab's to read, and in no image.
files_of() {
  { if [[ -e .git ]]; then git ls-files --cached --others --exclude-standard -- "$@"; else find "$@" -type f ! -path '*/__pycache__/*'; fi; } |
    grep -v '/role\.yaml$'
}

# fingerprint BASE FILE or FOLDER…
fingerprint() {
  { printf '%s\n' "$1" "$version"; shift; files_of "$@" | LC_ALL=C sort | while IFS= read -r file; do
    if [[ -f $file ]]; then printf '%s\0' "$file"; fi
  done | xargs -0 -r sha256sum; } | sha256sum | cut -c1-16
}

# What an image is made from; flows too. An image of a run counts its base's recipe: it may have been built elsewhere. What
# builds and tests here has this machine's certificates, so there the base itself counts: its layers and its label, for its
# id depends on how an engine stores images.
source_of() {
  case $1 in
    base) base_recipe ;;
    collector | gateway | k6 | backend) fingerprint "$(base_recipe)" "$1" setup/toolchain.Dockerfile ;;
    nginx | haproxy) fingerprint "$(base_recipe)" "$1" ;;
    generators) fingerprint "$(base_recipe)" "$1" setup/toolchain.Dockerfile ;;
    flows) source_of collector ;;
    go | go-check | java | node) fingerprint "$(base_here)" setup/toolchain.Dockerfile ;;
    pages) fingerprint "$(base_here)" setup/toolchain.Dockerfile setup/pages.Dockerfile ;;
    prometheus) fingerprint "$(base_here)" setup/prometheus.Dockerfile ;;
    kernels) fingerprint "$(base_here) $(source_of collector)" setup/kernels.Dockerfile setup/kernels ;;
    kubernetes | pause) fingerprint "$(base_here)" setup/kubernetes setup/toolchain.Dockerfile ;;
    *) die "there is no image '$1'" "hint: one of ${needed[*]} ${toolchains[*]}" ;;
  esac
}

label_of() { docker image inspect --format "{{index .Config.Labels \"connlab.$2\"}}" "$1" 2>/dev/null || true; }

base_here() { docker image inspect --format '{{.RootFS.Layers}} {{index .Config.Labels "connlab.base"}}' connlab/base 2>/dev/null || true; }

# is_made_from IMAGE NAME: whether the image of this name, here or just pulled, is made from the sources of IMAGE.
is_made_from() {
  if [[ $1 == base ]]; then
    [[ $(label_of "$2" base) == "$(base_recipe)".* ]]
  else
    [[ $(label_of "$2" source) == "$(source_of "$1")" ]]
  fi
}

is_fresh() {
  case $1 in
    # Whether its certificates are this machine's, too, base-image.sh knows.
    base) [[ -n $registry ]] && is_made_from base connlab/base ;;
    flows) [[ -x $connlab_cache/bin/flows && $(cat "$connlab_cache/bin/flows.source" 2>/dev/null) == "$(source_of flows)" ]] ;;
    kubernetes) [[ -x .cache/kubernetes/kubectl ]] && is_made_from "$1" "connlab/$1" ;;
    *) is_made_from "$1" "connlab/$1" ;;
  esac
}

# --- pulled ---------------------------------------------------------------------------------------------------

# Prints why an image is not pulled. Each keeps its local name alone, so that `make clean` finds it.
pull() {
  local image=$1 from=$registry/$1 digest why
  digest=$(image_digest "$image" "$version-$(source_of "$image")")
  from+=${digest:+@$digest}
  [[ -n $digest ]] || from+=:$version-$(source_of "$image")
  if ! why=$(timeout --foreground 600 docker pull --quiet "$from" 2>&1 >/dev/null); then
    why=${why##*$'\n'}
    printf '%s\t%s\n' "$image" "${why##*: }"
    return
  fi
  if is_made_from "$image" "$from"; then
    docker tag "$from" "connlab/$image"
  else
    printf '%s\t%s\n' "$image" "it has the label of other sources than those of this folder"
  fi
  docker rmi --no-prune "$from" >/dev/null
}

pull_all() {
  local image
  for image in "$@"; do pull "$image" & done
  wait
}

# pull_missing IMAGE…: what of these a registry may have, beside each other.
pull_missing() {
  local image wanted=() log
  for image in "$@"; do
    [[ $image != flows ]] || image=collector
    [[ " base ${roles[*]} " == *" $image "* && " ${wanted[*]} " != *" $image "* ]] || continue
    is_fresh "$image" || wanted+=("$image")
  done
  ((${#wanted[@]})) || return 0
  log=$(mktemp "${TMPDIR:-/tmp}/connlab-setup.XXXXXX")
  watched "pulling ${wanted[*]} from $registry" "$log" pull_all "${wanted[@]}"
  awk -F '\t' -v from="$registry" '{of[$2] = of[$2] $1 " "}
    END {for (why in of) printf "connlab set-up: not pulled from %s, so built: %s(%s)\n", from, of[why], why}' "$log" >&2
  rm -f "$log"
}

# --- built ----------------------------------------------------------------------------------------------------

build() {
  local image=$1 context=$2
  shift 2
  local arguments=(--load --provenance=false --label "connlab.source=$(source_of "$image")" --label "org.opencontainers.image.version=$version" --tag "connlab/$image")
  # A mirror of the user's own reaches the builds the way it reaches the user's tools.
  [[ -n ${GOPROXY:-} ]] && arguments+=(--build-arg "GOPROXY=$GOPROXY")
  [[ -f ${HOME:-/root}/.m2/settings.xml && -r ${HOME:-/root}/.m2/settings.xml ]] && arguments+=(--secret "id=maven-settings,src=${HOME:-/root}/.m2/settings.xml")
  quietly "building connlab/$image" build_image "${arguments[@]}" "$@" "$context"
}

declare -A ensured=()
# A role's image is fresh whatever became of its toolchain's image: that is made only to build with.
ensure() {
  local image=$1
  [[ -z ${ensured[$image]:-} ]] || return 0
  ensured[$image]=1
  ! is_fresh "$image" || return 0
  case $image in
    base) ;;
    go | go-check | java | node) build "$image" setup --target "$image" --file setup/toolchain.Dockerfile ;;
    pages)
      ensure node
      build pages setup --file setup/pages.Dockerfile
      ;;
    prometheus) build prometheus setup --file setup/prometheus.Dockerfile ;;
    kernels)
      ensure collector
      build kernels setup --file setup/kernels.Dockerfile
      ;;
    collector | gateway | k6)
      ensure go
      build "$image" "$image"
      ;;
    backend | generators)
      ensure java
      build "$image" "$image"
      ;;
    flows)
      ensure collector
      quietly "copying flows from connlab/collector" copy_flows
      ;;
    # The node of the tests' cluster, and what holds a pod's namespaces there; kubectl comes to the host with the node.
    kubernetes)
      ensure go
      build kubernetes setup/kubernetes --target node
      quietly "taking kubectl" build_image --target export --output .cache/kubernetes setup/kubernetes
      ;;
    pause)
      ensure go
      build pause setup/kubernetes --target pause
      ;;
    *) build "$image" "$image" ;;
  esac
}

copy_flows() {
  local container
  mkdir -p "$connlab_cache/bin"
  container=$(docker create --label connlab.check=flows --network none connlab/collector)
  # shellcheck disable=SC2064 # this container
  trap "docker rm '$container'" EXIT
  docker cp "$container:/usr/local/bin/flows" "$connlab_cache/bin/flows.part"
  mv "$connlab_cache/bin/flows.part" "$connlab_cache/bin/flows"
  source_of flows >"$connlab_cache/bin/flows.source"
}

in_turn() {
  local image
  for image in "$@"; do ensure "$image"; done
}

# --------------------------------------------------------------------------------------------------------------

if [[ ${1:-} == fingerprints || ${1:-} == tags ]]; then
  [[ $1 == tags ]] && before=$version- || before=''
  for image in "${needed[@]}"; do printf '%s %s\n' "$image" "$before$(source_of "$image")"; done
  exit 0
fi
build=yes
case ${1:-} in
  '') set -- "${needed[@]}" ;;
  pull) build='' && set -- "${needed[@]}" ;;
  all) set -- "${needed[@]}" "${toolchains[@]}" ;;
esac
if [[ -n $registry ]]; then
  must_be_image_prefix CONNLAB_IMAGES "$registry"
  pull_missing "$@"
fi
[[ -n $build ]] || exit 0
# What Go compiles keeps the processors busy; the others mostly wait for downloads and for packages to unpack. So the two
# kinds are built beside each other. They share no image but the base.
compiled=() others=()
for image in "$@"; do
  ! is_fresh "$image" || continue
  if [[ $image == flows ]] && is_fresh collector; then
    ensure flows # it needs no base
    continue
  fi
  case $image in
    go | go-check | collector | gateway | k6 | flows | kubernetes | pause | kernels) compiled+=("$image") ;;
    *) others+=("$image") ;;
  esac
done
((${#compiled[@]} + ${#others[@]})) || exit 0
setup/base-image.sh
in_turn "${others[@]}" &
beside=$!
trap 'kill "$beside" 2>/dev/null || true; wait "$beside" || true' EXIT
in_turn "${compiled[@]}"
wait "$beside"
