#!/usr/bin/env bash
# The images: a base with a Java runtime and one with Python, Toxiproxy, and Kafka on its base.
#
# Where a registry answers, bases are pulled (BASE_IMAGE, PYTHON_IMAGE choose others); where none does, they are made from
# Debian's packages. Toxiproxy is made from its Go module, or pulled when TOXIPROXY_PULL names an image of it. Kafka
# always comes from its jars.
. "$(dirname "$0")/lib.sh"

toxiproxy_version=2.12.0
base_tag=onceproof/jre:17
python_tag=onceproof/python:3
toxiproxy_tag=onceproof/toxiproxy:$toxiproxy_version
: "${BASE_IMAGE:=eclipse-temurin:17-jre}"
: "${PYTHON_IMAGE:=python:3.13-slim}"
: "${TOXIPROXY_PULL:=}"

present() { docker image inspect "$1" >/dev/null 2>&1; }
# pulled NAME TAG: no name, nothing to pull.
pulled() { [ -n "$1" ] && timeout 60 docker pull --quiet "$1" >/dev/null 2>&1 && docker tag "$1" "$2"; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# make_base TAG PULLED PACKAGES: an image of Debian's (or Ubuntu's) packages, for where PULLED could not be.
make_base() {
  may_install || missing "image $1: no registry answers for $2, and making it needs root on Debian or Ubuntu"
  command -v mmdebstrap >/dev/null || apt_install mmdebstrap
  local suite=bookworm components=main
  [ "$host_id" = debian ] || { suite=$host_suite components=main,universe; }
  say "making $1 from packages of $suite"
  mmdebstrap --quiet --variant=minbase --components="$components" --include="$3" "$suite" "$work/base.tar"
  docker import "$work/base.tar" "$1" >/dev/null
}

go_minor() { go version 2>/dev/null | sed -nE 's/^go version go1\.([0-9]+).*/\1/p'; }
make_toxiproxy() {
  local minor
  minor=$(go_minor)
  if [ -z "$minor" ] || [ "$minor" -lt 23 ]; then
    may_install || missing "image $toxiproxy_tag: Go 1.23 to make it, or TOXIPROXY_PULL=<an image of that version>"
    add_newer_debian
    apt_install "$(from_newer golang-go)"
  fi
  say "making $toxiproxy_tag from its Go module"
  CGO_ENABLED=0 GOBIN="$work/bin" go install -ldflags '-s -w' \
    "github.com/Shopify/toxiproxy/v2/cmd/server@v$toxiproxy_version" 2>"$work/go.log" ||
    { tail -n 5 "$work/go.log" >&2; missing "Toxiproxy's Go module"; }
  mv "$work/bin/server" "$work/bin/toxiproxy"
  docker build --quiet --tag "$toxiproxy_tag" --file compose/toxiproxy/Dockerfile "$work/bin" >/dev/null 2>&1
}

present "$base_tag" || pulled "$BASE_IMAGE" "$base_tag" ||
  make_base "$base_tag" "$BASE_IMAGE" openjdk-17-jre-headless,ca-certificates,procps
present "$python_tag" || pulled "$PYTHON_IMAGE" "$python_tag" ||
  make_base "$python_tag" "$PYTHON_IMAGE" python3
present "$toxiproxy_tag" || pulled "$TOXIPROXY_PULL" "$toxiproxy_tag" || make_toxiproxy

stamp=.venv/.images
now=$(cat compose/kafka/Dockerfile compose/kafka/*.sh compose/kafka/log4j* harness/artifacts/jars.py verifiers/collect/java/onceproof/* | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$now" ] || ! docker image ls --quiet onceproof/kafka | grep -q .; then
  say "fetching Kafka's jars and building its image"
  .venv/bin/onceproof images >/dev/null
  .venv/bin/python -c "from onceproof.verifiers.collect import topics; topics.jars()"
  echo "$now" >"$stamp"
fi
