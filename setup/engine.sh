#!/usr/bin/env bash
# Sees to it that a Docker Engine (25 or newer) with Compose v2 and BuildKit answers. Where one does, it changes nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=setup/lib.sh
source ./lib.sh

readonly dockerd_log=${CONNLAB_DOCKERD_LOG:-/var/log/connlab-dockerd.log}

engine_version() { docker version --format '{{.Server.Version}}' 2>/dev/null; }
engine_answers() { engine_version >/dev/null; }
engine_is_new() { [[ $(engine_version) =~ ^v?(2[5-9]|[3-9][0-9]|[1-9][0-9]{2,})\. ]]; }
compose_answers() { [[ $(docker compose version --short 2>/dev/null) =~ ^v?(2\.(2[0-9]|[3-9][0-9])|[3-9]|[1-9][0-9]) ]]; }
buildx_answers() { docker buildx version >/dev/null 2>&1; }

must_be_whole() {
  local missing=()
  engine_is_new || missing+=("version 25 or newer (this is $(engine_version))")
  compose_answers || missing+=("Compose v2.20 or newer (Debian: docker-compose)")
  buildx_answers || missing+=("buildx (Debian: docker-buildx)")
  ((${#missing[@]} == 0)) ||
    die "a Docker Engine answers, but this is missing: ${missing[*]}" "hint: install it and run the command again"
}

install_engine() {
  local packages
  mapfile -t packages < <(engine_packages)
  if [[ -n ${CONNLAB_KIT:-} ]]; then
    [[ -d $kit/debian ]] || die "no Docker Engine answers, and this kit has no packages for Debian '$(debian_codename)'" \
      "hint: install Docker Engine 25 or newer, Compose 2.20 or newer, and buildx, or make a kit on a machine like this one"
    apt_apart "$kit/apt" "file:${kit// /%20}/debian"
  elif [[ ${packages[*]} == */trixie* ]]; then
    local mirror
    apt_update
    mirror=$(debian_mirror)
    cat >/etc/apt/sources.list.d/connlab-trixie.sources <<SOURCES
Types: deb
URIs: $mirror
Suites: trixie
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCES
    trixie_pin >/etc/apt/preferences.d/connlab-trixie
    unset CONNLAB_APT_UPDATED
  fi
  apt_install "${packages[@]}"
}

start_engine() {
  local log="tail -n 20 $dockerd_log"
  if [[ -d /run/systemd/system ]]; then
    log="journalctl --no-pager --lines 20 --unit docker"
    quietly "starting the Docker Engine" systemctl start docker
  else
    # A pid file whose process is gone, or is another program by now, would keep the engine from starting.
    local pidfile pid
    for pidfile in /run/docker.pid /run/docker/containerd/containerd.pid; do
      [[ -s $pidfile ]] || continue
      pid=$(<"$pidfile")
      case $(cat "/proc/$pid/comm" 2>/dev/null || true) in
        dockerd | containerd) ;;
        *) rm -f "$pidfile" ;;
      esac
    done
    say "starting the Docker Engine (log: $dockerd_log)"
    setsid --fork dockerd >>"$dockerd_log" 2>&1 </dev/null
  fi
  local try
  for try in $(seq 1 60); do
    engine_answers && return 0
    sleep 0.5
  done
  $log >&2 || true
  die "the Docker Engine did not answer within 30 s (asked $try times)" "hint: read what it says: $log"
}

# A context or DOCKER_HOST of the user's own is the user's engine: never install beside it.
own_engine() { [[ -n ${DOCKER_HOST:-} ]] || [[ $(docker context show 2>/dev/null || echo default) != default ]]; }

if engine_is_new && compose_answers && buildx_answers; then
  exit 0
fi

if own_engine; then
  die "the Docker Engine at '${DOCKER_HOST:-$(docker context show)}' does not answer, is older than 25, or Compose 2.20 or buildx is missing" \
    "hint: start or upgrade it, or install the Compose and buildx plugins for it"
fi
if engine_answers; then
  must_be_whole
fi
if [[ -S /run/docker.sock ]] && ! is_root && [[ ! -w /run/docker.sock ]]; then
  die "the Docker Engine's socket is not open to $(id -un)" \
    "hint: add yourself to the group 'docker' (usermod -aG docker $(id -un)) and log in again"
fi
if ! is_root; then
  die "no Docker Engine answers, and only root can install or start one" \
    "hint: run $PWD/engine.sh as root once, or install: Docker Engine 25 or newer, Compose 2.20 or newer, buildx"
fi
# An engine that is there is the user's, also while it rests: it is started, and nothing is installed beside it.
if ! command -v dockerd >/dev/null; then
  on_debian || die "no Docker Engine answers, and the set-up knows how to install one on Debian only" \
    "hint: install Docker Engine 25 or newer, Compose 2.20 or newer, and buildx, then run the command again"
  install_engine
fi
engine_answers || start_engine
must_be_whole
say "Docker Engine $(engine_version) and Compose $(docker compose version --short) answer"
