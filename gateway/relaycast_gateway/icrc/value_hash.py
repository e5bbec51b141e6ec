"""Hashes of event data: the representation-independent hash of ICRC-3, carried over to every ICRC-16 value.

A tree of ``Nat``, ``Int``, ``Text``, ``Blob``, ``Array`` and ``Map`` alone is an ICRC-3 Value and has the hash that
the standard gives it. Any other tree is hashed by its image, a Value in which every node names its type:

```text
image of a tree = Array[Text "icrc72:tagged", node]
node            = Array[Text tag, content]
content         = Nat (Nat, Nat8 ... Nat64; Bool as 0 or 1) | Int (Int, Int8 ... Int64) | Text | Blob (Blob, Bytes,
                  Principal; Float and Floats as IEEE 754, 8 bytes each, big-endian) | Array of Nat (Nats)
                | Array of nodes (Array, Set; Option with one node or none)
                | Map of text to node (Map) | Array of Array[node, node] (ValueMap)
                | Array of Array[Text name, node, Nat 0 or 1] (Class, 1 for immutable)
```

Law: two trees have one image only if they are equal up to the order of the entries of a ``Map``, which the standard
ignores. Therefore an ICRC-3 Value that itself starts as an image does, an ``Array`` with the text ``icrc72:tagged``
first, is hashed by its image too. Positive and negative zero differ, and so do floats that are not a number.

The standard hashes a text like the blob of its UTF-8 bytes and a number like the blob of its LEB128 bytes: different
ICRC-3 Values may share a hash. Below the text ``icrc72:tagged`` the tags prevent that.

Source: ICRC-3, "Representation independent hashing"; the image is our own.
"""

import struct
from collections.abc import Iterator
from hashlib import sha256

from relaycast_gateway.candid.leb128 import signed, unsigned
from relaycast_gateway.icrc16 import DEEPEST, WHOLE_NUMBERS, Icrc16, Tag, array, blob, nat, text

TAGGED = "icrc72:tagged"
"""The text that starts every image of a tree outside ICRC-3."""

DEEPEST_IMAGE = 4 * DEEPEST
"""Values inside values of an image: a node takes at most three levels."""

ICRC3_TAGS = frozenset({Tag.NAT, Tag.INT, Tag.TEXT, Tag.BLOB, Tag.ARRAY, Tag.MAP})

_TAGGED_TEXT = text(TAGGED)
_SIGNED = frozenset(tag for tag, (least, _) in WHOLE_NUMBERS.items() if least != 0)


def eventdata_hash(data: Icrc16) -> bytes:
    """Return the 32 bytes that the header ``icrc72:eventData:hash`` carries for ``data``.

    ``ValueError`` for a tree that nests deeper than 64.
    """
    image = icrc3_image(data)
    return _hash(image, DEEPEST if image is data else DEEPEST_IMAGE)


def icrc3_image(data: Icrc16) -> Icrc16:
    """Return the ICRC-3 Value that stands for ``data``: mostly ``data`` itself where it is one.

    ``ValueError`` for a tree that nests deeper than 64.
    """
    if is_icrc3(data) and not _starts_as_an_image(data):
        return data
    return array(_TAGGED_TEXT, _node(data, DEEPEST))


def is_icrc3(value: Icrc16) -> bool:
    """Return whether ``value`` and all values inside are of the six types of ICRC-3."""
    waiting = [value]
    while waiting:
        tag, content = waiting.pop()
        if tag not in ICRC3_TAGS:
            return False
        if tag is Tag.ARRAY:
            waiting += content
        elif tag is Tag.MAP:
            waiting += [each for _, each in content]
    return True


def value_hash(value: Icrc16) -> bytes:
    """Return the hash that ICRC-3 defines; ``ValueError`` for a type outside ICRC-3 or too deep a tree."""
    return _hash(value, DEEPEST_IMAGE)


def _hash(value: Icrc16, room: int) -> bytes:
    if not room:
        raise _too_deep()
    tag, content = value
    match tag:
        case Tag.NAT:
            return sha256(unsigned(content)).digest()
        case Tag.INT:
            return sha256(signed(content)).digest()
        case Tag.TEXT:
            return _text_hash(content)
        case Tag.BLOB:
            return sha256(content).digest()
        case Tag.ARRAY:
            return sha256(b"".join([_hash(each, room - 1) for each in content])).digest()
        case Tag.MAP:
            return sha256(b"".join(sorted(_text_hash(key) + _hash(each, room - 1) for key, each in content))).digest()
    raise ValueError(f"expected a type of ICRC-3, got {tag}")


def _text_hash(content: str) -> bytes:
    return sha256(content.encode("utf-8", "surrogatepass")).digest()


def _starts_as_an_image(value: Icrc16) -> bool:
    return value.tag is Tag.ARRAY and value.content[:1] == (_TAGGED_TEXT,)


def _node(value: Icrc16, room: int) -> Icrc16:
    if not room:
        raise _too_deep()
    return array(text(str(value.tag)), _content(value, room - 1))


def _content(value: Icrc16, room: int) -> Icrc16:  # noqa: PLR0911 - one for each form
    tag, content = value
    if tag in WHOLE_NUMBERS:
        return Icrc16(Tag.INT if tag in _SIGNED else Tag.NAT, content)
    match tag:
        case Tag.BOOL:
            return nat(int(content))
        case Tag.TEXT:
            return value
        case Tag.BLOB | Tag.BYTES | Tag.PRINCIPAL:
            return blob(content)
        case Tag.FLOAT:
            return blob(struct.pack(">d", content))
        case Tag.FLOATS:
            return blob(struct.pack(f">{len(content)}d", *content))
        case Tag.NATS:
            return array(*map(nat, content))
        case Tag.OPTION:
            return array() if content is None else array(_node(content, room))
        case Tag.MAP:
            return Icrc16(Tag.MAP, tuple((key, _node(each, room)) for key, each in content))
    return array(*_parts(value, room))


def _parts(value: Icrc16, room: int) -> Iterator[Icrc16]:
    tag, content = value
    match tag:
        case Tag.ARRAY | Tag.SET:
            yield from (_node(each, room) for each in content)
        case Tag.VALUE_MAP:
            yield from (array(_node(key, room), _node(each, room)) for key, each in content)
        case _:
            assert tag is Tag.CLASS, tag
            yield from (array(text(name), _node(each, room), nat(int(immutable))) for name, each, immutable in content)


def _too_deep() -> ValueError:
    return ValueError(f"expected event data at most {DEEPEST} values deep")
