"""Inputs of ``dev_*`` between blocks that are meant to stop a server, and what must hold all the same."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import relaycast as rc
from node.chains import modelled
from relaycast.serve.in_process import ServedNetwork
from relaycast.serve.network import living
from relaycast_node.metadata.declarations import StorageItem
from relaycast_node.rpc.rpc_error import RpcError
from relaycast_pallets.frame.typed_storage import StorageDoubleMap, StorageMap
from relaycast_trie import CHILD_STORAGE_PREFIX

CODES = {-32602, 4003, *range(1001, 1041)}
TIMES: list[Any] = [
    "2263-01-01T00:00:00Z", "2199-12-31T23:59:59Z", "9999-12-31T23:59:59+00:00", "0001-01-01", "2026-01-31T12:00:00Z",
    0, -1, 2**63, 10**30, 1e300, None, "", [], {},
]  # fmt: skip
PACES: list[Any] = [
    1e300,
    1e-9,
    "1e300s",
    "0.000000001s",
    "0s",
    -1,
    0,
    2**70,
    "3600s",
    "99999999999999s",
    None,
    [],
    "manual",
]
HEADS: list[Any] = [0, -1, -2, -(10**9), 10**30, "0x", "0x" + "11" * 32, None, 1.5, [], "latest"]
COUNTS: list[Any] = [
    0,
    -1,
    2**40,
    1.5,
    "x",
    {"cuont": 2},
    {"count": None},
    {"calls": "0x"},
    {"calls": ["0x00"]},
    [],
    True,
]


class Poisoner:
    """Puts poisons into ``chains``, seeded; ``outcomes`` counts what came of them."""

    def __init__(self, chains: ServedNetwork, seed: int) -> None:
        self.chains = chains
        self.rng = random.Random(seed)
        self.outcomes: Counter[str] = Counter()
        live = living("oracle").clock
        self.para_ids: list[int | None] = [None, *live.parachains]
        self.items: dict[int | None, list[StorageItem]] = {
            chain.number_in_entries: [it.item for pallet in modelled(chain).runtime.pallets for it in pallet.storage]
            for chain in live.served()
        }
        self._kinds: list[Callable[[], None]] = [
            self.store, self.store, self.store, self.store, self.store_anywhere, self.store_below, self.publish,
            self.travel, self.pace, self.move, self.remember, self.call_badly,
        ]  # fmt: skip

    def poison(self) -> None:
        """Put in one poison; what is refused is refused with an error of JSON-RPC."""
        self.rng.choice(self._kinds)()

    def ask(self, method: str, *params: Any, para_id: int | None = None) -> Any:
        try:
            answer = self.chains.call(method, *params, para_id=para_id)
        except RpcError as error:
            if error.code not in CODES:
                raise
            self.outcomes[f"{method} refused"] += 1
            return None
        self.outcomes[f"{method} taken"] += 1
        return answer

    def store(self) -> None:
        """Write a value that may be none of its type under an item of a pallet."""
        para_id = self.rng.choice(self.para_ids)
        item = self.rng.choice(self.items[para_id])
        key, there = f"0x{item.prefix.hex()}", None
        if isinstance(item, StorageMap | StorageDoubleMap):
            known = self.chains.call("state_getKeysPaged", key, 5, para_id=para_id)
            key = self.rng.choice([*known, self.key_in(item), key + "00"])
        if self.rng.random() < 0.5:
            there = self.chains.call("state_getStorage", key, para_id=para_id)
        self.ask("dev_setStorage", [[key, self.value(item.codec.size, there)]], para_id=para_id)

    def key_in(self, item: StorageItem) -> str:
        """Return a new key of a map."""
        if isinstance(item, StorageDoubleMap):
            first = self.rng.randbytes(item.first_codec.size or 4)
            second = self.rng.randbytes(item.second_codec.size or 4)
            return f"0x{(item.prefix + item.first_hasher.digest(first) + item.second_hasher.digest(second)).hex()}"
        assert isinstance(item, StorageMap)
        return f"0x{(item.prefix + item.hasher.digest(self.rng.randbytes(item.key_codec.size or 4))).hex()}"

    def value(self, size: int | None, there: str | None) -> str | None:
        """Return a value: nothing, too short, too long, one of the right size, or one like that which is there."""
        if there is not None and len(there) > 2:
            data = bytearray.fromhex(there[2:])
            data[self.rng.randrange(len(data))] ^= 1 << self.rng.randrange(8)
            return f"0x{data.hex()}"
        kind = self.rng.randrange(5)
        if kind == 0:
            return None
        fill = self.rng.choice([b"\x00", b"\xff", b"\x01", self.rng.randbytes(1)])
        return f"0x{(fill * (size if kind < 4 and size else self.rng.choice([0, 1, 4, 33, 100]))).hex()}"

    def store_anywhere(self) -> None:
        size = self.rng.choice([0, 1, 31, 32, 100, 32_767, 32_768, 40_000])
        key = self.rng.choice([b"", b":", b":code", b":child_storage:", CHILD_STORAGE_PREFIX])
        value = self.rng.choice([None, "0x", "0x01", "0x" + "ab" * 100_000])
        pair = [f"0x{(key + self.rng.randbytes(size))[: max(size, len(key))].hex()}", value]
        self.ask("dev_setStorage", [pair], para_id=self.rng.choice(self.para_ids))

    def store_below(self) -> None:
        name = self.rng.choice([b"", b"x", b"pubsub" + (2000).to_bytes(4, "little"), bytes(32_744), bytes(32_745)])
        key = self.rng.randbytes(self.rng.choice([0, 32, 32_767, 32_768]))
        pair = [f"0x{key.hex()}", self.rng.choice([None, "0x", "0x01", "0x" + "ab" * 100])]
        para_id = self.rng.choice(self.para_ids)
        self.ask("dev_setStorage", [pair], f"0x{(CHILD_STORAGE_PREFIX + name).hex()}", para_id=para_id)

    def publish(self) -> None:
        value = "0x" + "cd" * self.rng.choice([0, 1, 1_024, 2_048, 2_049, 70_000])
        key = self.rng.choice(["price", "", "0x", "0x" + "11" * 32, "é" * 1_000])
        ttl = self.rng.choice([0, 1, 2**32 - 1, 2**32, -1, None, "x"])
        self.ask("dev_publish", self.rng.choice([2_000, 3_000, 9]), key, value, ttl)

    def travel(self) -> None:
        self.ask("dev_timeTravel", self.rng.choice(TIMES))

    def pace(self) -> None:
        self.ask("dev_setBlockTime", self.rng.choice(PACES))
        self.ask("dev_setBlockTime", "manual")

    def move(self) -> None:
        self.ask("dev_setHead", self.rng.choice(HEADS), para_id=self.rng.choice(self.para_ids))

    def remember(self) -> None:
        if self.rng.random() < 0.5:
            self.ask("dev_snapshot")
        else:
            self.ask("dev_revert", self.rng.choice([hex(self.rng.randrange(2, 80)), None, -1, "x", 10**30, 1.5]))

    def call_badly(self) -> None:
        para_id = self.rng.choice(self.para_ids)
        self.ask("dev_newBlock", self.rng.choice(COUNTS), [f"0x{self.rng.randbytes(20).hex()}"], para_id=para_id)

    def slip_in(self) -> None:
        """Write what the call refuses, as an input that nothing has checked."""
        para_id = self.rng.choice(self.para_ids)
        item = self.rng.choice(self.items[para_id])
        key = self.rng.choice([item.prefix, bytes(40_000)])
        live = self.chains._server.clock
        self.chains._in_loop(lambda: live.set_storage(para_id, {key: b"\xff"}, is_checked=True))  # type: ignore[arg-type, call-arg]
        self.outcomes["slipped in"] += 1


def heads(chains: ServedNetwork) -> list[Any]:
    return [
        (chains.call("chain_getBlockHash", para_id=it), chains.call("chain_getFinalizedHead", para_id=it))
        for it in (None, *chains.parachains)
    ]


def height(chains: ServedNetwork, para_id: int | None = None) -> int:
    return int(chains.call("chain_getHeader", para_id=para_id)["number"], 16)


def withstand(folder: Path, poisons: int, *, seed: int, a_tick: int = 10) -> Counter[str]:
    """Poison a server between blocks; it stands, builds, goes back to before all that, and starts again as it was."""
    with rc.serve("oracle", data=folder, keep="all") as chains:
        chains.new_block(3)
        clean = chains.call("dev_snapshot")
        chains.new_block()
        poisoner = Poisoner(chains, seed)
        for index in range(poisons):
            if index % 40 == 20:
                poisoner.slip_in()
            poisoner.poison()
            if index % a_tick == a_tick - 1 and poisoner.ask("dev_newBlock") is None:
                before = height(chains)
                chains.new_block()
                assert height(chains) == before + 1
        before_stop = heads(chains)
    with rc.serve("oracle", data=folder, keep="all") as chains:
        assert heads(chains) == before_stop
        assert chains.call("dev_revert", clean)
        chains.new_block(3)
        assert [height(chains, it) for it in (None, *chains.parachains)] == [6, 6, 6, 6]
        after = heads(chains)
    with rc.serve("oracle", data=folder, keep="all") as chains:
        assert heads(chains) == after
    return poisoner.outcomes
