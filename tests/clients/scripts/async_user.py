"""Who uses async-substrate-interface: development accounts with key pairs, and connections to the chains."""

from typing import Any

import sr25519
from scalecodec.utils.ss58 import ss58_encode

SEEDS = {
    "//Alice": "e5be9a5092b81bca64be81d212e7f2f9eba183bb7a90954f7b76361f6edb5c0a",
    "//Bob": "398f0c28f98885e046333d4a41c19cee4c37368a9832c6502f6cfd182e2aef89",
    "//Charlie": "bc1ede780f784bb6991a585e4f6e61522c14e1cae6ad0895fb57b9a205a8f938",
    "//Dave": "868020ae0687dda7d57565093a69090211449845a7e11453612800b663307246",
}
"""The secrets of the development accounts, as every Substrate node knows them."""


class Pair:
    """An sr25519 key pair as the client wants one (``Keypair``)."""

    crypto_type = 1
    ss58_format = 42

    def __init__(self, seed: bytes) -> None:
        self.public_key, self._secret = sr25519.pair_from_seed(seed)
        self.ss58_address: str = ss58_encode(self.public_key, self.ss58_format)

    def sign(self, data: bytes | str) -> bytes:
        signed: bytes = sr25519.sign((self.public_key, self._secret), bytes(data))  # type: ignore[arg-type]
        return signed


class User:
    """Somebody with connections to the relay chain and two parachains."""

    def __init__(self, relay: Any, newcomer: Any, reader: Any) -> None:
        self.relay, self.newcomer, self.reader = relay, newcomer, reader
        self.alice, self.bob, self.charlie, self.dave = (Pair(bytes.fromhex(seed)) for seed in SEEDS.values())

    async def account(self, who: Pair) -> Any:
        return (await self.relay.query("System", "Account", [who.ss58_address])).value

    async def value(self, pallet: str, name: str, at: str | None = None) -> Any:
        return (await self.relay.query(pallet, name, block_hash=at)).value
