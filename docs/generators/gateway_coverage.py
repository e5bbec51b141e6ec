"""Which line of the gateway's matrix is executed by which test: ``docs/gateway-coverage.md``.

Run as a program it writes the page. The matrix says in one line each what must hold of CloudEvents subscriptions (CE),
WAMP event history (WAMP), ICRC-72, ICRC-77 and across them (X). A line without a test needs a reason.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PAGE = ROOT / "docs" / "gateway-coverage.md"
MATRIX = TESTS / "vectors" / "gateway_matrix.txt"

FACES = {
    "CE": "CloudEvents subscriptions",
    "X": "Across faces",
    "WAMP": "WAMP event history",
    "ICRC72": "ICRC-72",
    "ICRC77": "ICRC-77",
}

REASONS: dict[str, str] = {}
"""Why a line has no test, by its id."""


@dataclass(frozen=True, slots=True)
class MatrixLine:
    """What must hold: ``force`` is M (must), S (should), O (may) or F (by definition)."""

    id: str
    force: str
    text: str

    @property
    def face(self) -> str:
        return self.id.partition("-")[0]


def matrix() -> list[MatrixLine]:
    """Return every line, in the order of the file."""
    return [MatrixLine(*line.split("\t")) for line in MATRIX.read_text().splitlines()]


@cache
def claims() -> dict[str, list[str]]:
    """Return the tests that name each id, as ``file::test``, sorted."""
    found: dict[str, set[str]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        text = file.read_text()
        if "mark.matrix(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for line in _ids(node):
                    found.setdefault(line, set()).add(f"{file.relative_to(TESTS).as_posix()}::{node.name}")
    return {line: sorted(tests) for line, tests in found.items()}


def reason(line: MatrixLine) -> str | None:
    """Return why a line has no test, ``None`` where it needs one."""
    return REASONS.get(line.id)


def page() -> str:
    """Return the page."""
    tested, lines = claims(), matrix()
    shown = [
        "# The gateway's matrix and its tests",
        "",
        "Made by `.venv/bin/python docs/generators/gateway_coverage.py` from markers in tests; a test keeps it fresh.",
        "Force: M must, S should, O may, F by definition.",
    ]
    for face, title in FACES.items():
        of_face = [line for line in lines if line.face == face]
        count = sum(line.id in tested for line in of_face)
        shown += ["", f"## {title}", "", f"{count} of {len(of_face)} lines have a test.", ""]
        shown += ['<div class="matrix" markdown>', ""]
        shown += ["| id | force | what must hold | test, or why there is none |", "|---|---|---|---|"]
        shown += [*(_row(line, tested.get(line.id, [])) for line in of_face), "", "</div>"]
    return "\n".join(shown) + "\n"


def _row(line: MatrixLine, tests: list[str]) -> str:
    proof = "<br>".join(f"`{test}`" for test in tests) or reason(line) or "open"
    text = line.text.replace("|", "\\|")
    return f"| {line.id} | {line.force} | {text} | {proof} |"


def _ids(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[str]:
    """Yield the ids of ``matrix(...)`` markers in the decorators, those of single parameters too."""
    for decorator in node.decorator_list:
        for call in ast.walk(decorator):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "matrix":
                for argument in call.args:
                    yield ast.literal_eval(argument)


if __name__ == "__main__":
    PAGE.write_text(page())
