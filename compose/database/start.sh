#!/bin/bash
# PostgreSQL in the foreground, with its data in the container's own volume, which outlives a kill and a start.
#
# Whoever reaches its port is trusted: only Toxiproxy does, and publishes it on 127.0.0.1. Commits wait for the disk
# (synchronous_commit, fsync), as they do by default: what has been acknowledged survives SIGKILL.
set -euo pipefail

bin=$(echo /usr/lib/postgresql/*/bin)
data=/var/lib/postgresql/onceproof
if [ ! -s "$data/PG_VERSION" ]; then
  "$bin/initdb" --pgdata="$data" --username=postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 >/dev/null
  echo 'host all all all trust' >>"$data/pg_hba.conf"
fi
exec "$bin/postgres" -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp -c max_connections=50
