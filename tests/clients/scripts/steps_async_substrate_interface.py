"""Takes steps on a served relay chain with async-substrate-interface: URL."""

import asyncio
import sys
from contextlib import suppress
from typing import Any

from async_substrate_interface import AsyncSubstrateInterface

from clients.scripts.async_user import SEEDS, Pair
from clients.scripts.items import MARKER, PUBLISHER, Facts, child_key
from clients.scripts.steps import do_async_steps


class Steps:
    """What can be asked for."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.charlie = Pair(bytes.fromhex(SEEDS["//Charlie"]))
        self.relay: Any = None

    async def again(self) -> None:
        """Connect anew, as after a kill: what the client remembers of the former process goes with it."""
        if self.relay is not None:
            with suppress(Exception):  # it raises what ended its connection
                await self.relay.close()
        self.relay = AsyncSubstrateInterface(url=self.url)
        await self.relay.initialize()

    async def ask(self, method: str, *params: object) -> Any:
        return (await self.relay.rpc_request(method, list(params)))["result"]

    async def best(self) -> Any:
        return await self.relay.get_chain_head()

    async def send(self) -> Any:
        call = await self.relay.compose_call("System", "remark", {"remark": MARKER})
        nonce = await self.ask("system_accountNextIndex", self.charlie.ss58_address)
        signed = await self.relay.create_signed_extrinsic(call, self.charlie, nonce=nonce)
        return (await self.relay.submit_extrinsic(signed, wait_for_inclusion=True)).block_hash

    async def value(self, pallet: str, name: str, at: str, *keys: str) -> Any:
        return (await self.relay.query(pallet, name, list(keys), block_hash=at)).value

    async def read(self, at: str) -> Facts:
        child = child_key(PUBLISHER)
        key = (await self.ask("childstate_getKeys", child, "0x", at))[0]
        return {
            "number": await self.value("System", "Number", at),
            "parent": await self.value("System", "ParentHash", at),
            "nonce": (await self.value("System", "Account", at, self.charlie.ss58_address))["nonce"],
            "marker": await self.ask("state_getStorage", MARKER, at),
            "published": await self.ask("childstate_getStorage", child, key, at),
        }

    async def heads(self, count: int) -> list[tuple[int, str]]:
        seen: list[tuple[int, str]] = []

        async def take(obj: Any) -> bool | None:
            seen.append((obj["header"]["number"], obj["header"]["parentHash"]))
            return True if len(seen) == count else None

        await self.relay.subscribe_block_headers(take)
        return seen


async def main() -> None:
    steps = Steps(sys.argv[1])
    await steps.again()
    await do_async_steps({name: getattr(steps, name) for name in ("again", "best", "send", "read", "heads")})


asyncio.run(main())
