"""The house as it stands: rooms on one slope, compiled code and Spark in their corners, nothing else in the root."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
import yaml

from rooms import PACKAGES, PROJECT, ROOMS, ROOT, closed_to

WITHOUT_CIRCLES = ROOMS
"""The rooms whose files are known not to import one another in a circle."""

IN_THE_ROOT = {
    *ROOMS,
    "benches",
    "tests",
    "docs",
    "mkdocs.yml",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "relaycast",
    "check",
    ".ci",
    ".gitignore",
}

LINES_OF_A_FUNCTION = 80
LONG_FOR_A_REASON = {
    "trie/relaycast_trie/kernels/compact.py: encode_walk": "one compiled loop: a call inside would copy its state",
    "trie/relaycast_trie/kernels/side_by_side.py: walk_side_by_side": "thirty arguments, and one loop over the keys",
}
"""Functions that are longer, and why."""


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def sources(*rooms: str) -> list[Path]:
    return [file for room in rooms for file in sorted((ROOT / room).rglob("*.py"))]


@cache
def imports(file: Path) -> list[ast.Import | ast.ImportFrom]:
    """Return the imports of ``file``, wherever in it."""
    return [node for node in ast.walk(parsed(file)) if isinstance(node, ast.Import | ast.ImportFrom)]


def imported(file: Path) -> Iterator[str]:
    """Yield the dotted name of every module that ``file`` imports."""
    for node in imports(file):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        else:
            assert node.level == 0, f"{file}: a relative import"
            yield node.module or ""


def modules(room: str) -> dict[str, Path]:
    """Return the files of a room by the dotted names of their modules."""
    found = {".".join(file.relative_to(ROOT / room).with_suffix("").parts): file for file in sources(room)}
    return {name.removesuffix(".__init__"): file for name, file in found.items()}


def imported_modules(file: Path, known: dict[str, Path]) -> Iterator[str]:
    """Yield those of the ``known`` modules that ``file`` imports: in functions and for the type checker too."""
    for node in imports(file):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in known)
        else:
            names = (f"{node.module}.{name.name}" for name in node.names)
            yield from (name if name in known else node.module for name in names if node.module in known)


def named(file: Path) -> str:
    return str(file.relative_to(ROOT))


def test_every_tool_is_given_every_room() -> None:
    tools, rooms = PROJECT["tool"], list(ROOMS)
    build = tools["hatch"]["build"]
    assert build["dev-mode-dirs"] == rooms
    assert build["targets"]["sdist"]["include"] == [*(f"/{room}" for room in rooms), "/README.md", "/LICENSE"]
    assert build["targets"]["wheel"]["packages"] == [f"{room}/{PACKAGES[room]}" for room in rooms]
    assert tools["pytest"]["ini_options"]["pythonpath"] == [*rooms, "tests", "benches", "docs/generators"]
    assert tools["ruff"]["src"] == [*rooms, "tests", "benches", "docs/generators", "docs/walkthrough"]
    assert tools["mypy"]["files"] == [*rooms, "tests", "benches", "docs"]
    assert tools["mypy"]["mypy_path"] == [*rooms, "tests", "benches", "docs/generators", "docs/walkthrough"]
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    (mkdocstrings,) = (it["mkdocstrings"] for it in site["plugins"] if "mkdocstrings" in it)
    assert mkdocstrings["handlers"]["python"]["paths"] == rooms
    (reference,) = (it["Reference"] for it in site["nav"] if "Reference" in it)
    assert reference == ["reference/commands.md", *(f"reference/{room}.md" for room in rooms)]


def test_the_readme_draws_the_same_slope() -> None:
    (house,) = re.findall(r"^`spec`.*?: imports", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert re.findall(r"`(\w+)`", house) == list(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_imports_run_down_the_slope_only(room: str) -> None:
    closed = closed_to(room)
    wrong = [
        (named(file), name) for file in sources(room) for name in imported(file) if name.partition(".")[0] in closed
    ]
    assert not wrong


@pytest.mark.parametrize("room", WITHOUT_CIRCLES)
def test_no_files_of_a_room_import_one_another_in_a_circle(room: str) -> None:
    known = modules(room)
    graph = {name: set(imported_modules(file, known)) for name, file in known.items()}
    assert any(graph.values())
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_only_kernels_import_the_compiler() -> None:
    users = {file for file in sources(*ROOMS) for name in imported(file) if name.partition(".")[0] == "numba"}
    outside = [named(file) for file in users if "kernels" not in file.stem and "kernels" not in file.parent.name]
    assert not outside


def test_only_the_spark_room_imports_spark() -> None:
    users = {file for file in sources(*ROOMS) for name in imported(file) if name.partition(".")[0] == "pyspark"}
    assert not [named(file) for file in users if file.relative_to(ROOT).parts[0] != "spark"]


def test_markup_stands_in_the_app_only() -> None:
    markup = re.compile(r"html|\bcss\b|</\w+>", re.IGNORECASE)
    others = [room for room in ROOMS if room != "app"]
    assert not [named(file) for file in sources(*others) if markup.search(file.read_text())]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_holds_one_typed_package(room: str) -> None:
    packages = [entry.name for entry in (ROOT / room).iterdir() if entry.is_dir() and entry.name != "__pycache__"]
    assert packages == [PACKAGES[room]]
    marker = ROOT / room / PACKAGES[room] / "py.typed"
    assert marker.read_bytes() == b""


def test_the_root_holds_rooms_and_little_else() -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout")
    found = {line.partition("/")[0] for line in listing.stdout.splitlines()}
    assert found <= IN_THE_ROOT


@pytest.mark.parametrize("name", ["utils", "helpers", "common", "core", "manager"])
def test_no_module_is_named_for_nothing(name: str) -> None:
    assert not [named(file) for file in sources(*ROOMS, "tests") if name in file.stem.split("_")]


def functions(file: Path) -> Iterator[tuple[str, int]]:
    """Yield the name of every function with its length in lines."""
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.FunctionDef):
            yield f"{named(file)}: {node.name}", (node.end_lineno or 0) - node.lineno + 1


def test_functions_fit_a_reader() -> None:
    long = {name for file in sources(*ROOMS) for name, lines in functions(file) if lines > LINES_OF_A_FUNCTION}
    assert long == LONG_FOR_A_REASON.keys()


def test_every_module_says_what_it_is() -> None:
    silent = [named(file) for file in sources(*ROOMS) if not ast.get_docstring(parsed(file))]
    assert not silent


def test_the_glossary_points_at_files_that_are_there() -> None:
    cells = re.findall(r"\| ([^|]+) \|$", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    places: list[Path] = []
    for cell in cells:
        for name in re.findall(r"`([^`]+)`", cell):
            places.append(ROOT / name if "/" in name else places[-1].parent / name)
    assert len(places) > 30
    assert not [str(place) for place in places if not place.exists()]


def test_no_test_file_needs_shared_vectors_to_be_collected() -> None:
    """A clone without them skips tests; outside of a test nothing can be skipped."""
    asking = {
        named(file)
        for file in sorted((ROOT / "tests").rglob("*.py"))
        for statement in parsed(file).body
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "shared"
    }
    assert not asking
