"""``rc.Network``: chains in a few lines of Python, for notebooks, tests and first steps.

A ``Network`` gives names to publishers, readers and feeds. Its ``chains`` (``relaycast_collator``) build the blocks,
its ``ledger`` (``relaycast_ledger``) counts what they carry; use them for more than publishing and reading.

Law: a call with wrong arguments raises ``TypeError`` or ``ValueError`` at once and leaves the network as it was.

>>> net = Network(seed=7)
>>> oracle = net.publisher(2000)
>>> price = oracle.publish("price/dot", b"5.31")
>>> exchange = net.subscriber(3000, keys=[price])
>>> exchange
<Reader 3000, 0 of 1 values there>
>>> net.run(blocks=3)
<Run of 3 blocks: DeliveryTotals(callbacks=1, p50_blocks=2, p99_blocks=2, max_blocks=2, told_again=0), ...>
>>> exchange[price]
b'5.31'
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import relaycast_collator as collator
from relaycast.account import FEES, Account, planck
from relaycast.callback_time import declared
from relaycast.chain_options import chain_options
from relaycast.choices import broadcaster_of
from relaycast.feed import Feed, described, para_id_of, whole_number
from relaycast.genesis.chain_spec import ChainSpec
from relaycast.genesis.start import start_of
from relaycast.limits import ensure_within, limited_config
from relaycast.run import Run
from relaycast.scenario.scenario import MAX_SEED
from relaycast.scenario.workload_dump import FeedDump, NetworkDump
from relaycast.terminal import counted
from relaycast.upgradable import Upgradable
from relaycast_ledger.ledger import Accounts, Ledger
from relaycast_ledger.run_statistics import RunStatistics
from relaycast_pallets.broadcaster.config import POLKADOT, BroadcasterConfig
from relaycast_pallets.broadcaster.storage import INFINITE
from relaycast_pallets.parachain_system.pallet import ParachainInherentData
from relaycast_pallets.parachain_system.relay_budget import BudgetPolicy
from relaycast_pallets.subscriber.policies import Policies
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie.engine import Engine
from relaycast_xcm import ParaId, Weight

if TYPE_CHECKING:
    from relaycast.real_runtime import RealRuntime

Tampering = Callable[[tuple[bytes, ...]], Iterable[bytes]]
"""What a collator that lies makes of the nodes of an honest proof."""


class Publisher:
    """A parachain that publishes. A key is a name, hashed with Blake2b-256, or 32 bytes taken as they are."""

    def __init__(self, chain: collator.Parachain, network: "Network") -> None:
        self._chain = chain
        self._network = network

    @property
    def para_id(self) -> int:
        """The parachain's id."""
        return int(self._chain.para_id)

    def feed(self, key: str | bytes) -> Feed:
        """Return the feed under ``key``, published or not."""
        if isinstance(key, str):
            return Feed(self.para_id, bytes(SubscribedKey.from_data(key.encode())), key)
        if not isinstance(key, bytes):
            raise TypeError(f"a key is a name or 32 bytes, got {described(key)}")
        return Feed(self.para_id, bytes(SubscribedKey(key)))

    def publish(self, key: str | bytes, value: bytes, *, ttl: int = INFINITE) -> Feed:
        """Send ``value`` with the parachain's next block, to expire ``ttl`` relay blocks after it is published.

        A ``ttl`` of 0 is for ever. ``ValueError`` when the value is longer than a message can hold.

        >>> Network().publisher(2000).publish("price/dot", b"5.31", ttl=100)
        <Feed price/dot of 2000>
        """
        return self._publish({key: value}, ttl)[0]

    def publish_many(self, values: Mapping[str, bytes] | Mapping[bytes, bytes], *, ttl: int = INFINITE) -> list[Feed]:
        """Send all ``values``, or none when one is refused, and return their feeds, in the same order."""
        if not isinstance(values, Mapping):
            raise TypeError(f"values are a mapping of keys to bytes, got {described(values)}")
        return self._publish(dict[str | bytes, bytes](values.items()), ttl)

    @property
    def account(self) -> Account:
        """The parachain's account on the relay chain."""
        return Account(self._chain.para_id, self._network.chains)

    def publish_paid(self, key: str | bytes, value: bytes, *, fees: int = FEES, ttl: int = INFINITE) -> Feed:
        """Send ``value`` in a message that pays up to ``fees`` planck for its execution from ``account``.

        What is not needed returns. Values sent in a row share a message; nothing is published where it cannot pay.
        """
        return self._publish({key: value}, ttl, fees=planck(fees, "fees"))[0]

    def _publish(self, values: dict[str | bytes, bytes], ttl: int, *, fees: int = 0) -> list[Feed]:
        whole_number(ttl, "a ttl")
        feeds = [self.feed(key) for key in values]
        for value in values.values():
            if not isinstance(value, bytes):
                raise TypeError(f"a value is bytes, got {described(value)}")
        outbox, tick = self._chain.outbox, self._network.chains.tick + 1
        mark = outbox.mark()
        try:
            for feed, value in zip(feeds, values.values(), strict=True):
                self._chain.publish(feed.key, value, ttl=ttl, tick=tick, fees=fees)
        except ValueError:
            outbox.roll_back(mark)
            raise
        return feeds

    def __repr__(self) -> str:
        return f"<Publisher {self.para_id}, {counted(len(self._chain.outbox), 'value')} waiting>"


