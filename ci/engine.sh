#!/usr/bin/env bash
# A Docker engine that answers, and Compose v2. An engine that answers is left as it is.
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

engine_log=/var/log/onceproof-dockerd.log

engine_answers() { docker info --format '{{.ServerVersion}}' 2>/dev/null | grep -q .; }
compose_v2() { docker compose version --short 2>/dev/null | grep -qE '^v?([2-9]|[1-9][0-9])'; }

start_engine() {
  if [ -d /run/systemd/system ]; then systemctl start docker; else
    setsid dockerd >"$engine_log" 2>&1 </dev/null &
    record engine $!
  fi
  wait_for 60 "the Docker engine (see $engine_log)" engine_answers
}

hint='a Docker engine with Compose v2 that this user may use (Debian or Ubuntu: run this once as root, or apt-get install docker.io docker-compose-v2)'

if engine_answers && compose_v2; then
  there "Docker engine $(docker info --format '{{.ServerVersion}}'), Compose $(docker compose version --short)"
  exit 0
fi
may_install || missing "$hint"
if [ -n "$dry_run" ]; then
  would_add_newer_debian
  command -v dockerd >/dev/null || engine_answers || would "install a Docker engine by apt-get"
  compose_v2 || would "install Compose v2 by apt-get"
  engine_answers || would "start the Docker engine"
  exit 0
fi

add_newer_debian
packages=()
engine_answers || command -v dockerd >/dev/null || packages+=("$(from_newer docker.io)" iptables)
if ! compose_v2; then
  apt_update
  if has_candidate docker-compose-v2; then packages+=(docker-compose-v2); else
    packages+=("$(from_newer docker-compose)")
  fi
fi
[ ${#packages[@]} = 0 ] || apt_install "${packages[@]}"
engine_answers || { say "starting the Docker engine"; start_engine; }
compose_v2 || missing "$hint"
