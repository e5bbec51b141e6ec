"""A small relay chain with publishers and one subscriber, whose blocks are written down as vectors.

Publishers write straight into their child tries. ``block`` seals the relay chain, collects, prunes and verifies; the
next block continues from its state. ``lie`` runs a block on other nodes and leaves everything as it was.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from relaycast.vectors.subscriber.block_run import BlockRun, expectation_of, prune, recomputed
from relaycast.vectors.subscriber.block_vector import BlockConfig, BlockVector, CallbackWeight, PalletCall
from relaycast.vectors.vector import VectorSource, VectorWeight, entries, hexed, pairs_of, scenario
from relaycast_pallets.broadcaster.published_entry import PublishedEntry
from relaycast_pallets.broadcaster.publisher_trie import derive_child_info
from relaycast_pallets.frame.state import State
from relaycast_pallets.subscriber.plan import Cursor
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_xcm.primitives import ROCKS_DB, ParaId, Weight

ALPHA, BETA, GAMMA = ParaId(1_000), ParaId(1_001), ParaId(1_002)
"""System parachains."""

PUBLIC, OTHER_PUBLIC = ParaId(2_000), ParaId(3_001)

AMPLE = Weight(2_000_000_000_000, 1 << 20)
"""A budget that every small network fits."""

SMALL = BlockConfig(
    max_trie_depth=8,
    max_publishers=100,
    max_value_length=1_024,
    read_ref_time=ROCKS_DB.read,
    write_ref_time=ROCKS_DB.write,
)

Names = Iterable[SubscribedKey]
Nodes = Sequence[bytes]


def key(name: str | int) -> SubscribedKey:
    """Return the key that is the hash of a name."""
    return SubscribedKey.from_data(str(name).encode())


def keys(count: int, *, prefix: str = "") -> list[SubscribedKey]:
    """Return keys in ascending order."""
    return sorted(key(f"{prefix}{number}") for number in range(count))


def path_key(nibbles: str) -> SubscribedKey:
    """Return the key whose path begins with these hexadecimal digits and goes on with zeros."""
    return SubscribedKey(bytes.fromhex(nibbles.ljust(64, "0")))


def staircase(depth: int, *, subscribed: SubscribedKey | None = None) -> list[SubscribedKey]:
    """Return ``depth`` keys that put as many nodes on the path of the first of them, its leaf included.

    The others part from it after 0, 1, 2, ... nibbles.
    """
    path = (subscribed or path_key("0")).hex()
    others = (path[:at] + f"{int(path[at], 16) ^ 1:x}" + path[at + 1 :] for at in range(depth - 1))
    return [SubscribedKey.fromhex(path), *map(SubscribedKey.fromhex, others)]


STATIC_KEYS = (bytes(key("top0")), bytes(key("no such top")))
"""Relay keys that every block reads first: one that exists, and one that does not."""


@dataclass(frozen=True)
class About:
    """Which vector: its path-like ``name``, ``why`` it exists in one line, and its ``source``."""

    name: str
    why: str
    source: VectorSource

    def at(self, part: object, why: str | None = None) -> "About":
        """Return the same for a part of it."""
        return About(f"{self.name}/{part}", self.why if why is None else why, self.source)


def executes(title: str, name: str, why: str) -> About:
    """Return name, reason and source of a vector that executes ``Requirement / Scenario`` of the specification."""
    return About(f"scenarios/{name}", why, scenario(title))


@dataclass
class SmallNetwork:
    """The relay chain's state sealed at ``number``, what the subscriber keeps, and what it wants.

    ``wanted`` is what ``subscriptions()`` returns, in its order and with its repeats; ``also`` are keys that the
    collector proves besides.
    """

    config: BlockConfig = SMALL
    policies: Mapping[str, str] = field(default_factory=dict)
    static_keys: tuple[bytes, ...] = STATIC_KEYS
    relay: State = field(
        default_factory=lambda: State({key(f"top{it}"): bytes(8) for it in range(4)}, window=4, engine="plain")
    )
    declared_weight: Weight = Weight.ZERO
    callback_weights: dict[Cursor, Weight] = field(default_factory=dict)
    used_weights: dict[Cursor, Weight] = field(default_factory=dict)
    number: int = 0
    kept: dict[bytes, bytes] = field(default_factory=dict)
    wanted: list[tuple[ParaId, list[SubscribedKey]]] = field(default_factory=list)
    also: dict[ParaId, list[SubscribedKey]] = field(default_factory=dict)

    def publish(self, publisher: ParaId, written: Names, value: bytes = b"\x2a", *, ttl: int = 0) -> None:
        """Let ``publisher`` write ``value`` under each key with the next relay block."""
        entry = PublishedEntry(value, ttl, self.number + 1).encode()
        for each in written:
            self.write(publisher, each, entry)

    def write(self, publisher: ParaId, written: SubscribedKey, entry: bytes) -> None:
        """Put bytes as they are into a publisher's child trie."""
        self.relay.child(derive_child_info(publisher)).put(written, entry)

    def entry(self, publisher: ParaId, written: SubscribedKey) -> bytes | None:
        return self.relay.child(derive_child_info(publisher)).get(written)

    def delete(self, publisher: ParaId, deleted: Names) -> None:
        for each in deleted:
            self.relay.child(derive_child_info(publisher)).kill(each)

    def subscribe(self, publisher: ParaId, wanted: Names) -> None:
        """Want exactly these keys of a publisher; none of it when there are none."""
        chosen = list(wanted)
        held = dict(self.wanted)
        if publisher in held or chosen:
            held[publisher] = chosen
        self.wanted = [(para_id, some) for para_id, some in held.items() if some]

    def seal(self) -> None:
        self.number += 1
        self.relay.commit()

    def collect(self, asked: BlockVector) -> list[bytes]:
        """Return what an honest collator fetches for the block, sorted."""
        root = self.relay.root
        proofs = [self.relay.prove_read(root, list(self.static_keys))]
        for name, wanted in BlockRun(asked).subscriber.relay_keys().by_child_trie().items():
            proofs.append(self.relay.prove_child_read(root, ChildInfo(name), wanted))
        for publisher, more in self.also.items():
            proofs.append(self.relay.prove_child_read(root, derive_child_info(publisher), more))
        return sorted(StorageProof.merge(proofs).nodes)

    def asked(
        self,
        about: About,
        *,
        budget: Weight = AMPLE,
        seed: bytes = b"seed",
        crowded: bool = False,
        calls: Iterable[PalletCall] = (),
    ) -> BlockVector:
        """Return the vector of a block on the sealed relay state, without nodes."""
        return BlockVector(
            id=f"subscriber/{about.name}",
            why=about.why,
            policies=dict(self.policies),
            source=about.source,
            config=self.config,
            subscriptions=tuple((int(para_id), tuple(map(hexed, some))) for para_id, some in self.wanted),
            declared_weight=VectorWeight.of(self.declared_weight),
            before=tuple(entries(self.kept)),
            relay_root=hexed(self.relay.root),
            relay_parent_number=self.number,
            seed=hexed(seed),
            crowded=crowded,
            budget=VectorWeight.of(budget),
            static_keys=tuple(map(hexed, self.static_keys)),
            nodes=(),
            given=(),
            calls=tuple(calls),
            callback_weights=_written(self.callback_weights),
            used_weights=_written(self.used_weights),
        )

    def honest(
        self,
        about: About,
        *,
        budget: Weight = AMPLE,
        seed: bytes = b"seed",
        crowded: bool = False,
        calls: Iterable[PalletCall] = (),
        seal: bool = True,
    ) -> BlockVector:
        """Return the vector of an honest collator's block; what the subscriber keeps stays as it is."""
        if seal:
            self.seal()
        asked = self.asked(about, budget=budget, seed=seed, crowded=crowded, calls=calls)
        return honest_vector(asked, self.collect(asked))

    def block(
        self,
        about: About,
        *,
        budget: Weight = AMPLE,
        seed: bytes = b"seed",
        crowded: bool = False,
        calls: Iterable[PalletCall] = (),
        seal: bool = True,
    ) -> BlockVector:
        """Return the vector of an honest collator's block, and go on from what it leaves."""
        vector = self.honest(about, budget=budget, seed=seed, crowded=crowded, calls=calls, seal=seal)
        self.follow(vector)
        return vector

    def follow(self, vector: BlockVector) -> None:
        """Go on from what a block leaves; one that panics leaves nothing."""
        if isinstance(vector.expect.after, tuple):
            self.kept = pairs_of(vector.expect.after)

    def lie(self, honest: BlockVector, about: About, nodes: Nodes) -> BlockVector:
        """Return the vector of the same block with other nodes."""
        return lying_vector(replace(honest, id=f"subscriber/{about.name}", why=about.why, source=about.source), nodes)