class Reader:
    """A parachain that subscribes; ``reader[feed]`` is the last value that reached it, ``KeyError`` when none did.

    Iterating goes over the feeds of which a value is there.
    """

    def __init__(self, collator_: collator.Collator, feeds: Mapping[Feed, Feed]) -> None:
        self._collator = collator_
        self._chain = collator_.parachain
        self._feeds = feeds

    @property
    def para_id(self) -> int:
        """The parachain's id."""
        return int(self._chain.para_id)

    def get(self, feed: Feed) -> bytes | None:
        """Return the last value that reached the parachain, ``None`` when none did."""
        if not isinstance(feed, Feed):
            raise TypeError(f"a reader is asked for a feed, got {described(feed)}; publisher.feed(name) makes one")
        kept = self._chain.kept.values.get((ParaId(feed.publisher), SubscribedKey(feed.key)))
        return None if kept is None else kept[0]

    def tamper(self, change: "Tampering | None") -> None:
        """Let the parachain's collator lie: it hands over what ``change`` makes of the nodes of an honest proof.

        A block that is built on such a proof panics (``Run.panics``) unless the lie changes nothing; ``None`` makes the
        collator honest again.

        >>> net = Network(seed=7)
        >>> price = net.publisher(2000).publish("price/dot", b"5.31")
        >>> exchange = net.subscriber(3000, keys=[price])
        >>> exchange.tamper(lambda nodes: nodes[:-1])
        >>> len(net.run(blocks=3).panics), exchange.get(price)
        (3, None)
        >>> exchange.tamper(None)
        >>> len(net.run(blocks=1).panics), exchange[price]
        (0, b'5.31')
        """
        if change is not None and not callable(change):
            raise TypeError(f"a lie is a function of the proof's nodes, got {described(change)}")
        self._collator.tamper = None if change is None else partial(_handed_over, change)

    def __getitem__(self, feed: Feed) -> bytes:
        value = self.get(feed)
        if value is None:
            wanted = SubscribedKey(feed.key) in self._chain.kept.wanted.get(ParaId(feed.publisher), ())
            why = "no value has reached" if wanted else "it is not subscribed by"
            raise KeyError(f"{feed!r}: {why} parachain {self.para_id}")
        return value

    def __contains__(self, feed: Feed) -> bool:
        return self.get(feed) is not None

    def __iter__(self) -> Iterator[Feed]:
        found = [Feed(int(publisher), bytes(key)) for publisher, key in self._chain.kept.values]
        return iter([self._feeds.get(feed, feed) for feed in found])

    def __len__(self) -> int:
        return len(self._chain.kept.values)

    def __repr__(self) -> str:
        wanted = sum(map(len, self._chain.kept.wanted.values()))
        return f"<Reader {self.para_id}, {len(self)} of {wanted} values there>"


