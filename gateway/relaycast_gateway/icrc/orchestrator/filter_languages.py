"""Languages of filters: CandyPath, and others that whoever runs an orchestrator adds.

Law: a publication names the language of the filters of its subscriptions; filters over patterns of namespaces are
CandyPath. Source: ICRC-72, "Filters".
"""

import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

from relaycast_gateway.icrc.candypath.compiled import TreePredicate, candy_path
from relaycast_gateway.icrc.names import FILTER_LANGUAGE
from relaycast_gateway.icrc16 import Icrc16

CANDY_PATH = "candypath"
"""The name of the language by default."""

FilterLanguage = Callable[[str], TreePredicate]
"""Compiles a filter's text; ``ValueError`` says what is wrong with it."""

NO_LANGUAGES: Mapping[str, FilterLanguage] = MappingProxyType({})

_LOGGER = logging.getLogger(__name__)

FILTERS_KEPT = 1_024
"""Compiled filters of CandyPath: many subscribers ask for the same."""


def stored_filter(language: FilterLanguage, text: str) -> TreePredicate:
    """Compile a stored filter; one that is no longer valid is logged and selects nothing."""
    try:
        return language(text)
    except ValueError as error:
        _LOGGER.warning("a stored filter selects nothing: %s", error)
        return lambda _tree: False


class FilterLanguages:
    """The languages that an orchestrator knows, by name."""

    def __init__(self, others: Mapping[str, FilterLanguage] = NO_LANGUAGES) -> None:
        self._languages: Mapping[str, FilterLanguage] = {CANDY_PATH: lru_cache(FILTERS_KEPT)(candy_path), **others}

    def named(self, name: Icrc16 | None) -> FilterLanguage:
        """Return the language that a configuration's Text names; ``ValueError`` for one that is not known."""
        found = self._languages.get(CANDY_PATH if name is None else name.content)
        if found is None:
            known = ", ".join(self._languages)
            raise ValueError(f"{FILTER_LANGUAGE}: got {name.content[:80] if name else ''!r}, expected one of {known}")
        return found
