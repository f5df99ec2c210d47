# Shared by the set-up scripts: how they speak and how they stop.
# shellcheck shell=bash

say() { printf 'connlab set-up: %s\n' "$*" >&2; }

# What can be made again; an installed `connlab` names its user's folder.
connlab_cache=${CONNLAB_CACHE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.cache}

# What `make load` has taken out of a participant's kit (docs/kit.md); load.sh sets the variable while it takes a new one in.
kit=${CONNLAB_KIT:-$connlab_cache/kit}

lab_version() { sed -n 's/^version = "\(.*\)".*/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../pyproject.toml"; }

base_recipe() { sha256sum <"$(dirname "${BASH_SOURCE[0]}")/base.Dockerfile" | cut -c1-16; }

# The Python that the lab runs with, and its version as (3, 11).
find_python() {
  local candidate
  for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    if version=$("$candidate" -c 'import sys; print(sys.version_info[:2]); sys.exit(sys.version_info < (3, 11))' 2>/dev/null); then
      python=$(command -v "$candidate")
      return
    fi
  done
  die "Python 3.11 or newer is missing" "hint: install it (Debian: apt-get install python3 python3-venv)"
}

# A reason and a hint; 4 is connlab's exit code for "the lab or the machine failed".
die() {
  printf 'connlab set-up: %s\n' "$@" >&2
  exit 4
}

# quietly WHAT COMMAND…: runs a long command with its output in a log; shows the log's end and stops when it fails.
quietly() {
  local what=$1 log
  shift
  log=$(mktemp "${TMPDIR:-/tmp}/connlab-setup.XXXXXX")
  watched "$what" "$log" "$@"
  if ((watched_code)); then
    tail -n 40 "$log" >&2
    die "$what failed; the whole log is in $log"
  fi
  rm -f "$log"
}

# watched WHAT LOG COMMAND…: runs a long command with its output appended to LOG, and says how far it is and how long it
# took. The command's exit code is in watched_code: bash would ignore `set -e` in a COMMAND whose code is asked for.
# A signal ends it with all that it has started: it has a process group of its own, for one in the background would
# ignore Ctrl-C and work on.
watched() {
  local what=$1 log=$2 child interrupted=''
  shift 2
  say "$what …"
  local began=$SECONDS shown=0 pause=0.02 at
  watched_code=0
  # Before the command begins: on a busy machine it may be at work before this shell goes on.
  trap 'interrupted=1' INT TERM HUP
  set -m
  "$@" >>"$log" 2>&1 </dev/null &
  child=$!
  set +m
  while [[ -z $interrupted ]] && kill -0 "$child" 2>/dev/null; do
    # In the background: bash may spin for ever if Ctrl-C ends a foreground child before it has become its program.
    sleep "$pause" &
    wait "$!" || true
    ((SECONDS == began)) || pause=0.2
    if ((SECONDS - began >= shown + 15)); then
      shown=$((SECONDS - began))
      at=$(tail -n 1 "$log" | tr -d '\r' | cut -c1-100)
      say "$what … ${shown} s${at:+: $at}"
    fi
  done
  [[ -n $interrupted ]] || wait "$child" || watched_code=$?
  if [[ -n $interrupted ]]; then
    kill -- "-$child" || true
    wait "$child" || true
    die "$what: interrupted; the log is in $log"
  fi
  trap - INT TERM HUP
  ((watched_code)) || say "$what: done in $((SECONDS - began)) s"
}

on_debian() { [[ -r /etc/os-release ]] && (. /etc/os-release && [[ ${ID:-} == debian ]]); }

# Whether a Debian of this number has trixie's packages, or newer ones, of its own; testing and unstable have no number.
is_trixie_or_newer() { [[ -z $1 ]] || ((${1%%.*} >= 13)); }

is_root() { [[ $(id -u) -eq 0 ]]; }

# A machine that has just started may be upgrading itself.
apt() { env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@"; }

# Another program may be reading the lists; for their lock apt itself does not wait.
apt_lists() {
  local said end=$((SECONDS + 300))
  until said=$(apt update 2>&1); do
    if [[ $said != *"Could not get lock"* ]] || ((SECONDS > end)); then
      printf '%s\n' "$said"
      return 100
    fi
    sleep 2
  done
  printf '%s\n' "$said"
}

apt_update() {
  [[ -z ${CONNLAB_APT_UPDATED:-} ]] || return 0
  quietly "reading Debian's package lists" apt_lists
  export CONNLAB_APT_UPDATED=1
}

# Nothing is removed: what conflicts with a package is there because somebody wants it.
apt_install() {
  apt_update
  quietly "installing $*" apt install -y --no-remove --no-install-recommends "$@"
}

# The archive with LABEL (Debian, Debian-Security) and CODENAME that this machine's own apt reads, if it reads one. It
# stands in apt's lists, so `apt_update` comes first.
apt_archive() {
  local archive
  # shellcheck disable=SC2016 # the $(…) are apt's own placeholders
  archive=$(apt-get indextargets --format '$(CREATED_BY) $(COMPONENT) $(LABEL) $(CODENAME)|$(REPO_URI)' 2>/dev/null |
    sed -n "s/^Packages main $1 $2|//p" | head -n 1)
  printf '%s\n' "${archive%/}"
}

# The engine's packages are Debian 13's, also on an older Debian. There they are named with their release one by one:
# `-t trixie` would take everything that they depend on from there, too, the C library included.
engine_packages() {
  local packages=(docker.io docker-cli docker-compose docker-buildx)
  is_trixie_or_newer "$(. /etc/os-release && printf '%s' "${VERSION_ID:-}")" || packages=("${packages[@]/%//trixie}")
  printf '%s\n' "${packages[@]}" iptables
}

trixie_pin() {
  cat <<'PREFERENCES'
Explanation: connlab takes the Docker Engine from Debian 13; nothing else may come from there.
Package: *
Pin: release n=trixie
Pin-Priority: 100
PREFERENCES
}

# The releases of Debian that this machine's engine comes from.
engine_releases() {
  debian_codename
  [[ $(engine_packages) != */trixie* ]] || printf '\ntrixie'
}

# apt_apart FOLDER ARCHIVE [SETTING VALUE …]: from here on apt reads this archive alone, and keeps what it reads in the
# folder: the machine's own sources stay as they are. Debian signs the archive, wherever a copy of it lies.
apt_apart() {
  local folder=$1 archive=$2 release
  shift 2
  mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" "$folder/none"
  for release in $(engine_releases); do
    printf 'deb [target=Packages arch=%s check-valid-until=no signed-by=%s] %s %s main\n' "$(dpkg --print-architecture)" \
      /usr/share/keyrings/debian-archive-keyring.gpg "$archive" "$release"
  done >"$folder/sources.list"
  trixie_pin >"$folder/preferences"
  printf '%s "%s";\n' Dir::Etc::sourcelist "$folder/sources.list" Dir::Etc::sourceparts "$folder/none" \
    Dir::Etc::preferences "$folder/preferences" Dir::Etc::preferencesparts "$folder/none" \
    Dir::State::lists "$folder/lists" Dir::Cache "$folder/cache" APT::Sandbox::User root "$@" >"$folder/apt.conf"
  export APT_CONFIG=$folder/apt.conf
  unset CONNLAB_APT_UPDATED
}

debian_codename() { . /etc/os-release && printf '%s' "${VERSION_CODENAME:-}"; }

# Debian's archive for this machine's release: the set-up names no mirror of its own.
debian_mirror() {
  local codename mirror
  codename=$(debian_codename)
  mirror=$(apt_archive Debian "$codename")
  [[ -n $mirror ]] || die "this machine's apt sources have no Debian archive for '$codename'" \
    "hint: add one to /etc/apt/sources.list.d and run the command again"
  printf '%s\n' "$mirror"
}

# With the engine's own builder, which knows the lab's images: one that the user has chosen may live in a container.
build_image() { docker buildx build --builder "$(docker context show)" --progress plain --network host "$@"; }

# must_be_image_prefix WHAT VALUE: whether the lab's images may have these names: <registry>/<prefix>.
must_be_image_prefix() {
  [[ $2 =~ ^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$ ]] && return
  say "$1: '$2' is no registry with a prefix"
  say "hint: write it as <registry>/<prefix>, such as 127.0.0.1:5000/connlab"
  exit 2
}

# What `make push-images` noted of an image under a tag: the digest of what it pushed.
image_digests=$(dirname "${BASH_SOURCE[0]}")/images.digests
image_digest() { sed -n "s/^$1 ${2//./\\.} //p" "$image_digests" 2>/dev/null || true; }
