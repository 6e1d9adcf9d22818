"""Jars from Maven Central, by coordinates, each set in a folder of its own under the cache.

PySpark ships Apache Ivy; it resolves what a POM asks for without Maven being installed. Its settings name Central
alone, by Ivy's own default address, so that nothing of the machine's other repositories gets mixed in.

    kafka("4.3.1")         → ~/.cache/onceproof/jars/kafka-4.3.1         (a broker, its tools, the Java client)
    compiled("source", …)  → ~/.cache/onceproof/jars/source-<hash>.jar   (ours, from its Java, by Eclipse's compiler)
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from filelock import FileLock

from onceproof.harness.base.errors import BadInput, HarnessError
from onceproof.harness.base.paths import jars_dir

_SETTINGS = """<ivysettings><settings defaultResolver="central"/>
<resolvers><ibiblio name="central" m2compatible="true" usepoms="true"/></resolvers></ivysettings>
"""
_FETCH_DEADLINE_S = 600
_COMPILE_DEADLINE_S = 120
_ECJ = "3.37.0"
_COMPILE = ("-source", "17", "-target", "17", "-proc:none", "-nowarn")
COMPILER = f"ecj-{_ECJ}"


def kafka(version: str) -> Path:
    """The jars of one Kafka release: broker, controller, tools, clients, and a logging backend.

    Raises BadInput when Maven Central does not have that version.
    """
    release(version)
    coordinates = [f"org.apache.kafka:kafka_2.13:{version}", f"org.apache.kafka:kafka-tools:{version}"]
    if version.startswith("4."):
        log4j = "org.apache.logging.log4j"
        coordinates += [f"{log4j}:{name}:2.24.3" for name in ("log4j-slf4j-impl", "log4j-core", "log4j-1.2-api")]
        coordinates += ["com.fasterxml.jackson.dataformat:jackson-dataformat-yaml:2.16.2"]
    else:
        coordinates += ["org.slf4j:slf4j-reload4j:1.7.36", "ch.qos.reload4j:reload4j:1.2.25"]
    return _fetch(f"kafka-{version}", coordinates)


def _compiler() -> Path:
    """Eclipse's Java compiler, which a runtime without a compiler of its own can run."""
    return _fetch(COMPILER, [f"org.eclipse.jdt:ecj:{_ECJ}"]) / f"{COMPILER}.jar"


def compiled(name: str, sources: Sequence[Path], classpath: Sequence[Path]) -> Path:
    """A jar of these Java files, compiled once for what they and the class path say.

    Raises HarnessError with what the compiler says when they do not compile, or why it did not run.
    """
    said = hashlib.sha256(" ".join((COMPILER, *_COMPILE)).encode())
    for path in sources:
        said.update(path.read_bytes())
    for jar in sorted(jar.name for jar in classpath):
        said.update(jar.encode())
    target = jars_dir() / f"{name}-{said.hexdigest()[:8]}.jar"
    if target.exists():
        return target
    ecj = _compiler()
    with FileLock(jars_dir() / f".{name}.lock", timeout=_FETCH_DEADLINE_S):
        if not target.exists():
            _compile(ecj, sources, classpath, target)
    return target


def _compile(ecj: Path, sources: Sequence[Path], classpath: Sequence[Path], target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=jars_dir()) as folder:
        classes = Path(folder) / "classes"
        done = _java(
            f"the compiler of {sources[0].name}",
            _COMPILE_DEADLINE_S,
            ecj,
            *_COMPILE,
            "-d",
            classes,
            "-classpath",
            os.pathsep.join(map(str, classpath)),
            *sources,
        )
        if done.returncode != 0:
            raise HarnessError(f"{sources[0].name} and the others do not compile: {done.stderr[-1000:]}")
        made = Path(folder) / target.name
        with zipfile.ZipFile(made, "w") as jar:
            for path in sorted(classes.rglob("*.class")):
                jar.write(path, path.relative_to(classes))
        made.replace(target)


def fetched(name: str) -> bool:
    """Whether a set (`kafka-4.3.1`) is in the cache."""
    return (jars_dir() / name).is_dir()


