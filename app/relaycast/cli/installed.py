"""What is installed here, what is fast and what is slow, and how to fix what is neither.

Law: nothing is changed or compiled by looking. Only what no verb can do without is ``broken``; all else is a verb or a
speed that is missing, and says which.
"""

import importlib
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct
from packaging.requirements import Requirement
from packaging.version import InvalidVersion

from relaycast.refusal import one_line
from relaycast_trie.extras import install_command, module_of

OLDEST_PYTHON = (3, 11)

INSTALL_AGAIN = "remove .venv and run ./relaycast again, or pip install --force-reinstall -e . in the clone"

EXTRAS = {
    "spark": "--engine spark of run, sweep, prove and verify-proofs",
    "wasm": "runtime show, call and diff, and chains with runtimes of their own",
    "experiments": "charts of bench E1 to E22",
    "bench": "Ethereum's trie beside ours in bench engine",
    "mqtt": "events to MQTT",
    "nats": "events to NATS",
    "kafka": "events to Kafka",
    "amqp": "events to AMQP 1.0",
    "soak": "mutants in ./check --soak",
    "docs": "the documentation site and its notebooks",
    "dev": "./check",
}
"""What each extra is for."""


class Health(StrEnum):
    """How it stands with one thing."""

    OK = "ok"
    SLOW = "slow"
    MISSING = "missing"
    BROKEN = "broken"


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was looked at: what was found, and how to ``fix`` it where that is needed."""

    name: str
    state: Health
    found: str
    fix: str = ""
    needed_for: str = ""


def examine() -> list[Finding]:
    """Look at everything; takes a second or two, for packages are loaded to see whether they do."""
    return [_python(), *_packages(), *_engine(), _java(), _node(), _folder(), _machine()]


def _python() -> Finding:
    version = platform.python_version()
    state = Health.OK if sys.version_info >= OLDEST_PYTHON else Health.BROKEN
    fix = "" if state is Health.OK else f"install Python {'.'.join(map(str, OLDEST_PYTHON))} or newer"
    return Finding(name="python", state=state, found=f"{version} at {sys.executable}", fix=fix)


def _packages() -> Iterator[Finding]:
    try:
        required = [Requirement(text) for text in importlib.metadata.requires("relaycast") or []]
    except importlib.metadata.PackageNotFoundError:
        found = "relaycast runs without being installed"
        yield Finding(name="packages", state=Health.SLOW, found=found, fix="pip install -e . in its folder")
        return
    always = [it for it in required if _is_wanted(it)]
    yield _package_set("packages", always, load=True)
    for extra, purpose in EXTRAS.items():
        wanted = [it for it in required if it not in always and _is_wanted(it, extra)]
        finding = _package_set(f"extra {extra}", wanted, load=False)
        if finding.state is Health.BROKEN:
            fix = install_command(extra)
            finding = Finding(name=finding.name, state=Health.MISSING, found=finding.found, fix=fix, needed_for=purpose)
        yield finding


def _is_wanted(requirement: Requirement, extra: str = "") -> bool:
    """Whether it belongs to this Python, with ``extra``."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _package_set(name: str, requirements: Iterable[Requirement], *, load: bool) -> Finding:
    versions: list[str] = []
    slips: list[str] = []
    for requirement in requirements:
        slip, version = _slip(requirement, load=load)
        versions.append(f"{requirement.name} {version}")
        slips += [slip] if slip else []
    if slips:
        return Finding(name=name, state=Health.BROKEN, found="; ".join(slips), fix=INSTALL_AGAIN)
    return Finding(name=name, state=Health.OK, found=", ".join(versions))


def _slip(requirement: Requirement, *, load: bool) -> tuple[str, str]:
    """Return what is wrong with a package, and its version."""
    package = requirement.name
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return f"{package} is not installed", ""
    if not fits(version, requirement):
        return f"{package} {version} does not fit {package}{requirement.specifier}", version
    if load:
        try:
            importlib.import_module(module_of(package))
        except Exception as error:
            return f"{package} {version} does not load ({one_line(str(error))[:80]})", version
    return "", version


