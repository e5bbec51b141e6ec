"""What a ledger keeps of Wasm parachains: sizes of their blocks, shares that add up, checks, and rows of tables."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from msgspec.structs import asdict, replace

from collator.hand_made_parachain import PANIC, HandMadeParachain
from ledger.watched import Watched
from relaycast_collator import Fact, RelayBlock, RelayProver, StorageItemShare, WasmBlockBuilt
from relaycast_collator.wasm_parachain import WasmBlock
from relaycast_ledger.pov import compressed
from relaycast_ledger.records import WasmBlockRecord
from relaycast_ledger.run_statistics import WasmParachainStatistics
from relaycast_ledger.run_tables import RunTables, TableRows
from relaycast_trie import StorageProof
from relaycast_trie.proofs.compact_proof import CompactProof
from relaycast_trie.scale import encode_vec

WASM = 2_500


class Forging(HandMadeParachain):
    """Builds blocks of which one field is another."""

    def __init__(self, **fields: object) -> None:
        super().__init__(WASM)
        self.fields = fields

    def build_block(self, relay_parent: RelayBlock, relay_chain: RelayProver) -> WasmBlock:
        block = super().build_block(relay_parent, relay_chain)
        given = {name: getattr(block, name) for name in WasmBlock.__struct_fields__}
        return WasmBlock(**{**given, **self.fields})


def recorded(parachain: HandMadeParachain, *extrinsics: bytes) -> tuple[Watched, list[WasmBlockRecord]]:
    """Return a network whose Wasm parachain has built a block for each extrinsic, and the records."""
    net = Watched(seed=7)
    net.add_wasm_parachain(parachain)
    records = []
    for extrinsic in extrinsics:
        parachain.submit(extrinsic)
        assert net.recorded_step() == []
        records += net.ledger.take_wasm_block_records()
    return net, records


def test_a_record_has_the_sizes_of_the_block_as_a_collator_sends_it() -> None:
    facts: list[Fact] = []
    net = Watched(seed=7)
    net.add_wasm_parachain(parachain := HandMadeParachain(WASM))
    net.listeners.append(facts.append)
    parachain.submit(bytes(500))
    net.step()
    (record,) = net.ledger.take_wasm_block_records()
    (fact,) = (it for it in facts if isinstance(it, WasmBlockBuilt))
    block = fact.block
    own = CompactProof.encode(block.own_proof, fact.parent.state_root).to_bytes()
    data = block.header.encode() + encode_vec(block.extrinsics) + own
    assert record.pov is not None
    assert (record.pov.pov_bytes, record.pov.own_bytes) == (len(data), len(own))
    assert record.pov.compressed_bytes == len(compressed(data))
    assert record.relay_proof_bytes == sum(map(len, block.relay_proof.nodes))
    assert record.own_proof_bytes == sum(map(len, block.own_proof.nodes)) > len(own) > 500 / 2
    assert net.invariants.ok
    assert net.invariants.checked


def test_storage_items_add_up_to_the_own_proofs_of_all_blocks() -> None:
    _, records = recorded(HandMadeParachain(WASM), b"first", b"second", b"third")
    tally = WasmParachainStatistics()
    for record in records:
        tally.add(record)
    outcome = tally.outcome(WASM, "hand", waiting=0)
    assert sum(it.proof_bytes for it in outcome.by_item) == outcome.own_proof_bytes.total
    assert {it.name: (it.blocks, it.writes) for it in outcome.by_item} == {
        "System.Number": (3, 3),
        "Clock.Slot": (3, 3),
        "Mail.Seen": (3, 3),
        "Notes.Notes": (3, 3),
    }
    assert (outcome.blocks, outcome.extrinsics, outcome.spec_name) == (3, 3, "hand-made")
    assert len(tally.points) == 3
    fullest = outcome.fullest_block
    assert fullest is not None
    assert sum(fullest.by_cause.values()) == fullest.pov_bytes


@pytest.mark.parametrize("holds", [True, False])
def test_the_parts_of_the_fullest_block_are_what_stands_in_it(holds: bool) -> None:
    class Keeping(HandMadeParachain):
        """Puts the relay proof that it was handed into its block, where it ``holds`` it."""

        def build_block(self, relay_parent: RelayBlock, relay_chain: RelayProver) -> WasmBlock:
            block = super().build_block(relay_parent, relay_chain)
            held = (block.relay_proof.encode(),) if holds else ()
            return replace(block, extrinsics=(*block.extrinsics, *held), results=block.results + (b"\0\0",) * len(held))

    _, (record,) = recorded(Keeping(WASM), b"first")
    tally = WasmParachainStatistics()
    tally.add(record)
    fullest = tally.outcome(WASM, "hand", waiting=0).fullest_block
    assert fullest is not None
    assert record.relay_proof_bytes > 0
    assert fullest.by_cause["relay"] == tally.points[0].carried_relay_bytes == record.relay_proof_bytes * holds
    assert min(fullest.by_cause.values()) >= 0
    assert sum(fullest.by_cause.values()) == fullest.pov_bytes


def test_percentiles_leave_out_the_warm_up_and_sums_do_not() -> None:
    _, records = recorded(HandMadeParachain(WASM), bytes(20_000), b"small", b"small too")
    tally = WasmParachainStatistics()
    for record in records:
        tally.add(replace(record, warm_up=record.tick <= 1))
    sizes = tally.outcome(WASM, "", waiting=0).pov_bytes
    assert sizes.max < 20_000 < sizes.total
    assert [point.block for point in tally.points] == [2, 3]


def test_a_refused_block_is_a_record_with_its_reason_and_the_last_line_of_the_log() -> None:
    net, records = recorded(HandMadeParachain(WASM), b"fine", PANIC + b"attempt to divide by zero")
    tally = WasmParachainStatistics()
    for record in records:
        tally.add(record)
    said = "block on relay block 1: attempt to divide by zero; it logged: runtime: about to panic"
    assert tally.refusals == [said]
    assert (tally.outcome(WASM, "", waiting=0).blocks, tally.outcome(WASM, "", waiting=0).refused_blocks) == (1, 1)
    assert net.invariants.ok


def test_what_code_says_is_one_line() -> None:
    _, records = recorded(HandMadeParachain(WASM), PANIC + b"panicked at lib.rs:1:\nevery invariant held\n")
    tally = WasmParachainStatistics()
    for record in records:
        tally.add(replace(record, spec_name="two\nlines", log=("error: a\n\nb",)))
    (said,) = tally.refusals
    assert said.endswith("panicked at lib.rs:1: every invariant held; it logged: error: a b")
    assert tally.outcome(WASM, "", waiting=0).spec_name == "two lines"


@pytest.mark.parametrize(
    ("fields", "invariant"),
    [
        ({"relay_proof": StorageProof([b"\x00"])}, "a Wasm parachain's relay proof has its relay parent's state root"),
        ({"own_proof": StorageProof([b"\x00"])}, "a Wasm parachain's own proof has the state root of the block before"),
        (
            {"shares": (StorageItemShare("Notes", "Notes", 1, 1, 1),)},
            "every byte of a Wasm parachain's own proof has a",
        ),
        ({"results": (b"\x00\x00",) * 9}, "every extrinsic has a result"),
    ],
)
def test_what_does_not_hold_of_a_block_is_a_violation(fields: dict[str, object], invariant: str) -> None:
    net, _ = recorded(Forging(**fields), b"extrinsic")
    assert any(str(violation).startswith(invariant) for violation in net.invariants.violations)


def test_tables_have_a_row_for_each_block_and_one_for_each_item_of_it(tmp_path: Path) -> None:
    _, records = recorded(HandMadeParachain(WASM), b"fine", PANIC + b"no")
    with RunTables(tmp_path, "run", TableRows(runtimes=True)) as tables:
        for record in records:
            tables.add_wasm_block(record)
    blocks, items = pq.read_table(tmp_path / "runtimes.parquet"), pq.read_table(tmp_path / "items.parquet")
    first, second = blocks.to_pylist()
    assert (first["number"], first["refusal"], first["log"]) == (1, None, None)
    assert (second["number"], second["refusal"], second["log"]) == (1, "no", "runtime: about to panic")
    assert second["pov_bytes"] is None
    assert sum(items["proof_bytes"].to_pylist()) == first["own_proof_bytes"]
    assert set(items["pallet"].to_pylist()) == {"System", "Clock", "Mail", "Notes"}


def test_runs_without_wasm_parachains_have_no_tables_of_them(tmp_path: Path) -> None:
    with RunTables(tmp_path, "run", TableRows()):
        pass
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "blocks.parquet",
        "deliveries.parquet",
        "proofs.parquet",
    ]


def test_an_outcome_of_no_blocks_is_all_zero() -> None:
    outcome = asdict(WasmParachainStatistics().outcome(WASM, "", waiting=0))
    assert not any(value for name, value in outcome.items() if isinstance(value, int) and name != "para_id")
