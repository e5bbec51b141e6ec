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
from relaycast_gateway.candid.message_header import LARGEST_HEAD

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

    @property
    def takes_argument(self) -> bool:
        """Whether there is an argument; none has more than one."""
        return not self.arguments.endswith("()")

    @property
    def has_result(self) -> bool:
        return not self.results.endswith("()")

    def encode_arguments(self, values: Sequence[object]) -> bytes:
        return encode(self.arguments, values)

    def encode_argument(self, value: object) -> bytes:
        """Return the body of a request; the value counts only where there is an argument."""
        return encode(self.arguments, [value] if self.takes_argument else [])

    def decode_arguments(
        self,
        body: bytes,
        *,
        values: int | None = None,
        skipped: int | None = None,
        head: int = LARGEST_HEAD,
        is_strict: bool = False,
    ) -> list[object]:
        """Return the arguments of a request's body; ``CandidError`` where they are of other types.

        ``values``, ``skipped`` and ``head`` are bounds as ``candid.decode`` takes them, and so is ``is_strict``.
        """
        return decode(
            body,
            self.arguments,
            decoding_quota=values,
            skipping_quota=skipped,
            largest_head=head,
            is_strict=is_strict,
        )

    def encode_results(self, values: Sequence[object]) -> bytes:
        return encode(self.results, values)

    def encode_result(self, value: object) -> bytes:
        """Return the body of an answer; the value counts only where there is a result."""
        return encode(self.results, [value] if self.has_result else [])

    def decode_results(self, body: bytes, *, values: int | None = None) -> list[object]:
        return decode(body, self.results, decoding_quota=values)


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


@cache
def every_method() -> Mapping[str, CandidMethod]:
    """Return the methods of all roles by their names; the same name has the same types everywhere."""
    found: dict[str, CandidMethod] = {}
    for role in CanisterRole:
        for name, method in methods_of(role).items():
            assert found.setdefault(name, method) == method, name
    return MappingProxyType(found)


def _text(name: str) -> str:
    return files(__package__).joinpath("did", f"{name}.did").read_text("utf-8")
