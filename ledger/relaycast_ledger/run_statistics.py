"""Statistics of a run: blocks come in one by one, or as the statistics of earlier blocks; figures come out."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import add, attrgetter
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints, overload

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from relaycast_ledger.accounting import IN_THE_PROOF, PRUNED, KeyEnding, PublisherAccount
from relaycast_ledger.outcome import (
    CallbackLoad,
    FullBlock,
    ItemCost,
    KeyCost,
    KeySums,
    Latency,
    Percentiles,
    Point,
    PublisherCost,
    RuntimeOutcome,
    RuntimePoint,
    Starvation,
    UnchargedRead,
    counted_latency,
    percentiles,
    rank,
    share,
    starvation,
)
from relaycast_ledger.proof_picture import ProofPicture
from relaycast_ledger.record_fields import Last, Sum, Total, count_in, each, later, merge_in, merged_totals, taken
from relaycast_ledger.records import BlockRecord, WasmBlockRecord
from relaycast_xcm import Weight

if TYPE_CHECKING:
    from relaycast_ledger.run_tables import RunTables, TableRows


NAMES = tuple(name for name in Point.__struct_fields__ if name != "by_cause")
_NUMBERS = attrgetter(*NAMES)
FLAGS = frozenset(name for name, kind in get_type_hints(Point).items() if kind is bool)


class Line(Sequence[tuple[int, int]]):
    """Points ``(x, y)`` of a line as plain numbers, 16 bytes each."""

    def __init__(self, xs: "array[int]", ys: "array[int]") -> None:
        self._xs, self._ys = xs, ys

    @classmethod
    def of(cls, points: Sequence[Point], name: str) -> "Line":
        """Return one number of every point over the blocks."""
        if isinstance(points, Points):
            return points.line(name)
        return cls(array("q", (it.block for it in points)), array("q", (getattr(it, name) for it in points)))

    def __len__(self) -> int:
        return len(self._xs)

    @overload
    def __getitem__(self, index: int) -> tuple[int, int]: ...

    @overload
    def __getitem__(self, index: slice) -> list[tuple[int, int]]: ...

    def __getitem__(self, index: int | slice) -> tuple[int, int] | list[tuple[int, int]]:
        if isinstance(index, slice):
            return list(zip(self._xs[index], self._ys[index], strict=True))
        return self._xs[index], self._ys[index]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._xs, self._ys, strict=True)

    def __repr__(self) -> str:
        return f"<Line of {len(self)} points>"


class Points(Sequence[Point]):
    """A sequence of points that only grows, kept as plain numbers of eight bytes each.

    A point as an object takes half a kilobyte, and a long run has a million. The object is made when it is read.
    """

    def __init__(self) -> None:
        self._numbers = array("q")
        self._causes = array("q")
        self._ends = array("q", [0])

    def append(self, point: Point) -> None:
        """Add a point at the end."""
        self._numbers.extend(_NUMBERS(point))
        self._causes.extend(point.by_cause)
        self._ends.append(len(self._causes))

    def extend(self, later: "Points") -> None:
        """Add the points of another sequence at the end."""
        before = len(self._causes)
        self._numbers.extend(later._numbers)
        self._causes.extend(later._causes)
        self._ends.extend(before + end for end in later._ends[1:])

    def dump(self) -> tuple[bytes, bytes, bytes]:
        """Return the points as bytes."""
        return self._numbers.tobytes(), self._causes.tobytes(), self._ends.tobytes()

    @classmethod
    def of_dump(cls, dumped: Sequence[bytes]) -> "Points":
        """Return the points that were dumped; raises ``ValueError`` where they are not whole."""
        if {type(held) for held in dumped} != {bytes} or len(dumped) != 3:
            raise ValueError("points of a chart are three strings of bytes")
        points = cls()
        points._numbers, points._causes, points._ends = (array("q", held) for held in dumped)
        ends = points._ends
        whole = len(points._numbers) == len(NAMES) * (len(ends) - 1) and list(ends) == sorted(ends)
        if not whole or ends[0] != 0 or ends[-1] != len(points._causes):
            raise ValueError("points of a chart are not whole")
        return points

    def column(self, name: str) -> Sequence[int]:
        """Return one number of every point."""
        return self._numbers[NAMES.index(name) :: len(NAMES)]

    def after(self, index: int) -> "Points":
        """Return the points from number ``index`` on."""
        if index == 0:
            return self
        points = Points()
        points._numbers = self._numbers[index * len(NAMES) :]
        points._causes = self._causes[self._ends[index] :]
        points._ends = array("q", (end - self._ends[index] for end in self._ends[index:]))
        return points

    def line(self, name: str) -> Line:
        """Return one number of every point over the blocks."""
        return Line(self._numbers[NAMES.index("block") :: len(NAMES)], self._numbers[NAMES.index(name) :: len(NAMES)])

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> Point: ...

    @overload
    def __getitem__(self, index: slice) -> list[Point]: ...

    def __getitem__(self, index: int | slice) -> Point | list[Point]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(index)
        row = self._numbers[number * len(NAMES) : (number + 1) * len(NAMES)]
        values: dict[str, Any] = {
            name: bool(value) if name in FLAGS else value for name, value in zip(NAMES, row, strict=True)
        }
        return Point(**values, by_cause=tuple(self._causes[self._ends[number] : self._ends[number + 1]]))

    def __iter__(self) -> Iterator[Point]:
        return (self[number] for number in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Points of {len(self)} blocks>"


Place = tuple[int, bytes]
"""A publisher and a key."""


class KeyStatistics(Struct):
    """The keys of one subscriber so far; bytes are there where accounts are kept by key."""

    sums: dict[Place, KeySums] = field(default_factory=dict)
    has_bytes: bool = False

    def add(self, record: BlockRecord) -> None:
        """Add one block."""
        for delivery in record.deliveries:
            it = self._of(delivery.publisher, delivery.key)
            it.callbacks += 1
            it.conflated += delivery.conflated
            if not delivery.told_again:
                it.slowest_blocks = max(it.slowest_blocks, delivery.latency_blocks)
        for account in () if record.account is None else record.account.keys:
            self.has_bytes = True
            it = self._of(account.publisher, account.key)
            if account.took_nothing:
                continue
            it.changed_blocks += account.ending is KeyEnding.CHANGED
            it.node_bytes += account.structure.node_bytes - account.top.node_bytes
            it.value_bytes += account.value.node_bytes
            it.cached_bytes += account.cached.node_bytes
            it.pruned_bytes += account.pruned.node_bytes

    def extend(self, later: "KeyStatistics") -> None:
        """Add the blocks of another tally, which come after these."""
        self.has_bytes |= later.has_bytes
        for (publisher, key), more in later.sums.items():
            merge_in(self._of(publisher, key), more)

    @property
    def costs(self) -> list[KeyCost]:
        """Every key, the one with most bytes first."""
        found = [taken(KeyCost, it, publisher=publisher, key=key) for (publisher, key), it in self.sums.items()]
        return sorted(found, key=lambda it: (-it.proof_bytes, -it.callbacks, it.publisher, it.key))

    def _of(self, publisher: int, key: bytes) -> KeySums:
        known = self.sums.get((publisher, key))
        if known is None:
            known = self.sums[int(publisher), bytes(key)] = KeySums()
        return known


class WasmParachainStatistics(Struct):
    """The blocks of one Wasm parachain so far; percentiles leave out the warm-up."""

    spec_name: str = ""
    spec_version: Last = 0
    extrinsics: Sum = 0
    failed_extrinsics: Sum = 0
    left_out: Sum = 0
    upward_messages: Sum = 0
    published: int = 0
    refused_messages: int = 0
    oversize_blocks: Annotated[int, Total("pov.is_oversize")] = 0
    fullest_block: FullBlock | None = None
    max_pov_bytes: Annotated[int, Total("pov.max_pov_bytes", add=later)] = 1
    refused_blocks: int = 0
    refusals: list[str] = field(default_factory=list)
    """Blocks that were refused, and extrinsics at which the code trapped, each with its reason."""

    warm_up_blocks: Annotated[int, Total("warm_up")] = 0
    _points: list[RuntimePoint] = field(default_factory=list)
    _items: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def add(self, record: WasmBlockRecord) -> None:
        """Add one block."""
        self.spec_name, self.spec_version = _one_line(record.spec_name), record.spec_version
        said = "".join(f"; it logged: {_one_line(line)}" for line in record.log[-1:])
        where = f"block on relay block {record.relay_parent}"
        self.refusals += [f"{where}: {_one_line(panic)}{said}" for panic in record.panics]
        if record.refusal is not None:
            self.refused_blocks += 1
            self.refusals.append(f"{where}: {_one_line(record.refusal)}{said}")
            return
        count_in(self, record)
        self._points.append(taken(RuntimePoint, record))
        for it in record.shares:
            sums = self._items.setdefault((it.pallet, it.item), [0, 0, 0, 0])
            sums[:] = map(add, sums, (1, it.reads, it.writes, it.proof_bytes))
        pov = record.pov
        if pov is not None and (self.fullest_block is None or pov.load > self.fullest_block.load):
            self.fullest_block = taken(FullBlock, record)

    @property
    def blocks(self) -> int:
        """Blocks that were built."""
        return len(self._points)

    @property
    def points(self) -> list[RuntimePoint]:
        """The blocks after the warm-up, for charts."""
        return self._points[self.warm_up_blocks :]

    @property
    def by_item(self) -> list[ItemCost]:
        """What each storage item took, the one that takes most first."""
        found = [
            ItemCost(pallet=pallet, item=item, blocks=blocks, reads=reads, writes=writes, proof_bytes=proof_bytes)
            for (pallet, item), (blocks, reads, writes, proof_bytes) in self._items.items()
        ]
        return sorted(found, key=lambda it: (-it.proof_bytes, it.pallet, it.item))

    def percentiles(self, name: str) -> Percentiles:
        """Return the spread of one of the figures of ``RuntimePoint``."""
        return percentiles([getattr(it, name) for it in self._points], after=self.warm_up_blocks)

    def outcome(self, para_id: int, name: str, *, waiting: int) -> RuntimeOutcome:
        """Return the totals of all blocks; ``waiting`` is the number of extrinsics for later ones."""
        sizes = {
            it: self.percentiles(it) for it in RuntimePoint.__struct_fields__ if it in RuntimeOutcome.__struct_fields__
        }
        shares = {f"{it}_share": share(sizes[f"{it}_bytes"], self.max_pov_bytes) for it in ("pov", "compressed")}
        return taken(RuntimeOutcome, self, para_id=para_id, name=name, waiting=waiting, **sizes, **shares)

    def __repr__(self) -> str:
        blocks = f"{self.blocks} blocks of {self.spec_name} {self.spec_version}"
        return f"<WasmParachainStatistics {blocks}, own proof p50 {self.percentiles('own_proof_bytes').p50} bytes>"


def _one_line(text: str) -> str:
    """Return what code says as one line: no line of a report or of a terminal is the code's own."""
    return " ".join(text.split())


