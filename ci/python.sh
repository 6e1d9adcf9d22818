#!/usr/bin/env bash
# The Python environment of a checkout, in .venv: the hashed requirements of requirements.lock, then the project itself.
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$project"

stamp=$(cat requirements.lock pyproject.toml | sha256sum | cut -d' ' -f1)-$PWD
if [ "$(cat .venv/.onceproof 2>/dev/null)" = "$stamp" ]; then there "the Python environment in .venv"; exit 0; fi

base=
for candidate in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
  if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then base=$candidate; break; fi
done
[ -n "$base" ] || missing "Python 3.11 or later (Debian or Ubuntu: apt-get install python3)"
has_venv() { "$base" -c 'import venv, ensurepip' 2>/dev/null; }
has_venv || may_install || missing "Python's venv module (Debian or Ubuntu: apt-get install python3-venv)"
would "make the Python environment in .venv" && exit 0
has_venv || apt_install python3-venv

say "making the Python environment in .venv"
[ -x .venv/bin/python ] || "$base" -m venv .venv
.venv/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes --no-deps -r "$ci/uv.lock"
.venv/bin/uv pip sync --quiet --require-hashes --python .venv/bin/python requirements.lock "$ci/uv.lock"
.venv/bin/uv pip install --quiet --python .venv/bin/python --no-build-isolation --no-deps --editable .
echo "$stamp" >.venv/.onceproof
