#!/bin/sh
# Builds the image, hands it to the cluster, and installs an overlay there.
#
#   deploy/install.sh                                        into kind, with the overlay dev
#   IMAGE=registry.example.com/metaloop:0.1.0 LOAD="docker push" OVERLAY=ha deploy/install.sh
#
# IMAGE    the image's name; default metaloop:dev
# LOAD     the command that hands it to the cluster, before its name; default `kind load docker-image`; empty: it is there
# OVERLAY  a folder of deploy/kustomize/overlays, or of your own; default dev
# BUILD    empty: the image is built already
set -eu
cd "$(dirname "$0")/.."
IMAGE=${IMAGE:-metaloop:dev} OVERLAY=${OVERLAY:-dev} LOAD=${LOAD-kind load docker-image} BUILD=${BUILD-yes}
KUBECTL=${KUBECTL:-kubectl}
test -d "$OVERLAY" || OVERLAY=deploy/kustomize/overlays/$OVERLAY

if [ -n "$BUILD" ]; then
    docker build --file deploy/Dockerfile --tag "$IMAGE" --build-arg "REVISION=$(git rev-parse HEAD 2>/dev/null || echo unknown)" ${BASE:+--build-arg "PYTHON=$BASE"} .
fi
# shellcheck disable=SC2086 # a command with its arguments
if [ -n "$LOAD" ]; then $LOAD "$IMAGE"; fi
$KUBECTL kustomize "$OVERLAY" | sed "s|^\( *image: \)metaloop:.*|\1$IMAGE|" | $KUBECTL apply --server-side --force-conflicts -f -
for name in watcher reconciler hookgateway; do
    $KUBECTL --namespace metaloop rollout status --timeout 180s "deployment/$name"
done
