#!/usr/bin/env bash
# Sees to it that .venv holds connlab and the locked packages; `python.sh dev` adds what the tests need, and
# `python.sh notebook` makes an environment in the cache, which holds marimo and nothing of connlab; `python.sh docs` makes .venv-docs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=setup/lib.sh
source setup/lib.sh

venv=.venv lock=requirements.lock program=connlab
[[ ${1:-} == dev ]] && lock=requirements-dev.lock
[[ ${1:-} == notebook ]] && venv=$connlab_cache/venv-notebook lock=requirements-notebook.lock program=marimo
[[ ${1:-} == docs ]] && venv=.venv-docs lock=requirements-docs.lock program=mkdocs

find_python

# An environment is of one place and one Python: in a copy of the tree its programs would run those of the first.
stamp() { { pwd -P; printf '%s\n' "$version"; cat "$1" pyproject.toml; } | sha256sum | cut -c1-16; }
# The development lock holds all of the other, so a `run` after a `test` finds its environment fresh.
fresh() {
  local have
  have=$(cat "$venv/connlab.stamp" 2>/dev/null || true)
  [[ -x $venv/bin/$program ]] || return 1
  [[ $have == "$(stamp "$lock")" ]] || { [[ $venv == .venv ]] && [[ $have == "$(stamp requirements-dev.lock)" ]]; }
}
fresh && exit 0

# One set-up at a time; what the other one has made needs no making again.
mkdir -p "$connlab_cache"
exec {locked}>"$connlab_cache/python.lock"
if ! flock --nonblock "$locked"; then
  say "waiting for another set-up of the Python packages …"
  flock "$locked"
fi

# The new environment is made in its place, for its programs name their own path. The old one lies aside until the new
# one is whole, and comes back where that does not become so: a failed download leaves nobody without.
readonly aside=$connlab_cache/${venv##*/}.old
bring_back() { [[ ! -d $aside ]] || { rm -rf "$venv" && mv "$aside" "$venv"; }; }
pulling=''
at_the_end() {
  [[ -z $pulling ]] || { kill "$pulling" && wait "$pulling"; } 2>/dev/null || true
  bring_back
}
trap at_the_end EXIT
bring_back # what a killed set-up left aside
fresh && exit 0

# A new machine pulls the images meanwhile: packages and images come by the network, and are then unpacked. What cannot be
# pulled is built after this.
if [[ -n ${CONNLAB_IMAGES:-} && $program == connlab ]] && docker version >/dev/null 2>&1; then
  setup/images.sh pull &
  pulling=$!
fi

# What a kit brought, with a pip of its own: no network, and no package of Debian's. It serves for its own lock alone.
wheels=$kit/python pip='' options=(--disable-pip-version-check --quiet)
if cmp -s "$lock" "$wheels/$lock" && [[ $(cat "$wheels/version" 2>/dev/null) == "$version" ]]; then
  pip=$(printf '%s' "$wheels"/pip-*.whl)
  options+=(--no-index --find-links "$wheels")
fi
# Debian keeps venv's pip in a package of its own.
if [[ -z $pip ]] && ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  if ! on_debian || ! is_root; then
    die "Python's venv module is missing" "hint: install it (Debian: apt-get install python3-venv)"
  fi
  apt_install python3-venv
fi

install() {
  [[ ! -d $venv ]] || mv "$venv" "$aside"
  "$python" -m venv "$venv" ${pip:+--without-pip}
  [[ -z $pip ]] || "$venv/bin/python" "$pip/pip" install "${options[@]}" "$pip"
  "$venv/bin/python" -m pip install --require-hashes "${options[@]}" --no-input --requirement "$lock"
  if [[ $program == connlab ]]; then
    .venv/bin/python -m pip install --no-deps --no-build-isolation --no-index --disable-pip-version-check --quiet --editable .
  fi
  stamp "$lock" >"$venv/connlab.stamp"
  rm -rf "$aside"
}
quietly "installing the Python packages of $lock (once, about a minute)" install
[[ -z $pulling ]] || wait "$pulling" || true
pulling=''
