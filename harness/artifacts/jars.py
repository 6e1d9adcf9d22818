"""Downloads jars from Maven Central into the cache, and compiles the Java sources of onceproof.

    kafka("4.3.1")         → ~/.cache/onceproof/jars/kafka-4.3.1         (brokers, tools, the Java client)
    compiled("source", …)  → ~/.cache/onceproof/jars/source-<hash>.jar   (from Java sources, by Eclipse's compiler)

Apache Ivy, which PySpark contains, resolves the dependencies, so that Maven is not needed. Its settings name Maven
Central only, so that other repositories that are configured on the machine are not used. The jars are compared with the
hashes of known releases (`pins`) before they are used.
"""

import hashlib
import importlib.util
import logging
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from filelock import FileLock

from onceproof.harness.artifacts import pins
from onceproof.harness.base import work
from onceproof.harness.base.errors import BadInput, HarnessError
from onceproof.harness.base.paths import jars_dir, made

_SETTINGS = """<ivysettings><settings defaultResolver="central"/>
<resolvers><ibiblio name="central" m2compatible="true" usepoms="true"/></resolvers></ivysettings>
"""
_FETCH_DEADLINE_S = 600
_COMPILE_DEADLINE_S = 120
_ABSENT = re.compile(r":: ([\w.]+#[\w.-]+;[\w.+]+): not found")
_NO_ANSWER = re.compile(
    r"Host \S+ not found\.|Server access error .*|SERVER ERROR: .*|Your proxy requires authentication"
)
_REASON_MAX, _SAID_MAX = 200, 800
_ECJ = "3.37.0"
_COMPILE = ("-source", "17", "-target", "17", "-proc:none", "-nowarn")
_POSTGRESQL = "42.7.7"
_SQLITE = "3.50.3.0"
COMPILER = f"ecj-{_ECJ}"
_log = logging.getLogger(__name__)


def kafka(version: str) -> Path:
    """Return the folder with the jars of a Kafka release: server, tools, clients and a logging backend.

    Missing jars are downloaded. Raises BadInput for a version that Maven Central does not have, and HarnessError when
    the download fails or a jar has a wrong hash.
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


def artifacts(coordinates: Sequence[str]) -> Path:
    """Return the folder with artifacts of Maven Central, each given as `group:name:version`, and their dependencies.

    Raises BadInput for one that Maven Central does not have, and HarnessError when the download fails.
    """
    first = "-".join(coordinates[0].split(":")[1:])
    digest = hashlib.sha256(" ".join(sorted(coordinates)).encode()).hexdigest()[:8]
    return _fetch(f"{first}-{digest}", coordinates)


def compiler() -> Path:
    """Return the jar of Eclipse's Java compiler, which also runs on a Java runtime without a compiler."""
    return _fetch(COMPILER, [f"org.eclipse.jdt:ecj:{_ECJ}"]) / f"{COMPILER}.jar"


def compiled(name: str, sources: Sequence[Path], classpath: Sequence[Path]) -> Path:
    """Return a jar of the classes of these Java files, compiled unless the cache has it.

    The name of the jar contains a hash of the sources, the compiler with its options, and the names of the jars on the
    class path. Raises HarnessError with the compiler's messages, or with the reason for which it did not run.
    """
    digest = hashlib.sha256(" ".join((COMPILER, *_COMPILE)).encode())
    for path in sources:
        digest.update(path.read_bytes())
    for jar in sorted(jar.name for jar in classpath):
        digest.update(jar.encode())
    target = jars_dir() / f"{name}-{digest.hexdigest()[:8]}.jar"
    if target.exists():
        return target
    ecj = compiler()
    with FileLock(jars_dir() / f".{name}.lock", timeout=_FETCH_DEADLINE_S):
        if not target.exists():
            _compile(ecj, sources, classpath, target)
    return target


def _compile(ecj: Path, sources: Sequence[Path], classpath: Sequence[Path], target: Path) -> None:
    with work.folder(jars_dir()) as folder:
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


def jdbc() -> list[Path]:
    """Return the jars of the JDBC drivers of PostgreSQL and SQLite. Raises HarnessError when the download fails."""
    postgresql = _fetch(f"postgresql-{_POSTGRESQL}", [f"org.postgresql:postgresql:{_POSTGRESQL}"])
    sqlite = _fetch(f"sqlite-jdbc-{_SQLITE}", [f"org.xerial:sqlite-jdbc:{_SQLITE}"])
    return [postgresql / f"postgresql-{_POSTGRESQL}.jar", sqlite / f"sqlite-jdbc-{_SQLITE}.jar"]


