#!/usr/bin/env bash
# A Java runtime, version 17 or later, for Spark and the Kafka Admin client.
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

java_major() { java -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' | head -n 1; }
enough() { local major; major=$(java_major); [ -n "$major" ] && [ "$major" -ge 17 ]; }

if command -v java >/dev/null && enough; then there "Java $(java_major)"; exit 0; fi
may_install || missing "Java 17 or later (Debian or Ubuntu: apt-get install openjdk-17-jre-headless)"
would "install Java 17 or later by apt-get" && exit 0
apt_update
for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
  if has_candidate "$package"; then apt_install "$package"; break; fi
done
enough || missing "Java 17 or later on PATH (found ${JAVA_HOME:-$(command -v java || echo none)})"
