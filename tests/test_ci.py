"""``.ci/run`` installs what a plain Debian lacks; stand-ins for the system's programs say what is asked of apt-get."""

import shutil
import subprocess
from pathlib import Path

import pytest

from rooms import ROOT

FAKE_PYTHON = """#!/bin/sh
# It has the modules and the header that FAKE_LACKS does not name.
case "$2" in
    *ensurepip*) [ "${FAKE_LACKS-}" != venv ] ;;
    *Python.h*) [ "${FAKE_LACKS-}" != header ] ;;
esac
"""
LOGS = '#!/bin/sh\necho "$@" >> "$FAKE_LOG"\n'
AS_ROOT = "#!/bin/sh\necho 0\n"


def asked_of_apt(folder: Path, lacks: str, python: str) -> list[str]:
    clone, programs, log = folder / "clone", folder / "bin", folder / "log"
    (clone / ".ci").mkdir(parents=True)
    programs.mkdir()
    shutil.copy(ROOT / ".ci/run", clone / ".ci/run")
    scripts = {clone / ".ci/peers": "#!/bin/sh\n", clone / "check": "#!/bin/sh\n", programs / "apt-get": LOGS}
    for file, text in {**scripts, programs / python: FAKE_PYTHON, programs / "id": AS_ROOT}.items():
        file.write_text(text)
        file.chmod(0o755)
    for tool in ("bash", "dirname", "env", "ls", "sh", "timeout"):
        found = shutil.which(tool)
        assert found
        (programs / tool).symlink_to(found)
    variables = {"PATH": str(programs), "FAKE_LOG": str(log), "FAKE_LACKS": lacks}
    if python != "python3":
        variables["RELAYCAST_PYTHON"] = python
    subprocess.run([clone / ".ci/run"], env=variables, check=True, timeout=60)
    return log.read_text().split()


@pytest.mark.parametrize("python", ["python3", "python3.12"])
@pytest.mark.parametrize(
    ("lacks", "wanted"),
    [("venv", {"python3-venv"}), ("header", {"python3-dev"}), ("nothing", set())],
)
def test_what_python_lacks_is_installed(lacks: str, wanted: set[str], python: str, tmp_path: Path) -> None:
    asked = asked_of_apt(tmp_path, lacks, python)
    assert "nodejs" in asked
    assert {it for it in asked if it.startswith("python3")} == wanted