def fetched(name: str) -> bool:
    """Return whether a set of jars, such as `kafka-4.3.1`, is in the cache."""
    return (jars_dir() / name).is_dir()


def _fetch(name: str, coordinates: Sequence[str]) -> Path:
    target = jars_dir() / name
    if target.is_dir():
        return target
    with FileLock(made(jars_dir()) / f".{name}.lock", timeout=_FETCH_DEADLINE_S):
        if not target.is_dir():
            _log.info("downloading the jars %s from Maven Central", name)
            _retrieve(name, coordinates, target)
    return target


def release(text: str) -> str:
    """Return the number of a Kafka release that is given by its number or as the newest one of a kind.

    `latest` is the newest release in Maven Central, `latest-1` the newest one of the previous minor line, and `4.1.x`
    the newest one of the line 4.1. Raises BadInput for anything else.
    """
    line = re.fullmatch(r"([34]\.[0-9]{1,3})\.x", text)
    back = re.fullmatch(r"latest(?:-([0-9]))?", text)
    if line:
        return _newest(f"{line[1]}.+")
    if not back:
        if not re.fullmatch(r"[34]\.[0-9]{1,3}\.[0-9]{1,3}", text):
            raise BadInput(f"kafka version {text!r}: allowed: a release such as 4.3.1, 4.1.x, latest, latest-1")
        return text
    newest = _newest("latest.release")
    if not back[1]:
        return newest
    major, minor = (int(part) for part in newest.split(".")[:2])
    if int(back[1]) > minor:
        raise BadInput(f"kafka version {text!r}: {newest} has only {minor} earlier minor lines")
    return _newest(f"{major}.{minor - int(back[1])}.+")


def _newest(revision: str) -> str:
    """Return the version that Ivy chooses for a dynamic revision such as `4.1.+`.

    The jar of the tools is downloaded for it, because the tools depend on the jars of the brokers and a new release may
    be published in parts.
    """
    with work.folder(made(jars_dir())) as folder:
        _resolve(f"Kafka {revision}", [f"org.apache.kafka:kafka-tools:{revision}"], Path(folder), whole=False)
        [found] = (Path(folder) / "libs").glob("kafka-tools-*.jar")
        return found.stem.removeprefix("kafka-tools-")


def _retrieve(name: str, coordinates: Sequence[str], target: Path) -> None:
    with work.folder(jars_dir()) as folder:
        _resolve(name, coordinates, Path(folder))
        libs = Path(folder) / "libs"
        try:
            pins.check_jars(name, sorted(libs.glob("*.jar")))
        except HarnessError:
            shutil.rmtree(jars_dir() / ".ivy", ignore_errors=True)  # it has a copy of what is refused
            raise
        shutil.move(libs, target)


def _resolve(name: str, coordinates: Sequence[str], work: Path, *, whole: bool = True) -> None:
    """Download jars into `work`/libs; `whole` includes their dependencies.

    Raises BadInput when Maven Central does not have a jar, and HarnessError when the download fails.
    """
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
        raise _failure(name, done.stdout + done.stderr)


def _failure(name: str, said: str) -> BadInput | HarnessError:
    """Return the error for what Ivy said when it failed.

    Ivy says of each module that it is not found, also if the server could not be asked.
    """
    if reason := _NO_ANSWER.search(said):
        return HarnessError(f"{name}: Maven Central did not answer: {' '.join(reason[0].split())[:_REASON_MAX]}")
    if absent := _ABSENT.search(said):
        return BadInput(f"{name}: Maven Central does not have {absent[1]}")
    return HarnessError(f"{name}: Ivy could not download the jars: {' '.join(said.split())[-_SAID_MAX:]}")


def _java(what: str, deadline_s: float, jar: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a jar and return its result, whatever its exit status is.

    Raises HarnessError, which names the program as `what`, when it cannot be started or does not end in time.
    """
    command = ["java", "-jar", *map(str, (jar, *arguments))]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=deadline_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{what} failed: {error}") from error


def pyspark() -> Path:
    """Return the folder of PySpark, which has Spark's jars. Raises HarnessError when PySpark is not installed."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise HarnessError("pyspark is not installed; its jars are needed to download jars and to read topics")
    return Path(spec.submodule_search_locations[0])


def of_pyspark() -> list[Path]:
    """Return the jars that PySpark contains, sorted. Raises HarnessError when PySpark is not installed."""
    return sorted((pyspark() / "jars").glob("*.jar"))


def _ivy() -> Path:
    return next(jar for jar in of_pyspark() if jar.name.startswith("ivy-"))
