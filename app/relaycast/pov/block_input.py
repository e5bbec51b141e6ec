"""Where a block to look into comes from: hexadecimal, a file, or a node.

A file holds SCALE bytes, their hexadecimal, or the answer of ``chain_getBlock`` in JSON. A node is asked by
``chain_getBlock``, and by ``archive_v1`` where it has no legacy methods. Raises ``BadInput`` with the place, always in
one line.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from relaycast.inputs import NODE_SCHEMES, parse_json, place_of, read_bytes
from relaycast.pov.parachain_block import RawBlock
from relaycast.refusal import BadInput, shown
from relaycast_collator.header import DigestItem, Header
from relaycast_trie import CodecError
from relaycast_trie.scale import ScaleReader
from relaycast_xcm.primitives import U32_MAX

if TYPE_CHECKING:
    from relaycast.node_client import NodeClient

EXPECTED = "a block: SCALE bytes, their hexadecimal, or what chain_getBlock answers"
NUMBER_DIGITS = 10


def read_block(source: str, *, at: str | None = None) -> RawBlock:
    """Return the block that ``source`` holds or names; ``at`` is a hash or number for a node, by default its newest."""
    if source.startswith(NODE_SCHEMES):
        return _of_json(asyncio.run(_fetched(source, at)), source)
    if at is not None:
        raise BadInput("--at", shown(at), "it beside the URL of a node only")
    if source.startswith("0x"):
        return _of_hex(source, "BLOCK")
    place, data = place_of(source), read_bytes(source)
    with suppress(CodecError, ValueError):
        return RawBlock.decode(data)  # first: a parent hash may begin with the bytes of a brace
    text = data.strip()
    if text.startswith(b"{"):
        return _of_json(parse_json(text, place), place)
    if text.startswith(b"0x"):
        return _of_hex(text.decode("ascii", "replace"), place)
    return _of_bytes(data, place)


def _of_hex(text: str, place: str) -> RawBlock:
    return _of_bytes(_bytes(text, place), place)


def _of_bytes(data: bytes, place: str) -> RawBlock:
    try:
        return RawBlock.decode(data)
    except (CodecError, ValueError) as error:
        raise BadInput(place, f"{len(data):,} bytes that are no block: {error}", EXPECTED) from None


def _of_json(answer: Any, place: str) -> RawBlock:
    """Return the block in an answer of ``chain_getBlock``, whole or the ``result`` or the ``block`` in it."""
    found = answer
    for member in ("result", "block"):
        if isinstance(found, Mapping) and member in found:
            found = found[member]
    if not isinstance(found, Mapping) or not {"header", "extrinsics"} <= found.keys():
        raise BadInput(place, shown(found), EXPECTED)
    extrinsics = found["extrinsics"]
    if not isinstance(extrinsics, list):
        raise BadInput(f"{place}: extrinsics", shown(extrinsics), "a list of hexadecimal")
    taken = tuple(_extrinsic(text, f"{place}: extrinsics[{index}]") for index, text in enumerate(extrinsics))
    return RawBlock(read_header(found["header"], f"{place}: header"), taken)


def _extrinsic(text: Any, place: str) -> bytes:
    reader = ScaleReader(_bytes(text, place))
    try:
        data = reader.bytes_()
        reader.done()
    except CodecError as error:
        raise BadInput(place, str(error), "an extrinsic with its length in front") from None
    return data


def read_header(value: Any, place: str) -> Header:
    """Return the header in an answer of ``chain_getHeader``, or of ``archive_v1_header``."""
    if isinstance(value, str):
        return _encoded_header(_bytes(value, place), place)
    if not isinstance(value, Mapping):
        raise BadInput(place, shown(value), "a header")
    try:
        logs = tuple(_digest_item(text, f"{place}.digest") for text in value["digest"]["logs"])
        hashes = [_bytes(value[name], f"{place}.{name}") for name in ("parentHash", "stateRoot", "extrinsicsRoot")]
        return Header(hashes[0], int(str(value["number"]), 0), hashes[1], hashes[2], logs)
    except KeyError as error:
        raise BadInput(place, f"no {error}", "parentHash, number, stateRoot, extrinsicsRoot and digest") from None
    except (TypeError, ValueError, CodecError) as error:
        raise BadInput(place, f"a header that does not decode: {error}", "what chain_getHeader answers") from None


def _encoded_header(data: bytes, place: str) -> Header:
    try:
        return Header.decode(data)
    except (CodecError, ValueError) as error:
        raise BadInput(place, f"a header that does not decode: {error}", "what archive_v1_header answers") from None


def _digest_item(text: Any, place: str) -> DigestItem:
    reader = ScaleReader(_bytes(text, place))
    item = DigestItem.read(reader)
    reader.done()
    return item


def _bytes(text: Any, place: str) -> bytes:
    digits = text.strip() if isinstance(text, str) else ""
    try:
        if not digits.startswith("0x"):
            raise ValueError
        return bytes.fromhex(digits[2:])
    except ValueError:
        raise BadInput(place, shown(text), "hexadecimal, 0x and an even number of digits") from None


async def _fetched(url: str, at: str | None) -> Any:
    """Return what a node answers to ``chain_getBlock``, or the same by ``archive_v1``."""
    from relaycast.node_client import NodeClient, NodeRefused  # noqa: PLC0415 - only blocks from a node need it

    number = None if at is None or at.startswith("0x") else _number(at)
    wanted = at if number is None else number
    try:
        async with NodeClient(url, waits=0) as node:
            try:
                found = await _by_chain(node, wanted)
            except NodeRefused as error:
                if not error.is_unknown_method:
                    raise
                found = await _by_archive(node, wanted)
    except NodeRefused as error:
        if error.is_unknown_method:
            expected = "a node with chain_getBlock, or with archive_v1"
            raise BadInput(url, f"no method {error.method}", expected) from None
        raise BadInput(url, str(error), "a block") from None
    if found is None:
        raise BadInput(url, f"no block {at}", "a block that the node has")
    return found


def _number(at: str) -> int:
    if not (at.isascii() and at.isdecimal() and len(at) <= NUMBER_DIGITS and int(at) <= U32_MAX):
        raise BadInput("--at", shown(at), "the hash or the number of a block")
    return int(at)


async def _by_chain(node: "NodeClient", at: str | int | None) -> Any:
    """Return what ``chain_getBlock`` answers; ``None`` where there is no such block."""
    if at is None:
        return await node.ask("chain_getBlock")
    wanted = await node.ask("chain_getBlockHash", at) if isinstance(at, int) else at
    return None if wanted is None else await node.ask("chain_getBlock", wanted)


async def _by_archive(node: "NodeClient", at: str | int | None) -> Any:
    """Return header and extrinsics as ``archive_v1`` answers them; ``None`` where there is no such block."""
    wanted = at
    if not isinstance(at, str):
        height = await node.ask("archive_v1_finalizedHeight") if at is None else at
        hashes = await node.ask("archive_v1_hashByHeight", height)
        wanted = hashes[0] if isinstance(hashes, list) and hashes else None
    if wanted is None:
        return None
    header, body = [await node.ask(f"archive_v1_{part}", wanted) for part in ("header", "body")]
    return None if header is None else {"header": header, "extrinsics": body}
