"""A chain in memory with the faces that methods need: blocks of plain dictionaries, no pallets behind them."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relaycast_collator import ChainSimulator
from relaycast_collator.header import DigestItem, Header, ordered_root
from relaycast_node.block_time import BlockTime
from relaycast_node.chain.code import CodeVersion
from relaycast_node.chain.exceptions import CannotGoBack, UnknownBlock
from relaycast_node.chain.modelled_calls import call_modelled, version_of
from relaycast_node.chain.served_chain import Finality
from relaycast_node.extrinsic.decoded_call import DecodedCall
from relaycast_node.extrinsic.extrinsic import extrinsic_hash, take_extrinsic
from relaycast_node.extrinsic.pool_errors import AlreadyImported
from relaycast_node.extrinsic.watchers import READY, StatusCallback, Watchers
from relaycast_node.metadata.runtime import RuntimeNames
from relaycast_pallets.frame.dispatch import DispatchClass, DispatchInfo, Pays
from relaycast_pallets.frame.state import State, StateDiscarded
from relaycast_pallets.transaction_payment import FeeDetails
from relaycast_trie import ChildInfo, blake2_256
from relaycast_xcm import ParaId, Weight

ALICE = blake2_256(b"alice")


class Signal:
    def __init__(self) -> None:
        self.callbacks: list[Callable[[Any], None]] = []

    def connect(self, callback: Callable[[Any], None]) -> Callable[[], None]:
        self.callbacks.append(callback)
        return lambda: self.callbacks.remove(callback)

    def send(self, value: object) -> None:
        for callback in tuple(self.callbacks):
            callback(value)


@dataclass(frozen=True)
class SmallBlock:
    header: Header
    extrinsics: tuple[bytes, ...] = ()
    changes: Mapping[bytes, bytes | None] = field(default_factory=dict)

    @property
    def hash(self) -> bytes:
        return self.header.hash


@dataclass(frozen=True)
class SmallState:
    values: Mapping[bytes, bytes]
    children: Mapping[bytes, Mapping[bytes, bytes]] = field(default_factory=dict)

    def get(self, key: bytes) -> bytes | None:
        return self.values.get(key)

    def keys(self, prefix: bytes = b"", *, after: bytes | None = None) -> Iterator[bytes]:
        return iter(sorted(key for key in self.values if key.startswith(prefix) and (after is None or key > after)))

    def pairs(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        return ((key, self.values[key]) for key in self.keys(prefix))

    def child(self, storage_key: bytes) -> "SmallState":
        return SmallState(self.children.get(storage_key, {}))


class SmallPool:
    def __init__(self) -> None:
        self.waiting: dict[bytes, bytes] = {}
        self.watchers = Watchers()

    def pending(self) -> Sequence[bytes]:
        return list(self.waiting.values())

    def next_nonce(self, account: bytes) -> int:
        return 5 if account == ALICE else 0

    def watch(self, extrinsic_hash: bytes, callback: StatusCallback) -> Callable[[], None]:
        return self.watchers.connect(extrinsic_hash, callback)


class SmallRuntime:
    names = RuntimeNames("small", spec_version=7, transaction_version=3)

    def decode_call(self, data: bytes) -> DecodedCall:
        return DecodedCall("System", "remark", {"remark": data[2:]}, data)


class SmallFees:
    def info(self, _call: DecodedCall) -> DispatchInfo:
        return DispatchInfo(Weight(1_000, 20), DispatchClass.Normal, Pays.Yes)

    def details(self, _call: DecodedCall, _length: int) -> FeeDetails:
        return FeeDetails(12_000, 300, 45)

    def weight_to_fee(self, weight: Weight) -> int:
        return weight.ref_time * 2

    def length_to_fee(self, length: int) -> int:
        return length * 3


class SmallView:
    """Every account but Alice's has the nonce 0; signatures are never right."""

    genesis_hash = bytes(32)
    spec_version = 7
    transaction_version = 3
    block_number = 1

    def block_hash(self, _number: int) -> bytes | None:
        return bytes(32)

    def nonce(self, account: bytes) -> int:
        return 5 if account == ALICE else 0

    def can_pay(self, _account: bytes, _fee: int) -> bool:
        return True

    def fee(self, _call: DecodedCall, _encoded_length: int, tip: int) -> int:
        return tip

    def decode_call(self, data: bytes) -> DecodedCall:
        return SmallRuntime().decode_call(data)

    def weight_fits(self, _call: DecodedCall, _encoded_length: int) -> bool:
        return True

    def is_mandatory(self, _call: DecodedCall) -> bool:
        return False

    def transactions_per_block(self, _call: DecodedCall, _encoded_length: int) -> int:
        return 1


