#!/usr/bin/env bash
# A Kubernetes cluster for the tests, in privileged containers of this machine's Docker Engine.
#   kubernetes.sh up [nodes]   two nodes where no number is given; .cache/kubernetes then has `kubeconfig` and `kubectl`
#   kubernetes.sh load         brings the lab's images, as they are now, into every node
#   kubernetes.sh down         ends it, and leaves nothing
#   kubernetes.sh test         runs tests/kubernetes on one of its own
# Kubernetes is built from its Go modules when there is no build of these sources: that takes some minutes, once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=setup/lib.sh
source setup/lib.sh

readonly cache=.cache/kubernetes name=connlab-kubernetes ready_s=120
readonly images=(collector k6 nginx haproxy gateway backend)
export KUBECONFIG=$PWD/$cache/kubeconfig

node_names() { docker ps --all --filter "label=connlab.check=kubernetes" --format '{{.Names}}' | LC_ALL=C sort; }

down() {
  local nodes
  mapfile -t nodes < <(node_names)
  ((${#nodes[@]} == 0)) || docker rm --force --volumes "${nodes[@]}" >/dev/null
  rm -f "$KUBECONFIG"
}

# Nodes reach each other by a link of their own: rules of the engine for its bridges do not touch it.
linked() {
  local first second
  first=$(docker inspect --format '{{.State.Pid}}' "$name-1")
  if docker inspect "$name-2" >/dev/null 2>&1; then
    second=$(docker inspect --format '{{.State.Pid}}' "$name-2")
  else
    second=$first
  fi
  docker run --rm --privileged --pid host --network none --label connlab.check=kubernetes --entrypoint bash connlab/kubernetes -euc "
    ip link add link0 netns $first type veth peer name link$([[ $first == "$second" ]] && echo 1 || echo 0) netns $second"
  addressed 1 2
  [[ $first == "$second" ]] || addressed 2 1
}

addressed() {
  docker exec "$name-$1" bash -euc "
    for one in /sys/class/net/link*; do ip link set \${one##*/} up; done
    ip address add 10.201.0.$1/24 dev link0
    ip route add 10.202.$2.0/24 via 10.201.0.$2 dev link0
    ip route replace default dev link0"
}

up() {
  local count=$1 number kind port
  [[ $count == [12] ]] || die "a cluster of '$count' nodes cannot be made" "hint: 1 or 2"
  setup/images.sh kubernetes pause
  SECONDS=0
  down
  for ((number = 1; number <= count; number++)); do
    kind=$( ((number == 1)) && echo control || echo worker)
    docker run --detach --name "$name-$number" --hostname "node-$number" --label connlab.check=kubernetes --privileged \
      --cgroupns private --publish 127.0.0.1::6443 connlab/kubernetes "$kind" "$number" >/dev/null
  done
  linked
  until docker exec "$name-1" test -f /lab/kubeconfig; do
    ((SECONDS < ready_s)) || not_ready 1
    sleep 0.2
  done
  mkdir -p "$cache"
  port=$(docker port "$name-1" 6443/tcp | head -n 1)
  (umask 077 && docker exec "$name-1" sed "s#https://[0-9.]*:6443#https://$port#" /lab/kubeconfig >"$KUBECONFIG")
  ((count == 1)) || docker exec "$name-1" cat /lab/kubeconfig |
    docker exec --interactive "$name-2" bash -c 'cat >/lab/kubeconfig.whole && mv /lab/kubeconfig.whole /lab/kubeconfig'
  for ((number = 1; number <= count; number++)); do
    until docker exec "$name-1" kubectl wait --for=condition=Ready --timeout=10s "node/node-$number" >/dev/null 2>&1; do
      ((SECONDS < ready_s)) || not_ready "$number"
      sleep 0.2
    done
  done
  until docker exec "$name-1" kubectl get serviceaccount default >/dev/null 2>&1; do sleep 0.2; done
  load pause "${images[@]}"
  say "the cluster is ready: export KUBECONFIG=$KUBECONFIG"
}

# Where no privileged container may run there is no cluster: that is said, and does not fail the lab's tests.
tested() {
  setup/images.sh
  if ! docker run --rm --privileged --cgroupns private --network none --label connlab.check=kubernetes \
    --entrypoint true connlab/base 2>/dev/null; then
    say "SKIPPED: tests/kubernetes was not run, because this Docker Engine runs no privileged container"
    return
  fi
  trap down EXIT
  up 2
  # One run at a time: the other process analyses the one before, or tests what makes no run.
  PATH=$PWD/$cache:$PATH .venv/bin/pytest --numprocesses 2 --dist loadgroup --durations 30 tests/kubernetes
}

not_ready() {
  docker exec "$name-$1" bash -c 'tail -n 5 /lab/log/*.log' >&2 || docker logs "$name-$1" >&2
  die "node $1 was not ready within $ready_s s" "what its programs said last is printed above"
}

load() {
  local nodes node
  local -a refs=("${@/#/connlab/}") loading=()
  mapfile -t nodes < <(node_names)
  for node in "${nodes[@]}"; do
    docker save "${refs[@]/%/:latest}" |
      docker exec --interactive "$node" ctr --address /lab/run/containerd.sock --namespace k8s.io images import - >/dev/null &
    loading+=($!)
  done
  for node in "${loading[@]}"; do wait "$node"; done
}

case ${1:-} in
  up) up "${2:-2}" ;;
  load) load "${images[@]}" ;;
  down) down ;;
  test) tested ;;
  *) die "usage: setup/kubernetes.sh up [1|2] | load | down | test" ;;
esac
