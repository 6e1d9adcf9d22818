#!/usr/bin/env bash
# Install what a run needs: Java, the Python environment of a checkout, the Docker engine, the images and jars. What is
# there already is left as it is. With ONCEPROOF_PYTHON, the environment exists and is not made.
#
# Exit status: 0 everything is there, 2 something is missing and cannot be installed here (the last line says what).
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

parts=(java python engine images)
[ -z "${ONCEPROOF_PYTHON:-}" ] || parts=(java engine images)
status=0
for part in "${parts[@]}"; do
  bash "$ci/$part.sh" || status=$?
  # A dry run says of each part what is missing.
  [ "$status" = 0 ] || [ -n "$dry_run" ] || exit "$status"
done
exit "$status"
