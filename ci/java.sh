#!/usr/bin/env bash
# A Java runtime of 17 or later: Spark and the Kafka Admin client run on it.
. "$(dirname "$0")/lib.sh"

java_major() { java -version 2>&1 | sed -nE '1s/.*"([0-9]+).*/\1/p'; }
enough() { local major; major=$(java_major); [ -n "$major" ] && [ "$major" -ge 17 ]; }

command -v java >/dev/null && enough && exit 0
may_install || missing "Java 17 or later (Debian or Ubuntu: apt-get install openjdk-17-jre-headless)"
apt-get -qq update >/dev/null
for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
  if has_candidate "$package"; then apt_install "$package"; break; fi
done
enough || missing "Java 17 or later on PATH (found ${JAVA_HOME:-$(command -v java || echo none)})"
