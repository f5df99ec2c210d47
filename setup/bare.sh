#!/usr/bin/env bash
# Runs the README's two commands, and an installed connlab, on bare Debian machines and prints how long each step took.
#   bare.sh [bookworm|trixie …]    all of them, if none is named
#   bare.sh --pull [bookworm|trixie …]   with an engine there: the first result, with images from a registry (docs/images.md)
#   bare.sh --kit FILE RELEASE     what a participant types who has this kit (docs/kit.md) and no network
# A machine is a container: the root file system that debootstrap makes, with what the README asks for and nothing else,
# and with an engine of its own. The host's images, caches and Python environment are out of its reach.
# CONNLAB_DOCKER_ARGUMENTS adds arguments to `docker run`: `--cpuset-cpus 0,1 --memory 8g` makes a smaller machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=setup/lib.sh
source setup/lib.sh

readonly releases=(bookworm trixie) preconditions=git,make,python3,ca-certificates
readonly logs=.cache/test-bare label=connlab.check=bare
commands=('make run SCENARIO=accept-queue-overflow' 'make test')
kit_file='' network=() pull=''
if [[ ${1:-} == --pull ]]; then
  find_python
  port=$("$python" -c 'import socket; one = socket.create_server(("127.0.0.1", 0)); print(one.getsockname()[1])')
  pull=127.0.0.1:$port/connlab commands=('make run SCENARIO=accept-queue-overflow')
  shift
