#!/usr/bin/env bash
# Writes a participant's kit (docs/kit.md): all that another machine needs to run this commit's lab without a network.
#   bundle.sh [FILE or FOLDER]     by default into results/
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=setup/lib.sh
source setup/lib.sh

readonly work=$PWD/.cache/kit.made images=(base collector k6 gateway backend nginx haproxy)
readonly locks=(requirements.lock requirements-notebook.lock)

# Debian signs its archive's lists, and the lists have the packages' sums: with them, the kit holds a small archive of
# Debian's own, which apt checks as any other.
add_debian() {
  local mirror=$1 apart=$work.apt essential packages uris uri name path release
  mkdir -p "$apart/dpkg"
  : >"$apart/dpkg/status"
  apt_apart "$apart" "$mirror" Dir::State::status "$apart/dpkg/status" Dir::State::extended_states "$apart/dpkg/extended"
  apt_lists
  # Every Debian has the essential packages; the kit holds what the engine needs beyond them.
  mapfile -t essential < <(apt install --simulate --quiet --quiet --no-install-recommends '?essential' | sed -n 's/^Inst \(\S*\).*/\1/p')
  apt-cache show --no-all-versions "${essential[@]}" | sed 's/^Package: /Status: install ok installed\n&/' >"$apart/dpkg/new"
  mv "$apart/dpkg/new" "$apart/dpkg/status"
  mapfile -t packages < <(engine_packages)
  uris=$(apt install --print-uris --quiet --quiet --no-install-recommends "${packages[@]}")
  apt install --yes --quiet --download-only --no-install-recommends "${packages[@]}"
  while read -r uri name _; do
    uri=$(printf '%b' "${uri//%/\\x}")
    path=debian/pool/${uri#*/pool/}
    mkdir -p "$work/$(dirname "$path")"
    cp "$apart/cache/archives/$name" "$work/$path"
  done < <(tr -d "'" <<<"$uris")
  for release in $(engine_releases); do
    for path in InRelease "main/binary-$(dpkg --print-architecture)/Packages.xz"; do
      mkdir -p "$work/debian/dists/$release/$(dirname "$path")"
      /usr/lib/apt/apt-helper download-file "$mirror/dists/$release/$path" "$work/debian/dists/$release/$path"
    done
  done
}

add_python() {
  local lock
  mkdir -p "$work/python"
  for lock in "${locks[@]}"; do
    .venv/bin/python -m pip download --disable-pip-version-check --no-input --require-hashes --only-binary :all: \
      --dest "$work/python" --requirement "$lock"
    cp "$lock" "$work/python/"
  done
  # The pip that Python gives its environments: a Debian without python3-venv lacks it.
  .venv/bin/python - "$work/python" <<'PYTHON'
import ensurepip, shutil, sys, sysconfig
from pathlib import Path
folders = [sysconfig.get_config_var("WHEEL_PKG_DIR"), Path(ensurepip.__file__).parent / "_bundled"]
shutil.copy(next(wheel for folder in folders if folder for wheel in Path(folder).glob("pip-*.whl")), sys.argv[1])
PYTHON
  printf '%s\n' "$version" >"$work/python/version"
}

add_images() { docker save "${images[@]/#/connlab/}" | gzip >"$work/images.tar.gz"; }

add_repository() {
  local branch
  branch=$(git symbolic-ref --quiet --short HEAD || true)
  git bundle create "$work/repository.bundle" HEAD ${branch:+"$branch"}
}

[[ -z $(git status --porcelain) ]] ||
  die "a kit is of a commit, and 'git status' lists changes that are in none" "hint: commit them, or put them aside with 'git stash'"
[[ $(git rev-parse --is-shallow-repository) == false ]] ||
  die "a kit holds the repository, and this clone has only a part of its history" "hint: git fetch --unshallow"
find_python
commit=$(git rev-parse HEAD)
lab=$(sed -n 's/^version = "\(.*\)".*/\1/p' pyproject.toml)
to=${1:-results}
[[ -n ${1:-} ]] || mkdir -p results
[[ ! -d $to ]] || to=$to/connlab-kit-$lab-${commit:0:7}-$(uname -m).tar
[[ -d $(dirname "$to") ]] || die "there is no folder '$(dirname "$to")'" "hint: TO=<file>, in a folder that exists"

setup/ready.sh
rm -rf "$work" "$work.apt"
mkdir -p "$work"
trap 'rm -rf "$work" "$work.apt" "$to.part"' EXIT
debian=''
if on_debian; then
  ! is_root || apt_update
  debian=$(debian_codename)
  mirror=$(debian_mirror)
  quietly "fetching Debian's packages of the Docker Engine" add_debian "$mirror"
fi
quietly "fetching the Python packages" add_python
quietly "packing the repository" add_repository
quietly "packing the images" add_images
cp .cache/bin/flows "$work/flows"
quietly "writing $to" "$python" setup/kit/archive.py write "$work" "$to.part" "$lab" "$commit" "$debian"
mv "$to.part" "$to"
printf '%s: %s MB, SHA-256 %s\nhint: docs/kit.md says how to hand it out; there: make load BUNDLE=%s\n' \
  "$to" "$(($(stat --format %s "$to") / 1000000))" "$(sha256sum <"$to" | cut -d ' ' -f 1)" "$(basename "$to")"
