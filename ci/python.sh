#!/usr/bin/env bash
# The Python environment in .venv: hashed requirements from requirements.lock, then this project itself.
. "$(dirname "$0")/lib.sh"

stamp=$(cat requirements.lock pyproject.toml | sha256sum | cut -d' ' -f1)-$PWD
[ "$(cat .venv/.onceproof 2>/dev/null)" = "$stamp" ] && exit 0

python=
for candidate in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
  if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$candidate; break; fi
done
[ -n "$python" ] || missing "Python 3.11 or later (Debian or Ubuntu: apt-get install python3)"
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
  may_install || missing "Python's venv module (Debian or Ubuntu: apt-get install python3-venv)"
  apt_install python3-venv
fi

say "making the Python environment in .venv"
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes --no-deps -r ci/uv.lock
.venv/bin/uv pip sync --quiet --require-hashes --python .venv/bin/python requirements.lock ci/uv.lock
.venv/bin/uv pip install --quiet --python .venv/bin/python --no-build-isolation --no-deps --editable .
echo "$stamp" >.venv/.onceproof