def _written(weights: Mapping[Cursor, Weight]) -> tuple[CallbackWeight, ...]:
    return tuple((int(publisher), hexed(key), VectorWeight.of(it)) for (publisher, key), it in weights.items())


def honest_vector(asked: BlockVector, collected: Nodes) -> BlockVector:
    """Return the vector with collected nodes, what PRUNE keeps of them, and what VERIFY makes of that.

    Raises ``AssertionError`` where the two modes differ, or where the block panics.
    """
    table = tuple(map(hexed, collected))
    kept, _ = prune(replace(asked, nodes=table, collected=tuple(range(len(table)))))
    vector = recomputed(replace(asked, nodes=table, collected=tuple(range(len(table))), given=kept))
    assert not vector.expect.panic, f"{vector.id}: an honest block panics: {vector.expect.panic}"
    return vector


def lying_vector(honest: BlockVector, nodes: Nodes) -> BlockVector:
    """Return the vector of a block that is given ``nodes``, with what VERIFY makes of them."""
    table = sorted(set(nodes))
    places = {node: place for place, node in enumerate(table)}
    vector = replace(
        honest,
        nodes=tuple(map(hexed, table)),
        given=tuple(places[node] for node in nodes),
        collected=None,
        pruned=None,
    )
    return replace(vector, expect=expectation_of(vector))


def version_0(top: Mapping[bytes, bytes] | None = None) -> State:
    """Return a relay chain state of version 0: values stand inside their nodes, however long they are."""
    held = {bytes(key(f"top{it}")): bytes(8) for it in range(4)}
    return State({**held, **(top or {})}, state_version=StateVersion.V0, window=4, engine="plain")
