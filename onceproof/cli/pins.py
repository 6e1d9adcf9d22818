"""Write harness/artifacts/hashes.json: the hashes of the releases below, and of the base images and Go modules.

    python -m onceproof.cli.pins harness/artifacts/hashes.json

Every release is downloaded into an empty folder by the clients that a run uses: Ivy, which compares each jar with the
checksum that Maven Central publishes, uv, Go and Docker. The digest of an image stays as it is if no registry answers.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from onceproof.harness.artifacts import jars, pins
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.base.paths import jars_dir

KAFKA = ("3.5.2", "3.7.0", "3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1")
# The newest version of each of these minor lines of confluent-kafka.
CLIENT_LINES = range(3, 17)
MODULES = ("github.com/Shopify/toxiproxy/v2@v2.12.0",)
_DEADLINE_S = 300


def main(arguments: Sequence[str]) -> int:
    """Write the file."""
    target = Path(*arguments)
    old: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as home:
        os.environ["ONCEPROOF_HOME"] = home
        pins.kept.cache_clear()
        pins.kept().update(releases=[], jars={})  # the hashes of today do not judge those that replace them
        for version in KAFKA:
            jars.kafka(version)
        jars.compiler()
        jars.jdbc()
        found = sorted(path for path in jars_dir().glob("*/*.jar") if not path.parent.name.startswith("."))
        content = {
            "releases": sorted({path.parent.name for path in found}),
            "jars": {path.name: pins.sha256(path) for path in found},
            "wheels": dict(_wheels()),
            "images": {name: _image(name, digest) for name, digest in old["images"].items()},
            "modules": {module: _module(module) for module in MODULES},
        }
    target.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


def _output(*command: str, given: str = "") -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)
    if done.returncode != 0:
        raise HarnessError(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
    return done.stdout


def _wheels() -> Iterator[tuple[str, list[str]]]:
    options = ("--quiet", "--no-deps", "--no-header", "--no-annotate", "--no-emit-index-url", "--generate-hashes", "-")
    for line in CLIENT_LINES:
        wanted = f"confluent-kafka>=2.{line},<2.{line + 1}"
        told = _output(sys.executable, "-m", "uv", "pip", "compile", *options, given=wanted)
        [version] = re.findall(r"==([\d.]+)", told)
        yield version, sorted(re.findall(r"--hash=(\S+)", told))


def _image(name: str, old: str) -> str:
    try:
        return _output("docker", "buildx", "imagetools", "inspect", "--format", "{{.Manifest.Digest}}", name).strip()
    except HarnessError as error:
        print(f"the digest of {name} stays as it is: {str(error).splitlines()[0]}", file=sys.stderr)  # noqa: T201
        return old


def _module(module: str) -> str:
    return str(json.loads(_output("go", "mod", "download", "-json", module))["Sum"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
