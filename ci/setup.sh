#!/usr/bin/env bash
# Everything that a run needs, in the order in which it builds on itself. What is there is left as it is.
set -euo pipefail
here=$(dirname "$0")
"$here/java.sh"
"$here/python.sh"
"$here/engine.sh"
"$here/images.sh"
