#!/usr/bin/env bash
# Sees to it that the image connlab/base stands: pulled, or made with debootstrap where no registry answers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=setup/lib.sh
source ./lib.sh

readonly upstream=debian:trixie-slim trixie_slim=connlab/trixie-slim base=connlab/base
readonly host_certificates=/usr/local/share/ca-certificates

# What the image is made from; a change of any of it makes the image stale.
fingerprint() {
  printf '%s.' "$(base_recipe)"
  { find "$host_certificates" -name '*.crt' -type f -print0 2>/dev/null || true; } | LC_ALL=C sort -z | xargs -0 -r cat |
    sha256sum | cut -c1-16
}

pull_trixie_slim() {
  local had=''
  docker image inspect "$upstream" >/dev/null 2>&1 && had=yes
  if [[ -z $had ]]; then
    say "pulling $upstream …"
    local said
    if ! said=$(timeout 300 docker pull --quiet "$upstream" 2>&1 >/dev/null); then
      say "$upstream could not be pulled: ${said##*$'\n'}"
      return 1
    fi
  fi
  docker tag "$upstream" "$trixie_slim"
  # Everything that the lab brings bears a name of its own, so that 'make clean' finds it.
  [[ -n $had ]] || docker rmi --no-prune "$upstream" >/dev/null
}

debootstrap_trixie_slim() {
  say "making the base image from Debian's archive"
  on_debian || die "without a registry the base image is made with debootstrap, on Debian only" \
    "hint: load an image as $trixie_slim ('docker load', 'docker import') and run the command again"
  is_root || die "without a registry the base image is made with debootstrap, which needs root" \
    "hint: run $PWD/base-image.sh as root once, or load an image as $trixie_slim"
  command -v debootstrap >/dev/null || apt_install debootstrap
  local mirror
  apt_update
  mirror=$(debian_mirror)
  work=$(mktemp -d /var/tmp/connlab-base.XXXXXX)
  # shellcheck disable=SC2154 # set just above, and needed when the trap runs
  trap 'rm -rf "$work"' EXIT
  quietly "making trixie's root file system" debootstrap --variant=minbase --include=ca-certificates trixie "$work/root" "$mirror"
  rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/usr/share/locale/*
  # As in Debian's own slim images: the licences stay.
  find "$work/root/usr/share/doc" -type f ! -name copyright -delete
  tar -C "$work/root" -c . | docker import --change 'CMD ["bash"]' - "$trixie_slim" >/dev/null
  rm -rf "$work"
}

wanted=$(fingerprint)
have=$(docker image inspect --format '{{index .Config.Labels "connlab.base"}}' "$base" 2>/dev/null || true)
# The base out of a kit has the certificates of the machine where the kit was made. It serves while its recipe does.
if [[ $have == "$wanted" || ($have == "$(base_recipe)".* && $have == "$(cat "$kit/base" 2>/dev/null)") ]]; then
  exit 0
fi
docker image inspect "$trixie_slim" >/dev/null 2>&1 || pull_trixie_slim || debootstrap_trixie_slim

certificates=$host_certificates
if [[ ! -d $certificates ]]; then
  certificates=$(mktemp -d)
  trap 'rm -rf "$certificates"' EXIT
fi
quietly "building $base" build_image --load --build-context "ca-certificates=$certificates" \
  --build-arg "TRIXIE_SLIM=$trixie_slim" --label "connlab.base=$wanted" --tag "$base" --file base.Dockerfile .
