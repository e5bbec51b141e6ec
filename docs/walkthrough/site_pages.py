"""The chapters as pages of the site: each is run when that is built; text, code and results become Markdown.

A hook of mkdocs. What a notebook hides, the site leaves out; what it shows, is what its cells showed just now.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

HERE = Path(__file__).parent
CHAPTERS = sorted(HERE.glob("chapter_[0-9]*.py"))

MOST_LINES = 14
"""Lines of code that the page shows at once; more are folded away, so that readers follow text and pictures."""

HOW_TO_OPEN = """
!!! tip "Make a copy, and change things while you read"
    This page shows the chapter as it runs. To do the exercise, [open a copy as a notebook](index.md):

    ```console
    $ cp -r docs/walkthrough my-walkthrough
    $ .venv/bin/marimo edit my-walkthrough/{name}.py
    ```
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its Markdown, or its code; ``hidden`` where the notebook does not show the code."""

    markdown: str | None
    code: str
    hidden: bool


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each chapter."""
    sys.path.insert(0, str(HERE))
    try:
        for chapter in CHAPTERS:
            files.append(File.generated(config, f"walkthrough/{chapter.stem}.md", content=page_of(chapter)))
    finally:
        sys.path.remove(str(HERE))
    return files


def page_of(chapter: Path) -> str:
    """Run a chapter and return it as Markdown."""
    outputs, _ = import_module("runs_of_chapters").run_of(chapter.stem)
    cells = list(cells_of(chapter.read_text()))
    assert len(cells) == len(outputs), f"{chapter.name}: {len(cells)} cells, {len(outputs)} results"
    parts = [part for cell, output in zip(cells, outputs, strict=True) for part in _parts(cell, output)]
    heading, rest = parts[0].split("\n", 1)
    imports = _folded("The imports of this chapter", _setup(chapter.read_text()))
    return "\n\n".join([heading, HOW_TO_OPEN.format(name=chapter.stem), rest, imports, *parts[1:]])


def cells_of(source: str) -> Iterator[Cell]:
    """Yield the cells of a notebook, in their order."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            body = node.body[:-1] if isinstance(node.body[-1], ast.Return) else node.body
            yield Cell(_markdown(body), _source(source, body), _is_hidden(node))


def _parts(cell: Cell, output: object) -> Iterator[str]:
    if cell.markdown is not None:
        yield cell.markdown
        return
    lines = cell.code.count("\n") + 1
    if not cell.hidden and lines > MOST_LINES:
        yield _folded(f"The code of this step, {lines} lines", cell.code)
    elif not cell.hidden:
        yield f"```python\n{cell.code}\n```"
    if output is not None:
        shown = output._repr_html_() if hasattr(output, "_repr_html_") else f"<pre>{escape(repr(output))}</pre>"
        yield f'<div class="result">{shown}</div>'


def _folded(heading: str, code: str) -> str:
    """Return code under a heading that opens it."""
    indented = "\n".join(f"    {line}" if line else "" for line in code.splitlines())
    return f'??? note "{heading}"\n\n    ```python\n{indented}\n    ```'


def _markdown(body: list[ast.stmt]) -> str | None:
    """Return the text of a cell that is ``mo.md`` and nothing else."""
    match body:
        case [ast.Expr(ast.Call(ast.Attribute(ast.Name("mo"), "md"), [ast.Constant(str(text))]))]:
            return "\n".join(line.removeprefix("    ") for line in text.strip().splitlines())
    return None


def _setup(source: str) -> str:
    """Return what all cells share: the body of ``with app.setup``."""
    (shared,) = (node for node in ast.parse(source).body if isinstance(node, ast.With))
    return _source(source, shared.body)


def _source(source: str, body: list[ast.stmt]) -> str:
    lines = source.splitlines()[body[0].lineno - 1 : body[-1].end_lineno]
    return "\n".join(line.removeprefix("    ") for line in lines)


def _is_hidden(cell: ast.FunctionDef) -> bool:
    """Whether ``@app.cell(hide_code=True)`` stands above it."""
    return any(
        keyword.arg == "hide_code"
        for decorator in cell.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
    )
