"""Blocks and bytes in JSON, as a Substrate node writes them."""

from relaycast_collator.header import Header


def hexed(data: bytes) -> str:
    return "0x" + data.hex()


def hexed_or_null(data: bytes | None) -> str | None:
    return None if data is None else "0x" + data.hex()


def header_json(header: Header) -> dict[str, object]:
    return {
        "parentHash": hexed(header.parent_hash),
        "number": hex(header.number),
        "stateRoot": hexed(header.state_root),
        "extrinsicsRoot": hexed(header.extrinsics_root),
        "digest": {"logs": [hexed(item.encode()) for item in header.digest]},
    }
