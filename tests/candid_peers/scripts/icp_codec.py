"""icp-py-core as a codec: for each line of JSON with a `.did`, values and a message, a line with what it makes of them.

The plain JSON of values is told in ``interface.mjs``.
"""

import json
import struct
import sys
import time
from functools import lru_cache

import base32_crockford
from _ic_candid_core import _ic_candid_core as parser
from icp_candid import DIDLoader, decode, encode
from icp_candid import candid as c
from icp_principal.principal import Principal


@lru_cache(maxsize=4)
def loaded(did):
    return DIDLoader().load_did_source(did)


def inner(kind):
    return kind.get_type() if isinstance(kind, c.RecClass) else kind


def from_plain(kind, given):  # noqa: PLR0911 - one for each form
    """Return what the library takes."""
    kind = inner(kind)
    match kind:
        case c.FloatClass():
            return struct.unpack(">d", bytes.fromhex(given))[0]
        case c.IntClass() | c.NatClass() | c.FixedIntClass() | c.FixedNatClass():
            return int(given)
        case c.PrincipalClass() | c.ServiceClass():
            return Principal.from_str(given)
        case c.FuncClass():
            return [Principal.from_str(given[0]), given[1]]
        case c.VecClass():
            if inner(kind._type) is c.Types.Nat8:
                return bytes.fromhex(given)
            return [from_plain(kind._type, each) for each in given]
        case c.OptClass():
            return [from_plain(kind._type, each) for each in given]
        case c.RecordClass():
            fields = [(number, *kind._field_map[number]) for number, _ in given]
            return {name: from_plain(of, value) for (_, name, of), (_, value) in zip(fields, given, strict=True)}
        case c.VariantClass():
            name, of = kind._field_map[given[0]]
            return {name: from_plain(of, given[1])}
    return given


def to_plain(kind, value):  # noqa: PLR0911 - one for each form
    """Return what the library gave, as plain JSON."""
    kind = inner(kind)
    match kind:
        case c.FloatClass():
            return struct.pack(">d", value).hex()
        case c.IntClass() | c.NatClass() | c.FixedIntClass() | c.FixedNatClass():
            return str(value)
        case c.PrincipalClass() | c.ServiceClass():
            return value.to_str()
        case c.FuncClass():
            return [value[0].to_str(), value[1]]
        case c.VecClass():
            if inner(kind._type) is c.Types.Nat8:
                return value.hex()
            return [to_plain(kind._type, each) for each in value]
        case c.OptClass():
            return [to_plain(kind._type, each) for each in value]
        case c.RecordClass():
            if isinstance(value, list):
                value = {str(at): each for at, each in enumerate(value)}
            fields = [(number, *kind._field_map[number]) for number in kind._sorted_hashes]
            return [[number, to_plain(of, value[name])] for number, name, of in fields]
        case c.VariantClass():
            ((name, held),) = value.items()
            number = next(number for number, (known, _) in kind._field_map.items() if known == name)
            return [number, to_plain(kind._field_map[number][1], held)]
    return value


def taken(did):
    return loaded(did)["methods"]["take"].argTypes


def given_to(did, values):
    return [{"type": of, "value": from_plain(of, value)} for of, value in zip(taken(did), values, strict=True)]


def encoded(did, values):
    return encode(given_to(did, values)).hex()


def decoded(did, message):
    types = taken(did)
    found = decode(bytes.fromhex(message), types)
    return [to_plain(of, each["value"]) for of, each in zip(types, found, strict=True)]


def methods(did):
    parsed = json.loads(parser.parse_did(did))["actor"]["methods"]
    return {"parsed": [method["name"] for method in parsed], "loaded": list(loaded(did)["methods"])}


def crockford(numbers, texts):
    return {
        "encoded": [base32_crockford.encode(int(number)) for number in numbers],
        "decoded": [str(base32_crockford.decode(text)) for text in texts],
    }


def times(did, message, rounds, calls):
    """Return the microseconds of one call to encode, and to decode, in each round."""
    types, data = taken(did), bytes.fromhex(message)
    values = [{"type": of, "value": each["value"]} for of, each in zip(types, decode(data, types), strict=True)]
    assert encode(values)

    def timed(work):
        found = []
        for _ in range(rounds):
            began = time.perf_counter()
            for _ in range(calls):
                work()
            found.append((time.perf_counter() - began) / calls * 1e6)
        return found

    return [timed(lambda: encode(values)), timed(lambda: decode(data, types))]


ANSWERS = {"encode": encoded, "decode": decoded, "methods": methods, "crockford": crockford, "times": times}

for line in sys.stdin:
    asked = json.loads(line)
    try:
        answer = {"value": ANSWERS[asked.pop("ask")](**asked)}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
