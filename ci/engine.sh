#!/usr/bin/env bash
# A Docker engine that answers, and Compose v2. An engine that answers is left as it is.
. "$(dirname "$0")/lib.sh"

engine_answers() { docker info --format '{{.ServerVersion}}' 2>/dev/null | grep -q .; }
compose_v2() { docker compose version --short 2>/dev/null | grep -qE '^v?([2-9]|[1-9][0-9])'; }

start_engine() {
  if [ -d /run/systemd/system ]; then systemctl start docker; else
    setsid dockerd >/var/log/onceproof-dockerd.log 2>&1 </dev/null &
  fi
  wait_for 60 "the Docker engine (see /var/log/onceproof-dockerd.log)" engine_answers
}

if engine_answers && compose_v2; then exit 0; fi

hint='a Docker engine with Compose v2 that this user may use (Debian or Ubuntu: run this once as root, or apt-get install docker.io docker-compose-v2)'
if ! may_install; then missing "$hint"; fi

add_newer_debian
packages=()
engine_answers || command -v dockerd >/dev/null || packages+=("$(from_newer docker.io)" iptables)
if ! compose_v2; then
  apt-get -qq update >/dev/null
  apt_updated=1
  if has_candidate docker-compose-v2; then packages+=(docker-compose-v2); else
    packages+=("$(from_newer docker-compose)")
  fi
fi
[ ${#packages[@]} = 0 ] || apt_install "${packages[@]}"
engine_answers || { say "starting the Docker engine"; start_engine; }
compose_v2 || missing "$hint"
