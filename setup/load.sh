#!/usr/bin/env bash
# Takes in a participant's kit that bundle.sh wrote (docs/kit.md). After that the set-up needs no network.
#   load.sh FILE
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# The set-up's other scripts find the new kit here, until all of it is taken in.
export CONNLAB_KIT=$PWD/.cache/kit.new
# shellcheck source=setup/lib.sh
source setup/lib.sh

readonly bundle=${1:-}
if [[ -z $bundle ]]; then
  say "make load needs the file that 'make bundle' wrote"
  say "hint: make load BUNDLE=<file>"
  exit 2
fi
find_python
commit=$(git rev-parse HEAD 2>&1) || die "git cannot say which commit this folder is at: ${commit%%$'\n'*}" "hint: clone the repository that the kit holds (docs/kit.md)"
debian=''
if on_debian; then debian=$(debian_codename); fi

mkdir -p .cache/bin
exec 9>.cache/kit.lock
flock --nonblock 9 || die "another 'make load' is running here" "hint: wait for its end"
rm -rf "$kit"
trap 'rm -rf "$kit"' EXIT
say "checking $bundle …"
"$python" setup/kit/archive.py unpack "$bundle" "$kit" "$commit" "$debian"
# An engine that it starts must not keep the lock.
setup/engine.sh 9>&-
quietly "loading the images" docker load --input "$kit/images.tar"
rm "$kit/images.tar"
setup/python.sh
install --mode 755 "$kit/flows" .cache/bin/flows
cp "$kit/flows.source" .cache/bin/
# What a later set-up may need again stays: the Python packages, and whose base this is.
rm -rf "$kit"/{flows,flows.source,repository.bundle,debian,apt}
rm -rf .cache/kit
mv "$kit" .cache/kit
unset CONNLAB_KIT
setup/ready.sh
say "the kit is loaded: runs, lessons and drills need no network now"
say "hint: make run SCENARIO=accept-queue-overflow"