def _fetch(name: str, coordinates: Sequence[str]) -> Path:
    target = jars_dir() / name
    if target.is_dir():
        return target
    jars_dir().mkdir(parents=True, exist_ok=True)
    with FileLock(jars_dir() / f".{name}.lock", timeout=_FETCH_DEADLINE_S):
        if not target.is_dir():
            _retrieve(name, coordinates, target)
    return target


def release(text: str) -> str:
    """A release by its number, or the newest of its kind as Maven Central has it now: `latest`, `latest-1` (of the
    minor line before that), `4.1.x`. Raises BadInput for anything else."""
    line = re.fullmatch(r"([34]\.\d+)\.x", text)
    back = re.fullmatch(r"latest(?:-(\d))?", text)
    if line:
        return _newest(f"{line[1]}.+")
    if not back:
        if not re.fullmatch(r"[34]\.\d+\.\d+", text):
            raise BadInput(f"kafka version {text!r}: allowed: a release such as 4.3.1, 4.1.x, latest, latest-1")
        return text
    newest = _newest("latest.release")
    if not back[1]:
        return newest
    major, minor = (int(part) for part in newest.split(".")[:2])
    if int(back[1]) > minor:
        raise BadInput(f"kafka version {text!r}: {newest} has only {minor} minor lines before it")
    return _newest(f"{major}.{minor - int(back[1])}.+")


def _newest(revision: str) -> str:
    """The version that Ivy finds for a revision with a choice in it. One jar is fetched for it: that of the tools,
    since they need what the brokers need, and a release may be there in part when it is new."""
    jars_dir().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jars_dir()) as folder:
        _resolve(f"Kafka {revision}", [f"org.apache.kafka:kafka-tools:{revision}"], Path(folder), whole=False)
        [found] = (Path(folder) / "libs").glob("kafka-tools-*.jar")
        return found.stem.removeprefix("kafka-tools-")


def _retrieve(name: str, coordinates: Sequence[str], target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=jars_dir()) as folder:
        _resolve(name, coordinates, Path(folder))
        shutil.move(Path(folder) / "libs", target)


def _resolve(name: str, coordinates: Sequence[str], work: Path, *, whole: bool = True) -> None:
    """Fetch jars into `libs`; `whole`: with all that they need. Raises BadInput when Central does not have them."""
    dependencies = "".join(
        '<dependency org={} name={} rev={} transitive="{}"/>'.format(
            *map(quoteattr, coordinate.split(":")), str(whole).lower()
        )
        for coordinate in coordinates
    )
    module = (
        f'<ivy-module version="2.0"><info organisation="onceproof" module={quoteattr(name)} revision="1"/>'
        f'<configurations><conf name="default"/></configurations>'
        f'<dependencies defaultconfmapping="default->{"default" if whole else "master"}">{dependencies}</dependencies>'
        f"</ivy-module>"
    )
    (work / "settings.xml").write_text(_SETTINGS)
    (work / "ivy.xml").write_text(module)
    done = _java(
        f"{name}: Ivy",
        _FETCH_DEADLINE_S,
        _ivy(),
        "-settings",
        work / "settings.xml",
        "-ivy",
        work / "ivy.xml",
        "-cache",
        jars_dir() / ".ivy",
        "-types",
        "jar",
        "bundle",
        "-retrieve",
        work / "libs" / "[artifact]-[revision].[ext]",
    )
    if done.returncode != 0:
        absent = re.findall(r":: ([\w.]+#[\w.-]+;[\w.+]+): not found", done.stdout)
        if absent:
            raise BadInput(f"{name}: Maven Central does not have {absent[0]}")
        raise HarnessError(f"{name}: Ivy could not fetch its jars: {done.stdout[-500:]}{done.stderr[-300:]}")


def _java(what: str, deadline_s: float, jar: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a jar. Raises HarnessError when it cannot begin, or does not end in time; its status is the caller's."""
    command = ["java", "-jar", *map(str, (jar, *arguments))]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=deadline_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{what} did not run to its end: {error}") from error


def of_pyspark() -> list[Path]:
    """The jars that PySpark ships. Raises HarnessError when it is not installed."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise HarnessError("pyspark is not installed; its jars are needed to fetch others, and to read topics")
    return sorted(Path(spec.submodule_search_locations[0], "jars").glob("*.jar"))


def _ivy() -> Path:
    return next(jar for jar in of_pyspark() if jar.name.startswith("ivy-"))
