#!/bin/bash
# The compose file for real: `make compose-test`. Needs Docker with its compose plugin, and the devkit's control plane.
#
# A controller converges, with three reconcilers; one of them is killed, and a change still converges; nothing listens
# beyond loopback, and nothing but `prepare` runs as root. With PROFILE=observe, traces arrive in Jaeger.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$PWD/.venv/bin:$(.venv/bin/metaloop assets | tail -n 1):$PATH" COMPOSE_PROJECT_NAME=metaloop-test
work=$(mktemp -d) cluster='' hook=''
compose() { docker compose ${PROFILE:+--profile "$PROFILE"} "$@"; }
finish() {
    code=$?
    if [ "$code" != 0 ]; then compose ps --all || true; compose logs --tail 15 || true; fi
    compose down --volumes --timeout 10 >/dev/null 2>&1 || true
    kill $hook $cluster 2>/dev/null || true
    rm -rf "$work"
    exit "$code"
}
trap finish EXIT
step() { echo "compose-test: $*"; }
within() { # within SECONDS COMMAND...: repeat it until it succeeds
    local until=$((SECONDS + $1)); shift
    until "$@" >/dev/null 2>&1; do ((SECONDS < until)) || { echo "compose-test: not in time: $*" >&2; return 1; }; sleep 0.5; done
}

step "a kubeconfig that is missing is an error that names it"
said=$(METALOOP_KUBECONFIG=$work/nowhere compose up 2>&1 || true)
grep -q "$work/nowhere" <<<"$said"

step "a control plane"
metaloop cluster >"$work/export" 2>"$work/cluster.log" & cluster=$!
within 120 grep -q KUBECONFIG "$work/export"
eval "$(cat "$work/export")"
kubectl config view --raw --flatten >"$work/kubeconfig"
chmod 600 "$work/kubeconfig"
export METALOOP_KUBECONFIG=$work/kubeconfig
kubectl apply -k libs/devkit/src/metaloop/devkit/crds >/dev/null
python examples/hello/hook.py & hook=$!

step "up, with three reconcilers"
started=$SECONDS
compose up --detach --wait --wait-timeout 180 --scale reconciler=3
step "up after $((SECONDS - started)) s"

kubectl apply -f examples/hello/crd.yaml >/dev/null
within 30 kubectl wait --for condition=Established crd/hellos.example.com
kubectl apply -f examples/hello/controller.yaml >/dev/null
within 30 kubectl apply -f examples/hello/hello.yaml
greetings() { kubectl get configmaps --all-namespaces -o jsonpath='{.items[*].data.greeting}' | grep -q "$1"; }
who=$(kubectl get hellos --all-namespaces -o jsonpath='{.items[0].spec.who}')
step "a controller converges"
within 60 greetings "Hello, $who"

step "one reconciler is killed; a change converges"
docker kill "$(compose ps --quiet reconciler | head -n 1)" >/dev/null
name=$(kubectl get hellos --all-namespaces -o jsonpath='{.items[0].metadata.name}')
kubectl patch hello "$name" --type merge --patch '{"spec": {"who": "everybody"}}' >/dev/null
within 60 greetings "Hello, everybody"

step "only prepare runs as root"
for id in $(compose ps --quiet); do
    test "$(docker inspect --format '{{.Config.User}}' "$id" | cut -d: -f1)" -ge 1000 || test "$(docker inspect --format '{{.Config.User}}' "$id")" = 472:0
done

step "everything listens on loopback"
for id in $(compose ps --quiet); do
    pid=$(docker inspect --format '{{.State.Pid}}' "$id")
    # Sockets of this process that listen: their address is 127.0.0.1 in the kernel's byte order.
    python - "$pid" <<'PYTHON'
import os, sys
pid = sys.argv[1]
links = (os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
inodes = {link[8:-1] for link in links if link.startswith("socket:")}
rows = [row.split() for file in ("tcp", "tcp6") for row in open(f"/proc/{pid}/net/{file}").read().splitlines()[1:]]
wide = [row[1] for row in rows if row[3] == "0A" and row[9] in inodes and not row[1].startswith("0100007F")]
sys.exit(f"listens on {wide}" if wide else 0)
PYTHON
done

if [ "${PROFILE:-}" = observe ]; then
    step "traces arrive"
    within 60 sh -c 'wget -qO- "http://127.0.0.1:16686/api/services" | grep -q metaloop-reconciler'
fi
step "all is well"