elif [[ ${1:-} == --kit ]]; then
  kit_file=$2 network=(--network none) commands=('make load BUNDLE=/root/kit.tar' 'make run SCENARIO=accept-queue-overflow')
  [[ -r $kit_file && $# -eq 3 ]] || die "the kit '$kit_file' cannot be read, or not one release is named" "hint: BUNDLE=<file> RELEASE=<that of the kit>"
  shift 2
fi

# Settings of the user's own for package registries and proxies: variables, and files of the host and of the user.
readonly variables='(https?|ftp|all|no)_proxy|GO(PROXY|NOPROXY|PRIVATE|SUMDB|NOSUMDB|INSECURE)|PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|PROXY|DEFAULT_TIMEOUT)|npm_config_registry'
readonly host_files=(etc/pip.conf usr/local/share/ca-certificates)
readonly user_files=(.config/pip/pip.conf .pip/pip.conf .npmrc .m2/settings.xml)
readonly apt_settings='^Acquire::((https?|ftp)::|Check-|Retries )'

for release in "$@"; do
  [[ " ${releases[*]} " == *" $release "* ]] ||
    die "there is no release '$release'" "hint: RELEASE=${releases[0]} or RELEASE=${releases[1]}, or none for both"
done
if (($# == 0)); then
  set -- "${releases[@]}"
fi

# What is done to a machine; each of these runs in a shell of its own.

root_stamp() { printf '%s, %s from %s' "$(date +%F)" "$preconditions" "$mirror"; }

# The day's root file system stays as an image for the day's further runs.
make_root() {
  local image=connlab/bare:$release former
  former=$(docker images --quiet "$image")
  debootstrap --variant=minbase --include="$preconditions" "$release" "$work/root" "$mirror"
  # A new machine has read no package lists yet.
  rm -rf "$work"/root/var/lib/apt/lists/* "$work"/root/var/cache/apt/*.bin "$work"/root/var/cache/apt/archives/*.deb
  tar -C "$work/root" -c . |
    docker import --change "LABEL $label" --change "LABEL connlab.root=\"$(root_stamp)\"" - "$image"
  rm -rf --one-file-system "$work/root"
  [[ -z $former ]] || docker rmi "$former"
}

root_is_of_today() {
  [[ $(docker image inspect --format '{{index .Config.Labels "connlab.root"}}' "connlab/bare:$release" 2>/dev/null) == "$(root_stamp)" ]]
}

apt_sources() {
  local signed='Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg'
  printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n%s\n' "$mirror" "$release $release-updates" "$signed"
  [[ -z $security ]] ||
    printf '\nTypes: deb\nURIs: %s\nSuites: %s\nComponents: main\n%s\n' "$security" "$release-security" "$signed"
}

# hand_over FOLDER PATH…: what there is of the paths below FOLDER comes to the same place below the machine's FOLDER.
hand_over() {
  local below=$1 to=$2 there=() path
  shift 2
  for path in "$@"; do
    if [[ -r $below/$path ]]; then there+=("$path"); fi
  done
  ((${#there[@]} == 0)) || tar -C "$below" -c "${there[@]}" | in_machine tar -C "$to" --no-same-owner -x
}

in_machine() { docker exec --interactive "$machine" "$@"; }

start_machine() {
  local passed name
  read -ra passed <<<"${CONNLAB_DOCKER_ARGUMENTS:-}"
  for name in $(compgen -e | grep -xiE "$variables" || true); do passed+=(--env "$name"); done
  # An engine's file systems cannot lie on those of another engine's containers: they need a volume.
  docker volume create --label "$label" "$machine"
  docker run --detach --init --privileged --cgroupns private --name "$machine" --hostname "bare-$release" --label "$label" \
    --volume "$machine:/var/lib/docker" "${network[@]}" "${passed[@]}" "connlab/bare:$release" bash -c "$(<setup/bare-boot.sh)"
  # Asked of its log: a process that `docker exec` starts too early would stand in the boot's way.
  until docker logs "$machine" 2>&1 | grep -qx ready; do
    [[ $(docker inspect --format '{{.State.Running}}' "$machine") == true ]] || { docker logs "$machine"; return 1; }
    sleep 0.2
  done
  # A participant's machine has nothing of the one where the kit was made.
  [[ -z $kit_file ]] || return 0
  hand_over / / "${host_files[@]}"
  hand_over "${HOME:-/root}" /root "${user_files[@]}"
  in_machine update-ca-certificates
  in_machine rm -f /etc/apt/sources.list
  apt_sources | in_machine tee /etc/apt/sources.list.d/debian.sources
  apt-config dump | { grep -E "$apt_settings" || true; } | in_machine tee /etc/apt/apt.conf.d/90host >/dev/null
}

clone() {
  if [[ -n $kit_file ]]; then
    in_machine tee /root/kit.tar >/dev/null <"$kit_file"
    in_machine tar -C /root -xf /root/kit.tar repository.bundle
    in_machine git clone --quiet /root/repository.bundle /root/connlab
    return
  fi
  git clone --quiet --bare --depth 1 "file://$PWD" "$work/$machine.git"
  tar -C "$work" -c "$machine.git" | in_machine tar -C /root --no-same-owner -x
  in_machine git clone --quiet "/root/$machine.git" /root/connlab
  in_machine git -C /root/connlab log -1 --format='%H %s'
}

# What a project's CI does once, on this machine: the images that have the committed sources, in a registry.
fill_registry() {
  git clone --quiet --depth 1 "file://$PWD" "$work/tree"
  mkdir "$work/registry"
  cp .cache/bin/registry "$work/registry/"
  printf '{version: 0.1, storage: {filesystem: {rootdirectory: %s}}, http: {addr: "127.0.0.1:%s"}}\n' \
    "$work/registry/store" "$port" >"$work/registry/config.yaml"
  "$work/registry/registry" serve "$work/registry/config.yaml" &
  # shellcheck disable=SC2064 # this process
  trap "kill $!" EXIT
  until (exec 3<>/dev/tcp/127.0.0.1/"$port") 2>/dev/null; do
    kill -0 $! || return 1
    sleep 0.1
  done
  "$work/tree/setup/push-images.sh" "$pull"
}

# A machine reaches no other's 127.0.0.1, and an engine trusts a registry without TLS nowhere else: it comes along.
bring_registry() {
  tar -C "$work" -c registry | in_machine tar -C "$(dirname "$work")" --one-top-level="$(basename "$work")" -x
  docker exec --detach "$machine" "$work/registry/registry" serve "$work/registry/config.yaml"
}

# The program as docs/install.md has it, for an empty folder.
install_program() {
  in_machine env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends pipx
  in_machine pipx install /root/connlab
  in_machine mkdir -p /root/empty
}

remove_machine() {
  docker rm --force --volumes "$1" || true
  docker volume rm "$1" || true
} &>/dev/null

# step WHAT COMMAND…: one step on this release's machine. Its exit code is in watched_code, its time in the table.
failed=0 table=()
step() {
  local what=$1 began=$SECONDS line outcome=ok
  shift
  printf '\n=== %s: %s\n' "$release" "$what" >>"$log"
  line=$(wc -l <"$log")
  watched "$release: $what" "$log" "$@"
  if ((watched_code)); then
    failed=1 outcome="failed ($watched_code)"
    say "$release: $what failed after $((SECONDS - began)) s:"
    tail -n 40 "$log" >&2
  fi
  table+=("$(printf '%-9s %6d  %-11s %s' "$release" $((SECONDS - began)) "$outcome" "$what")")
  # The set-up's long commands and the parts of `make test` say themselves what they took.
  local part seconds
  while IFS='|' read -r seconds outcome part; do
    table+=("$(printf '%-9s %6d  %-11s   %s' '' "$seconds" "$outcome" "$part")")
  done < <(tail -n "+$line" "$log" | sed -nE -e 's/^connlab set-up: (.*): done in ([0-9]+) s$/\2||\1/p' \
    -e 's/^=== (.*): (\S+) after ([0-9]+)\.[0-9]+ s$/\3|\2|\1/p')
}

# Not in a condition, where bash would not heed `set -e` within the steps.
on_a_bare() {
  release=$1 machine=connlab-bare-$1-$$ log=$logs/$1.log
  : >"$log"
  if root_is_of_today; then
    say "$release: using the root file system that an earlier run made today"
  else
    step 'root file system' make_root
    ((watched_code == 0)) || return 0
  fi
  step machine start_machine
  ((watched_code == 0)) || return 0
  step clone clone
  ((watched_code == 0)) || return 0
  if [[ -n $pull ]]; then
    step 'a registry with the images' bring_registry
    step 'a Docker Engine' in_machine /root/connlab/setup/engine.sh
  fi
  local command
  for command in "${commands[@]}"; do
    # shellcheck disable=SC2086 # the words of a command
    step "$command" docker exec ${pull:+--env "CONNLAB_IMAGES=$pull"} --workdir /root/connlab "$machine" $command
  done
  if [[ -z $kit_file$pull ]]; then
    step 'pipx install' install_program
    step 'connlab run accept-queue-overflow' docker exec --workdir /root/empty "$machine" /root/.local/bin/connlab run accept-queue-overflow
  fi
  remove_machine "$machine"
}

clean_up() {
  trap '' INT TERM HUP
  for release in "${releases[@]}"; do remove_machine "connlab-bare-$release-$$"; done
  rm -rf --one-file-system "$work"
}

if ! on_debian || ! is_root; then
  die "bare machines are made with debootstrap, by root on Debian"
fi
setup/engine.sh
command -v debootstrap >/dev/null || apt_install debootstrap
apt_update
mirror=$(debian_mirror)
security=$(apt_archive Debian-Security "$(debian_codename)-security")
mkdir -p "$logs"
work=$(mktemp -d /var/tmp/connlab-bare.XXXXXX)
trap clean_up EXIT

[[ -z $(git status --porcelain) ]] || say "the machines get the committed state, without your uncommitted changes"
if [[ -n $pull ]]; then
  setup/registry.sh
  quietly "pushing this commit's images to a registry" fill_registry
fi
for release in "$@"; do
  on_a_bare "$release"
done

printf '\n%-9s %6s  %-11s %s\n' release s result step
printf '%s\n' "${table[@]}"
printf 'the whole logs: %s\n' "$logs"
((failed == 0))