class SmallChain:
    """Blocks on a genesis; ``add`` builds the next one from changes of the top trie. The last but two is final."""

    def __init__(
        self,
        values: Mapping[bytes, bytes],
        children: Mapping[bytes, Mapping[bytes, bytes]] | None = None,
        *,
        window: int = 256,
    ) -> None:
        self.name = "Small"
        self.para_id: ParaId | None = None
        self.properties: dict[str, Any] = {"ss58Format": 42, "tokenDecimals": 12, "tokenSymbol": "UNIT"}
        self.runtime, self.pool = SmallRuntime(), SmallPool()
        self.new_heads, self.moved_heads, self.finalized_heads = Signal(), Signal(), Signal()
        self.children = {name: dict(held) for name, held in (children or {}).items()}
        infos = {ChildInfo.new_default(name): held for name, held in self.children.items()}
        self.state = State(values, infos, window=window, engine="plain")
        self.blocks: list[SmallBlock] = []
        self.known: dict[bytes, SmallBlock] = {}
        self.states: dict[bytes, SmallState] = {}
        self._seal(Header(bytes(32), 0, self.state.root), (), {})
        self.genesis_hash = self.best.hash

    def _seal(self, header: Header, extrinsics: tuple[bytes, ...], changes: Mapping[bytes, bytes | None]) -> SmallBlock:
        block = SmallBlock(header, extrinsics, changes)
        self.blocks.append(block)
        self.known[block.hash] = block
        self.states[block.hash] = SmallState(dict(self.state.iter_prefix(b"")), self.children)
        return block

    def add(self, changes: Mapping[bytes, bytes | None] | None = None) -> SmallBlock:
        for key, value in (changes or {}).items():
            if value is None:
                self.state.kill(key)
            else:
                self.state.put(key, value)
        parent, extrinsics = self.best, tuple(self.pool.waiting.values())
        number = parent.header.number + 1
        log = DigestItem.pre_runtime(b"aura", number.to_bytes(8, "little"))
        header = Header(parent.hash, number, self.state.commit(), ordered_root(list(extrinsics)), (log,))
        block = self._seal(header, extrinsics, dict(changes or {}))
        hashes = list(self.pool.waiting)
        self.pool.waiting.clear()
        self.pool.watchers.in_block(block.hash, hashes)
        self.new_heads.send(block)
        self.finalized_heads.send(Finality(self.finalized))  # type: ignore[arg-type]
        self.pool.watchers.finalized(self.finalized.hash)
        return block

    @property
    def best(self) -> SmallBlock:
        return self.blocks[-1]

    @property
    def finalized(self) -> SmallBlock:
        return self.blocks[max(len(self.blocks) - 3, 0)]

    def block(self, block_hash: bytes) -> SmallBlock | None:
        return self.known.get(block_hash)

    def hash_of(self, number: int) -> bytes | None:
        return self.blocks[number].hash if number < len(self.blocks) else None

    def hashes_at(self, number: int) -> list[bytes]:
        return [block.hash for block in self.blocks if block.header.number == number]

    def state_at(self, block_hash: bytes) -> SmallState:
        state = self.states.get(block_hash)
        if state is None:
            raise StateDiscarded(block_hash)
        return state

    def remove(self, hashes: Sequence[bytes]) -> Sequence[bytes]:
        return [it for it in hashes if self.pool.waiting.pop(it, None) is not None]

    def prove(self, block_hash: bytes, keys: list[bytes]) -> list[bytes]:
        return list(self.state.prove_read(self.known[block_hash].header.state_root, keys).nodes)

    def prove_child(self, block_hash: bytes, storage_key: bytes, keys: list[bytes]) -> list[bytes]:
        root, info = self.known[block_hash].header.state_root, ChildInfo.new_default(storage_key)
        return list(self.state.prove_child_read(root, info, keys).nodes)

    def submit(self, data: bytes) -> bytes:
        take_extrinsic(data)
        found = extrinsic_hash(data)
        if found in self.pool.waiting:
            raise AlreadyImported(found)
        self.pool.waiting[found] = data
        self.pool.watchers.tell(found, READY)
        return found

    def metadata_in(self, version: int) -> bytes:
        return b"meta" + bytes([version])

    def metadata(self, _block_hash: bytes) -> bytes:
        return self.metadata_in(14)

    def version(self, _block_hash: bytes) -> CodeVersion:
        return version_of(self.runtime.names)

    def call(self, method: str, data: bytes, block_hash: bytes) -> bytes:
        return call_modelled(self, method, data, block_hash)

    def dry_run(self, data: bytes, _block_hash: bytes) -> bytes:
        take_extrinsic(data)
        return b"\x00\x00"

    def view_at(self, _block_hash: bytes) -> SmallView:
        return SmallView()

    @property
    def fees(self) -> SmallFees:
        return SmallFees()


class SmallLive:
    """The clock of one small chain, and chains without parachains for the dev methods."""

    def __init__(self, relay: SmallChain) -> None:
        self.relay, self.parachains, self.chains = relay, dict[int, SmallChain](), ChainSimulator()
        self.block_time: BlockTime = "manual"
        self.reached_block_time: float | None = None
        self.facts, self.taken_back = Signal(), Signal()
        self.listener_failures = 0

    async def run(self) -> None:
        """Wait for ever: blocks come on demand."""
        await asyncio.Event().wait()

    async def build(self) -> list[SmallBlock]:
        await asyncio.sleep(0)
        return [self.relay.add()]

    def set_storage(
        self, para_id: ParaId | None, values: Mapping[bytes, bytes | None], *, child: bytes | None = None
    ) -> None:
        assert para_id is None
        assert child is None
        self.relay.add(values)

    @property
    def snapshots(self) -> list[int]:
        return []

    def snapshot(self) -> int:
        """Refuse: this chain has no way back."""
        raise CannotGoBack("a small chain cannot go back")

    def set_head(self, _chain: object, block_hash: bytes) -> SmallBlock:
        raise UnknownBlock(block_hash)

    def revert(self, number: int) -> None:
        raise KeyError(number)

    def travel(self, milliseconds: int) -> None:
        raise CannotGoBack(f"{milliseconds} ms: a small chain has no time")

    def publish(self, para_id: int, key: bytes, value: bytes, *, ttl: int = 0) -> None:
        raise ValueError(f"there is no parachain {para_id} for {key!r}, {value!r}, {ttl}")
