"""A vector of kind ``subscriber``: one block of a subscriber, with everything that its pass starts from and leaves."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from relaycast.vectors.vector import Entry, Hash, Hex, ParaNumber, U32Number, Vector, VectorWeight, hexed, unhexed
from relaycast_pallets.subscriber.plan import Cursor
from relaycast_xcm.primitives import DbWeight

Place = Annotated[int, Meta(ge=0, description="an index into nodes")]
Bytes = Annotated[int, Meta(ge=0, description="a number of bytes")]

KeyOf = tuple[ParaNumber, Hash]
"""A publisher and one of its keys."""

Callback = tuple[ParaNumber, Hash, Hex | None, Hex | None]
"""Publisher, key, value, and the time to live that is left, in SCALE; both are ``None`` for a told deletion."""

CallbackWeight = tuple[ParaNumber, Hash, VectorWeight]
"""Publisher, key, and what a callback for it weighs."""

PalletCall = tuple[str, ParaNumber]
"""A call by the root origin, and the publisher that it is about."""


class BlockConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Limits in nodes on a path, in publishers and in bytes, and what a database read and write take (picoseconds)."""

    max_trie_depth: U32Number
    max_publishers: U32Number
    max_value_length: U32Number
    read_ref_time: int
    write_ref_time: int
    callback_limit: VectorWeight | None = None
    """The limit of a block's callbacks together; present if callbacks declare a weight."""

    @property
    def db_weight(self) -> DbWeight:
        return DbWeight(self.read_ref_time, self.write_ref_time)


class PovShare(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the budget of a block follows from its largest proof and from the messages that wait.

    The first four are given: bytes of the largest proof, percent of it that may be used, and the lengths of downward
    and horizontal messages. The others are what follows: how many are in full, and what pub-sub may use.
    """

    max_pov_size: Bytes
    percent: int
    downward: tuple[Bytes, ...]
    horizontal: tuple[Bytes, ...]
    downward_full: int
    horizontal_full: int
    pubsub_bytes: Bytes


class BlockPanic(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Why a block is refused.

    ``publisher`` and ``key`` say where an omission shows and ``remaining`` what was left of the budget there
    (``IncompleteBelowLimit``); ``hashes`` are those of the nodes that were not used, sorted (``UnusedNodes``).
    """

    cause: str
    publisher: ParaNumber | None = None
    key: Hash | None = None
    remaining: VectorWeight | None = None
    hashes: tuple[Hash, ...] | None = None


class BlockExpectation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is expected of a block: a ``panic`` and nothing else, or all the others.

    ``call_results`` has ``ok`` or the name of an error for each of the vector's calls.
    """

    panic: BlockPanic | UnsetType = UNSET
    consumed: VectorWeight | UnsetType = UNSET
    complete: bool | UnsetType = UNSET
    stopped_at: KeyOf | UnsetType | None = UNSET
    cursor: KeyOf | UnsetType | None = UNSET
    owed: KeyOf | UnsetType | None = UNSET
    callbacks: tuple[Callback, ...] | UnsetType = UNSET
    events: tuple[Hex, ...] | UnsetType = UNSET
    after: tuple[Entry, ...] | UnsetType = UNSET
    call_results: tuple[str, ...] | UnsetType = UNSET
    callback_weight: VectorWeight | UnsetType = UNSET
    """The declared weight of all callbacks."""


class BlockVector(Vector, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One block: what its pass starts from, what it is given, and what is expected.

    ``collected`` and ``pruned`` are absent where the nodes given are not an honest collator's.
    """

    config: BlockConfig
    subscriptions: tuple[tuple[ParaNumber, tuple[Hash, ...]], ...]
    declared_weight: VectorWeight
    before: tuple[Entry, ...]
    relay_root: Hash
    relay_parent_number: U32Number
    seed: Hex
    crowded: bool
    budget: VectorWeight
    static_keys: tuple[Hex, ...]
    nodes: tuple[Hex, ...]
    given: tuple[Place, ...]
    collected: tuple[Place, ...] | None = None
    pruned: tuple[Place, ...] | None = None
    calls: tuple[PalletCall, ...] = ()
    """``clear_stored_roots``, ``enable_publisher`` and ``clear_publisher_cache``, made after the pass."""

    callback_weights: tuple[CallbackWeight, ...] = ()
    """Declared weights of callbacks; those that are not listed weigh nothing."""

    used_weights: tuple[CallbackWeight, ...] = ()
    """Weights that callbacks return instead of the declared ones."""

    share: PovShare | None = None
    hashed_keys: tuple[tuple[Hex, Hash], ...] = ()
    """Data, and the subscribed key that is its Blake2b-256 hash."""

    expect: BlockExpectation = BlockExpectation()

    def nodes_at(self, places: Iterable[int]) -> list[bytes]:
        """Return the nodes that indexes stand for, in their order."""
        return [unhexed(self.nodes[place]) for place in places]


def key_of(cursor: Cursor | None) -> KeyOf | None:
    """Return a publisher and its key as vectors spell them."""
    return None if cursor is None else (int(cursor[0]), hexed(cursor[1]))
