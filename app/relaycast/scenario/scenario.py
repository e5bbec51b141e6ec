"""Scenarios: what a simulation is made of, in files shaped like zombienet's.

Law: a scenario is strict. A name that is not known, a number out of range or a reference to nobody raises ``BadInput``
with the path inside the file, before anything runs. Presets are folded in once it is read, so that its digest names
the run. Blocks are those of the relay chain, counted from 1, unless they are said to be a parachain's.

An option that joins later is ``UNSET`` where a file does not give it. A default would be encoded, and every scenario of
before would come to another digest.
"""

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict, replace

from relaycast.account import FEES
from relaycast.callback_time import limit_of, weight_of
from relaycast.scenario.message_load import MessageLoad
from relaycast.scenario.policy_choice import PolicyTable
from relaycast.scenario.ranges import (
    U32,
    Block,
    CallbackProofBytes,
    Count,
    Microseconds,
    Percentage,
    Planck,
    PublishedBytes,
    TotalBytes,
    TrieDepth,
    ValueBytes,
)
from relaycast.scenario.upgrade_tables import RelayUpgradeTable, UpgradeTable
from relaycast_collator.collator import Pace
from relaycast_pallets.subscriber.config import CALLBACK_LIMIT
from relaycast_xcm import Weight

if TYPE_CHECKING:
    from relaycast.scenario.recording import Recording

MAX_BLOCKS = 1_000_000
MAX_SEED = 2**63 - 1