def fits(version: str, requirement: Requirement) -> bool:
    """Whether a version is one that is asked for; pre-releases are, and what is no version is not."""
    try:
        return requirement.specifier.contains(version, prereleases=True)
    except InvalidVersion:
        return False


def _engine() -> Iterator[Finding]:
    try:
        from relaycast.scenario.policy_choice import walked_plainly  # noqa: PLC0415
        from relaycast_trie.array.warm_up import kept_code  # noqa: PLC0415 - loads the compiler

        code = kept_code()
    except ImportError as error:
        yield Finding(name="array engine", state=Health.BROKEN, found=one_line(str(error)), fix=INSTALL_AGAIN)
        return
    for switch, on in (("NUMBA_DISABLE_JIT", not code.compiled), ("NUMBA_BOUNDSCHECK", code.checked and code.compiled)):
        if on:
            yield Finding(name="array engine", state=Health.SLOW, found=f"{switch} is set", fix=f"unset {switch}")
    plainly = f"passes in plain Python, whatever the engine: {', '.join(walked_plainly())}"
    yield Finding(name="policies", state=Health.OK, found=plainly)
    vectors = "AVX-512" if code.lanes == 8 else "no AVX-512"
    found = f"{vectors}: {code.lanes} hashes at once, {'masked' if code.masked else 'plain'} copies"
    yield Finding(name="cpu", state=Health.OK, found=found)
    place = "nowhere" if code.folder is None else str(code.folder)
    found = f"{code.kept} of {code.kernels} kernels compiled in {place}"
    if code.folder is None or not code.writable:
        fix = "make the folder writable, or let NUMBA_CACHE_DIR name one that is"
        found += f"; it cannot be written to: every process compiles anew, {_compile_time()}"
        yield Finding(name="compiled code", state=Health.SLOW, found=found, fix=fix)
    elif code.kept < code.kernels:
        found += f"; the first large trie waits for the others, {_compile_time()}"
        yield Finding(name="compiled code", state=Health.SLOW, found=found, fix="relaycast doctor --warm-up")
    else:
        yield Finding(name="compiled code", state=Health.OK, found=found)


def _compile_time() -> str:
    from relaycast_trie.engine import COMPILE_SECONDS, measured_compile_seconds  # noqa: PLC0415

    measured = measured_compile_seconds()
    return f"{COMPILE_SECONDS:.0f} s on two cores" if measured is None else f"{measured:.0f} s the last time"


def _java() -> Finding:
    from relaycast_spark.exceptions import SparkUnavailable  # noqa: PLC0415
    from relaycast_spark.session import INSTALL_JAVA, require_java  # noqa: PLC0415

    purpose = EXTRAS["spark"]
    try:
        return Finding(name="java", state=Health.OK, found=f"Java {require_java()}", needed_for=purpose)
    except SparkUnavailable as error:
        found = str(error).partition(INSTALL_JAVA)[0].rstrip(" :;,(")
        return Finding(name="java", state=Health.MISSING, found=found, fix=INSTALL_JAVA, needed_for=purpose)


def _node() -> Finding:
    from relaycast.bench import chopsticks  # noqa: PLC0415

    purpose = "smoldot's trie in bench engine --backends chopsticks, and pytest -m oracle"
    why = chopsticks.missing()
    if not why:
        return Finding(name="node", state=Health.OK, found=f"{chopsticks.PACKAGE} is there", needed_for=purpose)
    fix = f"npm install {chopsticks.PACKAGE} in a folder, and let RELAYCAST_ORACLE name it"
    return Finding(name="node", state=Health.MISSING, found=why.partition(", expected")[0], fix=fix, needed_for=purpose)


def _folder() -> Finding:
    here = Path.cwd()
    if os.access(here, os.W_OK):
        free = shutil.disk_usage(here).free >> 20
        return Finding(name="folder", state=Health.OK, found=f"{here} can be written to, {free:,} MiB are free")
    found, fix = f"{here} cannot be written to", "go where you may write, or give demo and run --out FOLDER"
    return Finding(name="folder", state=Health.MISSING, found=found, fix=fix, needed_for="what demo and run write")


def _machine() -> Finding:
    return Finding(name="machine", state=Health.OK, found=f"{platform.platform()}, {os.cpu_count() or 1} CPUs")
