#!/usr/bin/env bash
# Chromium with its driver, for the tests that look at a report. Without them, these tests are skipped.
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then there "Chromium and its driver"; exit 0; fi
if ! may_install; then
  say "missing: Chromium with its driver, so the tests in a browser are skipped (Debian: apt-get install chromium-driver)"
  exit 0
fi
apt_update
if ! has_candidate chromium-driver; then
  say "no package chromium-driver, so the tests in a browser are skipped"
  exit 0
fi
would "install Chromium and its driver by apt-get" && exit 0
apt_install chromium chromium-driver