MaybeNone: TypeAlias = Any
"""``None``, where a type checker need not ask for it: a test of a feed that is dead fails by itself."""


class DeliveryTotals(Struct, frozen=True):
    """How values reached their subscribers: callbacks, and relay blocks from publication to delivery.

    Where nothing was delivered no time was taken: the three are ``None``, which no number is compared with by mistake.
    ``told_again`` of the callbacks brought what had been told before: no deliveries, and no part of the times.
    """

    callbacks: int
    p50_blocks: int | MaybeNone
    p99_blocks: int | MaybeNone
    max_blocks: int | MaybeNone
    told_again: int = 0


def _counted(before: Counter[int], more: Iterable[int]) -> Counter[int]:
    """Return a counter with more values, or with those of another counter."""
    before.update(more)
    return before


def _with_numbers(before: list[int], more: Iterable[int]) -> list[int]:
    before.extend(map(int, more))
    return before


class SubscriberStatistics(Struct):
    """The blocks of one subscriber so far. Percentiles leave out the warm-up unless there is nothing else."""

    points: Points = field(default_factory=Points)
    latencies: Annotated[Counter[int], Total(add=_counted)] = field(default_factory=Counter)
    """Number of deliveries by relay blocks since their publication."""

    callbacks: Sum = 0
    """Values that were handed on."""

    told_again: Sum = 0
    """Callbacks whose value had been handed on before."""

    deletions: Annotated[int, Total("told_deletions")] = 0
    """Keys that were told as deleted."""

    conflated: Sum = 0
    uncharged: dict[str, UnchargedRead] = field(default_factory=dict)
    oversize_blocks: Annotated[int, Total("pov.is_oversize")] = 0
    large_blocks: Annotated[int, Total("pov.is_large")] = 0
    fullest_block: FullBlock | None = None
    _fullest_load: float = -1.0
    incomplete_blocks: Annotated[int, Total("is_incomplete")] = 0
    callback_ref_time_max: Annotated[int, Total("callback_weight.ref_time", max)] = 0
    callback_ref_time: Annotated[int, Total("callback_weight.ref_time")] = 0
    callback_ended_blocks: Annotated[int, Total("ended_by_callbacks")] = 0
    """Incomplete blocks with bytes left but no room for one more callback."""

    overweight_callbacks: Sum = 0
    taken_bytes: Annotated[list[int], each("message_bytes")] = field(default_factory=list)
    waiting_bytes_max: Annotated[int, Total("waiting_bytes", max)] = 0
    refused_bytes: Last = 0
    panics: Annotated[list[str], each("panicked")] = field(default_factory=list)
    disabled: Annotated[list[int], Total(add=_with_numbers)] = field(default_factory=list)
    accounts: dict[int, PublisherAccount] = field(default_factory=dict)
    endings: dict[int, Counter[str]] = field(default_factory=dict)
    pictures: Annotated[list[ProofPicture], each("picture")] = field(default_factory=list)
    keys: KeyStatistics = field(default_factory=KeyStatistics)

    def add(self, record: BlockRecord) -> None:
        """Add one block."""
        count_in(self, record)
        self.points.append(taken(Point, record))
        self.keys.add(record)
        if record.pov is not None and record.pov.load > self._fullest_load:
            self._fullest_load, self.fullest_block = record.pov.load, taken(FullBlock, record)
        for it in record.uncharged:
            self._add_uncharged(UnchargedRead(name=it.name, blocks=1, excess_bytes=it.excess_bytes))
        for account in () if record.account is None else record.account.publishers:
            self._add_account(int(account.publisher), account, {account.ending.value: 1})

    def extend(self, later: "SubscriberStatistics") -> None:
        """Add the blocks of another tally of this subscriber, which come after these."""
        if not len(later.points):
            return
        merge_in(self, later)
        self.points.extend(later.points)
        self.keys.extend(later.keys)
        if later._fullest_load > self._fullest_load:
            self._fullest_load, self.fullest_block = later._fullest_load, later.fullest_block
        for it in later.uncharged.values():
            self._add_uncharged(it)
        for publisher, account in later.accounts.items():
            self._add_account(publisher, account, later.endings[publisher])

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.points)

    @property
    def deliveries(self) -> int:
        """Publications whose value arrived, or was overtaken by a later one that did."""
        return self.callbacks - self.told_again + self.conflated

    @property
    def disabled_publishers(self) -> list[int]:
        """Publishers that were disabled."""
        return sorted(set(self.disabled))

    @property
    def publishers(self) -> list[PublisherCost]:
        """What each publisher took, where accounts are kept."""
        return [_cost(self.accounts[para_id], self.endings[para_id]) for para_id in sorted(self.accounts)]

    @property
    def warm_up_blocks(self) -> int:
        """Blocks at the beginning that percentiles leave out."""
        return next((index for index, it in enumerate(self.points.column("warm_up")) if not it), 0)

    @property
    def charted(self) -> Points:
        """The blocks that charts show: from the first delivery on, or from the end of an earlier warm-up."""
        blocks = zip(self.points.column("callbacks"), self.points.column("warm_up"), strict=True)
        return self.points.after(
            next((index for index, (calls, warm_up) in enumerate(blocks) if calls or not warm_up), 0)
        )

    @property
    def first_proof_bytes(self) -> int:
        """Bytes of the largest relay proof in the warm-up."""
        return max(self.points.column("proof_bytes")[: self.warm_up_blocks], default=0)

    @property
    def proof_bytes(self) -> Percentiles:
        """Bytes of the relay proof in each block."""
        return self._percentiles("proof_bytes")

    @property
    def static_bytes(self) -> Percentiles:
        """Bytes of the relay proof for the keys that every block proves, whether it subscribes or not."""
        return self._percentiles("static_bytes")

    @property
    def own_bytes(self) -> Percentiles:
        """Bytes of the parachain's own state in each block."""
        return self._percentiles("own_bytes")

    @property
    def message_bytes(self) -> Percentiles:
        """Bytes of the messages that each block took in full."""
        return percentiles(self.taken_bytes, after=self.warm_up_blocks)

    @property
    def pov_bytes(self) -> Percentiles:
        """Bytes of everything that a block carries, before compression."""
        return self._percentiles("pov_bytes")

    @property
    def compressed_bytes(self) -> Percentiles:
        """Bytes of everything that a block carries, as the relay chain gets it; 0 where it was not compressed."""
        return self._percentiles("compressed_bytes")

    @property
    def pov_parts(self) -> dict[str, Percentiles]:
        """Bytes of each part of the relay proof, of the own state and of the messages in a block."""
        points, after = self.points, self.warm_up_blocks
        top = array("q", (point.by_cause[0] if point.by_cause else 0 for point in points))
        sizes = zip(points.column("proof_bytes"), points.column("static_bytes"), top, strict=True)
        parts = {
            "static": points.column("static_bytes"),
            "top": top,
            "proof": array("q", (proof - static - way for proof, static, way in sizes)),
            "own": points.column("own_pov_bytes"),
            "messages": points.column("message_bytes"),
        }
        return {part: percentiles(column, after=after) for part, column in parts.items()}

    @property
    def latency_blocks(self) -> Latency:
        """Relay blocks from publication to delivery; what was told again is left out."""
        return counted_latency(self.latencies)

    @property
    def starvation(self) -> Starvation | None:
        """Whether this reader starved; ``None`` where it was given what it subscribes to."""
        column = self.points.column
        blocks = zip(column("received"), column("complete"), column("owed"), column("behind"), strict=True)
        return starvation(blocks)

    @property
    def chosen_pictures(self) -> list[ProofPicture]:
        """The first picture of a complete pass, and of those after it the one nearest to the median block with news.

        Without a complete one it is the first picture that there is.
        """
        pictures = self.pictures
        if not pictures:
            return []
        start = next((index for index, picture in enumerate(pictures) if picture.complete), 0)
        news = sorted(point.proof_bytes - point.static_bytes for point in self.points if point.callbacks)
        later = sorted(pictures[start + 1 :], key=lambda picture: abs(picture.pubsub_bytes - rank(news, 50)))
        return [pictures[start], *later[:1]]

    def callback_load(self, limit: Weight) -> CallbackLoad | UnsetType:
        """Return the callbacks' use of ``limit``, unset if none weighed anything."""
        if not (self.callback_ref_time or self.callback_ended_blocks):
            return UNSET
        return taken(CallbackLoad, self, limit_ref_time=limit.ref_time)

    def _percentiles(self, name: str) -> Percentiles:
        return percentiles(self.points.column(name), after=self.warm_up_blocks)

    def _add_account(self, publisher: int, account: PublisherAccount, endings: Mapping[str, int]) -> None:
        before = self.accounts.get(publisher)
        self.accounts[publisher] = account if before is None else before.and_then(account)
        self.endings.setdefault(publisher, Counter()).update(endings)

    def _add_uncharged(self, more: UnchargedRead) -> None:
        known = self.uncharged.get(more.name)
        self.uncharged[more.name] = more if known is None else replace(more, **merged_totals(known, more))

    def __repr__(self) -> str:
        sizes = self.proof_bytes
        blocks = f"{len(self.points)} blocks, {self.callbacks} callbacks"
        return f"<SubscriberStatistics {blocks}, proof p50 {sizes.p50} p99 {sizes.p99} bytes>"


