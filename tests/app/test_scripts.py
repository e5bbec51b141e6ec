"""``./relaycast`` makes its environment once, whole or not at all, and says in one line what goes wrong.

Stand-ins for Python and uv make the environment here, so that nothing is installed: they play ``-m venv``, ``-m pip``
and ``uv``. Every test runs with uv on the PATH, with pip alone and, in the slow suite, with uv that pip brings.
"""

import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

KEEPS = '"${PYTHONDONTWRITEBYTECODE-keeps bytecode}"'

SCRIPT = f"""#!/bin/sh\\necho "relaycast runs: $*"\\necho {KEEPS} "$1" >> "$FAKE_LOG.runs"\\n"""

RELAYCAST = f"""printf '{SCRIPT}' > "$bin/relaycast"
        chmod +x "$bin/relaycast" """

FAKE_PYTHON = f"""#!/bin/sh
# $0 is called as Python is: it knows -c (the version check), -V, -m venv and -m pip.
case "$1 ${{2-}}" in
    "-c "*) exit ${{FAKE_TOO_OLD:-0}} ;;
    "-V "*) echo "Python 3.9.1" ;;
    "-m venv")
        for last; do :; done
        mkdir -p "$last/bin"
        cp "$0" "$last/bin/python" ;;
    "-m pip")
        [ "$3" != --version ] || exit 0
        [ "$3" != config ] || {{ printf '%s\n' "${{FAKE_PIP_CONFIG-}}"; exit 0; }}
        echo pip "$@" >> "$FAKE_LOG"
        for last; do :; done
        bin=$(dirname "$0")
        if [ "$last" = uv ] && [ -n "${{FAKE_NO_UV-}}" ]; then echo "ERROR: no uv" >&2; exit 1; fi
        [ -z "${{FAKE_SLOW-}}" ] || {{ : > "$FAKE_LOG.begun"; sleep "$FAKE_SLOW" & wait; }}
        [ -z "${{FAKE_FULL-}}" ] || {{ echo "could not write to a.jar: No space left on device" >&2; FAKE_FAILS=1; }}
        [ -z "${{FAKE_FAILS-}}" ] || {{ echo "ERROR: no matching distribution" >&2; exit 1; }}
        if [ "$last" = uv ]; then cp "$FAKE_UV" "$bin/uv"; exit; fi
        {RELAYCAST};;
esac
"""

FAKE_UV = f"""#!/bin/sh
# It knows venv and pip install, and finds no Python.
echo uv "$@" >> "$FAKE_LOG"
case "$1" in
    python) exit 1 ;;
    venv)
        for last; do :; done
        mkdir -p "$last/bin"
        cp "$4" "$last/bin/python" ;;
    pip)
        bin=$(dirname "$5")
        [ -z "${{FAKE_SLOW_UV-}}" ] || {{ : > "$FAKE_LOG.begun"; sleep "$FAKE_SLOW_UV" & wait; }}
        [ -z "${{UV_CACHE_DIR-}}" ] || {{ echo "$UV_CACHE_DIR" > "$FAKE_LOG.cache"; mkdir "$UV_CACHE_DIR"; }}
        [ -z "${{FAKE_UV_FAILS-}}" ] || {{ echo "error: no solution found" >&2; exit 2; }}
        {RELAYCAST};;
esac
"""

TOOLS = (
    "cat", "chmod", "cksum", "cp", "date", "dirname", "env", "grep", "mkdir", "mktemp", "mv", "readlink", "rm", "sh",
    "sleep", "tail",
)  # fmt: skip
"""All that a start may need beside Python."""

UV_THERE, UV_BROUGHT, PIP_ALONE = "uv on the PATH", "uv brought by pip", "pip alone"


