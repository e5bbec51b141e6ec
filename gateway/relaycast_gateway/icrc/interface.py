"""What each role serves: its methods and their Candid types, from the files in ``did``.

Law: a canister calls and answers with values as ``candid.decode`` gives them, in a process and over HTTP alike.
Source: ICRC-72 and ICRC-77, sections "Methods".
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from relaycast_gateway.candid import decode, encode

_METHOD = re.compile(r"^\s*(\w+) : (\(.*\)) -> (\(.*?\))( query)?;$", re.MULTILINE)
"""A line of a ``.did`` file of ours: name, arguments, results, ``query``."""


class CanisterRole(StrEnum):
    """What a canister does."""

    ORCHESTRATOR = "orchestrator"
    BROADCASTER = "broadcaster"
    SUBSCRIBER = "subscriber"
    PUBLISHER = "publisher"


@dataclass(frozen=True, slots=True)
class CandidMethod:
    """A method and the text forms of its types, with all definitions, for ``candid.encode`` and ``decode``."""

    name: str
    arguments: str
    results: str
    is_query: bool

    def encode_arguments(self, values: Sequence[object]) -> bytes:
        return encode(self.arguments, values)

    def decode_arguments(self, body: bytes) -> list[object]:
        """Return the arguments of a request's body; ``CandidError`` where they are of other types."""
        return decode(body, self.arguments)

    def encode_results(self, values: Sequence[object]) -> bytes:
        return encode(self.results, values)

    def decode_results(self, body: bytes) -> list[object]:
        return decode(body, self.results)


@cache
def definitions() -> str:
    """Return the text of all types."""
    return _text("types")


@cache
def interface_text(role: CanisterRole) -> str:
    """Return the whole ``.did`` of a role, as it is served."""
    return f"{definitions()}\n{_text(role)}"


@cache
def methods_of(role: CanisterRole) -> Mapping[str, CandidMethod]:
    """Return the methods of a role by their names."""
    found = (
        CandidMethod(name, definitions() + arguments, definitions() + results, query is not None)
        for name, arguments, results, query in (match.groups() for match in _METHOD.finditer(_text(role)))
    )
    return MappingProxyType({method.name: method for method in found})


def _text(name: str) -> str:
    return files(__package__).joinpath("did", f"{name}.did").read_text("utf-8")
