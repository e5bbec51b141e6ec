"""Parameters of methods: JSON values in, bytes and numbers out, by the annotations of a method's function.

Law: a value that does not fit is one ``-32602`` that names the parameter, its value and what was expected. Numbers may
come as JSON numbers or in hexadecimal. Extra positional parameters are ignored, as a node does; unknown
names are refused, because a typo would leave the parameter at its default.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter as Argument
from inspect import signature
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from relaycast_node.rpc.account_text import account_of
from relaycast_node.rpc.rpc_error import RpcError, invalid_params
from relaycast_xcm.primitives import U32_MAX, U64_MAX

HASH_BYTES = 32

MOST_ITEMS = 32_768
"""Items of a list of keys, hashes or numbers in one request."""


class Misfit(ValueError):
    """A value that is none of its kind; ``expected`` says what would be, ``got`` and ``place`` where it is inside."""

    def __init__(self, got: object, expected: str, place: str = "") -> None:
        super().__init__(got, expected, place)
        self.got = got
        self.expected = expected
        self.place = place


Reader = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of parameter: ``read`` turns a JSON value into what the method works with, or raises ``Misfit``."""

    read: Reader


def _hex_bytes(value: Any) -> bytes:
    """Return what hex digits say. A node takes them without ``0x``, too; async-substrate-interface sends them so."""
    if isinstance(value, str):
        digits = value.removeprefix("0x")
        try:
            data = bytes.fromhex(digits)
        except ValueError:
            pass
        else:
            if 2 * len(data) == len(digits):  # no spaces between the digits
                return data
    raise Misfit(value, "0x and an even number of hex digits")


def _hash(value: Any) -> bytes:
    try:
        data = _hex_bytes(value)
    except Misfit:
        data = b""
    if len(data) != HASH_BYTES:
        raise Misfit(value, "a hash: 0x and 64 hex digits")
    return data


def _number(value: Any, most: int) -> int:
    if type(value) is int and 0 <= value <= most:
        return value
    if isinstance(value, str) and _HEX_NUMBER.fullmatch(value) and int(value, 16) <= most:
        return int(value, 16)
    raise Misfit(value, f"a number from 0 to {most}, or in hex as 0x...")


_HEX_NUMBER = re.compile("0x[0-9a-fA-F]{1,64}")


def _u32(value: Any) -> int:
    return _number(value, U32_MAX)


def _u64(value: Any) -> int:
    return _number(value, U64_MAX)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise Misfit(value, "a text")


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise Misfit(value, "true or false")


def _account(value: Any) -> bytes:
    if isinstance(value, str):
        found = account_of(value)
        if found is not None:
            return found
    raise Misfit(value, "an account: an SS58 address, or 0x and 64 hex digits")


def _anything(value: Any) -> Any:
    return value


HexBytes = Annotated[bytes, Kind(_hex_bytes)]
BlockHash = Annotated[bytes, Kind(_hash)]
U32 = Annotated[int, Kind(_u32)]
BigNumber = Annotated[int, Kind(_u64)]
Account = Annotated[bytes, Kind(_account)]
Bool = Annotated[bool, Kind(_bool)]
AnyJson = Annotated[Any, Kind(_anything)]

_READERS: dict[Any, Reader] = {str: _text, int: _u64}


def reader_of(annotation: Any) -> Reader:
    """Return what reads a parameter with this annotation."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return next(mark.read for mark in inside[1:] if isinstance(mark, Kind))
    if origin in (Union, UnionType):
        options = [reader_of(option) for option in inside if option is not NoneType]
        read = options[0] if len(options) == 1 else _one_of(options)
        return (lambda value: None if value is None else read(value)) if NoneType in inside else read
    if origin is list:
        return _list_of(reader_of(inside[0]))
    return _READERS[annotation]


def _list_of(read: Reader) -> Reader:
    def read_list(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise Misfit(value, "a list")
        if len(value) > MOST_ITEMS:
            raise Misfit(value, f"a list of at most {MOST_ITEMS:,} items")
        found: list[Any] = []
        for index, item in enumerate(value):
            try:
                found.append(read(item))
            except Misfit as misfit:
                raise Misfit(misfit.got, misfit.expected, f"[{index}]{misfit.place}") from None
        return found

    return read_list


def _one_of(readers: list[Reader]) -> Reader:
    def read_one(value: Any) -> Any:
        expected: list[str] = []
        for read in readers:
            try:
                return read(value)
            except Misfit as misfit:
                if misfit.place:
                    raise
                expected.append(misfit.expected)
        raise Misfit(value, " or ".join(expected))

    return read_one


@dataclass(frozen=True, slots=True)
class Expected:
    """One parameter: how it is called, what reads it, and what stands for it where it is left out."""

    name: str
    json_name: str
    read: Reader
    required: bool
    default: Any

    def value(self, given: Any) -> Any:
        """Return what ``given`` means; ``null`` is the same as nothing."""
        if given is None and not self.required:
            return self.default
        try:
            return self.read(given)
        except Misfit as misfit:
            raise invalid_params(self.json_name + misfit.place, misfit.got, misfit.expected) from None


def expected_of(function: Callable[..., Any], *, skip: int) -> tuple[Expected, ...]:
    """Return the parameters of a method's function, but for the first ones, which the server gives."""
    hints = get_type_hints(function, include_extras=True)
    return tuple(
        Expected(
            name=argument.name,
            json_name=_camel(argument.name),
            read=reader_of(hints[argument.name]),
            required=argument.default is Argument.empty,
            default=None if argument.default is Argument.empty else argument.default,
        )
        for argument in list(signature(function).parameters.values())[skip:]
    )


def arguments(expected: Sequence[Expected], given: Sequence[Any] | Mapping[str, Any] | None) -> list[Any]:
    """Return the arguments for a function; ``given`` by place or by name, in camel case or with underscores."""
    if isinstance(given, Mapping):
        ensure_known("params", given, [name for it in expected for name in dict.fromkeys((it.json_name, it.name))])
        given = [given.get(it.json_name, given.get(it.name)) for it in expected]
    elif given is None:
        given = ()
    found = [it.value(value) for it, value in zip(expected, given, strict=False)]
    for missing in expected[len(found) :]:
        if missing.required:
            raise _missing(missing)
        found.append(missing.default)
    return found


def ensure_known(place: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise ``RpcError`` for a member of an object that is not among ``known``."""
    for name in given:
        if name not in known:
            raise invalid_params(place, name, f"members named {', '.join(known)}" if known else "no members")


def _missing(expected: Expected) -> RpcError:
    try:
        expected.read(None)
    except Misfit as misfit:
        return invalid_params(expected.json_name, None, misfit.expected)
    return invalid_params(expected.json_name, None, "a value")


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