@pytest.fixture(params=[UV_THERE, pytest.param(UV_BROUGHT, marks=pytest.mark.slow), PIP_ALONE])
def installer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What installs."""
    if request.param == PIP_ALONE:
        monkeypatch.setitem(CHOSEN, "FAKE_NO_UV", "yes")
    return str(request.param)


CHOSEN: dict[str, str] = {}
"""What every start of a test is told by the environment."""


@pytest.fixture
def clone(tmp_path: Path, installer: str) -> Path:
    place = tmp_path / "a clone"
    (place / "app").mkdir(parents=True)
    for name in ("relaycast", "app/prepare.sh", "pyproject.toml"):
        shutil.copy(ROOT / name, place / name)
    programs = tmp_path / "bin"
    programs.mkdir()
    fakes = {programs / "python3": FAKE_PYTHON, tmp_path / "uv": FAKE_UV}
    if installer == UV_THERE:
        fakes[programs / "uv"] = FAKE_UV
    for fake, script in fakes.items():
        fake.write_text(script)
        fake.chmod(0o755)
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found
        (programs / tool).symlink_to(found)
    return place


def environment(clone: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": str(clone.parent / "bin"),
        "FAKE_LOG": str(clone.parent / "log"),
        "FAKE_UV": str(clone.parent / "uv"),
        "TMPDIR": str(clone.parent),
        **CHOSEN,
        **more,
    }


def start(clone: Path, *arguments: str, command: Path | None = None, **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(command or clone / "relaycast"), *arguments],
        env=environment(clone, **more),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def calls(clone: Path) -> list[str]:
    """Return what pip and uv were called with."""
    log = clone.parent / "log"
    return log.read_text().splitlines() if log.exists() else []


def installs(clone: Path) -> int:
    """Return how many times relaycast was installed."""
    return sum("--editable" in call for call in calls(clone))


def slow(seconds: int) -> dict[str, str]:
    """Let every installer take so long."""
    return {"FAKE_SLOW": str(seconds), "FAKE_SLOW_UV": str(seconds)}


def leftovers(clone: Path) -> list[str]:
    return sorted(entry.name for entry in clone.iterdir() if entry.name.startswith(".venv"))


def begun(clone: Path) -> None:
    for _ in range(200):
        if (clone.parent / "log.begun").exists():
            return
        time.sleep(0.05)
    raise AssertionError("the install did not begin")


def test_the_first_start_installs_and_says_so_in_one_line(clone: Path) -> None:
    first = start(clone, "trie", "root", "-")
    assert first.stdout == "relaycast runs: trie root -\n"
    assert first.stderr.startswith("relaycast: installing relaycast into .venv, once ... done in ")
    assert first.stderr.count("\n") == 1
    assert leftovers(clone) == [".venv"]


def test_the_second_start_installs_nothing_and_says_nothing(clone: Path) -> None:
    start(clone)
    second = start(clone, "demo")
    assert (second.stdout, second.stderr, installs(clone)) == ("relaycast runs: demo\n", "", 1)


def test_the_first_start_lets_python_keep_what_it_compiles(clone: Path) -> None:
    for _ in range(2):
        start(clone, "trie", PYTHONDONTWRITEBYTECODE="1")
    assert (clone.parent / "log.runs").read_text().splitlines() == ["keeps bytecode demo", "1 trie", "1 trie"]
    assert not list(clone.parent.glob("relaycast-*"))


def test_uv_installs_where_it_can_be_had(clone: Path, installer: str) -> None:
    start(clone)
    (install,) = (call for call in calls(clone) if "--editable" in call)
    assert install.startswith("pip " if installer == PIP_ALONE else "uv ")
    assert any(call.endswith(" uv") for call in calls(clone)) is (installer != UV_THERE)


def test_pip_installs_where_uv_fails(clone: Path) -> None:
    assert start(clone, "demo", FAKE_UV_FAILS="1").stdout == "relaycast runs: demo\n"
    assert calls(clone)[-1].startswith("pip ")
    assert leftovers(clone) == [".venv"]


SET_FOR_PIP = """\
:env:.find-links='/wheels'
global.index-url='mirror:/simple'
global.extra-index-url='\\nmore:/simple\\nmost:/simple'
global.find-links='/other wheels'
global.timeout='60'
"""


@pytest.mark.parametrize("installer", [UV_BROUGHT], indirect=True)
def test_a_uv_that_pip_brought_asks_where_pip_asks(clone: Path) -> None:
    start(clone, FAKE_PIP_CONFIG=SET_FOR_PIP)
    *_, options = calls(clone)[-1].partition("/python ")
    assert options == (
        "--find-links /wheels --index most:/simple --index more:/simple --default-index mirror:/simple "
        f"--editable {clone}"
    )


@pytest.mark.parametrize("installer", [UV_BROUGHT], indirect=True)
@pytest.mark.parametrize("failing", ["", "1"], ids=["installed", "failed"])
def test_a_uv_that_pip_brought_leaves_no_cache(clone: Path, failing: str) -> None:
    start(clone, FAKE_UV_FAILS=failing)
    cache = clone / ".venv" / "uv-cache"
    assert (clone.parent / "log.cache").read_text() == f"{cache}\n"
    assert not cache.exists()


@pytest.mark.parametrize("installer", [UV_BROUGHT], indirect=True)
def test_pip_installs_where_it_may_ask_no_index(clone: Path) -> None:
    start(clone, FAKE_PIP_CONFIG=":env:.no-index='1'")
    assert not [call for call in calls(clone) if call.startswith("uv")]
    assert installs(clone) == 1


def test_it_works_through_a_link(clone: Path) -> None:
    (clone.parent / "elsewhere").mkdir()
    link = clone.parent / "elsewhere" / "rc"
    link.symlink_to(Path("..") / clone.name / "relaycast")
    assert start(clone, "demo", command=link).stdout == "relaycast runs: demo\n"
    assert leftovers(clone) == [".venv"]


def test_a_changed_pyproject_installs_again_into_the_same_environment(clone: Path) -> None:
    start(clone)
    keepsake = clone / ".venv" / "keepsake"
    keepsake.touch()
    (clone / "pyproject.toml").write_text("[project]\n")
    assert start(clone).returncode == 0
    assert installs(clone) == 2
    assert keepsake.exists()


def test_an_environment_with_more_tools_serves_a_start_that_wants_fewer(clone: Path) -> None:
    script = 'set -u; root=$0 extras=$1; . "$0/app/prepare.sh"'
    seen = []
    for extras in ("-", "dev", "-", "dev,soak", "dev", "dev,soak"):
        subprocess.run(
            ["sh", "-c", script, str(clone), extras], env=environment(clone), check=True, capture_output=True
        )
        seen.append(((clone / ".venv" / ".relaycast").read_text().split()[0], installs(clone)))
    assert seen == [("-", 1), ("dev", 2), ("dev", 2), ("dev,soak", 3), ("dev,soak", 3), ("dev,soak", 3)]
    (clone / "pyproject.toml").write_text("[project]\n")
    assert start(clone).returncode == 0
    assert (clone / ".venv" / ".relaycast").read_text().startswith("dev,soak ")


def test_a_moved_clone_installs_again(clone: Path) -> None:
    start(clone)
    moved = clone.rename(clone.parent / "moved")
    assert start(moved).returncode == 0
    assert installs(moved) == 2


def test_an_environment_that_a_user_made_is_kept(clone: Path) -> None:
    (clone / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(clone.parent / "bin" / "python3", clone / ".venv" / "bin" / "python")
    (clone / ".venv" / "mine").touch()
    assert start(clone, FAKE_FAILS="1", FAKE_UV_FAILS="1").returncode == 2
    assert (clone / ".venv" / "mine").exists()
    assert start(clone).returncode == 0
    assert (clone / ".venv" / "mine").exists()


def test_an_old_python_is_refused_in_one_line(clone: Path) -> None:
    refused = start(clone, FAKE_TOO_OLD="1")
    assert refused.returncode == 2
    assert refused.stderr == (
        "relaycast: installing relaycast into .venv, once ... "
        "Python 3.9.1 found, 3.11 or newer is needed: install one, or name it in RELAYCAST_PYTHON\n"
    )
    assert leftovers(clone) == []


def test_a_failed_install_says_why_in_one_line_and_leaves_nothing(clone: Path) -> None:
    failed = start(clone, FAKE_FAILS="1", FAKE_UV_FAILS="1")
    assert failed.returncode == 2
    assert "install failed: ERROR: no matching distribution; the whole log is " in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert leftovers(clone) == []


def test_a_full_disk_is_named_before_the_errors_that_follow_from_it(clone: Path) -> None:
    failed = start(clone, FAKE_FULL="1", FAKE_UV_FAILS="1")
    assert "install failed: could not write to a.jar: No space left on device; the whole log is " in failed.stderr


def test_a_folder_that_cannot_be_written_is_named(clone: Path) -> None:
    mkdir = clone.parent / "bin" / "mkdir"
    mkdir.unlink()
    mkdir.write_text("#!/bin/sh\nexit 1\n")
    mkdir.chmod(0o755)
    refused = start(clone)
    assert refused.returncode == 2
    assert refused.stderr == (
        f"relaycast: cannot write in {clone}, where .venv would go: make it writable, or clone elsewhere\n"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("installer", "late"),
    [(UV_THERE, "FAKE_SLOW_UV"), (UV_BROUGHT, "FAKE_SLOW"), (UV_BROUGHT, "FAKE_SLOW_UV"), (PIP_ALONE, "FAKE_SLOW")],
    indirect=["installer"],
)
def test_an_interrupted_install_leaves_nothing_half_made(clone: Path, number: int, late: str) -> None:
    process = subprocess.Popen(
        [clone / "relaycast"], env=environment(clone, **{late: "30"}), stderr=subprocess.PIPE, text=True
    )
    begun(clone)
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert said.endswith("install interrupted, nothing is left half made\n")
    assert said.count("\n") == 1
    assert leftovers(clone) == []
    assert start(clone).returncode == 0


def test_of_two_starts_one_installs_and_both_run(clone: Path) -> None:
    starts = [
        subprocess.Popen(
            [clone / "relaycast", str(number)],
            env=environment(clone, **slow(1)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    said = [process.communicate(timeout=60) for process in starts]
    assert [out for out, _ in said] == ["relaycast runs: 0\n", "relaycast runs: 1\n"]
    assert installs(clone) == 1
    assert min(err for _, err in said) == "relaycast: another start is installing, waiting for it\n"
    assert leftovers(clone) == [".venv"]


def test_what_a_killed_start_left_is_cleared(clone: Path) -> None:
    (clone / ".venv" / "half").mkdir(parents=True)
    (clone / ".venv.lock").mkdir()
    (clone / ".venv.lock" / "fresh").touch()
    gone = subprocess.Popen(["true"])
    gone.wait()
    (clone / ".venv.lock" / "pid").write_text(f"{gone.pid}\n")
    assert start(clone, "demo").stdout == "relaycast runs: demo\n"
    assert not (clone / ".venv" / "half").exists()
    assert leftovers(clone) == [".venv"]