class RunStatistics:
    """The blocks of all subscribers so far; ``tables`` get them too."""

    def __init__(self, *, tables: "RunTables | TableRows | None" = None) -> None:
        self.subscribers: dict[int, SubscriberStatistics] = {}
        self.wasm_parachains: dict[int, WasmParachainStatistics] = {}
        self.tables = tables

    def add(self, record: BlockRecord) -> None:
        """Add one block."""
        self.of(int(record.para_id)).add(record)
        if self.tables is not None:
            self.tables.add(record)

    def add_wasm_block(self, record: WasmBlockRecord) -> None:
        """Add one block of a Wasm parachain."""
        self.wasm_parachain(int(record.para_id)).add(record)
        if self.tables is not None:
            self.tables.add_wasm_block(record)

    def wasm_parachain(self, para_id: int) -> WasmParachainStatistics:
        """Return the blocks of a Wasm parachain, none where it has built none."""
        return self.wasm_parachains.setdefault(para_id, WasmParachainStatistics())

    def of(self, para_id: int) -> SubscriberStatistics:
        """Return the blocks of a subscriber, none where it has built none."""
        return self.subscribers.setdefault(para_id, SubscriberStatistics())

    def delivery(self) -> DeliveryTotals:
        """Return how values reached all subscribers together."""
        latencies: Counter[int] = sum((it.latencies for it in self.subscribers.values()), Counter())
        blocks, tallies = counted_latency(latencies), self.subscribers.values()
        callbacks, told_again = sum(it.callbacks for it in tallies), sum(it.told_again for it in tallies)
        return DeliveryTotals(callbacks, blocks.p50, blocks.p99, blocks.max, told_again)

    @property
    def refusals(self) -> list[str]:
        """Blocks that Wasm parachains refused, and extrinsics at which their code trapped, each with its reason."""
        return [f"{para_id}: {reason}" for para_id, it in self.wasm_parachains.items() for reason in it.refusals]

    @property
    def oversize_blocks(self) -> int:
        """Blocks that the relay chain would refuse."""
        subscribers = sum(it.oversize_blocks for it in self.subscribers.values())
        return subscribers + sum(it.oversize_blocks for it in self.wasm_parachains.values())


def _cost(it: PublisherAccount, endings: Counter[str]) -> PublisherCost:
    return taken(
        PublisherCost,
        it,
        para_id=int(it.publisher),
        by_cause={cause: getattr(it, cause) for cause in IN_THE_PROOF},
        pruned={name.removeprefix("pruned_"): getattr(it, name) for name in PRUNED},
        endings=dict(sorted(endings.items())),
        formula_bytes=None,
    )
