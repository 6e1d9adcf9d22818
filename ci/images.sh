#!/usr/bin/env bash
# The images: a base with a Java runtime, Toxiproxy, Kafka on the base, and the request proxy on Kafka. Also the jars of
# the default Kafka release and the sources that read topics and logs in Spark.
#
# Where a registry answers, the base is pulled by its digest in harness/artifacts/hashes.json (BASE_IMAGE chooses another
# one, without a digest unless it names one); where none answers, it is made from packages of Debian or Ubuntu. Toxiproxy
# is pulled if TOXIPROXY_PULL names an image of it, and made from its Go module otherwise. Kafka always comes from its
# jars. `images.sh postgresql` makes PostgreSQL's image only.
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

toxiproxy_version=2.12.0
base_tag=onceproof/jre:17
toxiproxy_tag=onceproof/toxiproxy:$toxiproxy_version
toxiproxy_module=github.com/Shopify/toxiproxy/v2@v$toxiproxy_version
: "${BASE_IMAGE:=eclipse-temurin:17-jre}"
: "${TOXIPROXY_PULL:=}"
: "${POSTGRESQL_PULL:=}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

present() { docker image inspect "$1" >/dev/null 2>&1; }

# pull NAME TAG: fails if the name is empty or no registry has it. Docker compares an image with its digest.
pull() {
  local name=$1 digest
  [ -n "$name" ] || return 1
  digest=$(pinned "$name")
  [ -z "$digest" ] || name=${name%:*}@$digest
  timeout 60 docker pull --quiet "$name" >/dev/null 2>&1 || return 1
  case $name in *@sha256:*) ;; *) not_pinned "image $name" ;; esac
  docker tag "$name" "$2"
  record image "$name"
  say "pulled $name as $2"
}

if [ "$host_id" = debian ]; then suite=bookworm components=main; else suite=$host_suite components=main,universe; fi

# from_packages TAG PACKAGE,PACKAGE: an image of Debian or Ubuntu with these packages.
from_packages() {
  command -v mmdebstrap >/dev/null || apt_install mmdebstrap
  say "making $1 from packages of $suite"
  mmdebstrap --quiet --variant=minbase --components="$components" --include="$2" "$suite" "$work/base.tar"
  docker import "$work/base.tar" "$1" >/dev/null
}

# base_image: BASE_IMAGE, or one of packages where it cannot be pulled.
base_image() {
  local tag=$base_tag name=$BASE_IMAGE packages=openjdk-17-jre-headless,ca-certificates,procps
  if present "$tag"; then there "image $tag"; return; fi
  local otherwise=
  ! may_install || otherwise=", or make it from packages of $suite"
  if would "pull $name as $tag$otherwise"; then return; fi
  if pull "$name" "$tag"; then return; fi
  may_install || missing "image $tag: no registry answers for $name, and making it needs root on Debian or Ubuntu"
  from_packages "$tag" "$packages"
}

go_minor() { go version 2>/dev/null | sed -nE 's/^go version go1\.([0-9]+).*/\1/p'; }
go_enough() { local minor; minor=$(go_minor); [ -n "$minor" ] && [ "$minor" -ge 23 ]; }

toxiproxy_image() {
  if present "$toxiproxy_tag"; then there "image $toxiproxy_tag"; return; fi
  if [ -n "$TOXIPROXY_PULL" ] && would "pull $TOXIPROXY_PULL as $toxiproxy_tag"; then return; fi
  if pull "$TOXIPROXY_PULL" "$toxiproxy_tag"; then return; fi
  if ! go_enough; then
    may_install || missing "image $toxiproxy_tag: Go 1.23 to make it, or TOXIPROXY_PULL=<an image of that version>"
    [ -z "$dry_run" ] || would_add_newer_debian
    if ! would "install Go 1.23 or later by apt-get"; then
      add_newer_debian
      apt_install "$(from_newer golang-go)"
    fi
  fi
  if would "make $toxiproxy_tag from its Go module"; then return; fi
  say "making $toxiproxy_tag from its Go module"
  # The modules stay in the temporary folder. Go compares those that this one needs with its checksum database.
  export GOMODCACHE="$work/modules" GOFLAGS=-modcacherw
  local sum
  go mod download -json "$toxiproxy_module" >"$work/log" 2>&1 || failed "Toxiproxy's Go module" "$work/log"
  sum=$(sed -nE 's/^[[:space:]]*"Sum": "(.*)",?$/\1/p' "$work/log")
  case $(pinned "$toxiproxy_module") in
    "$sum") ;;
    "") not_pinned "$toxiproxy_module" ;;
    *) missing "image $toxiproxy_tag: $toxiproxy_module has the wrong sum, so it is not used" ;;
  esac
  CGO_ENABLED=0 GOBIN="$work/bin" go install -ldflags '-s -w' "${toxiproxy_module/@//cmd/server@}" >"$work/log" 2>&1 ||
    failed "Toxiproxy's Go module" "$work/log"
  mv "$work/bin/server" "$work/bin/toxiproxy"
  docker build --quiet --tag "$toxiproxy_tag" --file "$root/compose/toxiproxy/Dockerfile" "$work/bin" >"$work/log" 2>&1 ||
    failed "image $toxiproxy_tag (docker build failed)" "$work/log"
}

# What goes into Kafka's image and the topic source, to see that a newer onceproof needs new ones.
inputs() {
  cat "$root"/compose/kafka/{Dockerfile,*.sh,log4j*} "$root"/harness/artifacts/{clients,images,jars}.py \
    "$root"/verifiers/collect/{sources,internal}.py "$root"/verifiers/collect/java/{onceproof,log/onceproof}/* \
    "$root"/workloads/processes/java/onceproof/* | sha256sum
}

kafka_image_and_jars() {
  local kafka now stamp=$home/setup-images
  kafka=$(sed -n 's/^DEFAULT_JAVA = "\(.*\)"$/\1/p' "$root/harness/artifacts/clients.py")
  now=$(inputs)
  local what="image onceproof/kafka:$kafka and its jars"
  if [ "$(cat "$stamp" 2>/dev/null)" = "$now" ] && present "onceproof/kafka:$kafka" && [ -d "$home/jars/kafka-$kafka" ]; then
    there "$what"
    return
  fi
  if would "fetch Kafka's jars and build onceproof/kafka:$kafka"; then return; fi
  say "fetching Kafka's jars and building its image"
  "$python" -m onceproof.cli.main images >"$work/log" 2>&1 || failed "Kafka's image" "$work/log"
  "$python" -c '
from onceproof.harness.artifacts import jars
from onceproof.verifiers.collect import internal, sources
from onceproof.workloads.processes import observer
sources.jars(), internal.jar(), observer.formatter(), jars.jdbc()' >"$work/log" 2>&1 || failed "the readers of topics and logs" "$work/log"
  mkdir -p "$home"
  echo "$now" >"$stamp"
}

# postgresql_image: POSTGRESQL_PULL (postgres:17, for example), or one of packages where it cannot be pulled. Only runs that
# keep outputs there need it, and make it then.
postgresql_image() {
  local tag=onceproof/postgresql
  if present "$tag"; then there "image $tag"; return; fi
  if pull "$POSTGRESQL_PULL" "$tag"; then return; fi
  may_install || missing "image $tag: making it needs root on Debian or Ubuntu, or POSTGRESQL_PULL=<an image of that name>"
  from_packages "$tag" postgresql
}

if [ "${1:-}" = postgresql ]; then
  postgresql_image
  exit
fi
base_image
toxiproxy_image
kafka_image_and_jars
