"""Keeping score of guests: their blocks come in one by one, figures come out."""

from array import array

from msgspec import Struct, field

from relaycast_ledger.guest_records import GuestRecord
from relaycast_ledger.runtime_outcome import ItemCost, RuntimeOutcome, RuntimePoint
from relaycast_ledger.spreads import FullBlock, Spread, share, spread

COLUMNS = RuntimePoint.__struct_fields__


class GuestTally(Struct):
    """The blocks of one guest so far; percentiles leave out the warm-up."""

    spec_name: str = ""
    spec_version: int = 0
    extrinsics: int = 0
    failed_extrinsics: int = 0
    left_out: int = 0
    upward_messages: int = 0
    published: int = 0
    refused_messages: int = 0
    oversize_blocks: int = 0
    fullest_block: FullBlock | None = None
    max_pov_bytes: int = 1
    refused_blocks: int = 0
    refusals: list[str] = field(default_factory=list)
    """Blocks that were refused, and extrinsics at which the code trapped, each with its reason."""

    _after: int = 0
    """Blocks of the warm-up."""

    _items: dict[tuple[str, str], "array[int]"] = field(default_factory=dict)
    _columns: dict[str, "array[int]"] = field(default_factory=lambda: {name: array("q") for name in COLUMNS})

    def add(self, record: GuestRecord) -> None:
        """Count one block in."""
        self.spec_name, self.spec_version = _one_line(record.spec_name), record.spec_version
        said = "".join(f"; it logged: {_one_line(line)}" for line in record.log[-1:])
        where = f"block on relay block {record.relay_parent}"
        self.refusals += [f"{where}: {_one_line(panic)}{said}" for panic in record.panics]
        if record.refusal is not None:
            self.refused_blocks += 1
            self.refusals.append(f"{where}: {_one_line(record.refusal)}{said}")
            return
        self._after += record.warm_up
        self.left_out += record.left_out
        self.extrinsics += record.extrinsics
        self.failed_extrinsics += record.failed_extrinsics
        self.upward_messages += record.upward_messages
        for it in record.shares:
            sums = self._items.setdefault((it.pallet, it.item), array("q", (0, 0, 0, 0)))
            for at, more in enumerate((1, it.reads, it.writes, it.proof_bytes)):
                sums[at] += more
        pov = record.pov
        figures = (record.tick, record.relay_proof_bytes, record.own_proof_bytes)
        sizes = (0, 0, 0) if pov is None else (pov.own_bytes, pov.pov_bytes, pov.compressed_bytes or 0)
        for column, figure in zip(self._columns.values(), (*figures, *sizes, record.carried_relay_bytes), strict=True):
            column.append(figure)
        self._add_pov(record)

    @property
    def points(self) -> list[RuntimePoint]:
        """The blocks after the warm-up, for charts."""
        return [RuntimePoint(*row) for row in zip(*self._columns.values(), strict=True)][self._after :]

    @property
    def by_item(self) -> list[ItemCost]:
        """What each storage item took, the one that takes most first."""
        found = [
            ItemCost(pallet=pallet, item=item, blocks=blocks, reads=reads, writes=writes, proof_bytes=proof_bytes)
            for (pallet, item), (blocks, reads, writes, proof_bytes) in self._items.items()
        ]
        return sorted(found, key=lambda it: (-it.proof_bytes, it.pallet, it.item))

    def spread(self, name: str) -> Spread:
        """Return the spread of one of the figures of ``RuntimePoint``."""
        return spread(self._columns[name], after=self._after)

    def outcome(self, para_id: int, name: str, *, waiting: int) -> RuntimeOutcome:
        """Return the totals of all blocks; ``waiting`` is the number of extrinsics for later ones."""
        pov, compressed = self.spread("pov_bytes"), self.spread("compressed_bytes")
        return RuntimeOutcome(
            para_id=para_id,
            name=name,
            spec_name=self.spec_name,
            spec_version=self.spec_version,
            blocks=len(self._columns["block"]),
            refused_blocks=self.refused_blocks,
            extrinsics=self.extrinsics,
            failed_extrinsics=self.failed_extrinsics,
            left_out=self.left_out,
            waiting=waiting,
            upward_messages=self.upward_messages,
            published=self.published,
            refused_messages=self.refused_messages,
            relay_proof_bytes=self.spread("relay_proof_bytes"),
            own_proof_bytes=self.spread("own_proof_bytes"),
            own_compact_bytes=self.spread("own_compact_bytes"),
            pov_bytes=pov,
            compressed_bytes=compressed,
            pov_share=share(pov, self.max_pov_bytes),
            compressed_share=share(compressed, self.max_pov_bytes),
            oversize_blocks=self.oversize_blocks,
            fullest_block=self.fullest_block,
            by_item=self.by_item,
        )

    def _add_pov(self, record: GuestRecord) -> None:
        pov = record.pov
        if pov is None:
            return
        self.oversize_blocks += pov.is_oversize
        self.max_pov_bytes = pov.max_pov_bytes
        if self.fullest_block is not None and pov.load <= self.fullest_block.load:
            return
        causes = {
            "relay": record.carried_relay_bytes,
            "own": pov.own_bytes,
            "extrinsics": record.extrinsic_bytes - record.carried_relay_bytes,
        }
        causes["rest"] = pov.pov_bytes - sum(causes.values())
        self.fullest_block = FullBlock(
            block=record.tick,
            number=record.number,
            pov_bytes=pov.pov_bytes,
            compressed_bytes=pov.compressed_bytes,
            max_pov_bytes=pov.max_pov_bytes,
            ref_time=pov.ref_time,
            max_ref_time=pov.max_ref_time,
            by_cause=causes,
        )

    def __repr__(self) -> str:
        blocks = f"{len(self._columns['block'])} blocks of {self.spec_name} {self.spec_version}"
        return f"<GuestTally {blocks}, own proof p50 {self.spread('own_proof_bytes').p50} bytes>"


def _one_line(text: str) -> str:
    """Return what code says as one line: no line of a report or of a terminal is the code's own."""
    return " ".join(text.split())
