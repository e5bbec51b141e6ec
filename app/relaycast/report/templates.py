"""Pages from templates: one file each, with its style inside; its policy lets a browser load nothing else.

Law: what is not markup of ours is escaped; the same figures give the same bytes.
"""

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from relaycast.report.trie_view import CAUSES

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

LABELS = {
    **{cause: cause for cause in CAUSES},
    "given": "of nodes",
    "unused": "not needed",
    "pruned_unchanged": "left out as unchanged",
    "cached": "left out as cached",
    "pruned_cached": "left out as cached",
    "pruned_beyond_budget": "left out beyond the budget",
    "pruned_disabled": "left out of a disabled publisher",
}
"""How sums by cause are named in a sentence."""


def render(template: str, /, **figures: Any) -> str:
    """Return the page that the ``template`` makes of ``figures``."""
    return _environment().get_template(template).render(css=own_markup(_read("page.css")), **figures)


def own_markup(text: str) -> "Markup":
    """Return markup that was made here, its texts escaped, as what a template takes as it is."""
    from markupsafe import Markup  # noqa: PLC0415 - comes with the template engine

    return Markup(text)  # noqa: S704


def percent(part: float) -> str:
    """Return a share of the PoV: with the digits that it takes to tell it from nothing."""
    return f"{part:.2%}" if part >= 0.0005 or part == 0 else f"{part:.4%}"


def number(value: int) -> str:
    """Return a number as people read it."""
    return f"{value:,}"


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415 - slow to load

    from relaycast.report.compiled_pages import CompiledPages  # noqa: PLC0415 - needs the template engine

    loader, kept = FunctionLoader(_read), CompiledPages()
    made = Environment(autoescape=True, undefined=StrictUndefined, loader=loader, bytecode_cache=kept)
    made.globals.update(number=number, percent=percent, labels=LABELS)
    return made


def _read(name: str) -> str:
    return (resources.files("relaycast.report") / "pages" / name).read_text("utf-8")
