# Shared by the scripts in ci/: what is said, what may be installed, and how.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'setup: %s\n' "$*"; }
missing() { printf 'setup: missing: %s\n' "$*" >&2; exit 2; }

# Debian or Ubuntu, as root: the only case in which ci/ installs packages.
may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_updated=
apt_install() {
  if [ -z "$apt_updated" ]; then
    apt-get -qq -o Acquire::Retries=3 update >/dev/null
    apt_updated=1
  fi
  say "installing $*"
  local log
  log=$(mktemp)
  if ! DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 \
    install --no-install-recommends "$@" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    missing "$* (apt-get could not install them)"
  fi
  rm -f "$log"
}

# has_candidate PACKAGE: does this release offer it?
has_candidate() { [ -n "$(apt-cache madison "$1" 2>/dev/null)" ]; }

# wait_for SECONDS WHAT COMMAND...: every wait has a deadline and says what it waited for.
wait_for() {
  local seconds=$1 what=$2 i
  shift 2
  for ((i = 0; i < seconds * 2; i++)); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.5
  done
  printf 'setup: waited %s s for %s\n' "$seconds" "$what" >&2
  return 1
}

. /etc/os-release 2>/dev/null || true
host_id=${ID:-unknown}
host_suite=${VERSION_CODENAME:-unknown}

bookworm_mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 2>/dev/null | head -n 1 || true
}

# Bookworm's Compose is version 1 and its Go is too old: those come from the next release, at low priority.
add_newer_debian() {
  [ "$host_id" = debian ] && [ "$host_suite" = bookworm ] || return 0
  [ -e /etc/apt/sources.list.d/onceproof-trixie.sources ] && return 0
  local mirror
  mirror=$(bookworm_mirror)
  if [ -z "$mirror" ]; then  # a machine whose package lists were never fetched
    apt-get -qq -o Acquire::Retries=3 update >/dev/null
    mirror=$(bookworm_mirror)
  fi
  [ -n "$mirror" ] || missing "the mirror that bookworm's packages come from (apt-get indextargets names none)"
  cat >/etc/apt/sources.list.d/onceproof-trixie.sources <<SOURCES
Types: deb
URIs: $mirror
Suites: trixie
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCES
  printf 'Package: *\nPin: release n=trixie\nPin-Priority: 100\n' >/etc/apt/preferences.d/onceproof-trixie
  apt_updated=
}

# from_newer PACKAGE: the package's name with the suite it must come from on this host.
from_newer() {
  if [ -e /etc/apt/sources.list.d/onceproof-trixie.sources ]; then echo "$1/trixie"; else echo "$1"; fi
}