class Grief(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys that somebody crafts so that the way to a publisher's first key gets longer, a node for each of them."""

    keys: Annotated[int, Meta(ge=1, le=64)]
    at: Block
    """The relay block in which the first one is sent; the others follow, one in each block."""


class Payment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a publisher's messages pay their execution with; one DOT is 10,000,000,000 planck."""

    balance: Planck
    """What its account on the relay chain has at first, in planck."""

    fees: Planck = FEES
    """What a publication may cost at most, in planck; what its message does not need returns to the account."""


class PublishTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a parachain publishes: ``keys`` named ``prefix/0``, ``prefix/1``, ..., ``changed`` of them at a time."""

    keys: Count
    """How many keys there are, of different names."""

    value_bytes: ValueBytes | Annotated[list[ValueBytes], Meta(min_length=1)] = 16
    """One size for all keys, or sizes that take turns."""

    every: Count = 1
    """Relay blocks between publications; the first one, at block 1, sends every key."""

    changed: Count | Percentage | None = None
    """Keys that a publication sends, by number or as in "10%"; all of them where it is not given."""

    picked: Literal["in-turn", "random"] | UnsetType = UNSET
    """Which keys change: in turn by default, or drawn anew for each publication."""

    ttl: U32 = 0
    """Relay blocks until an entry expires; 0 is never."""

    prefix: str = "key"
    """What the names of the keys begin with; a name is hashed into its key."""

    new_value_every: Count = 1
    """Publications from one new value to the next; those between repeat it, as heartbeats."""

    starts_at: Block = 1
    """The relay block of the first publication."""

    stops_at: Block | None = None
    """The first relay block in which nothing is sent."""

    deregisters_at: Block | None = None
    """The relay block in which the publisher's manager deregisters it, and all that it published goes."""

    grief: Grief | None = None
    """Keys of somebody else that lengthen the way to the first key."""

    payment: Payment | UnsetType = UNSET
    """What its messages pay with; where it is not given they ask for free execution."""

    @property
    def changed_keys(self) -> int:
        """How many keys a publication sends, the first one apart."""
        if isinstance(self.changed, str):
            return max(1, round(self.keys * float(self.changed.removesuffix("%")) / 100))
        return self.keys if self.changed is None else self.changed

    def size_of(self, index: int) -> int:
        """Return the bytes of the value of the key numbered ``index``."""
        if isinstance(self.value_bytes, int):
            return self.value_bytes
        return self.value_bytes[index % len(self.value_bytes)]


class SubscriptionTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a parachain reads of one ``publisher``: its first ``keys``, some by name, or all."""

    publisher: U32
    keys: Count | Annotated[list[str], Meta(min_length=1)] | str = "all"
    """A number for the first ones, a range of numbers as in "100..150" (50 keys), a list of names, or all."""

    starts_at: Block = 1
    """The relay block from which on the keys are wanted."""

    stops_at: Block | None = None
    """The first relay block after the subscription has ended."""

    slides_every: Count | None = None
    """Relay blocks after which the first of the ``keys`` is dropped and the next one subscribed instead."""

    callback_us: Microseconds | UnsetType = UNSET
    """Computation time that a callback for one of these keys declares and takes, in microseconds; by default none."""

    callback_proof_bytes: CallbackProofBytes | UnsetType = UNSET
    """Bytes of proof that such a callback declares and takes, modelled; by default none."""

    @property
    def declares(self) -> bool:
        """Whether it says what a callback weighs."""
        return isinstance(self.callback_us, int) or isinstance(self.callback_proof_bytes, int)

    @property
    def callback_weight(self) -> Weight:
        """What one callback declares."""
        return weight_of(self.callback_us or 0, self.callback_proof_bytes or 0)


class ParachainTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A parachain: it publishes, subscribes, or does both; or it has a real runtime, and does what that says."""

    id: U32
    name: str = ""
    publish: PublishTable | None = None
    """What it publishes; it registers with the first relay block where its id asks for that."""

    subscribe: list[SubscriptionTable] = []
    """What it reads."""

    copies: Annotated[int, Meta(ge=1, le=1_000)] = 1
    """How many parachains like this one there are, with ``id`` and those that follow it."""

    relay_blocks_per_block: Annotated[int, Meta(ge=1, le=1_000)] = 1
    """Relay blocks from one of its blocks to the next: 1 with asynchronous backing, 2 without.

    A real runtime with longer slots builds once a slot.
    """

    cores: Annotated[int, Meta(ge=1, le=16)] = 1
    """Blocks that it builds at a time on one relay parent: elastic scaling."""

    relay_parent_offset: Annotated[int, Meta(ge=0, le=32)] = 0
    """How many relay blocks older than the newest one its relay parents are."""

    max_trie_depth: TrieDepth = 16
    """Nodes on the way to a key beyond which a publisher is disabled."""

    max_publishers: Count | UnsetType = UNSET
    """Publishers that it reads at a time, 100 where it is not given."""

    max_subscribed_keys: Count | UnsetType = UNSET
    """Keys that it reads of one publisher at a time; no limit where it is not given."""

    max_total_keys: Count | UnsetType = UNSET
    """Keys that it reads at a time, of all publishers together; no limit where it is not given."""

    max_cached_bytes: U32 | UnsetType = UNSET
    """Bytes of the trie nodes that it keeps, nearest to the roots first; no limit where it is not given.

    Every publisher has the same share. What is not kept is proven and delivered again when a change leads there.
    """

    callback_limit_us: Microseconds | UnsetType = UNSET
    """Microseconds that the callbacks of a block may declare; further ones wait for the next block.

    By default 500,000, a quarter of the time of a block; 0 is no limit, as in the drafts.
    """

    messages: MessageLoad | None = None
    """What arrives beside pub-sub; it goes first in every block."""

    wasm: str | UnsetType = UNSET
    """Its real runtime, compiled to WebAssembly, compressed or not; by default the ``:code`` of its genesis.

    Its path is relative to the scenario file.
    """

    genesis: str | UnsetType = UNSET
    """What a real runtime starts from: a raw chain spec, or keys and values, the path relative to the scenario file."""

    extrinsics: str | UnsetType = UNSET
    """Extrinsics by relay block, for a real runtime: a JSON file, the path relative to the scenario file."""

    upgrades: list[UpgradeTable] | UnsetType = UNSET
    """Runtime upgrades in mid-run, in the order of their blocks."""

    @property
    def reads(self) -> bool:
        """Whether it subscribes to anything at any time."""
        return bool(self.subscribe or upgraded_subscriptions(self))

    @property
    def publishers_read(self) -> set[int]:
        """Those whose keys it subscribes to at any time."""
        later = (it for tables in upgraded_subscriptions(self).values() for it in tables)
        return {it.publisher for it in (*self.subscribe, *later)}

    @property
    def pace(self) -> Pace:
        """When it builds."""
        return Pace(self.relay_blocks_per_block, self.cores, self.relay_parent_offset)

    @property
    def callback_limit(self) -> Weight:
        """The most that the callbacks of a block may weigh."""
        return CALLBACK_LIMIT if isinstance(self.callback_limit_us, UnsetType) else limit_of(self.callback_limit_us)

    @property
    def is_wasm(self) -> bool:
        """Whether a real runtime builds its blocks."""
        return isinstance(self.wasm, str) or isinstance(self.genesis, str)


class RelayChainTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The relay chain: where it starts from, and its limits."""

    genesis: str | None = None
    """A raw chain spec, keys and values in JSON or Parquet, or a witness; its path is relative to the scenario file.

    Without it the relay chain starts from a modelled state.
    """

    wasm: str | UnsetType = UNSET
    """Its own runtime, which builds its blocks beside the modelled pallets; it needs a genesis.

    Its path is relative to the scenario file.
    """

    state_version: Literal[0, 1] | None = None
    """The state version of the state before block 1: 1 migrates a genesis of version 0. By default as the genesis is.

    From block 1 on the relay chain writes in version 1.
    """

    block_seconds: Annotated[float, Meta(gt=0, le=3600)] = 6.0
    """Seconds from one relay block to the next: 6, or 2 as proposed."""

    max_pov_bytes: Annotated[int, Meta(ge=4_096, le=1 << 30)] = 5_242_880
    """At least about what every block brings along, pub-sub or not."""

    pov_percent: Annotated[int, Meta(ge=1, le=100)] = 85
    """Share of the maximum that collators use."""

    pov_bytes: Annotated[int, Meta(ge=1, le=1 << 30)] | None = None
    """Bytes that collators use, in place of pov_percent."""

    registration: Literal["public", "open"] = "public"
    """Which parachains an account may register: public ones, or any, as in the drafts."""

    max_publishers: Count = 1_000
    max_stored_keys: Count = 4_000
    max_value_bytes: PublishedBytes = 2_048
    """At most what a ``Publish`` instruction can carry."""

    max_total_bytes: TotalBytes = 2_097_152
    max_publishes_per_block: Count | UnsetType = UNSET
    """Publications of one publisher in one relay block; no limit where it is not given. Those beyond it are refused."""

    upgrades: list[RelayUpgradeTable] | UnsetType = UNSET
    """Runtime upgrades in mid-run, in the order of their blocks."""

    @property
    def allowed_pov_bytes(self) -> int:
        """Return what a block may bring along."""
        if self.pov_bytes is not None:
            return min(self.pov_bytes, self.max_pov_bytes)
        return self.max_pov_bytes * self.pov_percent // 100


class Scenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A relay chain, parachains, and how long they run."""

    parachains: Annotated[list[ParachainTable], Meta(min_length=1)]
    """One table for each; over those of the scenario that is extended by their ids."""

    name: str = "scenario"
    description: str = ""
    """What the scenario shows, for summaries and reports."""

    extends: str | None = None
    """A preset, or a scenario file relative to this one: it says what is not said here."""

    seed: Annotated[int, Meta(ge=0, le=MAX_SEED)] = 0
    """Everything follows from it."""

    blocks: Annotated[int, Meta(ge=1, le=MAX_BLOCKS)] = 60
    """With recorded ``publications``, unless given, as many as they have and two more, in which the last arrive."""

    publications: str | None = None
    """Recorded publications in CSV or Parquet, the path relative to the scenario file: block, para_id, key, value, ttl.

    A parachain that is in there needs no ``publish``.
    """

    warm_up: Annotated[int, Meta(ge=0, le=MAX_BLOCKS)] | Literal["auto"] = "auto"
    """Relay blocks at the beginning that percentiles and charts leave out; "auto": up to a reader's first callback."""

    relaychain: RelayChainTable = RelayChainTable()
    """Where it starts from, and its limits."""

    policies: PolicyTable = PolicyTable()
    """What parachains do where public drafts disagree."""

    def publishers(self) -> dict[int, PublishTable]:
        """Return what is published, by parachain."""
        return {chain.id: chain.publish for chain in self.parachains if chain.publish is not None}

    def recording(self) -> "Recording | None":
        """Return what is recorded in ``publications``, all of it checked; raises ``BadInput``."""
        if self.publications is None:
            return None
        from relaycast.scenario.recording import TraceTerms, recording  # noqa: PLC0415 - pyarrow is slow to load

        by_rule = frozenset(self.publishers())
        others = frozenset(chain.id for chain in self.parachains) - by_rule
        return recording(self.publications, TraceTerms(others, by_rule, self.relaychain.max_value_bytes))

    def wasm_parachains(self) -> list[ParachainTable]:
        """Return the parachains with real runtimes."""
        return [chain for chain in self.parachains if chain.is_wasm]

    def subscribers(self) -> list[ParachainTable]:
        """Return the parachains that read."""
        return [chain for chain in self.parachains if chain.reads]

    def with_copies(self) -> "Scenario":
        """Return the same scenario with every parachain for itself."""
        chains = [_copy(chain, number) for chain in self.parachains for number in range(chain.copies)]
        return replace(self, parachains=chains)


def upgraded_subscriptions(chain: ParachainTable) -> dict[int, list[SubscriptionTable]]:
    """Return what upgrades of a parachain replace its subscriptions by, by their relay block."""
    upgrades = chain.upgrades or []
    return {
        it.at: [SubscriptionTable(**asdict(wanted)) for wanted in it.subscribe]
        for it in upgrades
        if it.subscribe is not UNSET
    }


def key_name(publish: PublishTable, index: int) -> str:
    """Return the name that is hashed into the key numbered ``index``."""
    return f"{publish.prefix}/{index}"


def _copy(chain: ParachainTable, number: int) -> ParachainTable:
    name = f"{chain.name}-{number + 1}" if chain.name and chain.copies > 1 else chain.name
    return replace(chain, id=chain.id + number, name=name, copies=1)
