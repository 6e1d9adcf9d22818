#!/usr/bin/env bash
# Install what a run needs: Java, the Python environment of a checkout, the Docker engine, the images and jars. What is
# there already is left as it is. With ONCEPROOF_PYTHON, the environment exists and is not made.
#
# It says what it will install and change before it does so. With ONCEPROOF_NO_INSTALL, it says what is missing and
# changes nothing.
#
# Exit status: 0 everything is there, 2 something is missing and cannot be installed here (the last line says what).
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

parts=(java python engine images)
[ -z "${ONCEPROOF_PYTHON:-}" ] || parts=(java engine images)

# dry: of each part, what is there, what would be done, and (on stderr) what is missing.
dry() {
  local part status=0
  for part in "${parts[@]}"; do ONCEPROOF_DRY_RUN=1 bash "$ci/$part.sh" || status=$?; done
  return "$status"
}

[ "$(uname -s)" = Linux ] || missing "Linux: $(uname -s) is not supported yet"
status=0
if [ -n "$dry_run" ]; then dry; exit; fi
if [ -n "${ONCEPROOF_NO_INSTALL:-}" ]; then
  to_do=$(dry | sed -n 's/^setup: would /setup: not done: /p') || status=2
  if [ -n "$to_do" ]; then printf '%s\n' "$to_do" >&2; status=2; fi
  exit "$status"
fi
dry 2>/dev/null | sed -n 's/^setup: would /setup: will /p' || true
for part in "${parts[@]}"; do bash "$ci/$part.sh"; done
