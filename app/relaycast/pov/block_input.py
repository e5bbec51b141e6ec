"""Where a block to look into comes from: hexadecimal, a file, or a node.

A file holds SCALE bytes, their hexadecimal, or the answer of ``chain_getBlock`` in JSON. A node is asked by
``chain_getBlock``, and by ``archive_v1`` where it has no legacy methods. Raises ``BadInput`` with the place, always in
one line.
"""

import asyncio
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from relaycast.inputs import parse_json, place_of, read_bytes
from relaycast.pov.parachain_block import RawBlock
from relaycast.refusal import BadInput, shown
from relaycast_collator.header import DigestItem, Header
from relaycast_trie import CodecError
from relaycast_trie.scale import ScaleReader
from relaycast_xcm.primitives import U32_MAX

EXPECTED = "a block: SCALE bytes, their hexadecimal, or what chain_getBlock answers"
SCHEMES = ("http://", "https://", "ws://", "wss://")
SECONDS = 30
"""Seconds that a node may take for each answer."""

MOST_ANSWER_BYTES = 64 << 20
"""Largest answer of a node that is read; the hexadecimal of the largest block has 20 MB."""

NUMBER_DIGITS = 10

METHOD_NOT_FOUND = -32_601
"""The code of JSON-RPC 2.0."""


def read_block(source: str, *, at: str | None = None) -> RawBlock:
    """Return the block that ``source`` holds or names; ``at`` is a hash or number for a node, by default its newest."""
    if source.startswith(SCHEMES):
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
    import aiohttp  # noqa: PLC0415 - only blocks that come from a node need it

    number = None if at is None or at.startswith("0x") else _number(at)
    wanted = at if number is None else number
    try:
        async with aiohttp.ClientSession() as client:
            try:
                found = await _by_chain(client, url, wanted)
            except _UnknownMethod:
                found = await _by_archive(client, url, wanted)
    except _UnknownMethod as error:
        raise BadInput(url, f"no method {error}", "a node with chain_getBlock, or with archive_v1") from None
    except (aiohttp.ClientError, TimeoutError, OSError, UnicodeError) as error:
        said = _reason(error) or f"no answer for {SECONDS} s"
        raise BadInput(url, said, "a node that answers JSON-RPC") from None
    if found is None:
        raise BadInput(url, f"no block {at}", "a block that the node has")
    return found


def _number(at: str) -> int:
    if not (at.isascii() and at.isdecimal() and len(at) <= NUMBER_DIGITS and int(at) <= U32_MAX):
        raise BadInput("--at", shown(at), "the hash or the number of a block")
    return int(at)


def _reason(error: Exception) -> str:
    """Return why there was no answer: of a connection that was not made, what the system says."""
    number = getattr(getattr(error, "os_error", None), "errno", None)
    return os.strerror(number) if isinstance(number, int) and number > 0 else str(error)


async def _by_chain(client: Any, url: str, at: str | int | None) -> Any:
    """Return what ``chain_getBlock`` answers; ``None`` where there is no such block."""
    if at is None:
        return await _asked(client, url, "chain_getBlock", [])
    wanted = await _asked(client, url, "chain_getBlockHash", [at]) if isinstance(at, int) else at
    return None if wanted is None else await _asked(client, url, "chain_getBlock", [wanted])


async def _by_archive(client: Any, url: str, at: str | int | None) -> Any:
    """Return header and extrinsics as ``archive_v1`` answers them; ``None`` where there is no such block."""
    wanted = at
    if not isinstance(at, str):
        height = await _asked(client, url, "archive_v1_finalizedHeight", []) if at is None else at
        hashes = await _asked(client, url, "archive_v1_hashByHeight", [height])
        wanted = hashes[0] if isinstance(hashes, list) and hashes else None
    if wanted is None:
        return None
    header, body = [await _asked(client, url, f"archive_v1_{part}", [wanted]) for part in ("header", "body")]
    return None if header is None else {"header": header, "extrinsics": body}


class _UnknownMethod(Exception):
    """A node has no such method."""


async def _asked(client: Any, url: str, method: str, parameters: list[Any]) -> Any:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
    async with asyncio.timeout(SECONDS):
        data = await (_sent if url.startswith("ws") else _posted)(client, url, request)
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or ("result" not in answer and "error" not in answer):
        raise BadInput(url, f"{shown(data.decode(errors='replace'))} for {method}", "an answer of JSON-RPC")
    if "error" in answer:
        error = answer["error"]
        if isinstance(error, dict) and error.get("code") == METHOD_NOT_FOUND:
            raise _UnknownMethod(method)
        said = error.get("message") if isinstance(error, dict) else error
        raise BadInput(url, f"the error {shown(said)} for {method}", "a block")
    return answer["result"]


async def _posted(client: Any, url: str, request: dict[str, Any]) -> bytes:
    async with client.post(url, json=request) as response:
        if response.status != 200:
            raise BadInput(url, f"status {response.status} for {request['method']}", "an answer of JSON-RPC")
        data = bytearray()
        async for part in response.content.iter_any():
            data += part
            if len(data) > MOST_ANSWER_BYTES:
                raise BadInput(url, f"more than {MOST_ANSWER_BYTES:,} bytes", "a smaller answer")
    return bytes(data)


async def _sent(client: Any, url: str, request: dict[str, Any]) -> bytes:
    async with client.ws_connect(url, max_msg_size=MOST_ANSWER_BYTES) as socket:
        await socket.send_json(request)
        message = await socket.receive()
    if not isinstance(message.data, str):
        raise BadInput(url, f"no text ({message.type.name.lower()}) for {request['method']}", "an answer of JSON-RPC")
    return message.data.encode(errors="replace")
