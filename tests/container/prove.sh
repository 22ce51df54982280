#!/usr/bin/env bash
# Builds the Dockerfile without a Docker engine and runs the image as docker-compose.yml would: the image's own user,
# entry point, health check and stop signal, a read-only root, no capabilities, a memory limit.
#
#   tests/container/prove.sh    as root, on Debian with buildah, runc, debootstrap, docker-compose, jq and curl
#
# The base image is made with debootstrap, so no registry of images is asked: Debian's own Python in place of
# python:3.12-slim, which is what the BASE argument of the Dockerfile is for. Set MIRROR to a Debian mirror.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
export PORT=${PORT:-18080}
SUITE=${SUITE:-bookworm}
WORK=$(mktemp -d)
NAME=kuiper-proof-$$
container=
finish() {
    runc delete --force "$NAME" >/dev/null 2>&1 || true
    [ -z "$container" ] || buildah rm "$container" >/dev/null 2>&1 || true
    rm -rf "$WORK"
}
trap finish EXIT
step() { printf '\n== %s\n' "$*"; }

step "compose accepts the file"
docker-compose config --quiet && echo accepted

if ! buildah inspect --type image localhost/python-base >/dev/null 2>&1; then
    step "base image: debootstrap $SUITE"
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$SUITE" "$WORK/rootfs" ${MIRROR:+"$MIRROR"} >"$WORK/log"
    base=$(buildah from scratch)
    buildah copy --quiet "$base" "$WORK/rootfs" / >/dev/null
    buildah commit --quiet "$base" localhost/python-base >/dev/null
    buildah rm "$base" >/dev/null
fi

step "every step of the Dockerfile"
buildah build --format docker --network host --build-arg BASE=localhost/python-base \
    --volume /etc/ssl/certs:/etc/ssl/certs:ro --volume /etc/resolv.conf:/etc/resolv.conf:ro \
    --tag localhost/kuiper-serve .
buildah inspect --type image localhost/kuiper-serve | jq .Docker.config >"$WORK/image.json"
jq '{User, Entrypoint, Cmd, StopSignal, Healthcheck, ExposedPorts}' "$WORK/image.json"

step "run it: user, entry point and environment of the image; read-only root; no capabilities; 1 GiB"
container=$(buildah from localhost/kuiper-serve)
(cd "$WORK" && runc spec)
jq --slurpfile image "$WORK/image.json" --arg root "$(buildah mount "$container")" --arg port "$PORT" \
    --from-file "$here/bundle.jq" "$WORK/config.json" >"$WORK/bundle.json"
mv "$WORK/bundle.json" "$WORK/config.json"
runc run --bundle "$WORK" "$NAME" >"$WORK/out" 2>&1 &
server=$!

check() { runc exec "$NAME" env "KUIPER_PORT=$PORT" "${health[@]}"; }
mapfile -t health < <(jq -r '.Healthcheck.Test[1:][]' "$WORK/image.json")
for attempt in $(seq 100); do
    kill -0 "$server" 2>/dev/null || { cat "$WORK/out"; exit 1; }
    if check 2>/dev/null; then break; fi
    [ "$attempt" -lt 100 ] || { cat "$WORK/out"; echo "never healthy"; exit 1; }
    sleep 0.2
done
echo "healthy, by the image's own health check"
runc exec "$NAME" sh -c 'id -u; touch /models/x 2>&1 || true; grep CapEff /proc/1/status'

step "the README's request"
curl -sf -F file=@models/digits/samples/7.png "http://127.0.0.1:$PORT/infer?model=digits&trace=off" | tee "$WORK/response" | cut -c1-400
jq -e '.predictions[0][0].label == "7"' "$WORK/response" >/dev/null

step "SIGTERM to the container's first process"
runc kill "$NAME" TERM
code=0
wait "$server" || code=$?
echo "exit code $code"
[ "$code" -eq 0 ]
step "proved"
