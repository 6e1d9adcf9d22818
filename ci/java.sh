#!/usr/bin/env bash
# A Java runtime, version 17 to 22, for Spark and the Kafka Admin client (harness/artifacts/java.py says why).
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

oldest=17 newest=22
java_major() { java -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' | head -n 1; }
enough() { local major; major=$(java_major); [ -n "$major" ] && [ "$major" -ge $oldest ] && [ "$major" -le $newest ]; }

if command -v java >/dev/null && enough; then there "Java $(java_major)"; exit 0; fi
may_install || missing "Java $oldest to $newest (Debian or Ubuntu: apt-get install openjdk-17-jre-headless)"
would "install Java $oldest to $newest by apt-get" && exit 0
apt_update
for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
  if has_candidate "$package"; then apt_install "$package"; break; fi
done
enough || missing "Java $oldest to $newest first on PATH (found $(command -v java || echo none) $(java_major))"
