"""Candid: the interface description language of the Internet Computer, binary and textual form, both ways.

```python
message = encode("(nat, record {name : text; tags : vec text})", [7, {"name": "feed", "tags": []}])
decode(message, "(int, record {name : text; note : opt text})")  # [7, {"name": "feed", "note": None}]
```

| Candid | Python |
|---|---|
| ``nat``, ``int``, ``nat8`` to ``nat64``, ``int8`` to ``int64`` | ``int`` |
| ``float32``, ``float64`` | ``float`` (an ``int`` is taken too) |
| ``bool``, ``text`` | ``bool``, ``str`` |
| ``null``, ``reserved`` | ``None`` (for ``reserved`` any value is taken, and not written) |
| ``empty`` | no value |
| ``vec nat8`` (``blob``) | ``bytes`` |
| ``vec t`` | ``list`` |
| ``opt t`` | ``None`` or the value |
| ``opt t`` where ``t`` is ``null``, ``reserved`` or an ``opt`` | ``None`` or ``Present(value)`` |
| ``record`` | ``dict`` by the names of fields; numbers for fields without a name (a ``tuple`` is taken too) |
| ``variant`` | ``Variant(tag, value)``, the tag a name or a number |
| ``principal``, ``service`` | ``Principal(bytes)``; ``Principal.of(text)``, ``str(principal)`` |
| ``func`` | ``FuncReference(principal, method)`` |

Decoding follows the rules of subtyping value by value. What does not fit below an ``opt`` is ``None``. Missing fields
and arguments of the types ``opt``, ``null`` and ``reserved`` are ``None``; further ones are skipped.
Source: Candid specification 0.1.8.
"""

from relaycast_gateway.candid.decoder import decode
from relaycast_gateway.candid.encoder import encode
from relaycast_gateway.candid.errors import CandidError
from relaycast_gateway.candid.type_graph import CandidTypes
from relaycast_gateway.candid.type_parser import parse_types
from relaycast_gateway.candid.value_parser import parse_values
from relaycast_gateway.candid.value_printer import format_values
from relaycast_gateway.candid.values import FuncReference, Present, Principal, Variant

__all__ = [
    "CandidError",
    "CandidTypes",
    "FuncReference",
    "Present",
    "Principal",
    "Variant",
    "decode",
    "encode",
    "format_values",
    "parse_types",
    "parse_values",
]
