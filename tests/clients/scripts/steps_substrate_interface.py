"""Takes steps on a served relay chain with substrate-interface: URL."""

import sys
from typing import Any

from substrateinterface import Keypair, SubstrateInterface

from clients.scripts.items import MARKER, PUBLISHER, Facts, child_key
from clients.scripts.steps import do_steps


class Steps:
    """What can be asked for."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.charlie = Keypair.create_from_uri("//Charlie")
        self.again()

    def again(self) -> None:
        """Connect anew: this client does not do so by itself."""
        self.relay = SubstrateInterface(url=self.url)

    def ask(self, method: str, *params: object) -> Any:
        return self.relay.rpc_request(method, list(params))["result"]

    def best(self) -> Any:
        return self.relay.get_chain_head()

    def send(self) -> Any:
        call = self.relay.compose_call("System", "remark", {"remark": MARKER})
        nonce = self.ask("system_accountNextIndex", self.charlie.ss58_address)
        signed = self.relay.create_signed_extrinsic(call, self.charlie, nonce=nonce)
        return self.relay.submit_extrinsic(signed, wait_for_inclusion=True).block_hash

    def read(self, at: str) -> Facts:
        relay, child = self.relay, child_key(PUBLISHER)
        key = self.ask("childstate_getKeys", child, "0x", at)[0]
        return {
            "number": relay.query("System", "Number", block_hash=at).value,
            "parent": relay.query("System", "ParentHash", block_hash=at).value,
            "nonce": relay.query("System", "Account", [self.charlie.ss58_address], block_hash=at).value["nonce"],
            "marker": self.ask("state_getStorage", MARKER, at),
            "published": self.ask("childstate_getStorage", child, key, at),
        }

    def heads(self, count: int) -> list[tuple[int, str]]:
        seen: list[tuple[int, str]] = []

        def take(obj: Any, _: int, __: str) -> bool | None:
            seen.append((obj["header"]["number"], obj["header"]["parentHash"]))
            return True if len(seen) == count else None

        self.relay.subscribe_block_headers(take)
        return seen


steps = Steps(sys.argv[1])
do_steps({name: getattr(steps, name) for name in ("again", "best", "send", "read", "heads")})