class Network(Upgradable):
    """A relay chain and parachains under one clock: the same calls under the same ``seed`` give the same bytes.

    ``genesis`` is a raw chain spec, or the file of one, of an export of keys and values, or of a witness. Without it
    the relay chain starts from a modelled state. A witness must show what parachains need.
    ``broadcaster`` are its limits; ``policies`` and ``budget`` those of subscribers that are not given others. All
    three may be names (``relaycast.choices``). With ``accounting`` a run says what each byte of a proof is for.
    ``trie_engine`` is what works on tries: ``plain`` Python, compiled ``array``, or ``auto``, which moves to arrays
    where that saves time. All else is the same with either.
    ``state_version`` 1 migrates a genesis of version 0 before block 1.

    >>> Network(seed=7, policies={"cache": "none"}, budget="floor:65536", broadcaster="rococo")
    <relaycast.Network at block 0, 0 parachains>
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        genesis: str | PathLike[str] | ChainSpec | collator.Genesis | None = None,
        broadcaster: BroadcasterConfig | str = POLKADOT.name,
        policies: Policies | Mapping[str, str | int] | None = None,
        budget: BudgetPolicy | str | None = None,
        accounting: bool = False,
        trie_engine: Engine = "auto",
        state_version: int | None = None,
    ) -> None:
        if not 0 <= whole_number(seed, "a seed") <= MAX_SEED:
            raise ValueError(f"a seed is a number from 0 to 2^63 - 1, got {seed}")
        start = start_of(genesis, seed=seed, state_version=state_version)
        self.genesis_entries, self._witness = len(start.top), start.witness
        limits = broadcaster_of(broadcaster) if isinstance(broadcaster, str) else broadcaster
        if not isinstance(limits, BroadcasterConfig):
            raise TypeError(f"a broadcaster is a BroadcasterConfig or the name of one, got {described(limits)}")
        self.seed = seed
        self._defaults = chain_options(policies, budget, None)
        self._policies: Policies | None = self._defaults.get("policies")
        self.chains = collator.ChainSimulator(seed=seed, genesis=start, broadcaster=limits, trie_engine=trie_engine)
        self.ledger = Ledger(self.chains, accounts=Accounts.BY_PUBLISHER if accounting else Accounts.NONE)
        self._registered: set[int] = set()
        self._feeds: dict[Feed, Feed] = {}
        self._runtimes: dict[int, RealRuntime] = {}

    def publisher(self, para_id: int) -> Publisher:
        """Return the parachain as a publisher; one that is no system parachain registers with the next relay block."""
        chain = self._chain(para_id)
        if not chain.para_id.is_system and para_id not in self._registered:
            self.chains.register_publisher(para_id)
            self._registered.add(para_id)
        return Publisher(chain, self)

    def subscriber(
        self,
        para_id: int,
        *,
        keys: Iterable[Feed],
        policies: Policies | Mapping[str, str | int] | None = None,
        budget: BudgetPolicy | str | None = None,
        max_pov_bytes: int | None = None,
        max_publishers: int | None = None,
        max_subscribed_keys: int | None = None,
        max_total_keys: int | None = None,
        max_cached_bytes: int | None = None,
        callback_us: int = 0,
        callback_proof_bytes: int = 0,
        callback_limit_us: int | None = None,
    ) -> Reader:
        """Let the parachain read ``keys``, of one publisher or several, beside those that it reads already.

        A publisher may also come later. A callback for one of them declares and takes ``callback_us`` microseconds. The
        other options are for a new parachain. ``policies`` are its choices where public drafts disagree, ``budget`` is
        the share of a block for its proofs, and ``max_pov_bytes`` limits its proof of validity. The other limits are
        publishers (100 by default), keys of one publisher, keys of all, and bytes of cached trie nodes. The last one is
        the time of a block's callbacks, 0 for no limit.
        """
        wanted = _feeds(keys)
        options = chain_options(policies, budget, max_pov_bytes)
        limits = {
            "max_publishers": max_publishers,
            "max_subscribed_keys": max_subscribed_keys,
            "max_total_keys": max_total_keys,
            "max_cached_bytes": max_cached_bytes,
        }
        broadcaster, chosen = self.chains.relay_chain.broadcaster.config, options.get("policies", self._policies)
        config = limited_config(limits, broadcaster, chosen, callback_limit_us=callback_limit_us)
        if callback_limit_us is not None or any(limit is not None for limit in limits.values()):
            options["config"] = config
        known = self.chains.parachains.get(para_id_of(para_id))
        if options and known is not None:
            raise ValueError(f"parachain {para_id} is there already; policies, budget and limits are for new ones")
        already = {} if known is None else known.kept.wanted
        config = config if known is None else known.subscriber.config
        weight = declared(callback_us, callback_proof_bytes, config.callback_limit)
        ensure_within(config, already, wanted)
        chain = self._chain(para_id, **options)
        known_keys = {publisher: set(some) for publisher, some in chain.kept.wanted.items()}
        added: dict[int, list[bytes]] = {}
        for feed in wanted:
            if feed.key not in known_keys.get(ParaId(feed.publisher), ()):
                added.setdefault(feed.publisher, []).append(feed.key)
            if weight != Weight.ZERO:
                chain.declare(ParaId(feed.publisher), [feed.key], weight)
        for publisher, some in added.items():
            self.chains.subscribe(para_id, publisher, some)
        self._feeds.update(zip(wanted, wanted, strict=True))
        return Reader(self.chains.collators[chain.para_id], self._feeds)

    def add_guest(self, parachain: collator.WasmParachain, *, pace: collator.Pace | None = None) -> None:
        """Add a parachain that runs a Wasm runtime; it registers as a publisher unless it is a system parachain."""
        self._ensure_shown(int(parachain.para_id))
        self.chains.add_wasm_parachain(parachain, pace=pace)
        if not parachain.para_id.is_system:
            self.chains.register_publisher(parachain.para_id)

    def parachain(
        self,
        para_id: int,
        *,
        genesis: str | PathLike[str] | ChainSpec,
        wasm: str | PathLike[str] | bytes | None = None,
        extrinsics: str | PathLike[str] | None = None,
        max_pov_bytes: int | None = None,
        pace: collator.Pace | None = None,
    ) -> "RealRuntime":
        """Add a parachain whose real runtime builds its blocks, from ``genesis``; needs the extra ``wasm``.

        ``wasm`` is the runtime or its file, by default the ``:code`` of the genesis; ``extrinsics`` a file as scenarios
        have it. One that is no system parachain registers as a publisher with the next relay block.
        """
        from relaycast.real_runtime import real_runtime  # noqa: PLC0415 - needs the extra wasm
        from relaycast.simulation.wasm_parachains import pace_of  # noqa: PLC0415

        known = para_id_of(para_id)
        if known in self.chains.parachains or known in self.chains.wasm_parachains:
            raise ValueError(f"parachain {known} is there already")
        made = real_runtime(known, genesis, wasm=wasm, extrinsics=extrinsics, max_pov_bytes=max_pov_bytes)
        self.add_guest(made.chain, pace=pace_of(made.chain, pace or collator.Pace()))
        self.chains.listeners.append(made.on_fact)
        self._runtimes[int(known)] = made
        return made

    def run(self, *, blocks: int) -> Run:
        """Let ``blocks`` relay blocks pass and return what they came to; a later run goes on where this one ends."""
        if whole_number(blocks, "the number of blocks") < 1:
            raise ValueError(f"a run has at least one block, got {blocks}")
        tally = RunStatistics()
        for _ in range(blocks):
            for runtime in self._runtimes.values():
                runtime.begin(self.chains.tick + 1)
            for record in self.ledger.step():
                tally.add(record)
            for wasm_block_record in self.ledger.take_wasm_block_records():
                tally.add_wasm_block(wasm_block_record)
        waiting = {para_id: runtime.waiting(self.chains.tick) for para_id, runtime in self._runtimes.items()}
        return Run(tally, self.ledger.invariants, blocks=blocks, seed=self.seed, waiting=waiting)

    def dump(self) -> NetworkDump:
        """Return what is known here beside ``chains`` and ``ledger``, which are put away by themselves, as data."""
        return NetworkDump(sorted(self._registered), [FeedDump(it.publisher, it.key, it.name) for it in self._feeds])

    def load(self, dump: NetworkDump) -> None:
        """Know what another network put away."""
        self._registered = set(dump.registered)
        feeds = [Feed(it.publisher, it.key, it.name) for it in dump.feeds]
        self._feeds.clear()
        self._feeds.update(zip(feeds, feeds, strict=True))

    def key_names(self) -> dict[tuple[int, bytes], str]:
        """Return the names of subscribed keys, by publisher and key, of those that have one."""
        return {(feed.publisher, feed.key): feed.name for feed in self._feeds if feed.name}

    def _chain(self, para_id: int, **options: Any) -> collator.Parachain:
        known = self.chains.parachains.get(para_id_of(para_id))
        if known is None:
            self._ensure_shown(para_id)
            known = self.chains.add_parachain(para_id, **{**self._defaults, **options})
        return known

    def _ensure_shown(self, para_id: int) -> None:
        if self._witness is not None:
            from relaycast.genesis.witness_check import check_parachain  # noqa: PLC0415 - loads the node

            check_parachain(self._witness, para_id)

    def __repr__(self) -> str:
        count = len(self.chains.parachains) + len(self.chains.wasm_parachains)
        return f"<relaycast.Network at block {self.chains.tick}, {counted(count, 'parachain')}>"


def _feeds(keys: Iterable[Feed]) -> list[Feed]:
    """Return the feeds, each once."""
    if isinstance(keys, str | bytes | Feed | None):
        raise TypeError(f"keys are a list of feeds, got {described(keys)}; publisher.feed(name) makes a feed")
    feeds = list(keys)
    for feed in feeds:
        if not isinstance(feed, Feed):
            raise TypeError(f"keys are feeds, got {described(feed)}; publisher.feed(name) makes one")
    return list(dict.fromkeys(feeds))


def _handed_over(change: Tampering, inherent: ParachainInherentData) -> ParachainInherentData:
    nodes = tuple(change(inherent.relay_chain_state))
    for node in nodes:
        if not isinstance(node, bytes):
            raise TypeError(f"the nodes of a proof are bytes, got {described(node)}")
    return replace(inherent, relay_chain_state=nodes)
