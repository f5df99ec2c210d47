#!/usr/bin/env bash
# Pushes the images of a run to a registry, from where CONNLAB_IMAGES pulls them, and notes their digests (docs/images.md).
#   push-images.sh <registry>/<prefix> [image …]           for this engine's architecture
#   push-images.sh --join <registry>/<prefix> [image …]    pushes nothing: takes together what was pushed for each
# An image is pushed as <prefix>/<image>:<version>-<source>-<architecture>, once. The tag without an architecture names all
# that are there, so that each engine pulls its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=setup/lib.sh
source setup/lib.sh

readonly architectures=(amd64 arm64)
join=''
if [[ ${1:-} == --join ]]; then
  join=yes
  shift
fi
if [[ -z ${1:-} ]]; then
  say "make push-images needs a registry"
  say "hint: make push-images REGISTRY=127.0.0.1:5000/connlab"
  exit 2
fi
must_be_image_prefix REGISTRY "$1"
readonly prefix=$1
shift
readonly images=(base collector k6 gateway backend nginx haproxy)
(($#)) || set -- "${images[@]}"
for image in "$@"; do
  [[ " ${images[*]} " == *" $image "* ]] && continue
  say "there is no image '$image' of a run"
  say "hint: one of ${images[*]}"
  exit 2
done

# is_there REFERENCE: whether the registry has it; stops if the registry does not tell.
is_there() {
  local why
  why=$(docker buildx imagetools inspect --raw "$1" 2>&1 >/dev/null) && return
  [[ $why == *"not found"* ]] || die "$prefix does not say whether it has ${1##*/}: ${why##*$'\n'}" "hint: docker login ${prefix%%/*}"
  return 1
}

# The local name goes again, so that `make clean` finds all that the lab brought.
push() {
  docker tag "$1" "$2"
  timeout --foreground 1800 docker push "$2" || { docker rmi --no-prune "$2"; return 1; }
  docker rmi --no-prune "$2"
}

known=$(setup/images.sh tags)
if [[ -z $join ]]; then
  setup/engine.sh
  architecture=$(docker version --format '{{.Server.Arch}}')
  setup/images.sh "$@"
fi

everywhere=("${architectures[@]}")
for image in "$@"; do
  tag=$(sed -n "s/^$image //p" <<<"$known")
  reference=$prefix/$image:$tag
  if [[ -z $join ]] && ! is_there "$reference-$architecture"; then
    quietly "pushing $reference-$architecture" push "connlab/$image" "$reference-$architecture"
  fi
  parts=() there=()
  for one in "${architectures[@]}"; do
    if is_there "$reference-$one"; then parts+=("$reference-$one") there+=("$one"); fi
  done
  ((${#parts[@]})) || die "$prefix has no $image of these sources ($tag)" "hint: make push-images REGISTRY=$prefix"
  for one in "${everywhere[@]}"; do [[ " ${there[*]} " == *" $one "* ]] || everywhere=("${there[@]}"); done
  why=$(docker buildx imagetools create --tag "$reference" "${parts[@]}" 2>&1) || die "$reference cannot be written: ${why##*$'\n'}"
  # A manifest's digest is that of its bytes.
  digest=$(docker buildx imagetools inspect --raw "$reference" | sha256sum | cut -d ' ' -f 1)
  touch "$image_digests"
  { grep -v "^$image " "$image_digests" || true; printf '%s %s sha256:%s\n' "$image" "$tag" "$digest"; } | LC_ALL=C sort >"$image_digests.part"
  mv "$image_digests.part" "$image_digests"
done
printf '%s: %s, for %s\n' "$prefix" "$*" "${everywhere[*]}"
for one in "${architectures[@]}"; do
  [[ " ${everywhere[*]} " == *" $one "* ]] || printf 'not for %s: this engine builds for its own architecture alone; run the command on a machine with %s too\n' "$one" "$one"
done
printf 'digests: %s\nhint: CONNLAB_IMAGES=%s make run SCENARIO=accept-queue-overflow\n' "$image_digests" "$prefix"
