"""A network that serves the new interface alone, asked by the names of legacy methods.

What tests of the whole list ask is translated: blocks and storage come from ``archive_v1_*``, the rest from
``chainSpec_v1_*`` and from runtime calls.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp

from clients.served import Served
from relaycast_collator.header import Header
from relaycast_trie import CHILD_STORAGE_PREFIX
from relaycast_trie.scale import ScaleReader

Translation = Callable[..., Any]


class OnlyNew(Served):
    """``ask`` takes the legacy methods of ``TRANSLATIONS``, and others as they are."""

    def ask(self, method: str, *params: object, para: int | None = None) -> Any:
        """Return what the legacy method would; raises ``AssertionError`` for an error."""
        translation = TRANSLATIONS.get(method)
        if translation is None:
            return Served.ask(self, method, *params, para=para)
        return translation(lambda name, *given: Served.ask(self, name, *given, para=para), self, *params)

    async def stored(self, key: str, at: str, child: str | None) -> str | None:
        """Return a value of a block's storage as ``archive_v1_storage`` tells it, ``None`` where there is none."""
        query = [at, [{"key": key, "type": "value"}], child]
        found = None
        async with aiohttp.ClientSession() as client, client.ws_connect(self.url) as socket:
            await socket.send_json({"jsonrpc": "2.0", "id": 1, "method": "archive_v1_storage", "params": query})
            assert "result" in await socket.receive_json(timeout=30)
            while (event := (await socket.receive_json(timeout=30))["params"]["result"])["event"] == "storage":
                found = event["value"]
            assert event == {"event": "storageDone"}
        return found


def _header(ask: Translation, _served: OnlyNew, at: str) -> dict[str, str]:
    header = Header.decode(bytes.fromhex(ask("archive_v1_header", at)[2:]))
    return {
        "parentHash": f"0x{header.parent_hash.hex()}",
        "number": hex(header.number),
        "stateRoot": f"0x{header.state_root.hex()}",
    }


def _block_hash(ask: Translation, _served: OnlyNew, number: int) -> str:
    found, *_ = ask("archive_v1_hashByHeight", number)  # the best branch comes first
    assert isinstance(found, str)
    return found


def _version(ask: Translation, _served: OnlyNew) -> dict[str, str]:
    """Return the name that ``Core_version`` begins with."""
    genesis = ask("archive_v1_genesisHash")
    output = ask("archive_v1_call", genesis, "Core_version", "0x")["value"]
    return {"specName": ScaleReader(bytes.fromhex(output[2:])).bytes_().decode()}


def _storage(_ask: Translation, served: OnlyNew, key: str, at: str) -> str | None:
    return asyncio.run(served.stored(key, at, None))


def _child_storage(_ask: Translation, served: OnlyNew, child: str, key: str, at: str) -> str | None:
    bare = f"0x{child[2 + 2 * len(CHILD_STORAGE_PREFIX) :]}"
    return asyncio.run(served.stored(key, at, bare))


TRANSLATIONS: dict[str, Translation] = {
    "system_chain": lambda ask, _: ask("chainSpec_v1_chainName"),
    "chain_getBlockHash": _block_hash,
    "chain_getHeader": _header,
    "state_getRuntimeVersion": _version,
    "state_getStorage": _storage,
    "childstate_getStorage": _child_storage,
}
