# Shared by the scripts in ci/: paths, messages, and the rules for installing packages.
#
# The scripts work in a checkout and in an installed package, and do not write to the folder that they are in.
#
#   ONCEPROOF_PYTHON    the interpreter that has onceproof installed (default: the checkout's .venv/bin/python)
#   ONCEPROOF_HOME      the cache of downloads and state (default: ~/.cache/onceproof)
#   ONCEPROOF_DRY_RUN   if not empty, the scripts say what is there and what they would do, and change nothing
#
# What they install is recorded in $home/installed, one line each, so that `onceproof clean --all` removes that only:
# package NAME, file PATH, image NAME, engine PID.
# shellcheck shell=bash disable=SC2034  # some variables are used only by the scripts that source this one
set -euo pipefail

# `ci` and `root` hold scripts and data (compose/, harness/, verifiers/); the environment is in `project`.
ci=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$ci")
project=$root
[ -e "$project/pyproject.toml" ] || project=$(dirname "$root")
python=${ONCEPROOF_PYTHON:-$project/.venv/bin/python}
home=${ONCEPROOF_HOME:-$HOME/.cache/onceproof}
dry_run=${ONCEPROOF_DRY_RUN:-}

# macOS has the same program under another name.
command -v sha256sum >/dev/null || sha256sum() { shasum -a 256; }

say() { printf 'setup: %s\n' "$*"; }
missing() { printf 'setup: missing: %s\n' "$*" >&2; exit 2; }

# there WHAT: in a dry run, say that it is there already.
there() { [ -z "$dry_run" ] || say "there: $*"; }

# would ACTION: in a dry run, say what would be done and succeed; otherwise fail, so that the caller does it.
would() { [ -n "$dry_run" ] && say "would $*"; }

# failed WHAT LOG: a command failed; show the end of its output.
failed() { tail -n 20 "$2" >&2; missing "$1"; }

# record KIND WHAT: note that this was installed.
record() {
  mkdir -p "$home"
  printf '%s %s\n' "$1" "$2" >>"$home/installed"
}

# pinned NAME: the hash that onceproof keeps of an image or a Go module; nothing if it keeps none.
pinned() { sed -n "s|^ *\"$1\": \"\(.*\)\",\{0,1\}\$|\1|p" "$root/harness/artifacts/hashes.json"; }
not_pinned() { say "$1 is not pinned: onceproof has no hash of it to compare with"; }

# The only case in which packages are installed: as root, on Debian or Ubuntu.
may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_updated=
apt_update() {
  [ -z "$apt_updated" ] || return 0
  apt-get -qq -o Acquire::Retries=3 update >/dev/null
  apt_updated=1
}

installed_packages() {
  # shellcheck disable=SC2016  # dpkg-query expands these, not the shell
  dpkg-query --show --showformat '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^ii  *//p' | sort -u
}

apt_install() {
  apt_update
  say "installing $*"
  local log before package
  log=$(mktemp)
  before=$(installed_packages)
  DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 \
    install --no-install-recommends "$@" >"$log" 2>&1 || failed "$* (apt-get could not install them)" "$log"
  rm -f "$log"
  comm -13 <(printf '%s\n' "$before") <(installed_packages) | while read -r package; do record package "$package"; done
}

# has_candidate PACKAGE: whether this release of the distribution has the package.
has_candidate() { [ -n "$(apt-cache madison "$1" 2>/dev/null)" ]; }

# wait_for SECONDS WHAT COMMAND...: run the command every half second until it succeeds.
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

# shellcheck source=/dev/null
. /etc/os-release 2>/dev/null || true
host_id=${ID:-unknown}
host_suite=${VERSION_CODENAME:-unknown}

bookworm_mirror() {
  # shellcheck disable=SC2016  # apt-get expands $(REPO_URI), not the shell
  apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 2>/dev/null | head -n 1 || true
}

# needs_newer_debian: whether packages must come from the next release, which is not a source of packages yet.
needs_newer_debian() {
  [ "$host_id" = debian ] && [ "$host_suite" = bookworm ] && [ ! -e /etc/apt/sources.list.d/onceproof-trixie.sources ]
}
would_add_newer_debian() {
  ! needs_newer_debian || say "would add Debian trixie to the sources of packages, at a low priority, for what bookworm lacks"
}

# Debian bookworm has version 1 of Compose and a Go that is too old. The next release is added at a low priority.
add_newer_debian() {
  needs_newer_debian || return 0
  local mirror
  mirror=$(bookworm_mirror)
  if [ -z "$mirror" ]; then  # the package lists were never fetched on this machine
    apt_update
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
  record file /etc/apt/sources.list.d/onceproof-trixie.sources
  record file /etc/apt/preferences.d/onceproof-trixie
  apt_updated=
}

# from_newer PACKAGE: the package's name, with the suite that it must come from on this host.
from_newer() {
  if [ -e /etc/apt/sources.list.d/onceproof-trixie.sources ]; then echo "$1/trixie"; else echo "$1"; fi
}
